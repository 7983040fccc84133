# SPDX-License-Identifier: Apache-2.0
"""Time from sending a delivery until the waiting trigger fires.

Two API servers share a database, and the triggers' reader is connected to one of them. That server receives the `same`
deliveries and the other server the `other` deliveries, one at a time at random moments.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Mapping
from pathlib import Path

from benchmarks.api_server import WEBHOOK_SECRET, Airflow
from benchmarks.databases import DATABASES
from benchmarks.load import PAYLOAD

SECRET_HEADER = "X-WebData-Webhook-Secret"
CONN_ID = "bench"
DELIVERIES = 20
MAX_PAUSE = 0.5


def run() -> list[dict[str, object]]:
    """Return a row per database and receiving process."""
    rows: list[dict[str, object]] = []
    for name, database in DATABASES.items():
        with tempfile.TemporaryDirectory() as folder, database(Path(folder)) as url:
            airflow = Airflow(Path(folder), url, _connection(""))
            airflow.set_up()
            with airflow.api_server("same") as same, airflow.api_server("other") as other:
                for process, received_by in (("same", same), ("other", other)):
                    times = sorted(_measured(same, received_by))
                    rows.append(
                        {
                            "database": name,
                            "received by": f"the {process} process",
                            "median ms": round(statistics.median(times)),
                            "p95 ms": round(times[int(len(times) * 0.95)]),
                            "most ms": round(times[-1]),
                        }
                    )
    return rows


def _connection(inbox: str) -> dict[str, str]:
    extra = {"webhook_url": "https://airflow.example", "webhook_secret": WEBHOOK_SECRET, "inbox_url": inbox}
    connection = {"conn_type": "webdata", "host": "http://127.0.0.1:1", "password": "none", "extra": extra}
    return {f"AIRFLOW_CONN_{CONN_ID.upper()}": json.dumps(connection)}


def _measured(inbox: str, received_by: str) -> list[float]:
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.delivery_latency", received_by],
        # No worker deferred these waits, so triggers need not wait until one exits.
        env={**os.environ, **_connection(inbox), "AIRFLOW__WORKERS__MIN_HEARTBEAT_INTERVAL": "0"},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    times: list[float] = json.loads(done.stdout.splitlines()[-1])
    return times


async def _times(received_by: str) -> list[float]:
    import httpx

    keys = [str(uuid.uuid4()) for _ in range(DELIVERIES)]
    waits = {key: asyncio.create_task(_wait(key)) for key in keys}
    await asyncio.sleep(3.0)
    times = []
    async with httpx.AsyncClient(base_url=received_by, headers={SECRET_HEADER: WEBHOOK_SECRET}) as client:
        # A delivery without a wait, so that the first connection is not measured.
        await _deliver(client, "key-of-nobody")
        for key, wait in waits.items():
            await asyncio.sleep(random.uniform(0, MAX_PAUSE))
            start = time.perf_counter()
            _, fired = await asyncio.gather(_deliver(client, key), wait)
            times.append(1000 * (fired - start))
    return times


async def _deliver(client: object, key: str) -> None:
    payload: Mapping[str, object] = {**PAYLOAD, "webhookId": str(uuid.uuid4())}
    response = await client.post(f"/webdata/inbox/{CONN_ID}/{key}", json=payload)  # type: ignore[attr-defined]
    response.raise_for_status()


async def _wait(key: str) -> float:
    from airflow_provider_webdata.triggers.webhook import WebDataWebhookTrigger

    trigger = WebDataWebhookTrigger(webdata_conn_id=CONN_ID, key=key, deadline=time.time() + 600)
    async for event in trigger.run():
        if event.payload["status"] != "done":
            raise RuntimeError(f"a wait ended: {event}")
        return time.perf_counter()
    raise RuntimeError("a wait ended without an event")


if __name__ == "__main__":
    print(json.dumps(asyncio.run(_times(sys.argv[1]))), flush=True)
