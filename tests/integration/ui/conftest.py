# SPDX-License-Identifier: Apache-2.0
"""The pages of a real API server, over a real database, with a sandbox as the service."""

from __future__ import annotations

import json
import subprocess
import threading
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx
import pytest
from sqlalchemy import create_engine

from airflow_provider_webdata.common.page_urls import UI_PATH
from airflow_provider_webdata.inbox_server.storage.records import DeliveryFilter, NewDelivery
from airflow_provider_webdata.inbox_server.storage.refusals import Refusal, counted_as
from airflow_provider_webdata.inbox_server.storage.store import DeliveryStore
from tests.integration.ui.auth_manager import HIDDEN_CONN_ID, HIDDEN_DAG
from tests.support.service import connection_text
from tests.support.waiting import PATIENCE
from tests.support.warm import Warm, airflow_environ
from webdata_sandbox.server import SandboxServer
from webdata_sandbox.testing.migrated_database import MigratedDatabase

SERVER = Path(__file__).with_name("pages_server.py")
CONN_ID = "market"
PREFIX = "/company"
DASHBOARD = "https://dashboard.example/app"
SECRET = "salaries"
"""A word in the service's data that the hidden DAG requested."""
ODD = tuple(f"odd{number}" for number in range(12))
"""Connections to `OddService`: the answers to each are cached apart."""
EMPTY = "empty"
"""Another connection to it, which random answers leave alone."""
PARTLY, FILTERED, COUNTED = "partly", "filtered", "counted"
"""More, each for a few tests: failed pages, lists, and odd counts."""
CHEAP_DAGS = tuple(f"cheap{number}" for number in range(8))
"""DAGs that spent a credit each."""
OTHER_DAG = "other_dag"
"""A DAG that spent credits with another connection."""
FAILED_DAG = "failed_dag"
SITE_DAG = "site_dag"
"""A DAG with a task that failed for the same reason as one of the hidden DAG."""
REFUSED = {
    "message": "2 of 9 pages failed",
    "code": "WD-033",
    "fix": "Correct or omit the failed URLs",
    "reasons": [{"url": "https://docs.example/a", "error": "Forbidden", "code": "403", "status": 403}],
}
"""The XCom of an attempt that a site refused."""
FAILURE = {
    "message": "the inbox's tables are missing",
    "code": "WD-051",
    "fix": "Create the tables, then check them with `airflow webdata doctor`",
    "link": "https://elsewhere.example/",
}
"""The XCom of a failed attempt, with a link of a stranger."""
REJECTED = {
    "items": 3,
    "failed": [
        {"condition": "min_items", "field": None, "expected": "at least 20", "actual": "3", "passed": False}
    ],
}
"""The measurements of rejected results."""
HOSTILE = "<script>alert('x')</script>\"'&{{ 7*7 }}\u202e\u05d0"
"""Text of a stranger in any field that comes from outside."""
SHOWN = HOSTILE.replace("\u202e", "")
"""The same on a page."""


class OddService:
    """A service that answers as a test says; the connections `odd0` and so on lead to it.

    :ivar answer: returns status and body of the response to a path.
    :ivar asked: the paths that were asked, with their queries.
    """

    def __init__(self) -> None:
        self.answer: Callable[[str], tuple[int, bytes]] = lambda path: (200, b"{}")
        self.asked: list[str] = []
        service = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                service.asked.append(self.path)
                status, body = service.answer(self.path)
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *args: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@dataclass(frozen=True)
class Pages:
    """The pages as each role sees them.

    :param client: of the API server.
    :param tokens: by role.
    :param password: of the user `admin`.
    :param deliver: stores a delivery, and returns its id.
    :param refuse: counts a refused delivery of a connection.
    """

    client: httpx.Client
    tokens: dict[str, str]
    password: str
    deliver: Callable[..., int]
    refuse: Callable[[str], None]
    sandbox: SandboxServer
    odd: OddService

    def get(self, path: str, role: str | None = "admin", **params: Any) -> httpx.Response:
        """Return the response of a page.

        :param role: of the user; None: an anonymous request.
        """
        return self.request("GET", path, role, **params)

    def request(self, method: str, path: str, role: str | None = "admin", **params: Any) -> httpx.Response:
        """Return the response to any request."""
        headers = {"Authorization": f"Bearer {self.tokens[role]}"} if role else {}
        return self.client.request(method, f"{PREFIX}{UI_PATH}{path}", params=params, headers=headers)


@pytest.fixture(scope="session")
def sandbox() -> Iterator[SandboxServer]:
    with SandboxServer() as server:
        yield server


