# SPDX-License-Identifier: Apache-2.0
"""Pages of visitors with other rights, on an inbox and tables of their own."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime, timezone
from typing import Any

import pytest
from airflow import settings
from airflow.models.asset import AssetEvent, AssetModel
from airflow.models.dagrun import DagRun
from sqlalchemy import select
from starlette.applications import Starlette
from starlette.routing import Mount
from starlette.testclient import TestClient

from airflow_provider_webdata.airflow_db.database import airflow_engine
from airflow_provider_webdata.common.page_urls import UI_PATH
from airflow_provider_webdata.inbox_server.storage.records import DeliveryFilter, NewDelivery
from airflow_provider_webdata.inbox_server.storage.store import DeliveryStore
from airflow_provider_webdata.ui import application, lookups
from airflow_provider_webdata.ui.attention import troubled_summaries
from airflow_provider_webdata.ui.pages.credits import INCOMPLETE
from tests.integration.commands.test_costs import database
from tests.support.airflow_rows import add_task

__all__ = ["database"]

Get = Callable[..., str]


class Stub:
    """A visitor who may read all connections, and all DAGs except `hidden`."""

    def __init__(self, hidden: set[str]) -> None:
        self._hidden = hidden

    @classmethod
    async def of(cls, request: Any) -> Stub:
        return cls({"payroll"})

    def may_view(self) -> bool:
        return True

    def may_read_connection(self, conn_id: str) -> bool:
        return True

    def readable_connections(self, conn_ids: Any) -> set[str]:
        return set(conn_ids)

    def readable_dags(self, dag_ids: Any) -> set[str]:
        return set(dag_ids) - self._hidden


@pytest.fixture
def client(database: None, monkeypatch: pytest.MonkeyPatch) -> TestClient:
    monkeypatch.setenv("AIRFLOW__WEBDATA__INBOX", "True")
    monkeypatch.setattr(application, "Visitor", Stub)
    return TestClient(Starlette(routes=[Mount(UI_PATH, application.create_application())]))


@pytest.fixture
def get(client: TestClient) -> Get:
    """Return the text of a page, which must be there."""

    def text_of(path: str, **params: Any) -> str:
        found = client.get(f"{UI_PATH}{path}", params=params)
        assert found.status_code == 200, found.text
        return found.text

    return text_of


def deliver(body: dict[str, Any], key: str | None = None, conn_id: str = "market") -> int:
    store = DeliveryStore(airflow_engine())
    store.add([NewDelivery.from_body(conn_id, key, json.dumps(body).encode(), datetime.now(timezone.utc))])
    return store.newest(conn_id, DeliveryFilter(), 1)[0].id


def test_a_delivery_whose_event_started_a_hidden_run(get: Get) -> None:
    """Of the runs that it started, the visitor sees their own."""
    delivery_id = deliver({"type": "crawl.completed", "id": "j-1"})
    with settings.Session() as session:
        asset = AssetModel(name="crawls", uri="webdata://market/jobs/crawl")
        session.add(asset)
        for dag_id in ("payroll", "report"):
            add_task(session, dag_id, "consume", operator="PythonOperator")
        session.flush()
        event = AssetEvent(asset_id=asset.id, extra={"payload": {"delivery_id": delivery_id}})
        event.timestamp = datetime.now(timezone.utc)
        event.created_dagruns = session.scalars(
            select(DagRun).where(DagRun.dag_id.in_(["payroll", "report"]))
        ).all()
        session.add(event)
        session.commit()
    text = get("/inbox/delivery", id=delivery_id)
    assert ">run of report</a>" in text
    assert "payroll" not in text


def test_a_number_is_the_id_or_the_key_of_a_delivery(get: Get) -> None:
    first = deliver({"type": "approved", "id": "a"}, key="20260131")
    deliver({"type": "crawl.page", "id": "b"}, key=str(first))
    deliver({"type": "crawl.page", "id": "c"}, key="1" * 20)
    assert ">approved</a>" in get("/inbox", find="20260131")
    found = get("/inbox", find=str(first))
    assert (">approved</a>" in found, ">Crawl</a>" in found) == (True, True)
    assert ">c</code>" in get("/inbox", find="1" * 20)
    # Its own id is its key.
    own = deliver({"type": "crawl.page", "id": "d"}) + 1
    assert deliver({"type": "rejected", "id": "e"}, key=str(own)) == own
    assert get("/inbox", find=str(own)).count(">rejected</a>") == 1


def test_sums_that_lack_credits_say_why(client: TestClient) -> None:
    """A custom XCom backend stores references, which only Airflow components with its configuration can read."""
    complete = client.get(f"{UI_PATH}/credits.csv")
    assert complete.text.splitlines()[0] == "dag_id,used,tasks,unknown"
    assert INCOMPLETE not in complete.headers
    with settings.Session() as session:
        for dag_id in ("shop", "payroll"):
            add_task(session, dag_id, "far", operator="S", xcoms={"credits": "s3://bucket/credits"})
        session.commit()
    lacking = client.get(f"{UI_PATH}/credits.csv")
    assert lacking.text == complete.text
    assert lacking.headers[INCOMPLETE] == (
        "The credits of some tasks are not included: 1 because they are references of an XCom backend that is not "
        "configured here"
    )


def test_only_events_that_report_a_start(get: Get) -> None:
    deliver({"type": "crawl.started", "id": "j-1"})
    for params in ({}, {"conn_id": "market"}):
        text = get("/inbox", **params)
        assert "Events that report the start of a job are hidden" in text
        assert "once the connection has a Webhook URL" not in text
    assert ">Crawl</a>" in get("/inbox", started="1")
    assert "matches the filters" in get("/inbox", conn_id="market", event="crawl.page")


def test_cards_share_the_troubled_tasks_until_they_are_renewed(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Many browsers show Home; the overview reads again as soon as its short cache has expired."""
    reads = []

    def counted(since: datetime) -> Any:
        reads.append(since)
        return troubled_summaries(since)

    monkeypatch.setattr(lookups, "troubled_summaries", counted)
    monkeypatch.setattr(lookups, "KEPT", 0.0)
    numbers = {}
    with client:
        for path in ("/attention", "/card"):
            reads.clear()
            for _ in range(4):
                assert client.get(f"{UI_PATH}{path}").status_code == 200
            numbers[path] = len(reads)
    assert numbers["/attention"] == 4
    # Two if the time of a renewal passes meanwhile.
    assert numbers["/card"] <= 2
