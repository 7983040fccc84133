"""Facts of tasks: sums over a DAG run, and earlier runs."""

from __future__ import annotations

import pytest
from airflow import settings

from airflow_provider_webdata.ui import tasks
from airflow_provider_webdata.ui.pages.task import _groups
from airflow_provider_webdata.ui.tasks import TaskName, facts_of_run, past_facts
from tests.integration.costs.test_command import database, told
from tests.support.airflow_rows import add_task

__all__ = ["database"]

OURS = {"webdata_conn_id": "market"}


def test_sums_of_a_run(database: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """A job counts once, and other tasks' XComs do not use up the limit."""
    job = told(crawl=4) | {"jobs": {"crawl/j": 4}}
    with settings.Session() as session:
        add_task(session, "sums", "another", operator="B", xcoms={"count": 9, "credits": 9, "creditsUsed": 9})
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
    monkeypatch.setattr(tasks, "_MOST_XCOMS", 3)
    groups = _groups(facts_of_run("sums", "run", 10))
    assert {group.task_id: group.credits for group in groups} == {"take": 4, "usage": 3}


def test_large_facts_of_earlier_runs_are_not_read(database: None) -> None:
    values = ({"items": 1}, {"items": 1, "failed": ["x" * 2**16]})
    with settings.Session() as session:
        for index, value in enumerate(values):
            add_task(session, "past", "t", operator="S", map_index=index, xcoms={"quality": value})
        session.commit()
    names = [TaskName("past", "run", "t", index) for index in range(len(values))]
    assert [past_facts(name, "quality", 9) for name in names] == [[("run", {"items": 1})], []]
