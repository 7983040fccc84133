# SPDX-License-Identifier: Apache-2.0
"""Rendered arguments: lists, numbers, and missing values, as text or as objects."""

from __future__ import annotations

from typing import Any

import pytest
from airflow.sdk import DAG
from airflow.sdk.exceptions import AirflowFailException
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from airflow_provider_webdata.api.errors import InvalidRequestError
from airflow_provider_webdata.common.arguments import as_list
from airflow_provider_webdata.operators.agent import WebDataAgentOperator
from airflow_provider_webdata.operators.batch_scrape import WebDataBatchScrapeOperator
from airflow_provider_webdata.operators.batch_search import WebDataBatchSearchOperator
from airflow_provider_webdata.operators.crawl import WebDataCrawlOperator
from airflow_provider_webdata.operators.credit_usage import WebDataCreditUsageOperator
from airflow_provider_webdata.operators.interact import WebDataInteractOperator
from airflow_provider_webdata.operators.monitor import (
    WebDataCreateMonitorOperator,
    WebDataDeleteMonitorOperator,
    WebDataRunMonitorOperator,
)
from airflow_provider_webdata.operators.parse import WebDataParseOperator
from airflow_provider_webdata.operators.scrape import WebDataScrapeOperator
from airflow_provider_webdata.operators.search import WebDataSearchOperator
from airflow_provider_webdata.results.tagged_items import tagged, untagged
from airflow_provider_webdata.runs.request import checked_extra_body, checked_number, request_body
from airflow_provider_webdata.sensors.job import WebDataJobSensor
from airflow_provider_webdata.sensors.monitor import WebDataMonitorCheckSensor
from airflow_provider_webdata.transfers.webdata_to_table import WebDataToTableOperator
from tests.support import direct
from tests.support.direct import TaskInstance, context_of
from tests.support.service import connection_text

LISTS = [
    (None, []),
    ("", []),
    (" ", []),
    ("a", ["a"]),
    ('["a", {"b": 1}]', ["a", {"b": 1}]),
    ('{"a": 1}', [{"a": 1}]),
    ({"a": 1}, [{"a": 1}]),
    (["a", "b"], ["a", "b"]),
    (("a",), ["a"]),
    (5, [5]),
]


@pytest.mark.parametrize(("argument", "items"), LISTS)
def test_lists(argument: Any, items: list[Any]) -> None:
    assert as_list("x", argument) == items


@pytest.mark.parametrize(
    ("argument", "value"), [(None, None), ("5", 5.0), (0, 0.0), (1.5, 1.5), ("10", 10.0)]
)
def test_numbers(argument: Any, value: float | None) -> None:
    assert checked_number("a call", "most", argument, 10) == value


@pytest.mark.parametrize("argument", [-1, 10.1, "many", True, "nan", "inf", [5], "", " "])
def test_what_is_no_number_in_range(argument: Any) -> None:
    with pytest.raises(InvalidRequestError, match="most: must be a number of at least 0 and at most 10"):
        checked_number("a call", "most", argument, 10)


@given(
    st.dictionaries(
        st.sampled_from(["source", "own_source", "own_own_source", "query", "own_query", "own_url", "url"]),
        st.text(),
    )
)
def test_a_result_is_what_it_was_before_it_was_tagged(item: dict[str, str]) -> None:
    """Also where it has a field of its own that is named like a tag."""
    marked = tagged(item, query="q", source="news")
    assert (marked["query"], marked["source"]) == ("q", "news")
    assert sorted(map(str, marked.values())) == sorted(["q", "news", *item.values()])
    assert untagged(marked, "query", "source") == item


def test_sets_have_the_same_order_in_each_attempt() -> None:
    """Otherwise, a retry would send another request, which is billed, too."""
    names = [f"https://a.example/{number}" for number in range(20)]
    task = WebDataBatchScrapeOperator(
        task_id="t", urls={*names}, formats=[{"type": "json", "schema": {"required": frozenset(names)}}]
    )
    body = request_body(task)
    assert body["urls"] == body["formats"][0]["schema"]["required"] == sorted(names)
    task.extra_body = {"tags": {*names}}
    assert checked_extra_body(task, "a call") == {"tags": sorted(names)}


