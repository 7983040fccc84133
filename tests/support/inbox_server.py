# SPDX-License-Identifier: Apache-2.0
"""An inbox in a thread: the real application over a SQLite file, which can be stopped and started again."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import json
import tempfile
import threading
from pathlib import Path
from typing import Any

import httpx
from sqlalchemy import create_engine

from airflow_provider_webdata.inbox.wire import SECRET_HEADER, delivery_url
from airflow_provider_webdata.inbox_server.http.app import InboxApplication
from airflow_provider_webdata.inbox_server.http.auth import Gate
from airflow_provider_webdata.inbox_server.storage.inbox import Inbox
from airflow_provider_webdata.inbox_server.storage.tables import metadata
from tests.support.service import CHECK_COMPLETED, CONNECTION_ID, SIGNATURE_HEADER, WEBHOOK_SECRET
from tests.support.waiting import PATIENCE
from webdata_sandbox.testing.serving import Serving


class InboxServer:
    """Receives the deliveries of a connection and serves its readers.

    :param folder: for the database.
    :ivar secret: the webhook secret of every connection.
    :ivar others: further secrets that it accepts.
    :ivar requests: method and path of the requests, oldest first.
    :ivar answers: responses to the next requests that are no deliveries, in place of the inbox.
    :ivar lossy: whether deliveries are lost.
    :ivar read: set once a reader has received deliveries.
    """

    def __init__(self, folder: Path) -> None:
        self.secret = WEBHOOK_SECRET
        self.others: tuple[str, ...] = ()
        self.requests: list[str] = []
        self.answers: list[tuple[int, dict[str, Any]]] = []
        self.lossy = False
        self.read = threading.Event()
        self.port = 0
        self._folder = folder
        self._databases = 0
        self._client = httpx.Client(transport=httpx.HTTPTransport(retries=1), timeout=PATIENCE)
        self.reset()

    def __enter__(self) -> InboxServer:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
        self._client.close()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def extra(self) -> dict[str, str]:
        """The extras of a connection that uses this inbox."""
        return {"webhook_url": self.url, "inbox_url": self.url, "webhook_secret": self.secret}

    def webhook(self, key: str | None = None) -> dict[str, Any]:
        """Return the webhook that reports here."""
        return {
            "url": delivery_url(self.url, CONNECTION_ID, key),
            "headers": {SECRET_HEADER: self.secret},
            "events": [CHECK_COMPLETED],
        }

    def reads(self, part: str = "/webdata/deliveries/") -> list[str]:
        return [line for line in self.requests if part in line]

    def reset(self) -> None:
        """Use an empty database from the next start on."""
        self._databases += 1
        path = self._folder / f"inbox{self._databases}.db"
        path.write_bytes(_empty_database())
        self._database = f"sqlite:///{path}"

    def start(self) -> None:
        self._engine = create_engine(self._database)
        self._application = InboxApplication(Inbox(self._engine), self._gate)
        self._serving = Serving(self._app, self.port, close=self._application.inbox.close)
        self.port = self._serving.port
        self._serving.start()

    def stop(self) -> None:
        """Stop immediately: waiting readers get no response."""
        self._serving.stop(at_once=True)
        self._engine.dispose()

    def deliver(
        self, body: dict[str, Any], key: str | None = None, conn_id: str = CONNECTION_ID
    ) -> httpx.Response:
        """Send a delivery as the service does."""
        url = delivery_url(self.url, conn_id, key)
        return self._client.post(url, content=json.dumps(body), headers={SECRET_HEADER: self.secret})

    def _gate(self, conn_id: str) -> Gate:
        secrets = tuple(secret.encode() for secret in (self.secret, *self.others))
        return Gate(conn_id, secrets, (), SIGNATURE_HEADER.lower().encode(), open=True)

    async def _app(self, scope: Any, receive: Any, send: Any) -> None:
        query = scope["query_string"].decode()
        self.requests.append(f"{scope['method']} {scope['path']}{'?' if query else ''}{query}")
        answer = None
        if "/webdata/inbox/" in scope["path"]:
            answer = (503, {"error": "lost"}) if self.lossy else None
        elif self.answers:
            answer = self.answers.pop(0)
        if answer is not None:
            status, body = answer
            headers = [(b"content-type", b"application/json")]
            await send({"type": "http.response.start", "status": status, "headers": headers})
            await send({"type": "http.response.body", "body": json.dumps(body).encode()})
            return
        with contextlib.suppress(asyncio.CancelledError):
            await self._application(scope, receive, send)
            if "/webdata/deliveries/" in scope["path"]:
                self.read.set()


@functools.cache
def _empty_database() -> bytes:
    """Return a SQLite file with the inbox's tables."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "inbox.db"
        engine = create_engine(f"sqlite:///{path}")
        metadata.create_all(engine)
        engine.dispose()
        return path.read_bytes()
