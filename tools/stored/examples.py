"""Data shared by the examples."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from datetime import datetime, timezone
from pathlib import Path
from typing import Any
from unittest.mock import patch

NOON = datetime(2026, 1, 31, 12, tzinfo=timezone.utc)
DEADLINE = 1769860800.0
CONNECTION_ID = "stored"
BODY = b'{"success": true, "type": "crawl.completed", "id": "job", "webhookId": "once", "data": [], "metadata": {}}'


def delivery() -> Any:
    """Return a delivery as the inbox reader returns it."""
    import msgspec

    from airflow_provider_webdata.inbox.reader import Delivery

    return Delivery(
        id=7,
        size=len(BODY),
        received_at=NOON.isoformat(),
        position=5,
        key="key",
        event="crawl.completed",
        job_id="job",
        monitor_id="monitor",
        success=True,
        body=msgspec.Raw(BODY),
    )


def environment(connection: dict[str, Any]) -> AbstractContextManager[Any]:
    """Set the connection in the environment."""
    return patch.dict(os.environ, {f"AIRFLOW_CONN_{CONNECTION_ID.upper()}": json.dumps(connection)})


@contextmanager
def working_in(folder: Path) -> Iterator[None]:
    """Change the working directory."""
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)
