# SPDX-License-Identifier: Apache-2.0
"""Results that break their schema: kept, marked, reported, billed once."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from pyarrow import parquet
from pydantic import BaseModel, Field

from airflow_provider_webdata.operators.scrape import WebDataScrapeOperator
from airflow_provider_webdata.states.task_record import KEY
from tests.support import direct
from tests.support.dag_runner import Airflow, Outcome, dag_runner
from webdata_sandbox.server import SandboxServer

IMPORT = """
from pydantic import BaseModel, Field
from airflow_provider_webdata.operators.agent import WebDataAgentOperator
from airflow_provider_webdata.operators.batch_scrape import WebDataBatchScrapeOperator
from airflow_provider_webdata.sensors.job import WebDataJobSensor

class Gauge(BaseModel):
    name: str
    level: float = Field(gt=0)

FORMATS = [{"type": "json", "schema": Gauge.model_json_schema()}]
"""
NORTH, SOUTH = "https://river.example/north", "https://river.example/south"
WRONG = ["level: Input should be a valid number"]


class Gauge(BaseModel):
    name: str
    level: float = Field(gt=0)


FORMATS = [{"type": "json", "schema": Gauge.model_json_schema()}]


def show_gauges(sandbox: SandboxServer) -> None:
    sandbox.control.set_page(NORTH, markdown="North gauge", json={"name": "North", "level": 2.5})
    sandbox.control.set_page(SOUTH, markdown="South gauge", json={"name": "South", "level": "2 m"})


def started(sandbox: SandboxServer, path: str) -> list[Any]:
    return [sent["body"] for sent in sandbox.control.requests(path, "POST")]


class Done(NamedTuple):
    outcome: Outcome
    sandbox: SandboxServer
    folder: Path


@pytest.fixture(scope="module")
def done(airflow: Airflow, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Done]:
    """Run tasks with schemas in a real Airflow."""
    folder = tmp_path_factory.mktemp("gauges")
    with SandboxServer() as sandbox:
        show_gauges(sandbox)
        outcome = dag_runner(airflow, sandbox)(
            f"""
            for end in ("jsonl", "parquet"):
                WebDataBatchScrapeOperator(
                    task_id=end, urls=["{NORTH}", "{SOUTH}"], formats=FORMATS, result_schema=Gauge,
                    save_to=f"{folder}/gauges.{{end}}", deferrable=True, poll_interval=1,
                )
            WebDataBatchScrapeOperator(
                task_id="job", urls=["{SOUTH}"], formats=FORMATS, on_invalid_result="fail",
                deferrable=True, poll_interval=1, retries=2, retry_delay=datetime.timedelta(0),
            )
            find = WebDataAgentOperator(
                task_id="find", prompt="gauge", urls=["{NORTH}"], strict_constrain_to_urls=True,
                schema={{"type": "object", "properties": {{"title": {{"type": "string"}}}}, "required": ["colour"]}},
                deferrable=True, poll_interval=1,
            )
            take = WebDataJobSensor(
                task_id="take", kind="agent", job_id="{{{{ ti.xcom_pull('find', key='job_id') }}}}",
                result_schema={{"type": "object"}}, on_invalid_result="fail", poke_interval=1,
                deferrable=True,
            )
            find >> take
            """,
            before=IMPORT,
        )
        yield Done(outcome, sandbox, folder)


def test_a_batch_of_pages(done: Done) -> None:
    """By the model, in the triggerer and back; the file has the marks, the table the model's columns."""
    outcome, _, folder = done
    assert outcome.state("jsonl") == outcome.state("parquet") == "success", outcome.log[-3000:]
    report = outcome.xcom["jsonl.validation"]
    assert report == outcome.xcom["jsonl.return_value"]["validation"]
    assert (report["checked"], report["invalid"]) == (2, 1)
    assert [(item["url"], item["errors"]) for item in report["items"]] == [(SOUTH, WRONG)]
    assert f"1 of 2 results are invalid: {SOUTH}: {WRONG[0]}" in outcome.log_of("jsonl")
    lines = [json.loads(line) for line in (folder / "gauges.jsonl").read_text().splitlines()]
    assert {line["json"]["name"]: line.get("validationErrors") for line in lines} == {
        "North": None,
        "South": WRONG,
    }
    rows = parquet.read_table(folder / "gauges.parquet").to_pylist()
    assert sorted((row["json_name"], row["json_level"]) for row in rows) == [("North", 2.5), ("South", None)]


def test_a_job_that_fails_by_its_results_is_started_once(done: Done) -> None:
    outcome, sandbox, _ = done
    assert outcome.ended("job") == ("failed", 1), outcome.log_of("job")
    assert "(WD-061)" in outcome.log_of("job")
    assert outcome.xcom["job.return_value"]["data"][0]["json"]["level"] == "2 m"
    assert sum(body["urls"] == [SOUTH] for body in started(sandbox, "/v2/batch/scrape")) == 1


def test_an_agent_and_the_sensor_for_its_run(done: Done) -> None:
    """The sensor knows no request: it has its own schema."""
    outcome, sandbox, _ = done
    assert outcome.state("take") == "success", outcome.log_of("take")
    report = outcome.xcom["find.validation"]
    assert (report["checked"], report["invalid"]) == (1, 1)
    assert report["items"][0]["errors"] == ["'colour' is a required property"]
    assert "validationErrors" not in outcome.xcom["find.return_value"]["data"]
    assert outcome.xcom["take.validation"] == {"checked": 1, "invalid": 0, "items": []}
    assert len(started(sandbox, "/v2/agent")) == 1


def test_a_call_that_fails_by_its_results_is_made_once(here: SandboxServer) -> None:
    """All was delivered: nothing is kept for a retry, of which there is none."""
    show_gauges(here)
    store = direct.StateStore()
    task = WebDataScrapeOperator(
        task_id="job", url=SOUTH, formats=FORMATS, on_invalid_result="fail", retries=2
    )
    outcome = direct.run(task, store)
    assert outcome.ended == ("failed", 1)
    assert "(WD-061)" in str(outcome.error)
    assert [*store.values] == [KEY]
    assert outcome.xcom["return_value"]["validationErrors"] == ['level: breaks "type": "number"']
    assert outcome.xcom["validation"]["invalid"] == 1
    assert len(started(here, "/v2/scrape")) == 1
