"""Sums over the tasks of a DAG run."""

from __future__ import annotations

import pytest
from airflow import settings

from airflow_provider_webdata.ui import tasks
from airflow_provider_webdata.ui.pages.task import _groups
from airflow_provider_webdata.ui.tasks import facts_of_run
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
