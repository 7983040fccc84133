"""Results that break their schema, in a real Airflow: kept, marked, reported, paid for once."""

from __future__ import annotations

import json
from typing import Any

import pytest

IMPORT = """
import datetime
from pydantic import BaseModel, Field
from airflow_provider_webdata.operators.agent import WebDataAgentOperator
from airflow_provider_webdata.operators.batch_scrape import WebDataBatchScrapeOperator
from airflow_provider_webdata.operators.scrape import WebDataScrapeOperator
from airflow_provider_webdata.operators.search import WebDataSearchOperator
from airflow_provider_webdata.sensors.job import WebDataJobSensor

class Gauge(BaseModel):
    name: str
    level: float = Field(gt=0)

FORMATS = [{"type": "json", "schema": Gauge.model_json_schema()}]
"""
NORTH, SOUTH = "https://river.example/north", "https://river.example/south"
WRONG = ["level: Input should be a valid number"]


@pytest.fixture(autouse=True)
def _pages(sandbox: Any) -> None:
    sandbox.control.set_page(NORTH, markdown="North gauge", json={"name": "North", "level": 2.5})
    sandbox.control.set_page(SOUTH, markdown="South gauge", json={"name": "South", "level": "2 m"})


def started(sandbox: Any, path: str) -> int:
    return sum(sent["method"] == "POST" for sent in sandbox.control.requests(path))


def test_a_batch_of_pages(run_dag: Any, tmp_path: Any) -> None:
    """By the model, in the triggerer and back; the file has the marks, the table the model's columns."""
    from pyarrow import parquet

    done = run_dag(
        f"""
        for end in ("jsonl", "parquet"):
            WebDataBatchScrapeOperator(
                task_id=end, urls=["{NORTH}", "{SOUTH}"], formats=FORMATS, result_schema=Gauge,
                output=f"{tmp_path}/gauges.{{end}}", deferrable=True, poll_interval=1,
            )
        """,
        before=IMPORT,
    )
    assert done.run["state"] == "success", done.log[-3000:]
    report = done.xcom["jsonl.validation"]
    assert report == done.xcom["jsonl.return_value"]["validation"]
    assert (report["checked"], report["invalid"]) == (2, 1)
    assert [(item["url"], item["errors"]) for item in report["items"]] == [(SOUTH, WRONG)]
    assert f"1 of 2 results are not valid: {SOUTH}: {WRONG[0]}" in done.log
    lines = [json.loads(line) for line in (tmp_path / "gauges.jsonl").read_text().splitlines()]
    assert {line["json"]["name"]: line.get("validationErrors") for line in lines} == {
        "North": None,
        "South": WRONG,
    }
    rows = parquet.read_table(tmp_path / "gauges.parquet").to_pylist()
    assert sorted((row["json_name"], row["json_level"]) for row in rows) == [("North", 2.5), ("South", None)]


@pytest.mark.parametrize("deferrable", [False, True])
def test_a_job_that_fails_by_its_results_is_started_once(
    run_dag: Any, sandbox: Any, deferrable: bool
) -> None:
    done = run_dag(
        f"""
        WebDataBatchScrapeOperator(
            task_id="job", urls=["{SOUTH}"], formats=FORMATS, on_invalid="fail", deferrable={deferrable},
            poll_interval=1, retries=2, retry_delay=datetime.timedelta(0),
        )
        """,
        before=IMPORT,
    )
    assert done.run["tasks"]["job"] == {"state": "failed", "try_number": 1}, done.log[-3000:]
    assert "(WD-061)" in done.log
    assert done.xcom["job.return_value"]["data"][0]["json"]["level"] == "2 m"
    assert started(sandbox, "/v2/batch/scrape") == 1


CALLS = {
    "scrape": (f"WebDataScrapeOperator(task_id='job', url='{SOUTH}', formats=FORMATS, {{more}})", "/v2/scrape"),
    "search": (
        "WebDataSearchOperator(task_id='job', query='South gauge', scrape_options={{'formats': FORMATS}}, {more})",
        "/v2/search",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("task", "path"), CALLS.values(), ids=CALLS.keys())
def test_a_call_that_fails_by_its_results_is_made_once(
    run_dag: Any, sandbox: Any, task: str, path: str
) -> None:
    """All was delivered: nothing is kept for a retry, of which there is none."""
    more = "on_invalid='fail', retries=2, retry_delay=datetime.timedelta(0)"
    done = run_dag(task.format(more=more), before=IMPORT)
    assert done.run["tasks"]["job"] == {"state": "failed", "try_number": 1}, done.log[-3000:]
    assert "(WD-061)" in done.log
    assert "(WD-035)" not in done.log
    result = done.xcom["job.return_value"]
    (page,) = [result] if path == "/v2/scrape" else [
        item for item in result["web"] if item.get("json", {}).get("name") == "South"
    ]  # fmt: skip
    assert page["validationErrors"] == ['level: breaks "type": "number"']
    assert done.xcom["job.validation"]["invalid"] == 1
    assert started(sandbox, path) == 1


def test_an_agent_and_the_sensor_for_its_run(run_dag: Any, sandbox: Any) -> None:
    """The sensor knows no request: it takes the schema itself."""
    done = run_dag(
        f"""
        find = WebDataAgentOperator(
            task_id="find", prompt="gauge", urls=["{NORTH}"], strict_constrain_to_urls=True,
            schema={{"type": "object", "properties": {{"title": {{"type": "string"}}}}, "required": ["colour"]}},
            deferrable=True, poll_interval=1,
        )
        take = WebDataJobSensor(
            task_id="take", kind="agent", job_id="{{{{ ti.xcom_pull('find', key='job_id') }}}}",
            result_schema={{"type": "object"}}, on_invalid="fail", poll_interval=1, deferrable=True,
        )
        find >> take
        """,
        before=IMPORT,
    )
    assert done.run["state"] == "success", done.log[-3000:]
    report = done.xcom["find.validation"]
    assert (report["checked"], report["invalid"]) == (1, 1)
    assert report["items"][0]["errors"] == ["'colour' is a required property"]
    assert "validationErrors" not in done.xcom["find.return_value"]["data"]
    assert done.xcom["take.validation"] == {"checked": 1, "invalid": 0, "items": []}
    assert started(sandbox, "/v2/agent") == 1


def test_a_schema_that_cannot_be_is_found_before_the_call(run_dag: Any, sandbox: Any) -> None:
    done = run_dag(
        CALLS["scrape"][0].format(more="result_schema='river.models.Gauge', retries=1"), before=IMPORT
    )
    assert done.run["tasks"]["job"] == {"state": "failed", "try_number": 1}
    assert "the model 'river.models.Gauge' cannot be imported" in done.log
    assert sandbox.control.requests("/v2/scrape") == []
