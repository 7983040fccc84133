# SPDX-License-Identifier: Apache-2.0
"""An inbox for a test: the real application on its own port, with a SQLite file."""

from __future__ import annotations

import json
import secrets
from typing import TYPE_CHECKING, Any
from urllib.request import ProxyHandler, Request, build_opener

from sqlalchemy import create_engine

from airflow_provider_webdata.inbox.wire import SECRET_HEADER, delivery_url
from airflow_provider_webdata.inbox_server.http.app import InboxApplication
from airflow_provider_webdata.inbox_server.http.auth import Gate
from airflow_provider_webdata.inbox_server.storage.inbox import Inbox
from airflow_provider_webdata.inbox_server.storage.tables import metadata

from .serving import Serving

if TYPE_CHECKING:
    from pathlib import Path


class LocalInbox:
    """Receives all deliveries that carry its secret; a context manager.

    :param folder: folder of the database.
    :param port: port on the loopback address; 0 chooses a free one.
    :ivar secret: webhook secret for the connections.
    :ivar url: address of the inbox.
    """

    def __init__(self, folder: Path, port: int = 0) -> None:
        self.secret = secrets.token_hex(16)
        self._engine = create_engine(f"sqlite:///{folder}/inbox.db")
        application = InboxApplication(Inbox(self._engine), self._gate)
        # pytest shows the log of a failed test.
        self._serving = Serving(application, port, close=application.inbox.close, log_level="warning")
        self.url = self._serving.url

    def __enter__(self) -> LocalInbox:
        metadata.create_all(self._engine)
        self._serving.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._serving.stop(at_once=True)
        self._engine.dispose()

    def deliver(self, conn_id: str, body: dict[str, Any], key: str | None) -> None:
        """Send a delivery as the service does.

        :raises urllib.error.HTTPError: the inbox refused it.
        """
        headers = {SECRET_HEADER: self.secret, "Content-Type": "application/json"}
        request = Request(delivery_url(self.url, conn_id, key), json.dumps(body).encode(), headers)  # noqa: S310
        with build_opener(ProxyHandler({})).open(request) as answer:
            answer.read()

    def _gate(self, conn_id: str) -> Gate:
        return Gate(conn_id, (self.secret.encode(),), (), b"x-signature", open=True)
