# SPDX-License-Identifier: Apache-2.0
"""Pages of an Airflow whose inbox is off, and whose database has no table of it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
import uvicorn
from airflow import settings
from starlette.applications import Starlette
from starlette.routing import Mount
from starlette.testclient import TestClient

from airflow_provider_webdata.airflow_db.database import airflow_engine
from airflow_provider_webdata.common.page_urls import UI_PATH
from airflow_provider_webdata.inbox_server.storage.tables import metadata
from airflow_provider_webdata.ui import application
from airflow_provider_webdata.ui.application import VIEWS
from tests.integration.commands.test_costs import database, told
from tests.integration.ui.test_visitors import Stub
from tests.support.airflow_rows import add_task
from tests.support.browser import faults, opened
from tests.support.ports import free_port
from tests.support.service import connection_text
from tests.support.waiting import wait_until
from webdata_sandbox.server import SandboxServer

__all__ = ["database"]

PAGE = "https://river.example/"


@pytest.fixture(scope="module")
def service() -> Iterator[dict[str, str]]:
    """A service with a crawl, and with a monitor whose last check found a change: its address and their ids."""
    with SandboxServer() as server, httpx.Client(base_url=server.url) as client:
        client.headers["Authorization"] = f"Bearer {server.api_key}"
        job_id = client.post("/v2/crawl", json={"url": PAGE, "limit": 1}).json()["id"]
        targets = [{"type": "scrape", "urls": [PAGE]}]
        monitor = {"name": "Levels", "schedule": {"cron": "0 9 * * *"}, "targets": targets}
        monitor_id = client.post("/v2/monitor", json=monitor).json()["data"]["id"]
        for level in ("8 m", "9 m"):
            server.control.set_page(PAGE, markdown=f"# River\n\n{level}\n")
            check_id = client.post(f"/v2/monitor/{monitor_id}/run").json()["id"]
            server.control.settle()
        yield {"url": server.url, "job_id": job_id, "monitor_id": monitor_id, "check_id": check_id}


def test_every_page_works(database: None, service: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    """The inbox's page says which option to set, and checks are read from the service."""
    monkeypatch.delenv("AIRFLOW__WEBDATA__INBOX", raising=False)
    monkeypatch.setenv("AIRFLOW_CONN_MARKET", connection_text(service["url"]))
    monkeypatch.setattr(application, "Visitor", Stub)
    metadata.drop_all(airflow_engine())
    ours = {"webdata_conn_id": "market"}
    with settings.Session() as session:
        credits = told(crawl=4) | {"by_connection": {"market": 4}}
        xcoms = {"job_id": service["job_id"], "credits": credits}
        add_task(session, "river", "crawl", operator="WebDataCrawlOperator", rendered=ours, xcoms=xcoms)
        session.commit()
    check = {"monitor_id": service["monitor_id"], "check_id": service["check_id"]}
    params: dict[str, dict[str, Any]] = {
        "/monitors/list": {},
        "/monitors/monitor": check,
        "/monitors/monitor/part": check,
        "/monitors/values": check,
        "/monitors/check": check,
        "/task": {"dag_id": "river", "run_id": "run", "task_id": "crawl"},
        "/task/job": {"operation": "crawl", "job_id": service["job_id"]},
    }
    pages = Starlette(routes=[Mount(UI_PATH, application.create_application())])
    with TestClient(pages) as client:
        text = {
            path: client.get(f"{UI_PATH}{path}", params={**params.get(path, {}), "conn_id": "market"})
            for path in VIEWS
        }
    for path, answer in text.items():
        # There is no delivery to open.
        expected = 404 if path in ("/inbox/delivery", "/inbox/body") else 200
        assert answer.status_code == expected, (path, answer.text)
        assert "cannot be read" not in answer.text, path
    assert "[webdata]\ninbox = True" in text["/inbox"].text
    assert ">Levels</a>" in text["/changes"].text
    assert ">Levels</a>" in text["/monitors/list"].text
    assert "<ins><mark>" in text["/monitors/check"].text
    assert ">river</a>" in text["/credits"].text
    assert ">Completed</span>" in text["/task/job"].text
    assert len(text["/inbox.csv"].text.splitlines()) == 1


def test_empty_pages_are_accessible(database: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of an Airflow without a connection, a task, and the inbox."""
    monkeypatch.delenv("AIRFLOW__WEBDATA__INBOX", raising=False)
    monkeypatch.setattr(application, "Visitor", Stub)
    metadata.drop_all(airflow_engine())
    pages, port = Starlette(routes=[Mount(UI_PATH, application.create_application())]), free_port()
    server = uvicorn.Server(uvicorn.Config(pages, port=port, log_config=None))
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        assert wait_until(lambda: server.started)
        with opened(f"http://127.0.0.1:{port}") as page:
            wrong = [one for path in ("/", "/monitors", "/inbox") for one in faults(page, f"{UI_PATH}{path}")]
            shown = page.locator("main").inner_text()
    finally:
        server.should_exit = True
        thread.join()
    assert "The inbox is off" in shown
    assert wrong == []
