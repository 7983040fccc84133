"""The inbox beside a test: the real application on a port of its own, over a SQLite file."""

from __future__ import annotations

import asyncio
import json
import secrets
import socket
import threading
from typing import TYPE_CHECKING, Any
from urllib.request import ProxyHandler, Request, build_opener

import uvicorn
from sqlalchemy import create_engine

from airflow_provider_webdata.inbox.server.http.app import InboxApplication
from airflow_provider_webdata.inbox.server.http.auth import Gate
from airflow_provider_webdata.inbox.server.storage.inbox import Inbox
from airflow_provider_webdata.inbox.server.storage.tables import metadata
from airflow_provider_webdata.inbox.wire import SECRET_HEADER, delivery_url

if TYPE_CHECKING:
    from pathlib import Path


class LocalInbox:
    """Receives the deliveries of every connection that carry its secret; a context manager.

    :param folder: for the database.
    :ivar secret: the webhook secret of the connections whose deliveries come here.
    :ivar url: its address.
    """

    def __init__(self, folder: Path) -> None:
        self.secret = secrets.token_hex(16)
        self._engine = create_engine(f"sqlite:///{folder}/inbox.db")
        self._application = InboxApplication(Inbox.open(self._engine), self._gate)
        self._server = uvicorn.Server(
            uvicorn.Config(
                self._application,
                interface="asgi3",
                log_config=None,
                access_log=False,
                lifespan="off",
                server_header=False,
            )
        )
        # The protocol is named because asyncio switches Nagle's algorithm off only for sockets that say they are TCP.
        self._listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        self._listener.bind(("127.0.0.1", 0))
        self._listener.listen(128)
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self._thread = threading.Thread(
            target=lambda: asyncio.run(self._serve()), name="webdata-inbox", daemon=True
        )

    def __enter__(self) -> LocalInbox:
        metadata.create_all(self._engine)
        # It listens already: requests wait until the server takes them.
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        # A reader that still waits gets no answer.
        self._server.force_exit = self._server.should_exit = True
        self._thread.join()
        self._engine.dispose()

    def deliver(self, conn_id: str, body: dict[str, Any], key: str | None) -> None:
        """Deliver as the service does.

        :raises urllib.error.HTTPError: the inbox refused it.
        """
        headers = {SECRET_HEADER: self.secret, "Content-Type": "application/json"}
        request = Request(delivery_url(self.url, conn_id, key), json.dumps(body).encode(), headers)  # noqa: S310
        with build_opener(ProxyHandler({})).open(request) as answer:
            answer.read()

    def _gate(self, conn_id: str) -> Gate:
        return Gate(conn_id, (self.secret.encode(),), (), b"x-signature", open=True)

    async def _serve(self) -> None:
        await self._server.serve(sockets=[self._listener])
        await self._application.aclose()
