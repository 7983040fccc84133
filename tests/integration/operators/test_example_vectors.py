# SPDX-License-Identifier: Apache-2.0
"""The examples that keep a vector store in step with a site, as users copy them, on PostgreSQL with pgvector."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psycopg2
import pytest

from tests.support.dag_runner import Airflow, Outcome, connection
from tests.support.postgres import Postgres
from webdata_sandbox.server import SandboxServer

EXAMPLES = Path(__file__).parents[3] / "example_dags" / "vectors"
OPTIONS = "from airflow_provider_webdata.options import Changes"
FERRY = "https://river.example/ferry"


pytestmark = pytest.mark.skipif(
    sys.version_info >= (3, 13), reason="pgserver, which has pgvector, knows no Python 3.13"
)


@dataclass
class Vectors:
    """An example, a site, and the vectors that the example keeps of it."""

    airflow: Airflow
    sandbox: SandboxServer
    database: str
    source: str

    def run(self, state: str = "success") -> Outcome:
        url = urlsplit(self.database)
        vectors = {
            "conn_type": "postgres",
            "host": url.hostname,
            "port": url.port,
            "login": url.username,
            "password": url.password,
            "schema": url.path.strip("/"),
        }
        done = self.airflow.run(
            self.source,
            AIRFLOW_CONN_WEBDATA_DEFAULT=connection(self.sandbox),
            AIRFLOW_CONN_VECTORS=json.dumps(vectors),
        )
        assert done.run["state"] == state, done.log[-4000:]
        return done

    def query(self, sql: str) -> list[Any]:
        with contextlib.closing(psycopg2.connect(self.database)) as client, client.cursor() as cursor:
            cursor.execute(sql)
            return cursor.fetchall()


@pytest.fixture(scope="module")
def server() -> Iterator[Postgres]:
    spec = importlib.util.find_spec("pgserver")
    assert spec is not None
    assert spec.origin is not None
    with Postgres(programs=str(Path(spec.origin).parent / "pginstall" / "bin")) as server:
        yield server


@pytest.fixture
def vectors(
    airflow: Airflow, sandbox: SandboxServer, server: Postgres, tmp_path: Path, request: pytest.FixtureRequest
) -> Vectors:
    name: str = request.param
    source = (EXAMPLES / f"{name}.py").read_text().replace(f"\n{name}()\n", f"\ndag = {name}()\n")
    source = source.replace("tempfile.gettempdir()", repr(str(tmp_path)))
    # A page that two runs have missed is removed.
    source = source.replace("import tempfile", f"import datetime\nimport tempfile\n{OPTIONS}")
    given = 'changes="{{ params.folder }}/seen"'
    assert given in source
    source = source.replace(given, f"changes=Changes({given[8:]}, removed_after=datetime.timedelta(0))")
    database = server.create_database(f"{name}_{request.function.__name__}"[:60]).replace("+psycopg2", "")
    return Vectors(airflow, sandbox, database, source)


@pytest.mark.parametrize("vectors", ["webdata_pgvector"], indirect=True)
def test_pages_are_embedded_when_they_change(vectors: Vectors) -> None:
    control = vectors.sandbox.control
    embedded = "embed.return_value"
    pages = vectors.run().xcom[embedded]
    assert pages > 3
    assert vectors.query("SELECT count(embedding), count(*) FROM web_pages") == [(pages, pages)]

    control.set_page(FERRY, "<p>The ferry to the island takes bicycles.</p>", title="Ferry")
    control.set_page("https://river.example/", f'<p>All of the river.</p><a href="{FERRY}">Ferry</a>')
    control.set_site("river.example", sitemap=[FERRY])
    first = vectors.run()
    assert first.xcom[embedded] == 2
    vectors.source = vectors.source.replace(
        "How high is the water at the bridge?", "Which ferry takes bicycles?"
    )
    # The state counts in seconds, and no page is removed in the second in which it was missed.
    time.sleep(1)
    last = vectors.run()
    assert last.xcom[embedded] == 0
    assert last.xcom["report.return_value"].splitlines()[1] == f"Ferry {FERRY}"
    # Pages that are no longer linked were missed twice by then.
    today = vectors.query("SELECT url FROM web_pages WHERE webdata_removed_at IS NULL")
    assert sorted(today) == [("https://river.example/",), (FERRY,)]


@pytest.mark.skipif(sys.version_info < (3, 11), reason="Airflow's agents know no Python 3.10")
@pytest.mark.parametrize("vectors", ["webdata_embeddings"], indirect=True)
def test_parts_are_replaced_when_their_page_changes(vectors: Vectors) -> None:
    control = vectors.sandbox.control
    stored = "store.return_value"
    summary = vectors.run().xcom[stored]
    before = dict(vectors.query("SELECT url, count(embedding) FROM web_parts GROUP BY url"))
    assert summary == f"{sum(before.values())} parts of {len(before)} pages; {len(before)} pages differ"

    long = " ".join(f"<p>Boat {number} leaves the island at noon.</p>" for number in range(100))
    control.set_page("https://river.example/", long)
    control.set_site("river.example", sitemap=[])
    summary = vectors.run().xcom[stored]
    after = dict(vectors.query("SELECT url, count(embedding) FROM web_parts GROUP BY url"))
    parts = after["https://river.example/"]
    assert parts > 1
    assert after == before | {"https://river.example/": parts}
    assert summary == f"{parts} parts of 1 pages; 1 pages differ"

    gone = len(before) - 1
    assert vectors.run().xcom[stored] == f"0 parts of 0 pages; {gone} pages differ"
    last = dict(vectors.query("SELECT url, count(embedding) FROM web_parts GROUP BY url"))
    assert last == dict.fromkeys(before, 0) | {"https://river.example/": parts}


@pytest.mark.parametrize(
    ("vectors", "task", "table"),
    [
        ("webdata_pgvector", "embed", "web_pages"),
        pytest.param(
            "webdata_embeddings",
            "store",
            "web_parts",
            marks=pytest.mark.skipif(
                sys.version_info < (3, 11), reason="Airflow's agents know no Python 3.10"
            ),
        ),
    ],
    indirect=["vectors"],
)
def test_a_failed_load_loses_no_page(vectors: Vectors, task: str, table: str) -> None:
    vectors.source = vectors.source.replace('"retries": 2', '"retries": 0')
    database = vectors.database
    vectors.database = database.replace(f":{urlsplit(database).port}/", ":1/")
    assert f"{task}.return_value" not in vectors.run("failed").xcom
    vectors.database = database
    vectors.run()
    [[pages]] = vectors.query(f"SELECT count(DISTINCT url) FROM {table}")
    assert pages > 3
