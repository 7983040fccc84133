"""What a page came to: documents and their metadata, however odd."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from airflow_provider_webdata.api import models as m
from tests.unit.api.models.answers import DOCUMENT
from tests.unit.api.models.limits import SITE, UUID

DOCUMENTED: list[tuple[type[m.ResponseModel], dict[str, Any]]] = [
    (m.ScrapeResponse, {"success": True, "data": DOCUMENT}),
]


@pytest.mark.rule("document-text", "document-lists", "document-answers", "document-change-tracking")
@pytest.mark.rule("document-brand", "document-pdf-pages", "document-blocks", "document-actions")
@pytest.mark.rule("document-warning", "document-metadata", "metadata-texts", "metadata-open")
@pytest.mark.rule("metadata-status", "metadata-scrape-id", "metadata-credits", "metadata-source-file")
@pytest.mark.rule("scrape-answer")
@pytest.mark.parametrize("model, body", DOCUMENTED)
def test_a_documented_answer_comes_back_as_it_was(model: type[m.ResponseModel], body: dict[str, Any]) -> None:
    assert model.model_validate_json(json.dumps(body)).to_wire() == body
    newer = {**body, "xNew": {"a": [None]}}
    assert model.model_validate_json(json.dumps(newer)).to_wire() == newer


@pytest.mark.parametrize(
    "model, body",
    [
        (m.ScrapeResponse, {"success": True}),
        (m.ScrapeResponse, {"success": True, "data": None}),
    ],
)
def test_what_is_no_such_answer_is_an_error(model: type[m.ResponseModel], body: Any) -> None:
    with pytest.raises(ValidationError):
        model.model_validate_json(json.dumps(body))


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
names_of_a_document = st.sampled_from(
    sorted(field.alias or name for name, field in m.Document.model_fields.items())
)
names_of_metadata = st.sampled_from(
    sorted(field.alias or name for name, field in m.PageMetadata.model_fields.items())
)


@pytest.mark.rule("open-responses")
@given(
    metadata=st.dictionaries(names_of_metadata | st.text(max_size=8), json_values, max_size=6),
    fields=st.dictionaries(names_of_a_document | st.text(max_size=8), json_values, max_size=6),
)
def test_no_page_however_odd_costs_the_others(metadata: dict[str, Any], fields: dict[str, Any]) -> None:
    odd = {**fields, "metadata": metadata}
    body = {"status": "completed", "data": [odd, DOCUMENT]}
    found = m.JobStatus.model_validate_json(json.dumps(body))
    assert found.data is not None
    assert found.data[1].markdown == "# a"
    wire = found.to_wire()["data"][0]
    assert {**wire, "metadata": None} == {**odd, "metadata": None}
    # A number written as text is read as the number that it is.
    assert wire["metadata"].keys() == metadata.keys()


@pytest.mark.rule("open-responses")
@pytest.mark.parametrize(
    "model",
    [
        m.Document,
        m.PageMetadata,
        m.ChangeTracking,
        m.ActionResults,
        m.WebResult,
    ],
)
@pytest.mark.parametrize("value", [7.5, "x", True, ["x", 7], [["x"]], {"a": {"b": None}}], ids=repr)
def test_a_field_of_any_shape_stays_as_it_came(model: type[m.ResponseModel], value: Any) -> None:
    own = m.WebResult.model_fields.keys() - m.PageContent.model_fields.keys()
    for name, field in model.model_fields.items():
        if name in own:
            continue
        body = {field.alias or name: value}
        assert model.model_validate_json(json.dumps(body)).to_wire() == body
        assert model.model_validate(body).to_wire() == body


def test_python_names_lead_to_wire_names() -> None:
    document = m.ScrapeResponse.model_validate({"data": DOCUMENT}).data
    assert document.raw_html == "<p>"
    assert document.actions is not None
    assert document.actions.javascript_returns == [{"type": "number", "value": 4}]
    assert document.change_tracking is not None
    assert document.change_tracking.json_ == {"price": {"previous": 1, "current": 2}}
    assert document.metadata is not None
    assert (document.metadata.scrape_id, document.metadata.source_url) == (UUID, SITE)
