"""All stored data as one JSON document, and the differences of two such documents."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tools.stored import attempts, connections, inbox, results, triggers

FOLDER = Path(__file__).parents[2] / "tests" / "stored"
COMMAND = "python -m tools.stored"
SECTIONS = [
    connections.paths,
    connections.connection,
    connections.options,
    triggers.triggers,
    triggers.mappings,
    triggers.events,
    triggers.asset_events,
    inbox.tables,
    inbox.deliveries,
    attempts.task_state,
    attempts.paid_records,
    attempts.requests,
    attempts.job_identity,
    attempts.managed_webhook,
    attempts.asset_state,
    results.columns,
    results.xcom,
]


def forms() -> dict[str, Any]:
    """Return the JSON document, by section."""
    with connections.own_connection():
        document = {section.__name__: section() for section in SECTIONS}
    found: dict[str, Any] = json.loads(json.dumps(document))
    return found


def differences(stored: Any, now: Any, where: str = "") -> tuple[list[str], list[str]]:
    """Return the changed and removed values, and the new values.

    :param stored: the listed data.
    :param now: the data that the code stores.
    """
    if not (isinstance(stored, dict) and isinstance(now, dict)):
        return ([] if stored == now else [f"{where}: {stored!r} became {now!r}"]), []
    lost = [f"{where}/{name} is gone" for name in stored if name not in now]
    new = [f"{where}/{name}" for name in now if name not in stored]
    for name in stored.keys() & now.keys():
        deeper_lost, deeper_new = differences(stored[name], now[name], f"{where}/{name}")
        lost += deeper_lost
        new += deeper_new
    return lost, new
