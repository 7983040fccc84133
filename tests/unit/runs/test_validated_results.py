# SPDX-License-Identifier: Apache-2.0
"""Results that are checked against a schema are marked, counted, reported, and still delivered."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk import DAG
from airflow.sdk.exceptions import AirflowFailException
from airflow.serialization.serialized_objects import DagSerialization
from pydantic import BaseModel, RootModel

from airflow_provider_webdata.operators.agent import WebDataAgentOperator
from airflow_provider_webdata.operators.batch_search import WebDataBatchSearchOperator
from airflow_provider_webdata.operators.crawl import WebDataCrawlOperator
from airflow_provider_webdata.operators.parse import WebDataParseOperator
from airflow_provider_webdata.operators.scrape import WebDataScrapeOperator
from airflow_provider_webdata.operators.search import WebDataSearchOperator
from airflow_provider_webdata.results.tagged_items import untagged
from airflow_provider_webdata.results.tombstones import Tombstone
from airflow_provider_webdata.runs.failures import InvalidResultsError
from airflow_provider_webdata.runs.jobs.results import JobResult
from airflow_provider_webdata.runs.publishing.step import Results
from airflow_provider_webdata.sensors.job import WebDataJobSensor
from tests.support.direct import TaskInstance, context_of
from tests.support.service import connection_text

SCHEMA = {"type": "object", "properties": {"price": {"type": "number"}}, "required": ["price"]}
FORMATS = ["markdown", {"type": "json", "schema": SCHEMA}]
WRONG = ['price: breaks "type": "number"']


class Price(BaseModel):
    price: float


@pytest.fixture(autouse=True)
def _connection(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_WEBDATA_DEFAULT", connection_text("https://host.example"))


def page(number: int, **more: Any) -> dict[str, Any]:
    return {"markdown": f"{number}", "metadata": {"sourceURL": f"https://a.example/{number}"}, **more}


PAGES = [
    page(0, json={"price": 1}),
    page(1, json={"price": "x"}),
    page(2, change="removed"),
    {**page(3, json={"price": 2}), "metadata": {"sourceURL": "https://a.example/3", "statusCode": 404}},
    {**page(4), "metadata": {"sourceURL": "https://a.example/4", "error": "timed out"}},
    Tombstone("document", change="removed", url="https://a.example/5"),
    {"url": "https://a.example/6", "imageUrl": "https://a.example/6.png"},
]
REPORT = {
    "checked": 3,
    "invalid": 2,
    "failed": 2,
    "items": [
        {"index": 1, "url": "https://a.example/1", "errors": WRONG},
        {"index": 2, "url": "https://a.example/2", "errors": ["json: missing from the page"]},
    ],
}


def delivered(task: Any, items: list[Any], kind: str) -> tuple[Any, TaskInstance]:
    ti = TaskInstance()
    context: Any = context_of(ti)
    return task._new_run(context).publish(Results(iter(items), kind, {"id": "1"})), ti


TASKS: dict[str, Any] = {
    "scrape": lambda **more: WebDataScrapeOperator(task_id="t", url="https://a.example", **more),
    "parse": lambda **more: WebDataParseOperator(task_id="t", file="s3://bucket/a.pdf", **more),
    "crawl": lambda formats, **more: WebDataCrawlOperator(
        task_id="t", url="https://a.example", scrape_options={"formats": formats}, **more
    ),
    "search": lambda formats, **more: WebDataSearchOperator(
        task_id="t", query="q", scrape_options={"formats": formats}, **more
    ),
}


@pytest.mark.parametrize("made", TASKS.values(), ids=TASKS.keys())
def test_pages_are_held_against_the_schema_of_the_request(made: Any) -> None:
    result, ti = delivered(made(formats=FORMATS), PAGES, "document")
    assert ti.xcom["validation"] == result["validation"] == REPORT
    marked = [{"validationErrors": found["errors"], **PAGES[found["index"]]} for found in REPORT["items"]]  # type: ignore[attr-defined]
    failures = ("the site responded with status 404", "timed out")
    marked += [
        {"validationErrors": [f"not validated: {why}"], **item}
        for why, item in zip(failures, PAGES[3:5], strict=True)
    ]
    assert result["data"] == [PAGES[0], *marked, *PAGES[5:]]


class Prices(RootModel[list[Price]]):
    pass


EXTRACTED = ["markdown", {"type": "json", "prompt": "p"}]
LISTS: dict[str, Any] = {
    "list": {"type": "array", "items": SCHEMA},
    "reference": {"$ref": "#/$defs/prices", "$defs": {"prices": {"type": "array", "items": SCHEMA}}},
    "list or null": {"type": ["array", "null"], "items": SCHEMA},
    "model": Prices.model_json_schema(),
}
PRICES_OF_PAGES = [
    page(0, json=[{"price": 1}, {"price": 2.5}]),
    page(1, json=[]),
    page(2, json={"price": 1}),
    page(3, json=[{"price": 1}, {"price": "x"}]),
]


@pytest.mark.parametrize("schema", LISTS.values(), ids=LISTS)
@pytest.mark.parametrize("made", TASKS.values(), ids=TASKS.keys())
def test_the_json_of_a_page_is_the_whole_list(made: Any, schema: Any) -> None:
    formats = ["markdown", {"type": "json", "schema": schema}]
    result, _ = delivered(made(formats=formats), PRICES_OF_PAGES, "document")
    assert [found["index"] for found in result["validation"]["items"]] == [2, 3]
    assert result["validation"]["items"][1]["errors"] == ['1.price: breaks "type": "number"']


@pytest.mark.parametrize("made", TASKS.values(), ids=TASKS.keys())
def test_a_list_has_no_columns_of_its_elements(made: Any, tmp_path: Any) -> None:
    from pyarrow import parquet

    path = str(tmp_path / "pages.parquet")
    result, _ = delivered(
        made(formats=EXTRACTED, result_schema=Prices, save_to=path), PRICES_OF_PAGES, "document"
    )
    assert [found["index"] for found in result["validation"]["items"]] == [2, 3]
    table = parquet.read_table(path)
    assert not [name for name in table.column_names if name.startswith("json_")]
    assert json.loads(table["json"][0].as_py()) == PRICES_OF_PAGES[0]["json"]


def test_the_data_of_an_agent_has_rows_of_a_list() -> None:
    task = WebDataAgentOperator(task_id="t", prompt="p", schema=LISTS["model"])
    result, _ = delivered(task, [{"price": 1}, {"price": "x"}], "generic")
    assert [found["index"] for found in result["validation"]["items"]] == [1]


def test_without_a_schema_nothing_is_judged() -> None:
    task = TASKS["scrape"](formats=["markdown", {"type": "json", "prompt": "p"}])
    result, ti = delivered(task, PAGES, "document")
    assert (result["data"], "validation" in ti.xcom) == (PAGES, False)


def test_searches_with_schemas_of_their_own_are_not_judged_by_one(tmp_path: Path) -> None:
    other = {"query": "b", "scrape_options": {"formats": [{"type": "json", "schema": {"type": "object"}}]}}
    for queries, is_judged in ((["a", {"query": "b"}], True), (["a", other], False)):
        task = WebDataBatchSearchOperator(
            task_id="t",
            queries=queries,
            scrape_options={"formats": FORMATS},
            save_to=f"{tmp_path}/a.jsonl",
        )
        assert ("validation" in delivered(task, PAGES, "search")[1].xcom) is is_judged


@pytest.mark.parametrize("schema", [SCHEMA, Price, f"{__name__}.Price"], ids=["mapping", "model", "path"])
def test_a_schema_of_its_own_comes_before_that_of_the_request(schema: Any) -> None:
    task = WebDataJobSensor(task_id="t", kind="agent", job_id="1", result_schema=schema)
    assert delivered(task, [{"price": "x"}, {"price": 2}], "generic")[0]["validation"]["invalid"] == 1
    task = WebDataAgentOperator(
        task_id="t", prompt="p", schema={"type": "array", "items": False}, result_schema=schema
    )
    assert delivered(task, [{"price": 2}], "generic")[0]["validation"]["invalid"] == 0


WRAPPED: dict[str, tuple[Any, list[Any], int]] = {
    "texts": ({"type": "array", "items": {"type": "string"}}, [{"value": "a"}, {"value": 7}], 1),
    "no data": (SCHEMA, [{"value": None}], 1),
    "a property of that name": ({"type": "object", "required": ["value"]}, [{"value": 7}], 0),
    "no such schema": ({"type": "object", "properties": {"a": {"$ref": "https://x.example"}}}, [{}], 0),
}


@pytest.mark.parametrize(("schema", "items", "invalid"), WRAPPED.values(), ids=WRAPPED.keys())
def test_data_of_any_shape(schema: Any, items: list[Any], invalid: int) -> None:
    task = WebDataAgentOperator(task_id="t", prompt="p", schema=schema)
    result, _ = delivered(task, items, "generic")
    assert result.get("validation", {"invalid": 0})["invalid"] == invalid


def test_typed_rows(tmp_path: Any) -> None:
    from pyarrow import parquet

    path = str(tmp_path / "found.parquet")
    task = WebDataAgentOperator(task_id="t", prompt="p", schema=SCHEMA, save_to=path)
    value, _ = delivered(task, [{"price": 1}, {"price": "x"}], "generic")
    assert (value["count"], value["validation"]["invalid"]) == (2, 1)
    assert parquet.read_table(path).to_pylist() == [
        {"price": 1.0, "extra": None, "validation_errors": None},
        {"price": None, "extra": '{"price":"x"}', "validation_errors": json.dumps(WRONG)},
    ]


def test_reported_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    delivered(TASKS["scrape"](formats=FORMATS), PAGES, "document")
    assert (
        f"2 of 3 results are invalid: https://a.example/1: {WRONG[0]}; https://a.example/2: json: missing from the page"
        in caplog.text
    )
    delivered(TASKS["scrape"](formats=FORMATS), PAGES[:1], "document")
    assert "All 1 results are valid" in caplog.text


def test_at_most_a_hundred_are_listed() -> None:
    result, _ = delivered(TASKS["scrape"](formats=FORMATS), [page(n) for n in range(300)], "document")
    assert result["validation"]["invalid"] == 300
    assert len(result["validation"]["items"]) == 100


def test_fail_delivers_first(tmp_path: Any) -> None:
    path = tmp_path / "found.jsonl"
    task = TASKS["crawl"](formats=FORMATS, on_invalid_result="fail", save_to=str(path))
    value, ti = delivered(task, PAGES, "document")
    with pytest.raises(AirflowFailException, match=r"2 of 3 results are invalid: [\s\S]* \(WD-061\)"):
        task._run.finished(value)
    assert ti.xcom["return_value"] == value
    assert len(path.read_text().splitlines()) == len(PAGES)


@pytest.mark.parametrize("items", [PAGES[:1], [], PAGES[3:5]])
def test_fail_lets_pass_what_is_valid(items: list[Any]) -> None:
    task = TASKS["crawl"](formats=FORMATS, on_invalid_result="fail")
    value, _ = delivered(task, items, "document")
    assert task._run.finished(value) is value


def test_refused_while_the_dag_is_read() -> None:
    with pytest.raises(ValueError, match="result_schema must be"):
        TASKS["scrape"](formats=FORMATS, result_schema=7)


@pytest.mark.parametrize("schema", [{"type": "strin"}, "no_such.module.Model"])
def test_refused_before_anything_is_paid_for(schema: Any) -> None:
    run = TASKS["scrape"](formats=FORMATS, result_schema=schema)._new_run(context_of(TaskInstance()))
    with pytest.raises(AirflowFailException, match="result_schema"):
        run.prepare_publication()


@pytest.mark.parametrize("schema", [SCHEMA, Price, f"{__name__}.Price"], ids=["mapping", "model", "path"])
def test_a_dag_with_a_schema_is_stored(schema: Any) -> None:
    with DAG("d", schedule=None) as dag:
        TASKS["scrape"](formats=FORMATS, result_schema=schema)
        WebDataScrapeOperator.partial(task_id="m", result_schema=schema).expand(url=["https://a.example"])
    stored = DagSerialization.serialize_dag(dag)
    assert set(DagSerialization.deserialize_dag(json.loads(json.dumps(stored))).task_dict) == {"t", "m"}


COMPANIES = {
    "type": "object",
    "properties": {
        "companies": {"type": "array", "items": {"$ref": "#/$defs/company"}},
        "deep": {"type": "object", "properties": {"list": {"type": "array", "items": SCHEMA}}},
    },
    "$defs": {"company": SCHEMA},
}
ROWS: dict[str, tuple[str, Any, list[Any], Any, int]] = {
    "a list": ("companies", {"companies": [{"price": 1}, {}], "n": 2}, [{"price": 1}, {}], {"n": 2}, 1),
    "a deep list": (
        "deep.list",
        {"deep": {"list": [{"price": "x"}], "a": 1}, "b": 2},
        [{"price": "x"}],
        {"deep": {"a": 1}, "b": 2},
        1,
    ),
    "nothing else": ("companies", {"companies": [{"price": 1}]}, [{"price": 1}], None, 0),
    "an empty list": ("companies", {"companies": []}, [], None, 0),
    "texts": ("n", {"n": ["a"]}, [{"value": "a"}], None, 0),
    "no such list": ("companies", {"firms": []}, [{"firms": []}], None, 1),
    "no list": ("companies", {"companies": 7}, [{"companies": 7}], None, 1),
    "no deep list": ("deep.list", {"deep": {"list": 7}}, [{"deep": {"list": 7}}], None, 1),
    "no object": ("companies", "none", [{"value": "none"}], None, 1),
}


@pytest.mark.parametrize(("path", "data", "items", "rest", "invalid"), ROWS.values(), ids=ROWS.keys())
def test_rows_of_a_list_in_the_data(
    tmp_path: Any, path: str, data: Any, items: list[Any], rest: Any, invalid: int
) -> None:
    status = SimpleNamespace(status="completed", to_wire=lambda: {"status": "completed", "data": data})

    def collected(**more: Any) -> Any:
        task = WebDataAgentOperator(task_id="t", prompt="p", schema=COMPANIES, result_rows=path, **more)
        task.hook = SimpleNamespace(job_status=lambda *_, limit: status, get_settings=task.hook.get_settings)
        return JobResult(task._new_run(context_of(TaskInstance())), task, "agent", "1").publish()

    output = tmp_path / "rows.jsonl"
    found = collected(save_to=str(output))
    lines = [json.loads(line) for line in output.read_text().splitlines()]
    assert [untagged(line, "validationErrors") for line in lines] == items
    assert (found.get("data"), found["validation"]["invalid"]) == (rest, invalid)
    assert collected()["data"] == data


def test_rows_have_the_columns_of_an_element(tmp_path: Any) -> None:
    from pyarrow import parquet

    path = str(tmp_path / "found.parquet")
    task = WebDataAgentOperator(
        task_id="t", prompt="p", schema=COMPANIES, result_rows="companies", save_to=path
    )
    delivered(task, [], "generic")
    assert parquet.read_schema(path).names == ["price", "extra", "validation_errors"]


def test_pages_have_no_rows() -> None:
    with pytest.raises(TypeError, match="unknown argument 'result_rows'"):
        WebDataCrawlOperator(task_id="t", url="https://a.example/", result_rows="a")
    with pytest.raises(ValueError, match="result_rows applies to agents"):
        WebDataJobSensor(task_id="t", kind="crawl", job_id="j", result_rows="a")


def test_no_message_has_a_secret_of_a_url(caplog: pytest.LogCaptureFixture) -> None:
    wrong = {**PAGES[1], "metadata": {"sourceURL": "https://me:hush@a.example/?access_token=hush"}}
    task = WebDataCrawlOperator(
        task_id="crawl",
        url="https://a.example/",
        scrape_options={"formats": FORMATS},
        result_schema=SCHEMA,
        on_invalid_result="fail",
    )
    run = task._new_run(context_of(TaskInstance()))
    run.publish(Results(iter([wrong]), "document", {"id": "1"}))
    with pytest.raises(InvalidResultsError, match=r"https://me:\*\*\*@a.example/") as caught:
        run.publication.verdict()
    assert [text for text in (str(caught.value), *caplog.messages) if "hush" in text] == []