@pytest.mark.says("the message names the task that returned it")
def test_a_required_argument_that_is_none_names_its_source(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_WEBDATA_DEFAULT", connection_text("http://127.0.0.1:9", retry_budget=0))
    with DAG("d", schedule=None):
        upstream = WebDataScrapeOperator(task_id="pick", url="https://a.example/")
        task = WebDataSearchOperator(
            task_id="t",
            query=upstream.output["word"],
            limit=upstream.output["limit"],
            save_to="/tmp/x.jsonl",
        )
    text = str(direct.run(task).error)
    assert "query is None: its value comes from XCom 'word' of task 'pick'. Return a value there" in text
    task.query = None  # As Airflow makes a task of an item that is None.
    with pytest.raises(AirflowFailException, match="query is None at map index 3: its value comes from pick"):
        task.execute(context_of(TaskInstance(map_index=3)))
    alone: Any = WebDataSearchOperator(task_id="alone", query=None)  # type: ignore[arg-type]
    with pytest.raises(AirflowFailException, match="query is None: pass a value"):
        alone.execute(context_of(TaskInstance()))
    with pytest.raises(
        AirflowFailException, match="at map index 0: its value comes from the list that is mapped over"
    ):
        alone.execute(context_of(TaskInstance(map_index=0)))


@pytest.mark.parametrize(
    ("operator", "name", "arguments"),
    [
        (WebDataInteractOperator, "scrape_id", {"steps": ["1"]}),
        (WebDataParseOperator, "file", {}),
        (WebDataBatchSearchOperator, "queries", {"save_to": "a.jsonl"}),
        (WebDataRunMonitorOperator, "monitor_id", {}),
        (WebDataJobSensor, "job_id", {"kind": "crawl"}),
        (WebDataMonitorCheckSensor, "check_id", {"monitor_id": "m"}),
        (
            WebDataCreateMonitorOperator,
            "max_credits_per_month",
            {"name": "n", "schedule": "0 5 * * *", "targets": ["https://a.example/"]},
        ),
        (WebDataCreditUsageOperator, "min_remaining", {}),
    ],
)
def test_a_task_is_not_executed_about_nothing(operator: Any, name: str, arguments: Any) -> None:
    """Without its subject, a task would open another browser, or wait for any check; without its limit, overspend."""
    with DAG("d", schedule=None):
        upstream = WebDataScrapeOperator(task_id="pick", url="https://a.example/")
        task = operator(task_id="t", **arguments, **{name: upstream.output})
    error = str(direct.run(task).error)
    assert (
        f"{name} is None: its value comes from XCom 'return_value' of task 'pick'. Return a value there"
        in error
    )


@pytest.mark.parametrize(
    ("operator", "name", "arguments"),
    [
        (WebDataSearchOperator, "credit_limit", {"query": "x"}),
        (WebDataBatchScrapeOperator, "max_error_ratio", {"urls": ["https://a.example/"]}),
    ],
)
def test_a_limit_that_renders_to_none_is_not_lifted(operator: Any, name: str, arguments: Any) -> None:
    with DAG("d", schedule=None, render_template_as_native_obj=True):
        task = operator(task_id="t", **arguments, **{name: "{{ none }}"})
    assert f"{name} is None: its value comes from the template '{{{{ none }}}}'. Change it" in str(
        direct.run(task).error
    )


MONITOR_ID = "0190c0de-0000-7000-8000-000000000001"


@pytest.mark.parametrize("operator", [WebDataRunMonitorOperator, WebDataMonitorCheckSensor])
@pytest.mark.parametrize("result", [{"id": MONITOR_ID}, {"id": "of a check", "monitorId": MONITOR_ID}])
def test_the_result_of_a_task_about_a_monitor_is_its_id(operator: Any, result: dict[str, str]) -> None:
    with DAG("d", schedule=None):
        keep = WebDataCreateMonitorOperator(
            task_id="keep", name="n", schedule="0 5 * * *", targets=["https://a.example/"]
        )
        task = operator(task_id="t", monitor_id=keep.output)
    task.monitor_id = result
    task.render_template_fields(context_of(TaskInstance()))
    assert task.monitor_id == MONITOR_ID


class Plan(BaseModel):
    price: float


def test_a_pydantic_model_is_not_rendered() -> None:
    task = WebDataAgentOperator(task_id="t", schema=Plan, prompt="{{ 'Cheapest' }}")
    task.render_template_fields(context_of(TaskInstance()))
    assert request_body(task)["schema"] == Plan.model_json_schema()


URL = {"url": "https://a.example/"}
BATCH = {"queries": ["q"], "save_to": "a.jsonl"}
REFUSED = {
    "limit of nothing": (WebDataCrawlOperator, {**URL, "limit": 5}, {"limit": None}, "limit is empty"),
    "limit of None": (WebDataCrawlOperator, {**URL, "limit": 5}, {"limit": "None"}, "limit is empty"),
    "two webhooks": (
        WebDataCrawlOperator,
        {**URL, "attach_webhook": True, "webhook": {"url": "https://b.example/"}},
        {},
        "attach_webhook=True and webhook are mutually exclusive",
    ),
    "monitor None": (WebDataDeleteMonitorOperator, {"monitor_id": "m"}, {"monitor_id": "None"}, "monitor_id is 'None'"),
    "schedule that is text": (
        WebDataCreateMonitorOperator,
        {"name": "n", "schedule": {"text": "daily"}, "targets": [{"type": "scrape", "urls": ["https://a.example"]}]},
        {"schedule": "dayly"},
        "schedule",
    ),
    "no folder": (WebDataScrapeOperator, {**URL, "media_to": "/x"}, {"media_to": ""}, "must name a folder"),
    "folder None": (WebDataScrapeOperator, {**URL, "media_to": "/x"}, {"media_to": "None"}, "must name a folder"),
    "unknown login for media": (
        WebDataScrapeOperator, {**URL, "media_to": "file://nope@/x"}, {}, "correct the part before @",
    ),
    "no scrape": (WebDataInteractOperator, {"steps": ["1"], "scrape_id": "s"}, {"scrape_id": ""}, "scrape_id is empty"),
    "steps by number": (WebDataInteractOperator, {"steps": ["1"]}, {"steps": 5}, "step 1 of 1: "),
    "no query": (WebDataBatchSearchOperator, BATCH, {"queries": ["a", None]}, "queries, item 2: is None"),
    "queries by number": (WebDataBatchSearchOperator, BATCH, {"queries": 5}, "queries, item 1: "),
    **{
        f"credit limit of {name}": (
            operator, arguments, {"credit_limit": "many"},
            f"{name}: nothing was sent, the request has a problem:\n  - credit_limit: must be a number of at least 0",
        )
        for name, operator, arguments in (
            ("crawl", WebDataCrawlOperator, URL), ("interact", WebDataInteractOperator, {"steps": ["1"]}),
            ("scrape", WebDataScrapeOperator, URL), ("batch search", WebDataBatchSearchOperator, BATCH),
        )
    },
    "unknown storage": (WebDataParseOperator, {"file": "foo://b/x.pdf"}, {}, "file: foo://b/x.pdf: this storage"),
    "unknown login": (WebDataParseOperator, {"file": "file://nope@/x.pdf"}, {}, "connection 'nope' does not exist"),
}  # fmt: skip


@pytest.mark.parametrize(("operator", "arguments", "rendered", "words"), REFUSED.values(), ids=REFUSED.keys())
def test_what_cannot_work_fails_for_good_before_any_call(
    operator: Any, arguments: Any, rendered: Any, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A call would fail too, but with other words: nobody listens there.
    monkeypatch.setenv("AIRFLOW_CONN_WEBDATA_DEFAULT", connection_text("http://127.0.0.1:9", retry_budget=0))
    task = operator(task_id="t", **arguments)
    for name, value in rendered.items():
        setattr(task, name, value)
    with pytest.raises(AirflowFailException) as caught:
        task.execute(context_of(TaskInstance()))
    assert words in str(caught.value)


def test_native_rendering_leaves_text_without_a_template_unchanged() -> None:
    schema = {"type": "object", "properties": {"year": {"enum": ["2026", "None", "3.10", "{{ 1 + 1 }}"]}}}
    dag = DAG("d", schedule=None, render_template_as_native_obj=True)
    search = WebDataSearchOperator(task_id="s", query='"river level"', limit="{{ 1 + 2 }}", dag=dag)
    scrape = WebDataScrapeOperator(
        task_id="p", url="2026", formats=[{"type": "json", "schema": schema}], save_to="[1]\n.jsonl", dag=dag
    )
    table = WebDataToTableOperator(task_id="t", path=["1.10", "{{ 2 }}"], conn_id="c", table="2026", dag=dag)
    for task in (search, scrape, table):
        task.render_template_fields({})
    assert (search.query, search.limit) == ('"river level"', 3)
    enum = scrape.formats[0]["schema"]["properties"]["year"]["enum"]
    assert enum == ["2026", "None", "3.10", 2]
    assert (scrape.url, scrape.save_to) == ("2026", "[1]\n.jsonl")
    assert (table.path, table.table) == (["1.10", 2], "2026")


def test_a_dag_with_other_template_marks_is_rendered() -> None:
    marks = {"variable_start_string": "[[", "variable_end_string": "]]"}
    dag = DAG("d", schedule=None, jinja_environment_kwargs=marks)
    search = WebDataSearchOperator(task_id="s", query="[[ 'river' ]]", dag=dag)
    search.render_template_fields({})
    assert search.query == "river"


@pytest.mark.parametrize("name", ["save_to", "media_to", "changes"])
def test_a_destination_without_a_value_is_refused(name: str) -> None:
    """Without it, the results would go to XCom, or be compared with nothing."""
    dag = DAG("d", schedule=None, render_template_as_native_obj=True)
    arguments: dict[str, Any] = {name: "{{ none }}"}
    task = WebDataScrapeOperator(task_id="p", url="https://a.example/", dag=dag, **arguments)
    task.render_template_fields({})
    with pytest.raises(AirflowFailException, match=f"{name} is None"):
        task.execute(context_of(TaskInstance()))
