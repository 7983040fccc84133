# SPDX-License-Identifier: Apache-2.0
"""Parts outside of Airflow: monitors created without the provider, deliveries sent by hand, and the
inbox's table, read with plain SQL."""

from __future__ import annotations

import contextlib
import json
import secrets
import uuid
from collections.abc import Iterator
from typing import Any

import httpx
import sqlalchemy

from tests.support.service import CHECK_COMPLETED, CONNECTION_ID, NEVER, SECRET_HEADER
from tests.support.stack import Stack
from tests.support.waiting import PATIENCE, wait_until
from webdata_sandbox.control import SandboxControl


def new_key() -> str:
    return secrets.token_urlsafe(12)


def body_of(event: str, *, number: int = 0, webhook_id: bool = True, **data: Any) -> bytes:
    """Return the body of a delivery, as the service sends it; `number` tells two of them apart."""
    envelope: dict[str, Any] = {
        "success": True,
        "type": event,
        "id": str(uuid.uuid4()),
        "data": [{"number": number, **data}],
    }
    if webhook_id:
        envelope["webhookId"] = str(uuid.uuid4())
    return json.dumps(envelope).encode()


class Sender:
    """A client that knows the inbox's address; the headers may have its secrets, too."""

    def __init__(self, stack: Stack) -> None:
        self._http = httpx.Client(base_url=stack.airflow_url, trust_env=False, timeout=PATIENCE)
        self._secret = stack.webhook_secret

    def close(self) -> None:
        self._http.close()

    def send(
        self, key: str, body: bytes, headers: dict[str, str], connection_id: str = CONNECTION_ID, **how: Any
    ) -> httpx.Response:
        path = f"/webdata/inbox/{connection_id}/{key}"
        return self._http.post(
            path, content=body, headers={"Content-Type": "application/json", **headers}, **how
        )

    def deliver(self, key: str, body: bytes) -> str:
        """Send with the right secret; return the inbox's verdict."""
        answer = self.send(key, body, {SECRET_HEADER: self._secret})
        assert answer.status_code == 200, answer.text
        return str(answer.json()["status"])


class Monitors:
    """Monitors of the sandbox that report to the stack's inbox."""

    def __init__(self, stack: Stack, sandbox: SandboxControl) -> None:
        self._stack, self._sandbox = stack, sandbox
        self._http = httpx.Client(
            base_url=stack.sandbox_url,
            headers={"Authorization": f"Bearer {stack.api_key}"},
            trust_env=False,
            timeout=PATIENCE,
        )

    def close(self) -> None:
        self._http.close()

    def create(
        self,
        name: str,
        *,
        key: str | None = None,
        events: tuple[str, ...] = (CHECK_COMPLETED,),
        webhook: bool = True,
    ) -> str:
        """Create a monitor that never runs by itself; return its id."""
        body = {
            "name": name,
            "schedule": {**NEVER, "timezone": "UTC"},
            "targets": [{"type": "scrape", "urls": ["https://shop.example/kettles"]}],
            "webhook": {
                "url": f"{self._stack.airflow_url}/webdata/inbox/{CONNECTION_ID}/{key or new_key()}",
                "headers": {SECRET_HEADER: self._stack.webhook_secret},
                "events": list(events),
            },
        }
        if not webhook:
            del body["webhook"]
        answer = self._http.post("/v2/monitor", json=body)
        assert answer.status_code == 200, answer.text
        return str(answer.json()["data"]["id"])

    def run(self, monitor_id: str) -> str:
        """Run a check to its end, the first attempts at its deliveries included; return its id."""
        check_id = self.start(monitor_id)
        self._sandbox.settle()
        return check_id

    def start(self, monitor_id: str) -> str:
        """Start a check; return its id."""
        answer = self._http.post(f"/v2/monitor/{monitor_id}/run")
        assert answer.status_code == 200, answer.text
        return str(answer.json()["id"])

    def wait_until_watched(self, monitor_id: str) -> None:
        """Return once the monitor's checks have been requested: from then on, the wait is set up."""
        path = f"/v2/monitor/{monitor_id}/checks"
        assert wait_until(lambda: bool(self._sandbox.requests(path))), "no triggerer watches the monitor"

    def deliveries(self, check_id: str) -> dict[str, dict[str, Any]]:
        """Return what the sandbox sent, or tried to send, about a check, by event."""
        return {found["event"]: found for found in self._sandbox.deliveries() if found["jobId"] == check_id}


class InboxTable:
    """The inbox's rows in Airflow's database."""

    def __init__(self, stack: Stack) -> None:
        self.engine = sqlalchemy.create_engine(stack.database_url or f"sqlite:///{stack.home}/airflow.db")

    def close(self) -> None:
        self.engine.dispose()

    def rows(self, **where: str) -> list[dict[str, Any]]:
        """Return matching rows, oldest first, with `body` unchanged."""
        conditions = " and ".join(f"{column} = :{column}" for column in where)
        query = sqlalchemy.text(f"select * from webdata_inbox_delivery where {conditions} order by id")
        with self.engine.connect() as connection:
            return [dict(row) for row in connection.execute(query, where).mappings()]

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Keep others from writing to the table."""
        on_sqlite = self.engine.dialect.name == "sqlite"
        options = {"isolation_level": "AUTOCOMMIT"}
        with self.engine.connect().execution_options(**options) as connection:
            connection.exec_driver_sql("begin immediate" if on_sqlite else "begin")
            if not on_sqlite:
                connection.exec_driver_sql("lock table webdata_inbox_delivery in share mode")
            try:
                yield
            finally:
                connection.exec_driver_sql("rollback")

    def is_waited_for(self) -> bool:
        """Return whether a write waits for the lock; SQLite cannot tell."""
        query = sqlalchemy.text(
            "select count(*) from pg_locks where not granted and relation = 'webdata_inbox_delivery'::regclass"
        )
        with self.engine.connect() as connection:
            return bool(connection.execute(query).scalar())

    def wait_until_waited_for(self) -> None:
        if self.engine.dialect.name == "postgresql":
            assert wait_until(self.is_waited_for), "no server tried to store a delivery"
