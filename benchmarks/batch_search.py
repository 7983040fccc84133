# SPDX-License-Identifier: Apache-2.0
"""Searches per second with 50 in flight, at a service with a latency of 100 ms, as ratios to firecrawl-py.

The table also has the client's CPU time, which hardly depends on the load of the machine.
"""

from __future__ import annotations

import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from typing import Any

from benchmarks.bodies import SIZES, canned_server, search_response
from benchmarks.contenders import KEY

ROUNDS = 5
SEARCHES = 1000
WARM_UP = 100
IN_FLIGHT = 50
LATENCY_SECONDS = 0.1
BASE = "firecrawl-py"

Batch = Callable[[list[str]], int]
"""A function that runs searches and returns the number of results."""


def raw_httpx(url: str, pool: int | None = None) -> Batch:
    """Search with plain httpx and `response.json()`, with the default pool or a size; keep all results in memory."""
    import httpx

    async def batch(queries: list[str]) -> int:
        headers = {"authorization": f"Bearer {KEY}"}
        own: dict[str, Any] = {}
        if pool is not None:
            own["limits"] = httpx.Limits(max_connections=pool, max_keepalive_connections=pool)
        async with httpx.AsyncClient(headers=headers, timeout=60, **own) as client:

            async def search(query: str) -> list[object]:
                response = await client.post(f"{url}/v2/search", json={"query": query, "limit": 10})
                response.raise_for_status()
                found: list[object] = response.json()["data"]["web"]
                return found

            return await _all(search, queries)

    return lambda queries: asyncio.run(batch(queries))


def other_client(url: str) -> Batch:
    """Search with firecrawl-py's asynchronous client; keep all results in memory."""
    from firecrawl import AsyncFirecrawl

    async def batch(queries: list[str]) -> int:
        client = AsyncFirecrawl(api_key=KEY, api_url=url)

        async def search(query: str) -> list[object]:
            return list((await client.search(query, limit=10)).web or [])

        return await _all(search, queries)

    return lambda queries: asyncio.run(batch(queries))


def hook(url: str) -> Batch:
    """Search with the asynchronous hook; keep all results in memory."""
    from airflow_provider_webdata.hooks.webdata_async import WebDataAsyncHook

    async def batch(queries: list[str]) -> int:
        _connect(url)
        async with WebDataAsyncHook() as client:

            async def search(query: str) -> list[object]:
                answer = await client.search(query=query, limit=10)
                return list((answer.data.web if answer.data else None) or [])

            return await _all(search, queries)

    return lambda queries: asyncio.run(batch(queries))


def operator(url: str) -> Batch:
    """Execute the operator, which writes each response to a file when it arrives."""

    def batch(queries: list[str]) -> int:
        with tempfile.TemporaryDirectory() as folder:
            count: int = _executed(url, queries, save_to=f"file://{folder}/results.jsonl")["count"]
            return count

    return batch


CONTENDERS: dict[str, Callable[[str], Batch]] = {
    "httpx + json": raw_httpx,
    "httpx + json, pool of 50": lambda url: raw_httpx(url, IN_FLIGHT),
    "this provider, hook": hook,
    "this provider, batch operator": operator,
    BASE: other_client,
}


def run() -> list[dict[str, object]]:
    """Return a row per contender: searches per second, and the ratio to the base of the same round."""
    speeds: dict[str, list[float]] = {name: [] for name in CONTENDERS}
    cpu: dict[str, list[float]] = {name: [] for name in CONTENDERS}
    with canned_server(search_response(SIZES["3 kB"]), LATENCY_SECONDS) as url:
        for _ in range(ROUNDS):
            # One after the other, in separate processes, so that a slow moment of the machine affects all of them.
            for name in CONTENDERS:
                command = [sys.executable, "-m", "benchmarks.batch_search", name, url]
                done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
                wall_seconds, cpu_seconds = json.loads(done.stdout.splitlines()[-1])
                speeds[name].append(SEARCHES / wall_seconds)
                cpu[name].append(cpu_seconds / SEARCHES)
    return [
        {
            "client": name,
            "searches a second": round(statistics.median(speed)),
            "of the most possible": f"{statistics.median(speed) * LATENCY_SECONDS / IN_FLIGHT:.0%}",
            "ratio": _ratio(speed, speeds[BASE]),
            "cpu ms each": f"{1000 * statistics.median(cpu[name]):.2f}",
            "cpu ratio": _ratio(cpu[name], cpu[BASE]),
        }
        for name, speed in speeds.items()
    ]


def _ratio(these: list[float], base: list[float]) -> str:
    return f"{statistics.median(a / b for a, b in zip(these, base, strict=True)):.2f}"


async def _all(search: Callable[[str], Awaitable[list[object]]], queries: list[str]) -> int:
    waiting = iter(queries)
    found: list[list[object]] = []

    async def worker() -> None:
        # Each worker takes the next query when it is free.
        for query in waiting:
            found.append(await search(query))  # noqa: PERF401 - `waiting` is shared

    await asyncio.gather(*(worker() for _ in range(IN_FLIGHT)))
    return sum(map(len, found))


def _connect(url: str) -> None:
    connection = {"conn_type": "webdata", "host": url, "password": KEY}
    os.environ["AIRFLOW_CONN_WEBDATA_DEFAULT"] = json.dumps(connection)


def _executed(url: str, queries: list[str], **arguments: Any) -> dict[str, Any]:
    from airflow_provider_webdata.operators.batch_search import WebDataBatchSearchOperator

    _connect(url)
    task = WebDataBatchSearchOperator(
        task_id="search", queries=queries, limit=10, max_concurrency=IN_FLIGHT, **arguments
    )
    result: dict[str, Any] = task.execute({})
    return result


def _measure(name: str, url: str) -> tuple[float, float]:
    batch = CONTENDERS[name](url)
    batch([f"warm up {n}" for n in range(WARM_UP)])
    queries = [f"wheat {n}" for n in range(SEARCHES)]
    wall_start, cpu_start = time.perf_counter(), time.process_time()
    found = batch(queries)
    wall, cpu = time.perf_counter() - wall_start, time.process_time() - cpu_start
    if found != 10 * SEARCHES:
        raise AssertionError(f"{found} results")
    return wall, cpu


if __name__ == "__main__":
    print(json.dumps(_measure(sys.argv[1], sys.argv[2])))
