# SPDX-License-Identifier: Apache-2.0
"""A separate process that sends deliveries over persistent connections as fast as the server responds.

It uses plain sockets and prepared bytes, so that the sender has little effect on the measurement. Run it as
`python -m benchmarks.load` with a JSON plan on standard input. It prints a JSON report.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
import uuid
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from urllib.parse import urlsplit

ID_LENGTH = 36
_PLACE = "x" * ID_LENGTH

PAYLOAD = {
    "success": True,
    "type": "monitor.check.completed",
    "id": "5e0ff6c2-0b0a-4b52-9b1e-6f3a2f0f8a10",
    "webhookId": _PLACE,
    "data": [
        {
            "monitorId": "0b6b5f0e-5f5c-4f0e-8a53-0f6f0c1d7e21",
            "checkId": "5e0ff6c2-0b0a-4b52-9b1e-6f3a2f0f8a10",
            "status": "completed",
            "summary": {"totalPages": 40, "same": 36, "changed": 3, "new": 1, "removed": 0, "error": 0},
        }
    ],
    "metadata": {"dag_id": "prices", "task_id": "watch_prices", "purpose": "what the shop charges " * 16},
}
"""A delivery of about 800 bytes for a monitor's completed check; deliveries differ only in `webhookId`."""


@dataclass(frozen=True)
class Plan:
    """A load: deliveries to `url` with `headers`, for `seconds`, over concurrent `connections`."""

    url: str
    headers: Mapping[str, str]
    connections: int
    seconds: float


@dataclass(frozen=True)
class Report:
    """The result of a load: the number of responses by status, the time of each in ms, and the duration in s."""

    statuses: Mapping[str, int]
    latencies: list[float]
    seconds: float

    @property
    def accepted(self) -> int:
        """The number of responses with status 2xx."""
        return sum(count for status, count in self.statuses.items() if status.startswith("2"))


def send(plan: Plan) -> Report:
    """Run a plan in a separate process."""
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.load"],
        input=json.dumps(asdict(plan)),
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return Report(**json.loads(done.stdout))


class _Sender(asyncio.Protocol):
    """A connection that sends the next delivery after each response, until the time is up."""

    def __init__(self, head: bytes, body: tuple[bytes, bytes], tally: _Tally) -> None:
        self._head, self._body, self._tally = head, body, tally
        self._ids = (str(uuid.uuid4()) for _ in iter(int, 1))
        self._answer = b""
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._send()

    def data_received(self, data: bytes) -> None:
        self._answer += data
        head, end, rest = self._answer.partition(b"\r\n\r\n")
        if not end:
            return
        length = int(head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0])
        if len(rest) < length:
            return
        self._answer = b""
        now = time.perf_counter()
        self._tally.answered(head[9:12].decode(), 1000 * (now - self._sent))
        if now < self._tally.end:
            self._send()
        else:
            self._transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        if exc is not None:
            self.done.set_exception(exc)
        elif time.perf_counter() < self._tally.end:
            self.done.set_exception(ConnectionError("the server closed the connection"))
        else:
            self.done.set_result(None)

    def _send(self) -> None:
        self._sent = time.perf_counter()
        self._transport.write(self._head + self._body[0] + next(self._ids).encode() + self._body[1])


class _Tally:
    def __init__(self, end: float) -> None:
        self.end = end
        self.statuses: Counter[str] = Counter()
        self.latencies: list[float] = []

    def answered(self, status: str, milliseconds: float) -> None:
        self.statuses[status] += 1
        self.latencies.append(round(milliseconds, 3))


async def _carry_out(plan: Plan) -> Report:
    url = urlsplit(plan.url)
    before, after = json.dumps(PAYLOAD).encode().split(_PLACE.encode())
    lines = {
        "host": url.netloc,
        "content-type": "application/json",
        "content-length": str(len(before) + ID_LENGTH + len(after)),
        **plan.headers,
    }
    head = f"POST {url.path} HTTP/1.1\r\n" + "".join(f"{name}: {value}\r\n" for name, value in lines.items())
    start = time.perf_counter()
    tally = _Tally(start + plan.seconds)
    loop = asyncio.get_running_loop()
    senders = []
    for _ in range(plan.connections):
        _, sender = await loop.create_connection(
            lambda: _Sender(head.encode() + b"\r\n", (before, after), tally),
            url.hostname or "",
            url.port or 80,
        )
        senders.append(sender.done)
    await asyncio.gather(*senders)
    return Report(dict(tally.statuses), tally.latencies, time.perf_counter() - start)


if __name__ == "__main__":
    print(json.dumps(asdict(asyncio.run(_carry_out(Plan(**json.load(sys.stdin)))))))
