"""A sandbox, a real inbox with a database of its own, and a real Airflow that runs DAGs against both."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import pytest
import sqlalchemy as sa
import uvicorn

from airflow_provider_webdata.inbox.server.http.app import InboxApplication
from airflow_provider_webdata.inbox.server.http.auth import Gate
from airflow_provider_webdata.inbox.server.storage.inbox import Inbox
from airflow_provider_webdata.inbox.server.storage.tables import metadata
from airflow_provider_webdata.inbox.wire import SECRET_HEADER, delivery_url
from tests.integration.operators.conftest import airflow, run_dag, sandbox

__all__ = ["airflow", "run_dag", "sandbox"]

SECRET = "hush-webhook-secret"
PAGE = "https://watched.example/"
SHOP = [PAGE, "https://watched.example/two"]


class Service:
    """The monitors of a sandbox, over its own interface."""

    def __init__(self, sandbox: Any) -> None:
        self.sandbox, self.control = sandbox, sandbox.control

    def call(self, method: str, path: str, body: Any = None) -> dict[str, Any]:
        headers = {"Authorization": f"Bearer {self.sandbox.api_key}", "Content-Type": "application/json"}
        data = json.dumps(body).encode() if body is not None else None
        with urlopen(Request(self.sandbox.url + path, data, headers, method=method)) as answer:
            return json.loads(answer.read())

    def monitor(self, urls: list[str] = SHOP, **fields: Any) -> str:
        for url in urls:
            self.control.set_page(url, "<p>one euro</p>", title=url)
        body = {
            "name": "watched",
            "schedule": {"cron": "0 0 1 1 *"},
            "targets": [{"type": "scrape", "urls": urls}],
            **fields,
        }
        return self.call("POST", "/v2/monitor", body)["data"]["id"]

    def check(self, monitor_id: str) -> str:
        """Run a check and wait for its end, and that of its deliveries."""
        check_id = self.call("POST", f"/v2/monitor/{monitor_id}/run")["id"]
        self.control.settle()
        return check_id


@pytest.fixture
def service(sandbox: Any) -> Service:
    return Service(sandbox)


@dataclass
class RunningInbox:
    """An inbox that accepts deliveries for `webdata_default`.

    :param url: where it listens.
    :param read: set when somebody has been told what is in it.
    """

    url: str
    read: threading.Event

    @property
    def extra(self) -> dict[str, str]:
        """Extras of a connection whose deliveries come here."""
        return {"webhook_url": self.url, "inbox_url": self.url, "webhook_secret": SECRET}

    def webhook(self, key: str | None = None) -> dict[str, Any]:
        """The webhook that reports here."""
        return {
            "url": delivery_url(self.url, "webdata_default", key),
            "headers": {SECRET_HEADER: SECRET},
            "events": ["monitor.check.completed"],
        }

    def deliver(self, body: Any, key: str | None = None) -> None:
        headers = {SECRET_HEADER: SECRET, "Content-Type": "application/json"}
        url = delivery_url(self.url, "webdata_default", key)
        with urlopen(Request(url, json.dumps(body).encode(), headers, method="POST")) as answer:
            assert answer.status == 200


@pytest.fixture
def inbox(tmp_path: Path) -> Iterator[RunningInbox]:
    engine = sa.create_engine(f"sqlite:///{tmp_path}/inbox.db")
    metadata.create_all(engine)

    def gate(conn_id: str) -> Gate:
        if conn_id == "webdata_default":
            return Gate(conn_id, (SECRET.encode(),), (), b"x-firecrawl-signature", True)
        return Gate.closed(conn_id)

    ready, read = threading.Event(), threading.Event()

    class Server(uvicorn.Server):
        async def startup(self, sockets: Any = None) -> None:
            await super().startup(sockets)
            ready.set()

    application = InboxApplication(Inbox.open(engine), gate)

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await application(scope, receive, send)
        if scope["path"].startswith("/webdata/deliveries/"):
            read.set()

    server = Server(uvicorn.Config(app, port=0, log_level="warning", lifespan="off"))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    assert ready.wait(30)
    port = server.servers[0].sockets[0].getsockname()[1]
    yield RunningInbox(f"http://127.0.0.1:{port}", read)
    server.should_exit = True
    thread.join(30)
    engine.dispose()


@pytest.fixture
def run_with_inbox(run_dag: Callable[..., Any], inbox: RunningInbox) -> Callable[..., Any]:
    """Run the body of a DAG whose connection receives deliveries."""

    def run(body: str, **more: Any) -> Any:
        return run_dag(body, **{**inbox.extra, **more})

    return run
