"""Two statements of the rules, made apart: a request that the models take is none that the sandbox refuses."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_webdata.api import models as m
from airflow_provider_webdata.sandbox.reference.rules import check
from tests.unit.api.models.limits import within
from tests.unit.api.models.test_pages_and_jobs import REQUESTS, ROWS
from tests.unit.api.models.test_properties import BROAD

OPERATIONS: dict[type[m.RequestModel], str] = {
    m.ScrapeRequest: "scrape",
    m.BatchScrapeRequest: "batch.scrape",
    m.CrawlRequest: "crawl",
    m.CrawlParamsRequest: "crawl.params",
    m.MapRequest: "map",
}


def refused(model: type[m.RequestModel], body: dict[str, Any]) -> list[str]:
    """Return what the sandbox says against a body, apart from the fields that the model warns of.

    Rules that only the source code of the service shows are for the service to check: the models warn of them.
    """
    warned = {doubt.partition(":")[0].rpartition(".")[2] for doubt in model.model_validate(body).warnings()}
    found = check(OPERATIONS[model], body)
    return [
        f"{issue.path}: {issue.message}" for issue in found if not warned & {str(part) for part in issue.path}
    ]


@within(ROWS)
def test_what_is_within_the_limits(model: type[m.RequestModel], body: dict[str, Any]) -> None:
    assert refused(model, body) == []


@pytest.mark.parametrize("model", REQUESTS)
@BROAD
@given(data=st.data())
def test_any_valid_request(model: type[m.RequestModel], data: st.DataObject) -> None:
    body = data.draw(REQUESTS[model])
    # Which of the drawn names could be a host of the web is for the service to say.
    if "url" in body:
        body["url"] = "https://a.example/start"
    if "urls" in body:
        body["urls"] = ["https://a.example/start"]
    assert refused(model, body) == []