@pytest.fixture(scope="session")
def jobs(sandbox: SandboxServer) -> dict[str, str]:
    """Ids of jobs, monitors, and checks of the service: a DAG's that all may read, and the hidden DAG's."""
    with httpx.Client(
        base_url=sandbox.url, headers={"Authorization": f"Bearer {sandbox.api_key}"}, timeout=PATIENCE
    ) as service:
        crawl = service.post("/v2/crawl", json={"url": "https://river.example/", "limit": 3}).json()["id"]
        monitor = service.post(
            "/v2/monitor",
            json={
                "name": HOSTILE,
                "schedule": {"cron": "0 9 * * 1-5"},
                "targets": [{"type": "scrape", "urls": ["https://river.example/"]}],
                "webhook": {
                    "url": "https://elsewhere.example/",
                    "metadata": {"dag_id": "shop", "task_id": "keep"},
                },
            },
        ).json()["data"]["id"]
        sandbox.control.advance(600)
        service.post(f"/v2/monitor/{monitor}/run")
        sandbox.control.advance(600)
        sandbox.control.set_page("https://river.example/", markdown=f"# River\n\n{HOSTILE}\n")
        # It is not the newest check if the schedule starts one later, at nine on a weekday.
        check = service.post(f"/v2/monitor/{monitor}/run").json()["id"]
        sandbox.control.advance(600)
        hidden = _hidden_jobs(service, sandbox)
    return {"crawl": crawl, "monitor": monitor, "check": check, **hidden}


def _hidden_jobs(service: httpx.Client, sandbox: SandboxServer) -> dict[str, str]:
    """Return a crawl, and monitors with a check: one names its DAG in the webhook, one only in the task's XCom."""
    page = f"https://{SECRET}.example/"
    sandbox.control.set_page(page, markdown="# Before")
    ids = {"hidden crawl": service.post("/v2/crawl", json={"url": page, "limit": 1}).json()["id"]}
    webhook = {
        "url": "https://elsewhere.example/",
        "metadata": {"dag_id": HIDDEN_DAG, "task_id": "secret_crawl"},
    }
    monitor = {
        "name": SECRET,
        "goal": SECRET,
        "schedule": {"cron": "0 9 * * *"},
        "targets": [{"type": "scrape", "urls": [page]}],
    }
    for name, more in {"hidden": {"webhook": webhook}, "pushed": {}}.items():
        made = service.post("/v2/monitor", json={**monitor, **more}).json()["data"]["id"]
        service.post(f"/v2/monitor/{made}/run")
        sandbox.control.advance(600)
        sandbox.control.set_page(page, markdown=f"# After {name}: {SECRET}")
        check = service.post(f"/v2/monitor/{made}/run").json()["id"]
        sandbox.control.advance(600)
        ids |= {f"{name} monitor": made, f"{name} check": check}
    return ids


@pytest.fixture(scope="session")
def pages(
    tmp_path_factory: pytest.TempPathFactory,
    migrated_database: MigratedDatabase,
    sandbox: SandboxServer,
    jobs: dict[str, str],
    warm: Warm,
) -> Iterator[Pages]:
    folder = tmp_path_factory.mktemp("pages")
    odd = OddService()
    database = f"sqlite:///{folder}/airflow.db"
    migrated_database.copy_to(folder)
    env = airflow_environ(
        folder,
        # Published below a path, with which every link must begin.
        AIRFLOW__API__BASE_URL=f"http://airflow.example{PREFIX}",
        AIRFLOW__WEBDATA__INBOX="True",
        AIRFLOW__CORE__AUTH_MANAGER="tests.integration.ui.auth_manager.OneHiddenDag",
        AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE=str(folder / "passwords.json"),
        AIRFLOW_CONN_MARKET=connection_text(sandbox.url, dashboard_url=DASHBOARD),
        AIRFLOW_CONN_WEBDATA_DEFAULT=connection_text(sandbox.url),
        AIRFLOW_CONN_DEAD=connection_text("http://127.0.0.1:9"),
        **{f"AIRFLOW_CONN_{HIDDEN_CONN_ID.upper()}": connection_text(sandbox.url)},
        **{
            f"AIRFLOW_CONN_{conn_id.upper()}": connection_text(odd.url)
            for conn_id in (*ODD, EMPTY, PARTLY, FILTERED, COUNTED)
        },
    )
    engine = create_engine(database)
    store = DeliveryStore(engine)

    def deliver(body: dict[str, Any], key: str | None = None, conn_id: str = CONN_ID) -> int:
        # Without a unique id, a body is stored only once.
        body = {"webhookId": str(uuid.uuid4()), **body}
        new = NewDelivery.from_body(conn_id, key, json.dumps(body).encode(), datetime.now(timezone.utc))
        store.add([new])
        return store.newest(None, DeliveryFilter(), 1)[0].id

    def refuse(conn_id: str) -> None:
        store.add_refusals({Refusal(counted_as(conn_id), "secret wrong", "203.0.113.9 via 10.0.0.2"): 1})

    with (folder / "errors.log").open("wb") as errors:
        process = warm.start(
            [str(SERVER)], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors
        )
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(json.dumps({"tasks": tasks_of(jobs)}) + "\n")
    process.stdin.flush()
    serving = next((line for line in process.stdout if line.startswith("SERVING ")), None)
    assert serving is not None, (folder / "errors.log").read_text()[-3000:]
    threading.Thread(target=process.stdout.read, daemon=True).start()
    server = json.loads(serving.removeprefix("SERVING "))
    with httpx.Client(base_url=server["url"], timeout=PATIENCE, trust_env=False) as client:
        password = json.loads((folder / "passwords.json").read_text())["admin"]
        yield Pages(client, server["tokens"], password, deliver, refuse, sandbox, odd)
    odd.close()
    process.terminate()
    process.wait(PATIENCE)
    engine.dispose()


