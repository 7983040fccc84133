"""No secret in any file or table that a whole end-to-end session left, the audit log included."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import sqlalchemy

from airflow_provider_webdata.sandbox.control import SandboxControl
from tests.e2e import conftest
from tests.e2e.conftest import SECRETS, Run, asked_by_tasks
from tests.e2e.outside import InboxTable
from tests.support.stack import Stack

DATABASES = conftest.DATABASES

CANARY = "canary-9d2f64b1e07a"


def test_no_secret_in_logs_or_database(stack: Stack, sandbox: SandboxControl, inbox: InboxTable) -> None:
    sandbox.add_fault("status", path="/v2/search", status=400, body={"success": False, "error": "no"})
    run = Run(stack, "e2e_secrets", {"canary": CANARY})
    assert run.wait_until_ended() == "success"
    states = {name: run.task(name)["state"] for name in ("refused", "search", "monitor", "use_hook")}
    assert states == {"refused": "failed", "search": "success", "monitor": "success", "use_hook": "success"}
    sent = [request["headers"] for request in asked_by_tasks(stack, sandbox)]
    assert sent
    assert all(headers["x-team"] == SECRETS["connection header"] for headers in sent)
    places = dict(_everything(stack.home, inbox.engine))

    # The hunt can find things: what is no secret is where it must be.
    found = {place for place, content in places.items() if CANARY.encode() in content}
    assert any(place.startswith("table xcom") or "rendered" in place for place in found), found
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
