"""The data of `make up DATA=1`: every page answers, and shows what was seeded."""

from __future__ import annotations

import json
import re
import subprocess
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timezone
from html import unescape
from pathlib import Path
from typing import Any

import httpx
import pytest

from airflow_provider_webdata.common.page_urls import UI_PATH, job_page, monitor_page, task_page
from airflow_provider_webdata.sandbox.server import SandboxServer
from airflow_provider_webdata.testing.migrated_database import MigratedDatabase
from demo.data import DAG_IDS
from tests.support.ports import free_port
from tests.support.seeded_service import Service, live, spend
from tests.support.service import CONNECTION_ID, connection_text
from tests.support.waiting import PATIENCE
from tests.support.warm import Warm, airflow_environ

SERVER = Path(__file__).with_name("pages_server.py")


@dataclass(frozen=True)
class Full:
    """The pages, and what they should show."""

    client: httpx.Client
    service: Service
    seeded: dict[str, Any]

    def get(self, path: str, **params: Any) -> str:
        """Return the text of a page, without its markup.

        :param path: below `UI_PATH`, or with it.
        """
        path = path if path.startswith(UI_PATH) else f"{UI_PATH}{path}"
        answer = self.client.get(path, params=params or None)
        assert answer.status_code == 200, (path, answer.text[:500])
        return " ".join(re.sub(r"<[^>]+>", " ", answer.text).split())

    def link(self, path: str, start: str, **params: Any) -> str:
        """Return the first address of a page that begins so, from the links of another page."""
        answer = self.client.get(f"{UI_PATH}{path}", params=params)
        found = re.search(rf'href="({UI_PATH}/{start}[^"]*)"', answer.text)
        assert found is not None, answer.text
        return unescape(found[1])

    def task(self, dag_id: str, task_id: str, index: int = -1) -> str:
        """Return the text of a task's page in the newest run."""
        return self.get(task_page(dag_id, self.seeded["runs"][dag_id], task_id, index))


@pytest.fixture(scope="module")
def full(
    tmp_path_factory: pytest.TempPathFactory, migrated_database: MigratedDatabase, warm: Warm
) -> Iterator[Full]:
    folder = tmp_path_factory.mktemp("full")
    migrated_database.copy_to(folder)
    state, port = folder / "sandbox.db", free_port()
    service = live(state, datetime.now(timezone.utc))
    env = airflow_environ(
        folder,
        AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE=str(folder / "passwords.json"),
        AIRFLOW_CONN_WEBDATA_DEFAULT=connection_text(f"http://127.0.0.1:{port}"),
    )
    with (folder / "errors.log").open("wb") as errors:
        process = warm.start(
            [str(SERVER)], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors
        )
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(json.dumps({"service": service.as_dict()}) + "\n")
    process.stdin.flush()
    serving = next((line for line in process.stdout if line.startswith("SERVING ")), None)
    assert serving is not None, (folder / "errors.log").read_text()[-3000:]
    threading.Thread(target=process.stdout.read, daemon=True).start()
    server = json.loads(serving.removeprefix("SERVING "))
    spend(state, sum(server["seeded"]["credits"].values()))
    headers = {"Authorization": f"Bearer {server['tokens']['admin']}"}
    with (
        SandboxServer(state=str(state), port=port),
        httpx.Client(base_url=server["url"], headers=headers, timeout=PATIENCE, trust_env=False) as client,
    ):
        yield Full(client, service, server["seeded"])
    process.terminate()
    process.wait(PATIENCE)


def test_pages_of_the_service(full: Full) -> None:
    """Each shows what the service and the tasks know; the credits of DAGs and of the team add up."""
    assert "webdata_default" in full.get("/")
    week = full.get("/attention", days=7)
    for text in (
        "Rejected competitor_prices.scrape_prices",
        "Incomplete docs_rag_refresh.crawl_docs",
        "4 of 12 searches were not started",
        "WD-031",
        "after its deadline",
    ):
        assert text in week, week
    credits = full.get("/spend", conn_id=CONNECTION_ID)
    for dag_id in DAG_IDS:
        assert re.search(rf"{dag_id} ↗ (\S+ ){{2}}{full.seeded['credits'][dag_id]:,.0f} ", credits), credits
    jobs = full.get("/jobs/list", conn_id=CONNECTION_ID)
    assert "5 of 41 pages failed" in jobs
    assert "docs_rag_refresh" in jobs
    for kind, job_id in full.service.jobs.values():
        assert job_id in full.get(job_page(CONNECTION_ID, kind, job_id))
    monitors = full.get("/monitors/list", conn_id=CONNECTION_ID)
    for name, monitor_id in full.service.monitors.items():
        assert name in monitors
        assert len(full.service.checks[name]) > 9
        assert monitor_id in full.get(monitor_page(CONNECTION_ID, monitor_id))
    assert {"completed", "partial", "failed"} == {
        check.status for checks in full.service.checks.values() for check in checks
    }
    prices = "Competitor prices"
    ids = {"monitor_id": full.service.monitors[prices], "check_id": full.service.checks[prices][-1].id}
    values = full.get("/monitors/values", conn_id=CONNECTION_ID, monitor_id=full.service.monitors[prices])
    assert "kettleworld.example/house-blend price" in values
    assert "250 g:" in full.get("/monitors/check/part", conn_id=CONNECTION_ID, **ids)


def test_pages_of_airflow(full: Full) -> None:
    """Each shows the rows of Airflow's tables and of the inbox."""
    deliveries = full.get("/deliveries")
    assert "crawl.failed" in deliveries
    assert "batch_scrape.page" in full.get("/deliveries", event="batch_scrape.page")
    # Which delivery is the newest depends on the time of day.
    assert "crawl.completed" in full.get(
        full.link("/deliveries", "deliveries/delivery", event="crawl.completed")
    )
    waits = full.get("/waits")
    assert "3 tasks wait" in waits
    assert "holds a worker slot" in waits
    for dag_id, run_id in full.seeded["runs"].items():
        assert "Tasks that use the web data service" in full.get("/run", dag_id=dag_id, run_id=run_id)
    shown = {
        ("competitor_prices", "scrape_prices", -1): "2 conditions failed",
        ("competitor_prices", "find_offers", 1): "espresso roast 250 g",
        ("docs_rag_refresh", "crawl_docs", -1): "docs_rag/pages.parquet",
        ("docs_rag_refresh", "wait_for_check", -1): "WebDataMonitorCheckSensor with connection",
        ("news_digest", "search_news", -1): "4 of 12 searches were not started",
        ("news_digest", "scrape_articles", 2): "WD-500",
        ("news_digest", "scrape_articles", 4): "No reason was recorded",
        ("supplier_catalog_crawl", "crawl_catalog", -1): "by webhook",
        ("company_research", "extract_profile", -1): "1 of 1",
        ("company_research", "research_agent", -1): "WD-031",
        ("company_research", "read_register", -1): "WD-039",
    }
    for (dag_id, task_id, index), text in shown.items():
        found = full.task(dag_id, task_id, index)
        assert text in found, found
