"""Facts of tasks: sums over a DAG run, and earlier runs."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

from airflow import settings
from airflow.models.xcom import XComModel
from sqlalchemy import insert, select

from airflow_provider_webdata.airflow_db.tasks import TaskName, past_xcoms
from airflow_provider_webdata.airflow_db.troubled_tasks import troubled_tasks
from airflow_provider_webdata.ui.pages.task import _groups
from airflow_provider_webdata.ui.quality import KEYS, quality_of
from airflow_provider_webdata.ui.tasks import summaries_of_run, summary_of
from tests.integration.commands.test_costs import database, told
from tests.support.airflow_rows import START, add_task

__all__ = ["database"]

OURS = {"webdata_conn_id": "market"}


def test_sums_of_a_run(database: None) -> None:
    """A job counts once, and other tasks' XComs do not count."""
    job = told(crawl=4) | {"jobs": {"crawl/j": 4}}
    with settings.Session() as session:
        others = {"count": 9, "credits": 9, "creditsUsed": 9}
        add_task(session, "sums", "another", operator="B", xcoms=others)
        add_task(session, "sums", "nested", operator="B", rendered={"conf": OURS}, xcoms=others)
        for index in range(2):
            add_task(
                session,
                "sums",
                "take",
                operator="S",
                rendered=OURS,
                map_index=index,
                xcoms={"credits": job},
            )
        add_task(session, "sums", "usage", operator="U", rendered=OURS, xcoms={"creditsUsed": 3})
        session.commit()
    groups = _groups(summaries_of_run("sums", "run", 10))
    assert {group.task_id: group.credits for group in groups} == {"take": 4, "usage": 3}


def test_the_reason_of_the_last_of_many_mapped_tasks(database: None) -> None:
    """XComs of the others, however many, do not displace it."""
    last, reason = 6000, {"message": "The page was not found"}
    with settings.Session() as session:
        add_task(session, "many", "take", operator="WebDataScrapeOperator", rendered=OURS, map_index=0)
        failed: dict[str, Any] = {"state": "failed", "rendered": OURS, "xcoms": {"failure": reason}}
        add_task(session, "many", "take", operator="WebDataScrapeOperator", map_index=last, **failed)
        (written,) = session.scalars(select(XComModel).where(XComModel.dag_id == "many"))
        names = {"dag_id": "many", "run_id": "run", "task_id": "take", "dag_run_id": written.dag_run_id}
        others = [
            {**names, "map_index": index, "key": "failure", "value": {}, "timestamp": START}
            for index in range(1, last)
        ]
        session.execute(insert(XComModel), others)
        session.commit()
    (task,), _ = troubled_tasks(START, "incomplete", ("failure",), 9)
    assert task.stored.pushed == {"failure": reason}


def test_large_facts_of_earlier_runs_are_not_read(database: None) -> None:
    values = ({"items": 1}, {"items": 1, "failed": ["x" * 2**16]})
    with settings.Session() as session:
        for index, value in enumerate(values):
            add_task(session, "past", "t", operator="S", map_index=index, xcoms={"quality": value})
        session.commit()
    names = [TaskName("past", "run", "t", index) for index in range(len(values))]
    found = [past_xcoms(name, ("quality",), 9) for name in names]
    assert found == [[("run", {"quality": {"items": 1}})], []]


def test_a_task_is_compared_with_its_last_runs(database: None) -> None:
    """Each fact has its course, in the order of the runs, also where one was rejected or cleared later."""
    now = {"blocked": {"challenge": 2}, "coverage": {"json.price": 0.5}, "creditsPerItem": 1.25}
    runs: dict[str, dict[str, Any]] = {
        "manual__2026-01-03": {"quality": {"items": 30, **now}, "changes": {"new": 4, "changed": 0}},
        "manual__2026-01-01": {"quality": {"items": 10, "blocked": {}, "coverage": {"json.price": 1}}},
        "manual__2026-01-02": {"qualityRejected": {"items": 20, "coverage": {"json.price": 0.25}}},
    }
    with settings.Session() as session:
        for run_id, xcoms in runs.items():
            after = timedelta(days=int(run_id[-1]))
            add_task(session, "c", "t", operator="S", rendered=OURS, run_id=run_id, after=after, xcoms=xcoms)
        session.commit()
    facts = summary_of(TaskName("c", "manual__2026-01-03", "t"))
    assert facts is not None
    quality = quality_of(facts, lambda: past_xcoms(facts.name, KEYS, 30))
    assert quality is not None
    assert re.findall(r"<title>([^<]*)</title>", quality.chart) == [
        "2026-01-01: 10 items",
        "2026-01-02: 20 items",
        "2026-01-03: 30 items",
    ]
    assert quality.has_rejected
    assert {one.name: one.value for one in quality.measurements} == {
        "Substitute pages": 2,
        "Credits per item": 1.25,
        "New": 4,
        "Changed": 0,
    }
    coverage = quality.coverage[0]
    assert (coverage.name, coverage.value) == ("json.price", 0.5)
    assert re.findall(r' height="([\d.]+)"/>', coverage.course) == ["20.0", "5.0", "10.0"]
    newest = quality_of(facts, lambda: past_xcoms(facts.name, KEYS, 1))
    assert newest is not None
    assert (newest.chart, newest.coverage[0].course) == ("", "")
