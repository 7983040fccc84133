# SPDX-License-Identifier: Apache-2.0
"""The inbox served by a real HTTP server in a thread, over a real database."""

from __future__ import annotations

import contextlib
import itertools
import json
from collections.abc import Callable
from typing import Any
from unittest import mock

import httpx
from airflow.models.connection import Connection
from sqlalchemy import Engine, select

from airflow_provider_webdata.hooks.connection import webhook_settings_of
from airflow_provider_webdata.inbox import tokens
from airflow_provider_webdata.inbox.wire import DELIVERIES_PATH, INBOX_PATH, SECRET_HEADER
from airflow_provider_webdata.inbox_server.http import connections, receive
from airflow_provider_webdata.inbox_server.http.app import InboxApplication
from airflow_provider_webdata.inbox_server.http.auth import Gate
from airflow_provider_webdata.inbox_server.http.limits import BodyBudget
from airflow_provider_webdata.inbox_server.storage.inbox import Inbox
from airflow_provider_webdata.inbox_server.storage.tables import delivery
from tests.support.service import CHECK_COMPLETED
from tests.support.service import signature as signature_of
from tests.support.waiting import PATIENCE, wait_until
from webdata_sandbox.testing.serving import Serving

SECRET = "webhook-secret-0123456789abcdef"
PREVIOUS_SECRET = "webhook-secret-of-last-month-0123"
SIGNING_SECRET = "signing-secret-0123456789abcdef"
PREVIOUS_SIGNING_SECRET = "signing-secret-of-last-month-012"
MAX_BYTES = 2**20

# The extras of a connection, by its id up to the first dash.
EXTRAS: dict[str, dict[str, str]] = {
    "secret": {"webhook_secret": SECRET},
    "rotating": {"webhook_secret": SECRET, "previous_webhook_secret": PREVIOUS_SECRET},
    "signed": {"signing_secret": SIGNING_SECRET},
    "resigned": {"signing_secret": SIGNING_SECRET, "previous_signing_secret": PREVIOUS_SIGNING_SECRET},
    "both": {"webhook_secret": SECRET, "signing_secret": SIGNING_SECRET},
    "renamed": {"signing_secret": SIGNING_SECRET, "signature_header": "X-Hub-Signature-256"},
    "open": {},
}
ALL_SECRETS = (SECRET, PREVIOUS_SECRET, SIGNING_SECRET, PREVIOUS_SIGNING_SECRET)


def connection(conn_id: str) -> Connection | None:
    extra = EXTRAS.get(conn_id.partition("-")[0])
    if extra is None:
        return None
    return Connection(
        conn_id=conn_id,
        conn_type="webdata",
        host="https://api.service.example",
        password="wd-key-0123456789",
        extra=json.dumps(extra),
    )


def gate_of(conn_id: str) -> Gate:
    found = connection(conn_id)
    return Gate.closed(conn_id) if found is None else Gate.of(conn_id, webhook_settings_of(found))


def signature(body: bytes, secret: str = SIGNING_SECRET) -> str:
    return signature_of(secret, body)


def bearer(conn_id: str, secret: str = SECRET, **options: Any) -> dict[str, str]:
    return {"Authorization": f"Bearer {tokens.issue(secret, conn_id, **options)}"}


def event(**fields: Any) -> bytes:
    return json.dumps({"success": True, "type": CHECK_COMPLETED, "id": "check-1", **fields}).encode()


_ENDLESS_LOOKUPS = {"LOOKUPS_PER_SECOND": 1e6, "LOOKUPS_AT_ONCE": 1e6}
_ENDLESS_REFUSALS = {"REFUSALS_PER_SECOND": 1e6, "REFUSALS_AT_ONCE": 1e6}
_numbers = itertools.count()


def fresh(kind: str) -> str:
    """Return the id of a connection that no other test uses."""
    return f"{kind}-{next(_numbers)}"


class ServedInbox:
    """A running inbox; a context manager.

    :param engine: of a database with the tables.
    :param gate: returns the gate of a connection.
    :param most_bytes: size of the largest delivery.
    :param bounded: whether the limits on unauthenticated requests apply.
    :ivar http: a client of the inbox.
    """

    def __init__(
        self,
        engine: Engine,
        gate: Callable[[str], Gate] = gate_of,
        most_bytes: int = MAX_BYTES,
        *,
        bounded: bool = False,
    ) -> None:
        self.engine = engine
        self.inbox = Inbox(engine)
        self.inbox.writer._timeout = PATIENCE
        with contextlib.ExitStack() as changes:
            if not bounded:
                # Tests use more connections, and are refused more often, than the limits allow.
                changes.enter_context(mock.patch.multiple(connections, **_ENDLESS_LOOKUPS))
                changes.enter_context(mock.patch.multiple(receive, **_ENDLESS_REFUSALS))
            self.application = InboxApplication(self.inbox, gate, most_bytes=most_bytes)
        self._serving = Serving(self.application, close=self.inbox.close)
        self.port, self.url = self._serving.port, self._serving.url
        self.http = httpx.Client(base_url=self.url, timeout=PATIENCE, trust_env=False, verify=False)

    def __enter__(self) -> ServedInbox:
        self._serving.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.http.close()
        self._serving.stop(at_once=True)

    def deliver(
        self,
        conn_id: str,
        body: bytes,
        headers: dict[str, str] | list[tuple[str, str]] | None = None,
        *,
        key: str | None = None,
    ) -> httpx.Response:
        """Post a delivery, by default with the right secret."""
        path = f"{INBOX_PATH}/{conn_id}" + (f"/{key}" if key else "")
        given = {SECRET_HEADER: SECRET} if headers is None else headers
        return self.http.post(path, content=body, headers=given)

    def read(self, conn_id: str, headers: dict[str, str] | None = None, **query: Any) -> httpx.Response:
        """Get a page, by default with a valid token."""
        given = bearer(conn_id) if headers is None else headers
        return self.http.get(f"{DELIVERIES_PATH}/{conn_id}", params=query, headers=given)

    def rows(self, conn_id: str) -> list[Any]:
        """Return the stored rows of a connection in the order of their arrival."""
        with self.engine.connect() as link:
            chosen = select(delivery).where(delivery.c.conn_id == conn_id).order_by(delivery.c.id)
            return list(link.execute(chosen))

    def wait_for_readers(self, count: int = 1) -> None:
        """Return when exactly `count` readers wait for deliveries."""
        assert wait_until(lambda: len(self.inbox.feed.readers) == count, pause=0.005)

    @property
    def bodies(self) -> BodyBudget:
        """The bodies in memory whose senders showed the secret."""
        return self.application._receiver._bodies

    @property
    def unauthenticated_bodies(self) -> BodyBudget:
        """The bodies in memory that claim to be signed."""
        return self.application._receiver._unauthenticated_bodies
