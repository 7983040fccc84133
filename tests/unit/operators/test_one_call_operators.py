"""What the operators of one call, of a session and of many searches take: every documented field, templated."""

from __future__ import annotations

import inspect
import subprocess
import sys
import textwrap

import pytest
from airflow.sdk import DAG

from airflow_provider_webdata.api.models import (
    InteractRequest,
    MapRequest,
    ParseOptions,
    ScrapeRequest,
    SearchRequest,
)
from airflow_provider_webdata.operators.batch_search import WebDataBatchSearchOperator
from airflow_provider_webdata.operators.credit_usage import WebDataCreditUsageOperator
from airflow_provider_webdata.operators.interact import WebDataInteractOperator
from airflow_provider_webdata.operators.map import WebDataMapOperator
from airflow_provider_webdata.operators.parse import WebDataParseOperator
from airflow_provider_webdata.operators.scrape import WebDataScrapeOperator

REQUESTS = [
    (WebDataScrapeOperator, ScrapeRequest, set()),
    (WebDataMapOperator, MapRequest, set()),
    (WebDataParseOperator, ParseOptions, set()),
    (WebDataInteractOperator, InteractRequest, set()),
    (WebDataBatchSearchOperator, SearchRequest, {"query"}),
]
OPERATORS = [*(operator for operator, _, _ in REQUESTS), WebDataCreditUsageOperator]
OWN_TEMPLATED = {
    WebDataParseOperator: {"file", "filename", "output_url", "save_media"},
    WebDataInteractOperator: {"steps", "scrape_id", "language", "step_timeout"},
    WebDataBatchSearchOperator: {"queries", "max_credits", "max_error_ratio", "output_url"},
    WebDataCreditUsageOperator: {"min_remaining", "min_remaining_percent"},
    WebDataScrapeOperator: {"output_url", "save_media"},
    WebDataMapOperator: {"output_url"},
}


@pytest.mark.parametrize(("operator", "model", "replaced"), REQUESTS)
def test_every_field_is_a_templated_keyword(operator, model, replaced):
    """The request model is the list of documented fields."""
    fields = set(model.model_fields) - replaced
    keywords = {
        name
        for name, parameter in inspect.signature(operator.__init__).parameters.items()
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY
    }
    assert set(operator.request_fields) == fields
    assert fields <= keywords
    assert {*fields, "extra_body", "webdata_conn_id"} <= set(operator.template_fields)


@pytest.mark.parametrize("operator", OPERATORS)
def test_what_is_templated_exists(operator):
    """Airflow renders these attributes; each is set by the constructor, and shown in a fitting way."""
    assert OWN_TEMPLATED[operator] <= set(operator.template_fields)
    assert set(operator.template_fields_renderers) <= {*operator.template_fields, "extra_body"}
    required = {"url": "https://a.example/", "file": "a.pdf", "steps": ["x"], "queries": ["q"]}
    parameters = inspect.signature(operator.__init__).parameters
    made = operator(task_id="t", **{name: value for name, value in required.items() if name in parameters})
    for name in operator.template_fields:
        assert hasattr(made, name), name


@pytest.mark.parametrize("operator", OPERATORS)
def test_every_keyword_is_documented(operator):
    text = inspect.getdoc(operator)
    for name in inspect.signature(operator.__init__).parameters:
        if name != "self":
            assert f":param {name}:" in text, name


URL = {"url": "https://a.example/"}
REFUSED = {
    "kind of map result": (WebDataMapOperator, {**URL, "returns": "pages"}, "returns must be one of links, urls"),
    "a list that goes to a file": (
        WebDataMapOperator, {**URL, "returns": "urls", "output": "/x.jsonl"}, "no effect with output",
    ),
    "format of the output": (WebDataScrapeOperator, {**URL, "output": "/x.csv"}, "jsonl"),
    "what low credits lead to": (WebDataCreditUsageOperator, {"on_low": "warn"}, "on_low must be one of fail, skip"),
    "body for a request without one": (WebDataCreditUsageOperator, {"extra_body": {"a": 1}}, "no effect"),
    "a profile for a scrape's browser": (
        WebDataInteractOperator, {"steps": ["x"], "scrape_id": "i", "profile": {}}, "profile: without effect",
    ),
    "no concurrency": (WebDataBatchSearchOperator, {"queries": ["q"], "max_concurrency": 0}, "max_concurrency"),
    "concurrency that is no number": (
        WebDataBatchSearchOperator, {"queries": ["q"], "max_concurrency": "10"}, "max_concurrency",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("operator", "arguments", "words"), REFUSED.values(), ids=REFUSED.keys())
def test_contradictions_fail_while_the_dag_is_read(operator, arguments, words):
    """What can be seen without rendering is said to whoever writes the DAG, before it runs."""
    with pytest.raises(ValueError, match=words):
        operator(task_id="t", **arguments)


def test_dag_survives_serialization():
    """Airflow stores DAGs serialized; the operators hold nothing that cannot be."""
    from airflow.serialization.serialized_objects import DagSerialization

    with DAG("d", schedule=None) as dag:
        WebDataMapOperator(task_id="map", url="https://a.example/", returns="urls")
        WebDataScrapeOperator.partial(task_id="scrape", output="/x/{{ ti.map_index }}.jsonl").expand(
            url=["a", "b"]
        )
        WebDataParseOperator(task_id="parse", file="s3://c@b/k.pdf", parsers=[{"type": "pdf"}])
        WebDataInteractOperator(task_id="interact", steps=["x", {"code": "y"}], profile={"name": "p"})
        WebDataCreditUsageOperator(task_id="credits", min_remaining=5, on_low="skip")
        WebDataBatchSearchOperator(task_id="many", queries=["q", {"query": "r"}], max_credits=10)
    restored = DagSerialization.deserialize_dag(DagSerialization.serialize_dag(dag))
    assert set(restored.task_dict) == {"map", "scrape", "parse", "interact", "credits", "many"}


MODULES = ["scrape", "map", "parse", "interact", "credit_usage", "batch_search"]
HEAVY = ["pydantic", "httpx", "tenacity", "pyarrow", "fsspec", "anyio", "airflow_provider_webdata.api"]


@pytest.mark.parametrize("module", MODULES)
def test_a_dag_file_does_not_pay_for_what_tasks_need(module):
    """Importing an operator brings in none of the heavy packages that airflow.sdk has not brought in already."""
    code = f"""
        import sys
        from airflow.sdk import DAG, BaseOperator
        from airflow.sdk.exceptions import AirflowException
        from airflow.sdk.configuration import conf
        before = set(sys.modules)
        import airflow_provider_webdata.operators.{module}
        print(*(set(sys.modules) - before))
    """
    told = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=True
    )
    brought = told.stdout.split()
    assert f"airflow_provider_webdata.operators.{module}" in brought
    assert [name for name in brought if name.startswith(tuple(HEAVY))] == []
