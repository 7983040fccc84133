# SPDX-License-Identifier: Apache-2.0
"""No secret in any file or table that a whole end-to-end session left, the audit log included."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import sqlalchemy

from tests.e2e.conftest import DATABASES, SECRETS, on
from tests.e2e.outside import InboxTable, Sender, body_of, new_key
from tests.e2e.run import Run
from tests.support.stack import Stack
from webdata_sandbox.control import SandboxControl

CANARY = "canary-9d2f64b1e07a"


def test_tasks_with_secrets(start: Callable[..., Run], sandbox: SandboxControl) -> None:
    """Every way in which a secret enters a task; one task fails with the request in its error."""
    sandbox.add_fault("status", path="/v2/search", status=400, body={"success": False, "error": "no"})
    run = start("e2e_secrets", {"query": "rivers"})
    run.succeed()
    assert run.states() == {
        "refused": "failed",
        "search": "success",
        "monitor": "success",
        "use_hook": "success",
    }
    paths = "/v2/(search|monitor$|team)"
    sent = [request["headers"].get("x-team") for request in sandbox.requests(paths)]
    assert set(sent) == {SECRETS["connection header"]}
    assert len(sent) >= 4


@on(*DATABASES)
def test_no_secret_in_logs_or_database(
    stack: Stack, start: Callable[..., Run], sender: Sender, inbox: InboxTable
) -> None:
    # The hunt can find things: what is no secret is where it must be.
    key = new_key()
    assert sender.deliver(key, body_of(CANARY)) == "stored"
    start("e2e_delivery_to_webdata_default", {"key": key, "after": "2020-01-01T00:00:00Z"}).succeed()
    places = dict(_everything(stack.home, inbox.engine))
    found = {place for place, content in places.items() if CANARY.encode() in content}
    assert "table xcom" in found, found
    assert any(place.endswith(".log") for place in found), found

    leaks = {
        kind: sorted(place for place, content in places.items() if secret.encode() in content)
        for kind, secret in SECRETS.items()
    }
    assert leaks == {kind: [] for kind in SECRETS}


def _everything(home: Path, engine: sqlalchemy.Engine) -> Iterator[tuple[str, bytes]]:
    for file in home.rglob("*"):
        if file.is_file():
            yield str(file.relative_to(home)), file.read_bytes()
    # Page borders may cut a value in a database's files in two, so its rows are read as well.
    with engine.connect() as database:
        for table in sqlalchemy.inspect(engine).get_table_names():
            rows = database.exec_driver_sql(f'select * from "{table}"').fetchall()
            cells = [cell for row in rows for cell in row if cell is not None]
            yield f"table {table}", b"\n".join(_bytes(cell) for cell in cells)


def _bytes(cell: object) -> bytes:
    return bytes(cell) if isinstance(cell, (bytes, memoryview)) else str(cell).encode()
