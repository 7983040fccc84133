# SPDX-License-Identifier: Apache-2.0
"""The options of operators and sensors."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from airflow.sdk import DAG
from airflow.serialization.helpers import serialize_template_field

from airflow_provider_webdata.operators.agent import WebDataAgentOperator
from airflow_provider_webdata.operators.crawl import WebDataCrawlOperator
from airflow_provider_webdata.operators.monitor import WebDataRunMonitorOperator
from airflow_provider_webdata.operators.scrape import WebDataScrapeOperator
from airflow_provider_webdata.options import Changes, Option, Quality
from airflow_provider_webdata.sensors.job import WebDataJobSensor

CRAWL = {
    "task_id": "t",
    "url": "https://a.example/",
    "scrape_options": {"formats": [{"type": "json", "prompt": "the price"}]},
}


REFUSED: dict[str, tuple[type[Option], dict[str, Any], str]] = {
    "emit": (Changes, {"folder": "/x", "emit": "new"}, r"Changes\(emit=\) must be one of changed, all"),
    "on_unchanged": (Changes, {"folder": "/x", "on_unchanged": "fail"}, r"Changes\(on_unchanged=\) must be one of"),
    "removed after runs": (Changes, {"folder": "/x", "removed_after": 3}, r"must be a timedelta .*\(days=7"),
    "removed before": (Changes, {"folder": "/x", "removed_after": timedelta(-1)}, r"a timedelta of at least 0"),
    "compare": (Changes, {"folder": "/x", "compare": "title"}, "compare must be one of content, url, or"),
    "a skip that never happens": (
        Changes, {"folder": "/x", "emit": "all", "on_unchanged": "skip"},
        r"Changes\(on_unchanged='skip'\) has no effect with emit='all'.*remove one",
    ),
    "fewer than none": (Quality, {"min_items": -1}, r"Quality\(min_items=\) must be a whole number of at least 0"),
    "a drop of all": (Quality, {"drop_vs_last": 30}, r"Quality\(drop_vs_last=\) must be a number from 0 to 1"),
    "share as text": (Quality, {"blocked": "5%"}, r"Quality\(blocked=\) must be a number from 0 to 1"),
    "a share of a field": (Quality, {"coverage": {"a": 95}}, r"Quality\(coverage={'a': \.\.\.}\) must be a number"),
    "no share of a field": (Quality, {"coverage": {"a": None}}, r"Quality\(coverage={'a': \.\.\.}\) must be a number"),
    "coverage of no field": (Quality, {"coverage": 0.9}, r"Quality\(coverage=\) must be a mapping"),
    "no field": (Quality, {"coverage": {"json..a": 1}}, r"must be the path of a value .*given: 'json..a'"),
    "on_fail": (Quality, {"on_fail": "skip"}, r"Quality\(on_fail=\) must be one of fail, warn"),
}  # fmt: skip


@pytest.mark.parametrize(("option", "fields", "words"), REFUSED.values(), ids=REFUSED.keys())
def test_an_option_that_cannot_work_is_refused(
    option: type[Option], fields: dict[str, Any], words: str
) -> None:
    with pytest.raises(ValueError, match=words):
        option(**fields)


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "no size": ({"max_media_mb": 0}, "max_media_mb must be a number above 0"),
    "no size at all": ({"max_media_mb": None}, "max_media_mb must be a number above 0"),
    "size as text": ({"max_media_mb": "5"}, "max_media_mb must be a number above 0"),
    "a number for a path": ({"save_to": 5}, "save_to must be a path or URL as text"),
    "a number for a folder": ({"media_to": 5}, "media_to must be a path or URL as text"),
    "on_invalid_result": ({"on_invalid_result": "drop"}, "on_invalid_result must be one of keep, fail"),
    "number for a schema": ({"result_schema": 7}, "result_schema must be"),
    "class for a schema": ({"result_schema": dict}, "result_schema must be"),
    "number for changes": ({"quality": "many"}, r"Quality\(min_items=\) must be"),
    "poll too often": ({"poll_interval": 0.5}, "poll_interval must be seconds or a timedelta, at least 1"),
    "poll by a switch": ({"poll_interval": True}, "poll_interval must be seconds"),
    "no time": ({"wait_timeout": 0}, "wait_timeout must be seconds or a timedelta, more than 0"),
    "past": ({"wait_timeout": timedelta(days=-1)}, "wait_timeout must be"),
    "endless": ({"wait_timeout": float("inf")}, "wait_timeout must be"),
    "a verdict on no results": (
        {"wait_for_completion": False, "on_invalid_result": "fail"},
        "on_invalid_result= has no effect with wait_for_completion=False",
    ),
    "time as text": ({"wait_timeout": "1 h"}, "wait_timeout must be seconds"),
}


@pytest.mark.parametrize(("arguments", "words"), WRONG.values(), ids=WRONG.keys())
def test_a_value_that_cannot_work_is_refused_while_the_dag_is_read(
    arguments: dict[str, Any], words: str
) -> None:
    with pytest.raises(ValueError, match=words):
        WebDataCrawlOperator(**CRAWL, **arguments)


@pytest.mark.parametrize("rows", ["", ".", "a..b", 7, ["a"]])
def test_rows_must_name_a_list(rows: Any) -> None:
    with pytest.raises(ValueError, match="result_rows must name a list"):
        WebDataAgentOperator(task_id="t", prompt="p", result_rows=rows)
    with pytest.raises(ValueError, match="result_rows must name a list"):
        WebDataJobSensor(task_id="t", kind="agent", job_id="j", result_rows=rows)


def test_arguments_are_kept_as_given() -> None:
    """`.partial`, serialization, and code that inspects a task see what its author wrote."""
    given: dict[str, Any] = {
        "save_to": "/x-*.jsonl",
        "media_to": "/m",
        "changes": "/c",
        "result_schema": {"type": "object"},
        "quality": 5,
        "poll_interval": timedelta(minutes=1),
        "wait_timeout": timedelta(hours=2),
        "rate_limit_timeout": timedelta(hours=1),
        "credit_limit": "5",
        "max_error_ratio": "0.5",
    }
    task = WebDataCrawlOperator(**CRAWL, **given)
    assert {name: getattr(task, name) for name in given} == given


def test_tasks_do_not_share_an_option() -> None:
    """Airflow renders an option in place."""
    changes = Changes("/tmp/{{ ti.task_id }}")
    tasks = [
        WebDataScrapeOperator(task_id=name, url="https://a.example/", changes=changes) for name in ("a", "b")
    ]
    for task in tasks:
        task.render_template_fields({"ti": {"task_id": task.task_id}})  # type: ignore[typeddict-item]
    assert [task.changes for task in tasks] == [Changes("/tmp/a"), Changes("/tmp/b")]
    assert changes.folder == "/tmp/{{ ti.task_id }}"


def test_runs_in_one_process_do_not_share_an_option() -> None:
    """Each run renders a shallow copy of the task."""
    task = WebDataCrawlOperator(**CRAWL, changes=Changes("/tmp/{{ ds }}", emit="all"))
    for ds in ("2026-01-01", "2026-01-02"):
        run = task.prepare_for_execution()
        run.render_template_fields({"ds": ds})  # type: ignore[typeddict-item]
        assert run.changes == Changes(f"/tmp/{ds}", emit="all")


def test_rendered_fields_are_legible() -> None:
    task = WebDataCrawlOperator(**CRAWL, changes=Changes("/c", emit="all", removed_after=timedelta(1)))
    assert serialize_template_field(task.changes, "changes") == {
        "folder": "/c",
        "emit": "all",
        "removed_after": "1 day, 0:00:00",
    }


def test_an_xcom_in_an_option_makes_a_dependency() -> None:
    with DAG("d", schedule=None):
        path = WebDataRunMonitorOperator(task_id="first", monitor_id="m").output
        task = WebDataCrawlOperator(**CRAWL, changes=Changes(path))  # type: ignore[arg-type]
        short = WebDataCrawlOperator(**{**CRAWL, "task_id": "s"}, changes=path, save_to=path)  # type: ignore[arg-type]
    assert task.upstream_task_ids == short.upstream_task_ids == {"first"}
