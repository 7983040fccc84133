"""Whatever our models of files, extract, agent and sessions send, the sandbox's own statement of the rules takes."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_webdata.api import models as m
from airflow_provider_webdata.sandbox.reference.rules import check
from tests.unit.api.models.limits import within
from tests.unit.api.models.test_files_and_sessions import REQUESTS, ROWS
from tests.unit.api.models.test_properties import BROAD

OPERATIONS: dict[type[m.RequestModel], str] = {
    m.ParseOptions: "parse",
    m.ExtractRequest: "extract",
    m.AgentRequest: "agent",
    m.InteractRequest: "interact",
    m.ExecuteRequest: "interact.execute",
    m.ScrapeInteractRequest: "scrape.interact",
}


@within(ROWS)
def test_up_to_its_limit(model: type[m.RequestModel], body: dict[str, Any]) -> None:
    assert check(OPERATIONS[model], model.model_validate(body).to_wire()) == []


# What both are to refuse; beyond that we refuse more, such as JSON Schemas that are none, and code by its bytes.
BEYOND = [
    *(
        "parse format",
        "parse timeout",
        "parse proxy",
        "parse parser",
        "parse redactPII",
        "parse auditMetadata",
    ),
    *(
        "extract prompt",
        "extract scrapeOptions",
        "extract event",
        "agent prompt",
        "agent model",
        "agent event",
    ),
    *("ttl", "activityTtl", "session profile", "code timeout", "language"),
    *("scrape code timeout", "scrape language", "scrape ttl", "scrape activityTtl"),
]


@pytest.mark.parametrize(
    "model, body",
    [
        pytest.param(ROWS[k][0], ROWS[k][1](v), id=f"{k}-{i}")
        for k in BEYOND
        for i, v in enumerate(ROWS[k][4])
    ],
)
def test_beyond_its_limit(model: type[m.RequestModel], body: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="validation error"):
        model.model_validate(body)
    assert check(OPERATIONS[model], body)


@pytest.mark.parametrize("model", REQUESTS)
@BROAD
@given(data=st.data())
def test_any_valid_request(model: type[m.RequestModel], data: st.DataObject) -> None:
    body = data.draw(REQUESTS[model])
    # Scrape options have rules of the server's source code that are left to the service.
    body.pop("scrapeOptions", None)
    assert check(OPERATIONS[model], model.model_validate(body).to_wire()) == []
