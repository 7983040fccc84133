# SPDX-License-Identifier: Apache-2.0
"""A substitute for the service with any number of monitors, whose last check was long ago.

Run it as `python -m benchmarks.monitor_service`. It prints its port. The first part of a path contains the client and
the number of monitors, as in `/polling-50/v2/monitor`. `/asked` returns the number of requests by client. Monitors of a
client `check_by_webhook...` report to the inbox of the connection with that name.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import resource
import subprocess
import sys
import uuid
from collections import Counter
from collections.abc import Iterator
from urllib.parse import parse_qs, urlsplit

from airflow_provider_webdata.inbox.wire import delivery_url

AIRFLOW_URL = "https://airflow.example"
"""The public URL in the connections of the benchmarks."""

_LONG_AGO = "2026-01-01T00:00:00.000Z"
_COUNTS = {"totalPages": 40, "same": 40, "changed": 0, "new": 0, "removed": 0, "error": 0}


def monitor_id(number: int) -> str:
    """Return the id of a monitor."""
    return str(uuid.UUID(int=number + 2**120))


def monitor(number: int, webhook: str | None) -> dict[str, object]:
    """Return a monitor in the service's format.

    :param webhook: the URL to which it reports, or None.
    """
    return {
        "id": monitor_id(number),
        "name": f"prices {number}",
        "status": "active",
        "schedule": {"cron": "0 6 * * *", "timezone": "UTC"},
        "nextRunAt": _LONG_AGO,
        "lastRunAt": _LONG_AGO,
        "currentCheckId": None,
        "targets": [{"id": monitor_id(number), "type": "scrape", "urls": ["https://shop.example/prices"]}],
        "goal": "what the shop charges",
        "judgeEnabled": True,
        "notification": {"email": {"enabled": False, "includeDiffs": False, "recipients": []}},
        "webhook": None if webhook is None else {"url": webhook, "events": ["monitor.check.completed"]},
        "retentionDays": 30,
        "estimatedCreditsPerMonth": 1440,
        "lastCheckSummary": _COUNTS,
        "createdAt": _LONG_AGO,
        "updatedAt": _LONG_AGO,
    }


def check(of: str) -> dict[str, object]:
    """Return the only check of a monitor, which ended before the waits began."""
    return {
        "id": of,
        "monitorId": of,
        "status": "completed",
        "trigger": "scheduled",
        "scheduledFor": _LONG_AGO,
        "startedAt": _LONG_AGO,
        "finishedAt": _LONG_AGO,
        "estimatedCredits": 40,
        "reservedCredits": 40,
        "actualCredits": 40,
        "billingStatus": "confirmed",
        "summary": _COUNTS,
        "createdAt": _LONG_AGO,
        "updatedAt": _LONG_AGO,
    }


def answer(
    path: str, query: dict[str, list[str]], monitors: int, webhook: str | None
) -> dict[str, object] | None:
    """Return the body of the response to a GET; None for a missing resource."""
    parts = path.strip("/").split("/")[2:]
    if path.endswith("/checks/next"):
        return None
    if not parts:
        start, limit = int(query.get("offset", ["0"])[0]), int(query.get("limit", ["25"])[0])
        numbers = range(start, min(start + limit, monitors))
        return {"success": True, "data": [monitor(number, webhook) for number in numbers]}
    if len(parts) == 1:
        return {"success": True, "data": monitor(uuid.UUID(parts[0]).int - 2**120, webhook)}
    checks = [check(parts[0])]
    return {"success": True, "data": checks if len(parts) == 2 else checks[0]}


def lift_file_limit() -> None:
    """Raise this process's limit of open files to the system's maximum."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


async def _serve() -> None:
    lift_file_limit()
    asked: Counter[str] = Counter()

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                target = (await reader.readuntil(b"\r\n\r\n")).split(b" ", 2)[1].decode()
                url = urlsplit(target)
                who, _, path = url.path.strip("/").partition("/")
                if path:
                    asked[who] += 1
                    conn_id, _, monitors = who.rpartition("-")
                    reports = conn_id.startswith("check_by_webhook")
                    webhook = delivery_url(AIRFLOW_URL, conn_id, "k") if reports else None
                    found = answer(path, parse_qs(url.query), int(monitors), webhook)
                else:
                    found = dict(asked)
                status = "404 Not Found" if found is None else "200 OK"
                body = json.dumps(found).encode()
                head = f"HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
                writer.write(head.encode() + body)
                await writer.drain()
        writer.close()

    server = await asyncio.start_server(handle, "127.0.0.1", 0, backlog=1000)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


@contextlib.contextmanager
def monitor_service() -> Iterator[str]:
    """Run the service in a separate process; yield its base URL."""
    process = subprocess.Popen(
        [sys.executable, "-m", "benchmarks.monitor_service"], stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        yield f"http://127.0.0.1:{int(process.stdout.readline())}"
    finally:
        process.terminate()
        process.wait()


if __name__ == "__main__":
    asyncio.run(_serve())
