# SPDX-License-Identifier: Apache-2.0
"""The example DAGs against a self-hosted server without monitors, agents, browsers, a model, and a search backend.

Not run: `webdata_on_check` and `webdata_on_job`, which only a delivery starts, `webdata_search_until_enough`, which
needs
Airflow 3.4, and `webdata_research`, whose agent has a model of its own.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.dag_runner import Airflow, Outcome, connection
from webdata_sandbox.server import SandboxServer

EXAMPLES = Path(__file__).parents[3] / "example_dags"
SOURCE = """
import importlib.util

def load(path):
    spec = importlib.util.spec_from_file_location(path.rpartition("/")[2].removesuffix(".py"), path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module

dags = []
for path, name, *tasks in {dags}:
    # Airflow finds the DAGs of a module among its names.
    globals()[name] = dag = getattr(load(path), name)()
    if tasks:
        dag = dag.partial_subset(tasks)
    dags.append(dag)
del dag
"""
# Of these, only the crawl is a call of the server; the other tasks are about a database.
CRAWLS = {"vectors/webdata_pgvector": "webdata_pgvector", "vectors/webdata_embeddings": "webdata_embeddings"}
PASSING = {
    "webdata_search": "webdata_search",
    "webdata_incremental_search": "webdata_incremental_search",
    "webdata_site_to_table": "webdata_site_to_table",
}
LACKING = {
    "webdata_monitor": ("webdata_monitor", "it has no monitors"),
    "webdata_wait": ("webdata_wait", "without a search backend"),
    "webdata_operations": ("webdata_operations", "it does not report credits"),
    "webdata_checked_pages": ("webdata_checked_pages", "without a search backend"),
    "agents/webdata_change_review": ("webdata_change_review", "it has no monitors"),
}


@pytest.fixture(scope="module")
def own() -> Iterator[SandboxServer]:
    with SandboxServer(profile="self-hosted", settle=True, closing_seconds=0, queue_seconds=0) as server:
        yield server


def run(airflow: Airflow, own: SandboxServer, folder: Path, dags: list[list[str]]) -> Outcome:
    given = [[str(EXAMPLES / f"{path}.py"), *rest] for path, *rest in dags]
    return airflow.run(
        SOURCE.replace("{dags}", json.dumps(given)),
        AIRFLOW_CONN_WEBDATA_DEFAULT=connection(own, server="self-hosted"),
        TMPDIR=str(folder),
    )


def test_what_needs_only_pages_passes(airflow: Airflow, own: SandboxServer, tmp_path: Path) -> None:
    dags = [[path, name] for path, name in PASSING.items()]
    done = run(airflow, own, tmp_path, [*dags, *([path, name, "crawl"] for path, name in CRAWLS.items())])
    assert [found["state"] for found in done.runs] == ["success"] * (len(PASSING) + len(CRAWLS)), done.log[
        -9000:
    ]


def test_what_needs_more_names_it(airflow: Airflow, own: SandboxServer, tmp_path: Path) -> None:
    for path, (name, lack) in LACKING.items():
        done = run(airflow, own, tmp_path, [[path, name]])
        assert (name, done.run["state"]) == (name, "failed")
        assert lack in done.log, f"{name}: {done.log[-5000:]}"
