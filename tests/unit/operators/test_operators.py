"""What the operators take: every documented field, by keyword, templated."""

from __future__ import annotations

import inspect
from datetime import timedelta

import pytest
from airflow.sdk import DAG

from airflow_provider_webdata.api.models import MonitorCreateRequest, MonitorUpdateRequest, SearchRequest
from airflow_provider_webdata.operators.monitor import (
    WebDataCreateMonitorOperator,
    WebDataDeleteMonitorOperator,
    WebDataListMonitorsOperator,
    WebDataRunMonitorOperator,
    WebDataUpdateMonitorOperator,
)
from airflow_provider_webdata.operators.search import WebDataSearchOperator
from airflow_provider_webdata.tasks.header_secrets import header_values

REQUESTS = [
    (WebDataSearchOperator, SearchRequest),
    (WebDataCreateMonitorOperator, MonitorCreateRequest),
    (WebDataUpdateMonitorOperator, MonitorUpdateRequest),
]
OPERATORS = [
    WebDataSearchOperator,
    WebDataCreateMonitorOperator,
    WebDataUpdateMonitorOperator,
    WebDataDeleteMonitorOperator,
    WebDataRunMonitorOperator,
    WebDataListMonitorsOperator,
]


@pytest.mark.parametrize(("operator", "model"), REQUESTS)
def test_every_field_is_a_templated_keyword(operator, model):
    """The request model is the list of documented fields."""
    fields = set(model.model_fields)
    keywords = {
        name
        for name, parameter in inspect.signature(operator.__init__).parameters.items()
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY
    }
    assert set(operator.request_fields) == fields
    assert fields <= keywords
    assert {*fields, "extra_body", "webdata_conn_id"} <= set(operator.template_fields)


@pytest.mark.parametrize("operator", OPERATORS)
def test_every_keyword_is_documented(operator):
    text = inspect.getdoc(operator)
    for name in inspect.signature(operator.__init__).parameters:
        if name != "self":
            assert f":param {name}:" in text, name


REFUSED = {
    "unknown kind of result": (
        WebDataSearchOperator,
        {"query": "q", "returns": "videos"},
        "returns must be one of",
    ),
    "mapping of a list": (
        WebDataSearchOperator,
        {"query": "q", "returns": "web", "multiple_outputs": True},
        "multiple_outputs",
    ),
    "if_exists": (
        WebDataCreateMonitorOperator,
        {"name": "n", "schedule": {}, "targets": [], "if_exists": "replace"},
        "if_exists must be one of update, reuse, error, create",
    ),
    "id of what is to be created": (
        WebDataCreateMonitorOperator,
        {"name": "n", "schedule": {}, "targets": [], "if_exists": "create", "monitor_id": "m"},
        "monitor_id",
    ),
    "neither id nor name": (WebDataUpdateMonitorOperator, {"status": "paused"}, "monitor_id or monitor_name"),
    "id and name": (
        WebDataDeleteMonitorOperator,
        {"monitor_id": "m", "monitor_name": "n"},
        "monitor_id or monitor_name",
    ),
    "body for a request without one": (
        WebDataRunMonitorOperator,
        {"monitor_id": "m", "extra_body": {"a": 1}},
        "extra_body would have no effect",
    ),
    "a span in words": (
        WebDataRunMonitorOperator,
        {"monitor_id": "m", "replica_wait": "3"},
        "replica_wait must be seconds or a timedelta, at least 0",
    ),
    "no span": (
        WebDataSearchOperator,
        {"query": "q", "rate_limit_timeout": None},
        "rate_limit_timeout must be seconds or a timedelta, at least 0",
    ),
    "no pages": (
        WebDataRunMonitorOperator,
        {"monitor_id": "m", "include_pages": None},
        "include_pages must be",
    ),
    "pages by number": (
        WebDataRunMonitorOperator,
        {"monitor_id": "m", "include_pages": 5},
        "include_pages must be",
    ),
    "no events": (
        WebDataCreateMonitorOperator,
        {"name": "n", "schedule": {}, "targets": [], "webhook_events": None},
        "webhook_events must name some of",
    ),
    "events by number": (
        WebDataCreateMonitorOperator,
        {"name": "n", "schedule": {}, "targets": [], "webhook_events": [5]},
        "webhook_events must name some of",
    ),
    "if_running": (WebDataRunMonitorOperator, {"monitor_id": "m", "if_running": "wait"}, "if_running"),
}


@pytest.mark.parametrize(("operator", "arguments", "words"), REFUSED.values(), ids=REFUSED.keys())
def test_contradictions_fail_while_the_dag_is_read(operator, arguments, words):
    """What can be seen without rendering is said to whoever writes the DAG, before it runs."""
    with pytest.raises(ValueError, match=words):
        operator(task_id="t", **arguments)


def test_time_spans():
    operator = WebDataRunMonitorOperator(
        task_id="t", monitor_id="m", replica_wait=timedelta(seconds=3), rate_limit_timeout=timedelta(hours=1)
    )
    assert (operator.replica_wait, operator.rate_limit_timeout) == (3.0, 3600.0)
    assert WebDataSearchOperator(task_id="t", query="q", rate_limit_timeout=0).rate_limit_timeout == 0


def test_dag_survives_serialization():
    """Airflow stores DAGs serialized; the operators hold nothing that cannot be."""
    from airflow.serialization.serialized_objects import DagSerialization

    with DAG("d", schedule=None) as dag:
        WebDataSearchOperator(
            task_id="s", query="q", scrape_options={"formats": [{"type": "json", "schema": {}}]}
        )
        WebDataSearchOperator.partial(task_id="m", limit=3).expand(query=["a", "b"])
        WebDataCreateMonitorOperator(task_id="c", name="n", schedule={"text": "daily"}, targets=[])
    restored = DagSerialization.deserialize_dag(DagSerialization.serialize_dag(dag))
    assert set(restored.task_dict) == {"s", "m", "c"}


VALUES = [
    ({"headers": {"X-Key": "secret-1"}}, ["secret-1"]),
    ([{"scrapeOptions": {"headers": {"Cookie": "secret-2"}}}, {"webhook": {"Headers": {"A": "secret-3"}}}],
     ["secret-2", "secret-3"]),
    ({"headers": {"Accept-Language": "en-US", "User-Agent": "me"}}, []),
    ({"headers": {"X-Number": 12345, "X-None": None, "X-Empty": ""}}, ["12345"]),
    ({"headers": "no mapping", "header": {"X": "y"}}, []),
    ('{"webhook": {"headers": {"X-Key": "secret-4"}}}', ["secret-4"]),
    ({"headers": '{"X-Key": "secret-5"}', "url": "https://a.example/"}, ["secret-5"]),
    ("{'url': 'https://a.example/', 'headers': {'X-Key': 'secret-6'}}", ["secret-6"]),
    ("[{'type': 'scrape', 'scrapeOptions': {'headers': {'X-Key': 'secret-7'}}}]", ["secret-7"]),
    ({"headers": "{'X-Key': 'secret-8'}"}, ["secret-8"]),
    ({"headers": "{'X-Key': undefined}"}, []),
    ({"headers": "{{ not JSON }}"}, []),
    ("plain words about headers", []),
    ('"headers"', []),
    (None, []),
]  # fmt: skip


@pytest.mark.parametrize(("value", "secrets"), VALUES)
def test_header_values(value, secrets):
    """Found at any depth, but for headers that nobody hides."""
    assert list(header_values(value)) == secrets
