# SPDX-License-Identifier: Apache-2.0
"""Loading 100,000 pages into a PostgreSQL table, as a ratio to COPY of the same rows from a file in COPY's format."""

from __future__ import annotations

import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from urllib.parse import urlsplit

import psycopg2

from airflow_provider_webdata.results.changes.items import emitted_item
from airflow_provider_webdata.results.changes.pages import version_after
from airflow_provider_webdata.results.columns import CHANGES, columns_of
from airflow_provider_webdata.results.files.output import OutputFile
from tests.support.postgres import Postgres

ROWS = 100_000
ROUNDS = 3
TEXT_CHARACTERS = 2_000
_LOAD = """
import re, sys, time
from pathlib import Path
from airflow_provider_webdata.transfers.webdata_to_table import WebDataToTableOperator
import airflow_provider_webdata.results.tables.load, airflow.providers.postgres.hooks.postgres

def peak():
    return int(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1]) / 1024

task = WebDataToTableOperator(task_id="load", path=sys.argv[1], table=sys.argv[2], conn_id="bench", kind="document")
before, start = peak(), time.perf_counter()
task.execute({})
print(time.perf_counter() - start, peak() - before)
"""


def run() -> list[dict[str, object]]:
    """Return a row per file and load: seconds, ratio to COPY (median of rounds), and memory in addition to Airflow."""
    with tempfile.TemporaryDirectory() as name, Postgres() as server:
        folder = Path(name)
        url = server.create_database("bench").replace("+psycopg2", "")
        files = _files(folder)
        found: dict[tuple[str, str], list[tuple[float, float, float]]] = {}
        _load(url, files["jsonl"], "made")
        rows = folder / "rows.copy"
        with rows.open("wb") as out:
            _copy(url, "COPY made TO STDOUT", out)
        for _ in range(ROUNDS):
            for kind, file in files.items():
                # Measured next to the load; pending writes of an earlier one slow neither.
                copy = _copied(url, rows)
                found.setdefault(("COPY", ""), []).append((copy, 1.0, 0.0))
                for load in ("first", "again, all rows upserted"):
                    _query(url, "CHECKPOINT")
                    seconds, memory = _load(url, file, "loaded")
                    found.setdefault((kind, load), []).append((seconds, seconds / copy, memory))
                _query(url, "DROP TABLE loaded")
    return [
        {
            "file": kind,
            "load": load,
            "seconds": round(statistics.median(value[0] for value in values), 2),
            "ratio to COPY": round(statistics.median(value[1] for value in values), 2),
            "MB over Airflow": round(max(value[2] for value in values)),
        }
        for (kind, load), values in found.items()
    ]


def _files(folder: Path) -> dict[str, str]:
    draw = random.Random(7)
    words = [f"word{number}" for number in range(3_000)]

    def page(number: int) -> dict[str, object]:
        url = f"https://site{number % 100}.example/section/{number}"
        text = " ".join(draw.choices(words, k=TEXT_CHARACTERS // 8))
        metadata = {
            "sourceURL": url,
            "url": url,
            "title": f"Page {number}",
            "description": text[:150],
            "language": "en",
            "statusCode": 200,
            "contentType": "text/html",
            "scrapeId": f"id-{number}",
            "creditsUsed": 1,
            "proxyUsed": "basic",
            "cacheState": "miss",
        }
        return {"markdown": text.replace(" word9", "\n\nword9"), "links": [url, url], "metadata": metadata}

    def emitted(number: int) -> dict[str, object]:
        item = page(number)
        return emitted_item(item, "new", item["metadata"]["sourceURL"], version, "d/t")  # type: ignore[index]

    files, version = {}, version_after(0, time.time())
    for kind in ("jsonl", "jsonl.gz", "parquet", "jsonl with changes"):
        draw.seed(7)
        end, _, changes = kind.partition(" ")
        files[kind] = str(folder / f"pages{len(changes)}.{end}")
        with OutputFile(files[kind], (*columns_of("document"), *(CHANGES if changes else ()))) as file:
            file.write(map(emitted if changes else page, range(ROWS)))
    return files


def _load(url: str, file: str, table: str) -> tuple[float, float]:
    parts = urlsplit(url)
    connection = {
        "conn_type": "postgres",
        "host": parts.hostname,
        "port": parts.port,
        "login": parts.username,
        "password": parts.password,
        "schema": parts.path[1:],
    }
    done = subprocess.run(
        [sys.executable, "-c", _LOAD, file, table],
        env={**os.environ, "AIRFLOW_CONN_BENCH": json.dumps(connection)},
        check=True,
        capture_output=True,
        text=True,
    )
    seconds, memory = map(float, done.stdout.splitlines()[-1].split())
    return seconds, memory


def _copied(url: str, rows: Path) -> float:
    """Return the duration of COPY for rows into a table with the same columns and primary key."""
    _query(url, "CREATE TABLE copied (LIKE made INCLUDING ALL)")
    _query(url, "CHECKPOINT")
    start = time.perf_counter()
    with rows.open("rb") as file:
        _copy(url, "COPY copied FROM STDIN", file)
    seconds = time.perf_counter() - start
    _query(url, "DROP TABLE copied")
    return seconds


def _copy(url: str, statement: str, file: object) -> None:
    with psycopg2.connect(url) as connection, connection.cursor() as cursor:
        cursor.copy_expert(statement, file)
    connection.close()


def _query(url: str, statement: str) -> None:
    with psycopg2.connect(url) as connection, connection.cursor() as cursor:
        cursor.execute(statement)
    connection.close()
