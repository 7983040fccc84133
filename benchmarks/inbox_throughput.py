# SPDX-License-Identifier: Apache-2.0
"""Deliveries per second and response time, by database and number of concurrent senders.

Each route runs in a separate API server of Airflow, one uvicorn process. All share a database and use Airflow's engine:
SQLite with a write-ahead log and `synchronous` FULL, PostgreSQL with `fsync` and `synchronous_commit` on. The routes
take turns within each round. A rate is the median of the rounds, a percentile is of all rounds together, and a ratio is
the median of the rounds' ratios. Every delivery is different. At the end, each route must have stored exactly the
deliveries that it accepted.
"""

from __future__ import annotations

import contextlib
import json
import statistics
import tempfile
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

import sqlalchemy as sa

from benchmarks.api_server import WEBHOOK_SECRET, Airflow
from benchmarks.databases import DATABASES
from benchmarks.load import Plan, Report, send

ROUNDS = 3
SECONDS = 1.5
WARM_UP_SECONDS = 0.5
CONCURRENCY = (1, 16, 64)

SECRET_HEADER = "X-WebData-Webhook-Secret"


@dataclass(frozen=True)
class Route:
    """A measured route: its server, its path, and the query that counts its stored deliveries."""

    server: str
    path: str
    count: str | None


OURS = "this provider"
ROUTES = {
    OURS: Route(
        "webdata",
        "/webdata/inbox/bench/key-of-a-wait",
        "select count(*) from webdata_inbox_delivery where correlation_key = 'key-of-a-wait'",
    ),
    "inbound-webhooks, accepted": Route(
        "peer",
        "/webhooks/heard",
        "select count(*) from inbound_webhooks_delivery where webhook = 'heard' and outcome = 'accepted'",
    ),
    "inbound-webhooks, no subscriber": Route(
        "peer",
        "/webhooks/unheard",
        "select count(*) from inbound_webhooks_delivery where webhook = 'unheard'",
    ),
    "no database": Route("bare", "/bare/", None),
}


def run() -> list[dict[str, object]]:
    """Return a row per database, concurrency, and route."""
    rows: list[dict[str, object]] = []
    for database, opened in DATABASES.items():
        with tempfile.TemporaryDirectory() as folder, opened(Path(folder)) as url:
            reports = _measure(Airflow(Path(folder), url, _settings()))
            _check_stored(url, reports)
            rows += _rows(database, reports)
    return rows


Reports = dict[tuple[str, int], list[Report]]


def _settings() -> dict[str, str]:
    theirs = {
        "conn_type": "inbound_webhook",
        "password": WEBHOOK_SECRET,
        "extra": {
            "source_type": "token_header",
            "token_header": SECRET_HEADER,
            "event_field": "type",
            "delivery_id_field": "webhookId",
        },
    }
    ours = {
        "conn_type": "webdata",
        "host": "http://127.0.0.1:1",
        "password": "wd-benchmark-key",
        "extra": {"webhook_url": "http://127.0.0.1:1", "webhook_secret": WEBHOOK_SECRET},
    }
    return {
        "AIRFLOW__INBOUND_WEBHOOKS__WEBHOOK_NAMES": "heard,unheard",
        "AIRFLOW_CONN_WEBHOOK_HEARD": json.dumps(theirs),
        "AIRFLOW_CONN_WEBHOOK_UNHEARD": json.dumps(theirs),
        "AIRFLOW_CONN_BENCH": json.dumps(ours),
    }


def _measure(airflow: Airflow) -> Reports:
    airflow.set_up()
    reports: Reports = defaultdict(list)
    with contextlib.ExitStack() as stack:
        servers = {route.server for route in ROUTES.values()}
        urls = {server: stack.enter_context(airflow.api_server(server, {})) for server in sorted(servers)}
        for name, route in ROUTES.items():
            reports[name, 0].append(_send(urls, route, 4, WARM_UP_SECONDS))
        for _ in range(ROUNDS):
            for concurrency in CONCURRENCY:
                # One after the other within each round, so that a slow moment of the machine affects all of them.
                for name, route in ROUTES.items():
                    reports[name, concurrency].append(_send(urls, route, concurrency, SECONDS))
    return reports


def _send(urls: dict[str, str], route: Route, concurrency: int, seconds: float) -> Report:
    return send(Plan(urls[route.server] + route.path, {SECRET_HEADER: WEBHOOK_SECRET}, concurrency, seconds))


def _check_stored(url: str, reports: Reports) -> None:
    engine = sa.create_engine(url)
    with engine.connect() as connection:
        for name, route in ROUTES.items():
            if route.count is None:
                continue
            stored = connection.scalar(sa.text(route.count))
            accepted = sum(
                report.accepted for (whose, _), some in reports.items() if whose == name for report in some
            )
            if stored != accepted:
                raise RuntimeError(f"{name}: accepted {accepted} deliveries and stored {stored}")
    engine.dispose()


def _rows(database: str, reports: Reports) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = []
    for concurrency in CONCURRENCY:
        ours = [report.accepted / report.seconds for report in reports[OURS, concurrency]]
        for name in ROUTES:
            some = reports[name, concurrency]
            rates = [report.accepted / report.seconds for report in some]
            latencies = [latency for report in some for latency in report.latencies]
            percentiles = statistics.quantiles(latencies, n=100)
            rows.append(
                {
                    "database": database,
                    "at once": concurrency,
                    "route": name,
                    "per second": round(statistics.median(rates)),
                    "p50 ms": round(percentiles[49], 1),
                    "p99 ms": round(percentiles[98], 1),
                    "not 2xx": sum(sum(report.statuses.values()) - report.accepted for report in some),
                    "ours over it": ""
                    if name == OURS
                    else round(statistics.median(our / its for our, its in zip(ours, rates, strict=True)), 1),
                }
            )
    return rows