def spent(used: float, conn_id: str = CONN_ID) -> dict[str, Any]:
    """Return the XCom `credits` of a task."""
    return {"used": used, "by_operation": {"crawl": used}, "by_connection": {conn_id: used}}


def tasks_of(jobs: dict[str, str]) -> list[dict[str, Any]]:
    """Return the tasks in Airflow's tables: done, waiting, of another provider, and hidden."""
    wait = [
        "job.WebDataJobTrigger",
        {
            "webdata_conn_id": CONN_ID,
            "kind": "crawl",
            "job_id": "hidden-job",
            "poll_interval": 30.0,
            "reports": False,
            "deadline": (datetime.now(timezone.utc) - timedelta(hours=1)).timestamp(),
        },
    ]
    webhook = ["webhook.WebDataWebhookTrigger", {"webdata_conn_id": CONN_ID, "key": HOSTILE}]
    ours = {"webdata_conn_id": CONN_ID}
    result = {
        "id": jobs["crawl"],
        "status": "completed",
        "path": "s3://bucket/pages.jsonl",
        "count": 7,
        "bytes": 10**400,
    }
    lacks = [
        {"kind": "searches_not_started", "number": 1_234, "of": 1_300},
        {"kind": "over_credit_limit", "number": 1, "of": 1},
        {"kind": "rows_refused", "number": 2, "of": 2},
        # Any task may push this key.
        *(
            {"kind": kind, "number": number, "of": 1}
            for kind, number in ((HOSTILE, 1), ("no_results", 10**400))
        ),
        HOSTILE,
    ]
    preview = [
        {"url": "https://river.example/", "title": HOSTILE, "price": 1, "tags": [], HOSTILE: True},
        {"price": 2.5},
        {"price": None},
    ]
    credits = spent(3) | {"jobs": {f"crawl/{jobs['crawl']}": 3}}
    quality = {
        "items": 1,
        "failed": [{"condition": HOSTILE}],
        "coverage": {HOSTILE: 0.5},
        "blocked": {HOSTILE: 1},
    }
    return [
        {
            "dag_id": "shop",
            "task_id": "crawl",
            "operator": "WebDataCrawlOperator",
            "rendered": ours,
            "logged": ["running", "deferred", "running", "success"],
            "xcoms": {
                "job_id": jobs["crawl"],
                "return_value": result,
                "preview": preview,
                "credits": credits,
                "quality": quality,
                "changes": {"emit": "changed", "new": 2, "same": 40, "emitted_again": 1, HOSTILE: 3},
                "incomplete": lacks,
            },
        },
        {
            "dag_id": "shop",
            "task_id": "take",
            "operator": "WebDataJobSensor",
            "rendered": ours,
            # The same job.
            "xcoms": {"credits": credits},
        },
        *(
            {
                "dag_id": "shop",
                "task_id": "scrape",
                "operator": "WebDataScrapeOperator",
                "rendered": ours,
                "map_index": index,
                "xcoms": {
                    "return_value": value,
                    "incomplete": [{"kind": "no_results", "number": 3, "of": 3}],
                },
            }
            # The second is too large to be shown.
            for index, value in enumerate([[{}], [{"markdown": "x" * 2**16}]])
        ),
        *(
            {
                "dag_id": "shop",
                "task_id": "search",
                "operator": "WebDataSearchOperator",
                "state": state,
                "rendered": {**ours, "query": query},
                "map_index": index,
                "map_name": query,
                "xcoms": {
                    "credits": spent(2),
                    "return_value": [{}, {}],
                    # Also a failed batch search pushes it.
                    **({"incomplete": lacks} if state == "failed" else {}),
                },
            }
            for index, (query, state) in enumerate({"bridges": "success", HOSTILE: "failed"}.items())
        ),
        {
            "dag_id": "shop",
            "task_id": "listen",
            "operator": "WebDataWebhookSensor",
            "state": "deferred",
            "rendered": ours,
            "trigger": webhook,
        },
        {"dag_id": "shop", "task_id": "plain", "operator": "PythonOperator"},
        *(
            {"dag_id": "patient", "task_id": task_id, "state": state, "rendered": {**ours, **more}, **others}
            for task_id, state, more, others in (
                ("held", "running", {"job_id": "held-job"}, {"operator": "WebDataJobSensor"}),
                ("asleep", "up_for_reschedule", {"key": "a"}, {"operator": "WebDataWebhookSensor"}),
                (
                    "started",
                    "running",
                    {},
                    {"operator": "WebDataCrawlOperator", "xcoms": {"job_id": "started-job"}},
                ),
                # These run, but wait for nothing.
                ("busy", "running", {}, {"operator": "WebDataSearchOperator"}),
                (
                    "resumed",
                    "running",
                    {"job_id": "over"},
                    {"operator": "WebDataJobSensor", "logged": ["running", "deferred", "running"]},
                ),
            )
        ),
        *(
            {
                "dag_id": FAILED_DAG,
                "task_id": "crawl",
                "operator": "WebDataCrawlOperator",
                "state": state,
                "rendered": ours,
                "run_id": run_id,
                "xcoms": {"path": "s3://bucket/the pages.jsonl", "job_id": "a rejected job", **xcoms},
            }
            for run_id, state, xcoms in (
                ("earlier", "success", {"quality": {"items": 30}}),
                ("run", "failed", {"quality_rejected": REJECTED, "failure": FAILURE}),
            )
        ),
        *(
            {
                "dag_id": FAILED_DAG,
                "task_id": "mended",
                "operator": "WebDataScrapeOperator",
                "state": state,
                "run_id": run_id,
                "after": minutes,
                **more,
            }
            for run_id, state, minutes, more in (
                # Its templates could not be rendered.
                ("before", "failed", -9, {}),
                ("after", "success", -3, {"rendered": ours}),
                # Days ago, and the same failure twice.
                ("long_ago", "failed", -5_000, {"rendered": ours, "xcoms": {"failure": FAILURE}}),
                ("longer_ago", "failed", -6_000, {"rendered": ours, "xcoms": {"failure": FAILURE}}),
            )
        ),
        {
            "dag_id": FAILED_DAG,
            "task_id": "reported",
            "operator": "WebDataScrapeOperator",
            "state": "failed",
            "rendered": ours,
            "xcoms": {"failure": FAILURE},
        },
        {
            "dag_id": FAILED_DAG,
            "task_id": "load",
            "operator": "WebDataToTableOperator",
            "state": "failed",
            "rendered": {"table": "pages", "conn_id": "warehouse"},
            "xcoms": {"failure": FAILURE},
        },
        {
            "dag_id": FAILED_DAG,
            "task_id": "killed",
            "operator": "WebDataScrapeOperator",
            "state": "up_for_retry",
            "rendered": ours,
        },
        {
            "dag_id": FAILED_DAG,
            "task_id": "forgiven",
            "operator": "WebDataScrapeOperator",
            "rendered": ours,
            "xcoms": {"failure": FAILURE},
        },
        *(
            {
                "dag_id": dag_id,
                "task_id": task_id,
                "operator": "WebDataCrawlOperator",
                "state": "failed",
                "rendered": ours,
                "xcoms": {"failure": REFUSED, "credits": spent(credits, "in_vault")},
            }
            for dag_id, task_id, credits in ((SITE_DAG, "crawl", 5), (HIDDEN_DAG, "secret_site", 7))
        ),
        *(
            {
                "dag_id": dag_id,
                "task_id": "saved",
                "operator": "WebDataScrapeOperator",
                "xcoms": {"credits": spent(1)},
            }
            for dag_id in CHEAP_DAGS
        ),
        *(
            {
                "dag_id": dag_id,
                "task_id": "crawl",
                "operator": "WebDataCrawlOperator",
                "xcoms": {"credits": spent(40, conn_id)},
            }
            for dag_id, conn_id in {OTHER_DAG: "webdata_default", "vault_dag": "in_vault"}.items()
        ),
        {
            "dag_id": HIDDEN_DAG,
            "task_id": "secret_crawl",
            "operator": "WebDataCrawlOperator",
            "state": "deferred",
            "rendered": ours,
            "trigger": wait,
        },
        {
            "dag_id": HIDDEN_DAG,
            "task_id": "secret_failure",
            "operator": "WebDataCrawlOperator",
            "state": "failed",
            "rendered": ours,
            "xcoms": {"failure": FAILURE},
        },
        {
            "dag_id": HIDDEN_DAG,
            "task_id": "secret_declare",
            "operator": "WebDataCreateMonitorOperator",
            "rendered": ours,
            "xcoms": {
                "monitor_id": jobs["pushed monitor"],
                "job_id": jobs["hidden crawl"],
                "credits": spent(99),
            },
        },
    ]
