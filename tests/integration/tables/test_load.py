# SPDX-License-Identifier: Apache-2.0
"""`WebDataToTableOperator` on real databases."""

from __future__ import annotations

import hashlib
import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
import threading
import uuid
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import datetime
from pathlib import Path
from traceback import format_exception
from typing import Any

import duckdb
import psycopg2
import pytest
from airflow.sdk import DAG
from airflow.sdk.exceptions import AirflowFailException, AirflowNotFoundException
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_webdata.common.coded_errors import ArgumentError
from airflow_provider_webdata.common.item_urls import site_failed
from airflow_provider_webdata.operators.crawl import WebDataCrawlOperator
from airflow_provider_webdata.results.columns import columns_of
from airflow_provider_webdata.results.encoding import json_text
from airflow_provider_webdata.results.files.formats import FORMATS, SUFFIXES
from airflow_provider_webdata.results.files.output import OutputFile
from airflow_provider_webdata.results.pages.retrieval import KIND, flat_document, flat_documents
from airflow_provider_webdata.results.result_schema import ResultSchema
from airflow_provider_webdata.results.tables.database import Database
from airflow_provider_webdata.results.tables.errors import LoadError, TableError
from airflow_provider_webdata.results.tables.items import ResultsFile
from airflow_provider_webdata.transfers.webdata_to_table import WebDataToTableOperator
from tests.integration.results.conftest import bucket, s3_client, s3_connection, s3_server
from tests.integration.tables.conftest import DATABASES, HOOKS, OlderPostgresHook, Target
from tests.support.direct import TaskInstance, context_of
from tests.support.emissions import Night
from tests.support.examples import examples
from tests.support.rows import row
from tests.support.tables import each_row
from tests.support.waiting import wait_until

__all__ = ["bucket", "s3_client", "s3_connection", "s3_server"]

Written = Callable[..., str]

everywhere = pytest.mark.parametrize("database", HOOKS, indirect=True)
each_way = pytest.mark.parametrize("database", DATABASES, indirect=True)
both_drivers = pytest.mark.parametrize("database", ["postgresql", "postgresql, psycopg2"], indirect=True)
on_sqlite = pytest.mark.parametrize("database", ["sqlite"], indirect=True)


def everywhere_from(*endings: str) -> pytest.MarkDecorator:
    """Every database, each with one of the formats: how a file is read does not depend on what it is loaded into."""
    pairs = [(name, endings[number % len(endings)]) for number, name in enumerate(HOOKS)]
    return pytest.mark.parametrize(("database", "end"), pairs, indirect=["database"])


def load(
    path: str | list[str], table: str = "pages", ti: TaskInstance | None = None, **arguments: Any
) -> dict[str, Any]:
    task = WebDataToTableOperator(task_id="load", path=path, table=table, conn_id="warehouse", **arguments)
    found: dict[str, Any] = task.execute({} if ti is None else context_of(ti))
    return found


def page(number: int, text: str = "text", **more: Any) -> dict[str, Any]:
    url = f"https://river.example/{number}"
    return {"markdown": text, "metadata": {"sourceURL": url, "url": f"{url}/", "statusCode": 200}, **more}


def texts(database: Target) -> dict[int, str]:
    """Return the markdown of the table's pages by their numbers."""
    return {
        int(url.rpartition("/")[2]): text for url, text in database.rows("pages", "source_url", "markdown")
    }


def test_the_xcom_of_a_task_names_its_file(written: Written) -> None:
    one, other = written([page(1)], "one.jsonl"), written([page(2)], "other.jsonl")
    # Of one task, of a mapped one, and rendered to text.
    for xcom in ({"path": one, "count": 1}, [{"path": one}, {"path": other}], json.dumps([{"path": one}])):
        task = WebDataToTableOperator(task_id="t", path=xcom, table="t", conn_id="warehouse")
        assert task._paths() == ([one, other] if isinstance(xcom, list) else [one])
    advice = "set it to a path, or to the result of a task with save_to="
    with pytest.raises(ArgumentError, match=f"path: this value has no file; {advice}"):
        WebDataToTableOperator(task_id="t", path={"data": []}, table="t", conn_id="warehouse")
    with DAG("d", schedule=None):
        crawl = WebDataCrawlOperator(task_id="crawl", url="https://river.example/")
        task = WebDataToTableOperator(task_id="t", path=crawl.output, table="t", conn_id="warehouse")
    task.path = None  # As of a task that returned nothing.
    with pytest.raises(AirflowFailException, match=f"path: crawl has no file; {advice}"):
        task.execute({})


def test_a_missing_connection_names_the_remedy(written: Written) -> None:
    task = WebDataToTableOperator(
        task_id="t", path=written([page(1)], "x.jsonl"), table="t", conn_id="nowhere"
    )
    with pytest.raises(AirflowNotFoundException, match=r"'nowhere' does not exist\. Create it in Airflow"):
        task.execute({})


def csv_of(folder: Path, names: list[str], *rows: list[str]) -> str:
    path = folder / "x.csv"
    path.write_text(
        "".join(",".join(f'"{cell}"' for cell in line) + "\r\n" for line in (names, *rows)), newline=""
    )
    return str(path)


@each_way
def test_column_names_that_are_no_names_there(database: Target, tmp_path: Path) -> None:
    """They are refused before anything is created; the error says what to rename."""
    refused = {
        ("url", "Price", "price"): "'Price' and 'price' are the same name in .*; rename one in columns",
        ("url", ""): "a column of the file has no name; name or omit it in columns",
    }
    if database.name == "postgresql":
        del refused["url", "Price", "price"]
        refused["url", "ctid"] = "'ctid' is the name of a hidden column in PostgreSQL; rename it in columns"
    if database.name == "duckdb":
        refused["url", "rowid"] = "'rowid' is the name of a hidden column in DuckDB"
    for names, words in refused.items():
        with pytest.raises(AirflowFailException, match=f"columns: {words}"):
            load(csv_of(tmp_path, [*names], [*names]), key="url")
    path = csv_of(tmp_path, ["url", "Ä", "ä", "Price"], ["a", "1", "2", "3"], ["b", "4", "5", "6"])
    load(path, key="url")
    if database.name == "postgresql":
        load(csv_of(tmp_path, ["url", "price", "Price"], ["a", "7", "8"]), key="url", add_columns=True)
        assert database.rows("pages", "url", "price", "Price") == [("a", "7", "8"), ("b", None, "6")]
        return
    # The existing column, by another case.
    load(csv_of(tmp_path, ["url", "price"], ["a", "7"]), key="url")
    assert database.rows("pages", "url", "Price") == [("a", "7"), ("b", "6")]
    assert database.rows("pages", "url", "Ä", "ä")[1] == ("b", "4", "5")


def append(path: str, run: str, **arguments: Any) -> dict[str, Any]:
    task = WebDataToTableOperator(
        task_id="load", path=path, table="pages", conn_id="warehouse", mode="append", **arguments
    )
    found: dict[str, Any] = task.execute(context_of(TaskInstance(run_id=run)))
    return found


@each_way
@pytest.mark.parametrize("key", [None, "source_url"])
def test_rows_are_appended_once_per_load(database: Target, written: Written, key: str | None) -> None:
    """A repeated load replaces its own rows alone."""
    for _ in range(2):
        append(written([page(1, "old"), page(2, "old")]), "first", key=key)
    items = [page(1, "twice"), page(1, "new")]
    assert append(written(items), "second", key=key)["loaded"] == (2 if key is None else 1)
    assert append(written([page(1, "new")]), "second", key=key)["loaded"] == 1
    found = database.rows("pages", "run_id", "load_id", "markdown", "source_url")
    assert [(run, text, url[-1]) for run, _, text, url in found] == [
        ("first", "old", "1"),
        ("first", "old", "2"),
        ("second", "new", "1"),
    ]
    assert len({load_id for _, load_id, _, _ in found}) == 2
    assert all(load_id.endswith(f"/t/{run}/-1") for run, load_id, _, _ in found)
    [(loaded_at,)] = set(database.rows("pages", "loaded_at")[-1:])
    assert datetime.fromisoformat(loaded_at).tzinfo is not None
    append(written([]), "second", key=key)
    assert {run for (run,) in database.rows("pages", "run_id")} == {"first"}


@each_way
def test_the_history_of_the_guide(database: Target, written: Written) -> None:
    guide = (Path(__file__).parents[3] / "docs" / "operators" / "to_table.md").read_text(encoding="utf-8")
    [view] = re.findall(r"```sql\n(CREATE VIEW page_history .*?)```", guide, re.DOTALL)
    for run, title in {"1": "low", "2": "low", "3": "high", "4": "low"}.items():
        append(written([{**page(1), "metadata": {**page(1)["metadata"], "title": title}}]), run)
    # Clearing an earlier load changes nothing.
    append(written([{**page(1), "metadata": {**page(1)["metadata"], "title": "low"}}]), "1")
    times = [time for _, time in database.rows("pages", "run_id", "loaded_at")]
    database.query(view.replace("FROM prices", "FROM pages"))
    assert database.rows("page_history", "valid_from", "valid_to", "title") == [
        (times[0], times[2], "low"),
        (times[2], times[3], "high"),
        (times[3], None, "low"),
    ]


@on_sqlite
def test_columns_of_an_append_are_its_own(database: Target, tmp_path: Path) -> None:
    with pytest.raises(
        AirflowFailException, match="mode='append' adds a column 'run_id'; rename that of the file"
    ):
        append(csv_of(tmp_path, ["url", "run_id"], ["a", "b"]), "first")


@on_sqlite
def test_a_column_named_as_the_number_of_a_row(database: Target, tmp_path: Path) -> None:
    path = csv_of(tmp_path, ["url", "rowid"], ["a", "9"], ["a", "1"], ["b", "2"])
    assert load(path, key="url")["duplicates"] == 1
    assert database.rows("pages", "url", "rowid") == [("a", "1"), ("b", "2")]


@everywhere_from(*SUFFIXES)
def test_a_table_is_made_and_loaded_twice(database: Target, written: Written, end: str) -> None:
    path = written([page(1), page(2, links=["a"], unknown=7)], f"items{end}")
    counts = {"table": "pages", "loaded": 2, "removed": 0, "outdated": 0, "duplicates": 0, "files": 1}
    assert load(path) == counts
    first = database.rows("pages", "source_url", "url", "status_code", "markdown")
    assert first == [
        ("https://river.example/1", "https://river.example/1/", 200, "text"),
        ("https://river.example/2", "https://river.example/2/", 200, "text"),
    ]
    assert load(path) == counts
    assert database.rows("pages", "source_url", "url", "status_code", "markdown") == first
    extra, links = (database.text(name, "json") for name in ("extra", "links"))
    assert database.query(f"SELECT {extra}, {links} FROM \"pages\" WHERE url LIKE '%2/'") == [
        ('{"unknown":7}', '["a"]')
    ]


@each_way
def test_the_last_one_of_a_key_wins(database: Target, written: Written) -> None:
    items = [page(1, "a"), page(2), page(1, "b"), page(1, "c")]
    assert load(written(items)).items() >= {"loaded": 2, "duplicates": 2}.items()
    assert texts(database) == {1: "c", 2: "text"}


@each_way
def test_an_empty_file_changes_nothing(database: Target, written: Written) -> None:
    load(written([page(1)]))
    for mode in ("upsert", "replace"):
        for end in SUFFIXES:
            assert load(written([], f"none{end}"), mode=mode, result_schema=LEVEL)["loaded"] == 0
    assert texts(database) == {1: "text"}


@on_sqlite
def test_fields_of_an_item_s_own_are_data(database: Target, written: Written) -> None:
    """Extracted objects may have fields that are called like those of a task with changes."""
    url = "https://river.example/1"
    items = [
        {"url": f"{url}?utm_source=x", "title": "a", "change": "new", "page": url},
        {"url": "https://river.example/2", "title": "b", "change": "removed", "page": url},
        {
            "url": "https://river.example/3",
            "title": "c",
            "change": "failed",
            "webdata_version": 3,
            "webdata_source": 7,
        },
    ]
    assert load(written(items, kind="generic"))["loaded"] == 3
    assert database.rows("pages", "url", "title") == [
        (item["url"], item["title"]) for item in sorted(items, key=lambda item: item["url"])
    ]


@each_way
def test_replace_leaves_what_the_file_holds(database: Target, written: Written) -> None:
    load(written([page(1), page(2)]))
    assert load(written([page(2, "new"), page(3), page(3, "last")]), mode="replace")["loaded"] == 2
    assert texts(database) == {2: "new", 3: "last"}


@each_way
def test_items_of_any_shape_replace_a_table(database: Target, written: Written) -> None:
    items = [{"price": 7, "change": "removed", "url": "x"}, [1], "text", None]
    for _ in range(2):
        load(written(items, kind="generic"), mode="replace", kind="generic")
    found = [extra for (extra,) in database.query(f'SELECT {database.text("extra", "json")} FROM "pages"')]
    assert sorted(found) == sorted(map(json_text, items))


@on_sqlite
def test_files_of_two_kinds_are_refused(database: Target, written: Written) -> None:
    link = {"url": "https://river.example/", "title": "River", "description": "Water"}
    paths = [written([link], "a.jsonl"), written([page(1)], "b.jsonl")]
    with pytest.raises(TableError, match="load only files of one kind together, or set kind"):
        load(paths)


@on_sqlite
def test_several_files_are_loaded_together(
    database: Target, written: Written, caplog: pytest.LogCaptureFixture
) -> None:
    paths = [written([page(1), page(2, "a")], "a.jsonl"), written([page(2, "b")], "b.parquet")]
    assert load([*paths, written([], "c.jsonl")]) == {
        "table": "pages",
        "loaded": 2,
        "removed": 0,
        "outdated": 0,
        "duplicates": 1,
        "files": 3,
    }
    assert re.search(r" Created the table pages with \d+ columns\b", caplog.text)
    assert texts(database) == {1: "text", 2: "b"}


@on_sqlite
def test_a_table_that_was_rolled_back_was_not_created(
    database: Target, written: Written, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(TableError, match=r"(?s)item 2 of .* has no"):
        load(written([page(1), {"markdown": "of no page"}], "a.jsonl"))
    assert "Created the table" not in caplog.text


@on_sqlite
def test_flat_documents_are_upserted_by_page(database: Target, tmp_path: Path) -> None:
    def deliver(items: list[Any]) -> dict[str, Any]:
        path = str(tmp_path / "flat.parquet")
        with OutputFile(path, columns_of(KIND)) as file:
            file.write(flat_documents(items))
        return load(path)

    deliver([page(1)])
    deliver([page(1, "new")])
    assert database.rows("pages", "url", "text") == [("https://river.example/1", "new")]
    assert {name for (name,) in database.rows("pages", "id")} == {flat_document(page(1))["id"]}


@on_sqlite
@pytest.mark.parametrize("end", SUFFIXES)
def test_files_in_an_object_store_are_loaded(database: Target, bucket: str, end: str) -> None:
    folder = f"s3://results_s3@{bucket}/deep"
    with OutputFile(f"{folder}/one{end}", columns_of("document")) as file:
        file.write([page(1), page(2)])
    with OutputFile(f"{folder}/other{end}", columns_of("document")) as file:
        file.write([page(2, "new"), page(3)])
    loaded = load([f"{folder}/one{end}", f"{folder}/other{end}"])
    assert loaded == {"table": "pages", "loaded": 3, "removed": 0, "outdated": 0, "duplicates": 1, "files": 2}
    assert sorted(texts(database).items()) == [(1, "text"), (2, "new"), (3, "text")]


@on_sqlite
@each_row(
    "place, name",
    [*(("there", f"none{end}") for end in SUFFIXES), ("no-such-bucket", "none.jsonl")],
)
def test_what_is_not_in_the_object_store_fails_for_good(
    database: Target, bucket: str, place: str, name: str
) -> None:
    url = f"s3://results_s3@{bucket if place == 'there' else place}/{name}"
    with pytest.raises(AirflowFailException, match=f"{url} does not exist"):
        load(url)
    assert database.query("SELECT name FROM sqlite_master") == []


@pytest.mark.parametrize("database", ["postgresql", "sqlite"], indirect=True)
def test_lineage(database: Target, bucket: str, tmp_path: Path) -> None:
    """From the files to the table, which is named as others name it."""
    url = f"s3://results_s3@{bucket}/one.jsonl"
    with OutputFile(url, columns_of("document")) as file:
        file.write([page(1), page(2)])
    with OutputFile(f"{tmp_path}/run.parquet", columns_of("document")) as output:
        output.write([page(2, "new")])
    columns = {"source_url": "url", "markdown": "body", "status_code": "status"}
    task = WebDataToTableOperator(
        task_id="load",
        path=[url, output.url],
        table="pages",
        conn_id="warehouse",
        columns=columns,
        key="source_url",
    )
    assert task.get_openlineage_facets_on_complete(None) is None
    task.execute({})
    lineage = task.get_openlineage_facets_on_complete(None)
    assert [(found.namespace, found.name) for found in lineage.inputs] == [
        (f"s3://{bucket}", "one.jsonl"),
        ("file", f"{tmp_path}/run.parquet"),
    ]
    (table,) = lineage.outputs
    if database.name == "postgresql":
        [(name, schema, port)] = database.query(
            "SELECT current_database(), current_schema(), current_setting('port')"
        )
        expected = (f"postgres://127.0.0.1:{port}", f"{name}.{schema}.pages")
    else:
        expected = (f"sqlite://{tmp_path}/warehouse.db", "pages")
    assert (table.namespace, table.name) == expected
    assert table.outputFacets["outputStatistics"].rowCount == 2
    assert {field.name: field.type for field in table.facets["schema"].fields} == {
        "url": "text",
        "body": "text",
        "status": "integer",
    }


def test_the_merge_of_the_documentation(tmp_path: Path) -> None:
    """By DuckDB, of files that two runs wrote: pages that changed under another spelling, are new, and are gone."""
    (merge,) = re.findall(
        r"^```sql\n(MERGE.*?)^```",
        (Path(__file__).parents[3] / "docs/cookbook/into_snowflake_or_bigquery.md").read_text(),
        re.M | re.S,
    )
    url = "https://river.example/"
    spelled = {"markdown": "new", "metadata": {"sourceURL": f"{url}1?utm_source=feed"}}
    nights = [
        Night(1).emit(*map(page, (1, 2, 4, 5))),
        Night(2)
        .emit(spelled, page(3), {"metadata": page(5)["metadata"]})
        .fail(failing(4, 503))
        .remove(f"{url}2"),
    ]
    warehouse = duckdb.connect()
    warehouse.execute(
        "CREATE TABLE pages (page VARCHAR, markdown VARCHAR, webdata_version BIGINT, webdata_removed_at VARCHAR)"
    )
    for night in (*nights, nights[0]):
        warehouse.execute(f"CREATE OR REPLACE VIEW run AS FROM '{night.write(f'{tmp_path}/run.parquet')}'")
        warehouse.execute(merge)
    kept = [(f"{url}{number}", "text", number == 2) for number in (2, 3, 4, 5)]
    found = warehouse.execute(
        "SELECT page, markdown, webdata_removed_at IS NOT NULL FROM pages ORDER BY page"
    )
    assert found.fetchall() == [(f"{url}1", "new", False), *kept]


TRICKS = [
    'pages"; DROP TABLE victim; --',
    "%s",
    "select",
    "Größe 💧",
    "a b\n`]",
    "?",
]


@everywhere
@each_row("table, column", zip(TRICKS[::2], TRICKS[1::2], strict=True))
def test_names_and_data_are_no_sql(database: Target, written: Written, table: str, column: str) -> None:
    database.query("CREATE TABLE IF NOT EXISTS victim (a INTEGER)")
    text = "".join(TRICKS)
    item = {"markdown": text, "metadata": {"sourceURL": text, "title": "x"}, text: text}
    for _ in range(2):
        load(
            written([item]),
            table,
            columns={"source_url": column, "markdown": "m", "extra": "e"},
        )
    quoted = ['"' + name.replace('"', '""') + '"' for name in (column, table)]
    [(key, found, extra)] = database.query(
        f"SELECT {quoted[0]}, m, {database.text('e', 'json')} FROM {quoted[1]}"
    )
    assert (key, found, json.loads(extra)[text]) == (text, text, text)
    assert database.query("SELECT count(*) FROM victim") == [(0,)]


@each_way
def test_a_schema_may_be_named(database: Target, written: Written) -> None:
    schema = "main" if database.name == "sqlite" else "web"
    if schema == "web":
        database.query("CREATE SCHEMA web")
    for _ in range(2):
        load(written([page(1)]), f"{schema}.pages")
    assert database.query(f"SELECT count(*) FROM {schema}.pages") == [(1,)]


PLAIN = 'CREATE TABLE "pages" (source_url VARCHAR(100) PRIMARY KEY, markdown VARCHAR(100){more})'
ONLY = ["source_url", "markdown"]
MORE = [*ONLY, "status_code", "title"]


def drop(database: Target, **_: object) -> None:
    database.query('DROP TABLE IF EXISTS "pages"')


@each_way
@each_row(
    "statement, arguments, words",
    [
        (PLAIN, {}, ["no columns 'url', 'title', ", "ADD COLUMN", "add_columns=True", "columns"]),
        (PLAIN, {"columns": [*ONLY, "title"]}, ["no column 'title'"]),
        (PLAIN.replace("markdown VARCHAR(100)", "markdown INTEGER"), {"columns": ONLY}, ["'markdown'", "INTEGER"]),
        (PLAIN.replace(" PRIMARY KEY", ""), {"columns": ONLY}, ["no unique constraint", "CREATE UNIQUE INDEX"]),
        (PLAIN.format(more=", owner VARCHAR(9) NOT NULL"), {"columns": ONLY}, ["'owner'", "must not be null"]),
        ("CREATE TABLE other (a INTEGER)", {"create_table": False}, ["does not exist", "CREATE TABLE"]),
    ],
    before=drop,
)  # fmt: skip
def test_a_table_that_does_not_fit_is_left_alone(
    database: Target, written: Written, statement: str, arguments: Any, words: list[str]
) -> None:
    database.query(statement.replace("{more}", ""))
    before = tables(database)
    with pytest.raises(TableError, match="WD-060") as error:
        load(written([page(1)]), **arguments)
    assert [word for word in words if word.lower() not in str(error.value).lower()] == []
    assert tables(database) == before


@everywhere
@each_row(
    "columns, words",
    [
        (
            "source_url VARCHAR(100), markdown INTEGER, status_code VARCHAR(9), owner VARCHAR(9) NOT NULL",
            ["no column 'title'", "'markdown' has the type INTEGER", "'status_code' has the ", "'owner' must not be"],
        ),
        (
            "source_url INTEGER PRIMARY KEY, markdown TIMESTAMP",
            ["no columns 'status_code', 'title'", "'source_url' has the type INTEGER", "'markdown' has the type "],
        ),
        (
            "source_url VARCHAR(100) UNIQUE, tenant VARCHAR(9) NOT NULL PRIMARY KEY",
            ["no columns 'markdown', 'status_code', 'title'", "'tenant' must not be null", "default to 'tenant'"],
        ),
        ("tenant INTEGER", ["no columns 'source_url', 'markdown', ", "its key (source_url) has no unique"]),
    ],
    before=drop,
)  # fmt: skip
@pytest.mark.parametrize("add_columns", [False, True])
@pytest.mark.says("The message names all columns that do not fit", "one error has all that it lacks")
def test_one_error_has_all_that_a_table_needs(
    database: Target, written: Written, columns: str, words: list[str], add_columns: bool
) -> None:
    database.query('DROP TABLE IF EXISTS "pages_former"')
    database.query(f'CREATE TABLE "pages" ({columns})')
    before = tables(database)
    arguments: dict[str, Any] = {"columns": MORE, "add_columns": add_columns}
    path = written([page(1, "a"), page(2, "b")])
    with pytest.raises(TableError) as error:
        load(path, **arguments)
    assert tables(database) == before
    assert [word for word in words if word.lower() not in str(error.value).lower()] == []
    for statement in advised(error.value):
        database.query(statement)
    for _ in range(2):
        assert load(path, **arguments)["loaded"] == 2
    assert texts(database) == {1: "a", 2: "b"}


def advised(error: TableError) -> list[str]:
    """Return the statements that an error says to run."""
    return re.split(r"; (?!or )", error.text().partition(" Run: ")[2].partition("; or ")[0])


@both_drivers
def test_a_deferrable_key_has_its_statement(database: Target, written: Written) -> None:
    """An upsert would fail at the first row."""
    for kind in ("PRIMARY KEY", "UNIQUE"):
        drop(database)
        database.query(f"CREATE TABLE pages (source_url text {kind} DEFERRABLE, markdown text)")
        with pytest.raises(
            TableError, match=r"(?s)constraint pages_\w+ on the key is deferrable.* DROP CONSTRAINT"
        ) as error:
            load(written([page(1)]), columns=ONLY)
        [statement] = advised(error.value)
        database.query(statement)
        assert load(written([page(1)]), columns=ONLY)["loaded"] == 1


def tables(database: Target) -> Any:
    if database.name == "sqlite":
        return database.query("SELECT sql FROM sqlite_master ORDER BY 1")
    return database.query(
        "SELECT table_name, column_name FROM information_schema.columns "
        "WHERE table_schema = current_schema() ORDER BY 1, 2"
    )


@each_way
@each_row(
    "statement",
    [PLAIN, PLAIN.replace(" PRIMARY KEY", "") + '; CREATE UNIQUE INDEX i ON "pages" (source_url)'],
    before=drop,
)
def test_a_table_of_ones_own_is_loaded(database: Target, written: Written, statement: str) -> None:
    for part in statement.format(more=", seen INTEGER DEFAULT 7").split("; "):
        database.query(part)
    for text in ("a", "b"):
        load(written([page(1, text)]), columns=ONLY)
    assert database.rows("pages", "markdown", "seen") == [("b", 7)]
    load(written([page(1, "c", html="<p>")]), columns=[*ONLY, "html", "status_code"], add_columns=True)
    assert database.rows("pages", "markdown", "html", "status_code") == [("c", "<p>", 200)]


@both_drivers
def test_jsonb_holds_json_that_it_would_reject(database: Target, written: Written) -> None:
    database.query("CREATE TABLE pages (source_url text PRIMARY KEY, markdown text, extra jsonb)")
    found = {"nul": "a\0b", "half": "\ud83d", "pair": "\U0001f600\ud83d", "plain": "\\u0000", "\0": 1}
    load(written([page(1, **found), page(2)]), columns=["source_url", "markdown", "extra"])
    [(extra,), (none,)] = database.query("SELECT extra FROM pages ORDER BY source_url")
    assert extra == {
        "nul": "a\ufffdb",
        "half": "\ufffd",
        "pair": "\U0001f600\ufffd",
        "plain": "\\u0000",
        "\ufffd": 1,
    }
    assert none is None


@both_drivers
@pytest.mark.says("the error names the row by its key, and the reason")
def test_a_row_that_the_database_rejects_is_named(database: Target, written: Written) -> None:
    """Also in the second part of a file."""
    database.query("CREATE TABLE pages (source_url text PRIMARY KEY, markdown varchar(600000))")
    items = [page(1, "x" * 600_000), page(2), page(3, "x" * 600_001)]
    with pytest.raises(
        TableError,
        match=r"cannot load the row with source_url='https://river\.example/3' into the table pages: value too long",
    ):
        load(written(items), columns=["source_url", "markdown"])
    assert texts(database) == {}


LONG = "https://river.example/" + "".join(hashlib.sha256(bytes([n])).hexdigest() for n in range(80))
# A table, an item that it rejects, the name of its row, and the reason.
REJECTED: dict[str, tuple[str, dict[str, Any], str, str]] = {
    "check": ("source_url VARCHAR PRIMARY KEY, markdown TEXT CHECK (markdown <> 'no')", page(7, "no"), "/7'", "check"),
    "null": ("source_url VARCHAR PRIMARY KEY, markdown TEXT NOT NULL", {**page(7), "markdown": None}, "/7'", "null"),
    "other key": ("source_url VARCHAR PRIMARY KEY, markdown TEXT UNIQUE", page(7, "3"), "/7'", "unique"),
    "duplicate of an older row": (
        "source_url VARCHAR PRIMARY KEY, markdown TEXT UNIQUE", page(7, "old"), "/7'", "unique"
    ),
}  # fmt: skip
REJECTED_BY_POSTGRESQL: dict[str, tuple[str, dict[str, Any], str, str]] = {
    "index": (
        "source_url text PRIMARY KEY, markdown text UNIQUE",
        page(7, LONG),
        "/7'",
        "exceeds btree .*Drop the index, or omit its column from columns",
    ),
    "deferred": (
        "source_url text PRIMARY KEY, markdown text UNIQUE DEFERRABLE INITIALLY DEFERRED", page(7, "3"), "/7'", "unique"
    ),
    "foreign key": (
        "source_url text PRIMARY KEY, markdown text REFERENCES texts DEFERRABLE INITIALLY DEFERRED",
        page(7, "no"), "/7'", "foreign key"
    ),
}  # fmt: skip


def check_rejected(database: Target, written: Written, case: tuple[str, dict[str, Any], str, str]) -> None:
    columns, item, name, reason = case
    drop(database)
    database.query(f"CREATE TABLE pages ({columns})")
    load(written([page(0, "old")]), columns=ONLY)
    items = [*(page(number, str(number)) for number in range(1, 5)), item, page(9, "9")]
    path = written(items)
    with pytest.raises(TableError, match=rf"(?is){reason}.*WD-060") as error:
        load(path, columns=ONLY)
    if database.name == "duckdb":
        assert "DuckDB does not name the row: load the file into a new table" in str(error.value)
        assert load(path, columns=ONLY, table="new_table")["loaded"] == 6
    else:
        assert "cannot load the row with source_url='https://river.example/" in str(error.value)
        assert f"{name} into the table pages: " in str(error.value)
        # Airflow's log shows the traceback, with all causes.
        assert "Failing row" not in "".join(format_exception(error.value)), "the row's content"
    assert texts(database) == {0: "old"}


@everywhere
@pytest.mark.parametrize("case", REJECTED.values(), ids=REJECTED)
def test_a_row_that_the_table_rejects_is_named(
    database: Target, written: Written, case: tuple[str, dict[str, Any], str, str]
) -> None:
    check_rejected(database, written, case)


@both_drivers
@pytest.mark.parametrize("case", REJECTED_BY_POSTGRESQL.values(), ids=REJECTED_BY_POSTGRESQL)
def test_a_row_that_an_index_or_a_deferred_constraint_rejects_is_named(
    database: Target, written: Written, case: tuple[str, dict[str, Any], str, str]
) -> None:
    database.query("CREATE TABLE texts (text text PRIMARY KEY)")
    database.query("INSERT INTO texts SELECT * FROM unnest(ARRAY['old', '1', '2', '3', '4', '9'])")
    check_rejected(database, written, case)


@both_drivers
def test_a_row_without_a_key_is_named_and_no_row_is_if_none_is_at_fault(
    database: Target, written: Written
) -> None:
    database.query("CREATE TABLE pages (source_url text, markdown text CHECK (markdown <> 'no'))")
    with pytest.raises(TableError, match=r"the row with source_url='https://river\.example/2' into"):
        append(written([page(1), page(2, "no"), page(3)]), "a", columns=ONLY, add_columns=True)
    # Rows of another table need the row that is replaced.
    drop(database)
    database.query("CREATE TABLE pages (source_url text PRIMARY KEY, markdown text)")
    database.query("CREATE TABLE notes (page text REFERENCES pages DEFERRABLE INITIALLY DEFERRED)")
    load(written([page(1)]), columns=ONLY)
    database.query("INSERT INTO notes SELECT source_url FROM pages")
    with pytest.raises(TableError, match=r"cannot load the rows into the table pages: [^\n]*foreign key"):
        load(written([page(2), page(3)]), columns=ONLY, mode="replace")
    assert load(written([page(2), page(1)]), columns=ONLY, mode="replace")["loaded"] == 2


@both_drivers
def test_a_value_that_the_database_rejects_is_shown_safely(database: Target, written: Written) -> None:
    database.query("CREATE TABLE pages (source_url text PRIMARY KEY, markdown boolean)")
    text = "\x1b[2J https://u:pa55word@a.example/"
    with pytest.raises(TableError, match="WD-060") as error:
        load(written([page(1, text)]), columns=["source_url", "markdown"], create_table=False)
    shown = "".join(format_exception(error.value))
    assert not [sign for sign in ("\x1b", "pa55word") if sign in shown], shown


@pytest.mark.parametrize("database", ["postgresql, psycopg2"], indirect=True)
def test_a_database_that_fails_is_tried_again(
    database: Target, written: Written, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its own error would have no code, and no word on the table."""
    path = written([page(1)])

    def end(*_: Any) -> None:
        database.query("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()")

    with monkeypatch.context() as patch:
        patch.setattr(Database, "check_names", end)
        with pytest.raises(
            LoadError, match=r"PostgreSQL cannot load the rows into the table pages: [\s\S]*WD-069"
        ):
            load(path)
    assert load(path)["loaded"] == 1
    monkeypatch.setattr(OlderPostgresHook, "get_conn", lambda _: psycopg2.connect("host=127.0.0.1 port=9"))
    with pytest.raises(LoadError, match=r"connection 'warehouse' cannot be opened: .*refused"):
        load(path)


def as_role(database: Target, monkeypatch: pytest.MonkeyPatch) -> str:
    """Let loads connect as a new role without any right, and return its name."""
    role = f"r{uuid.uuid4().hex[:12]}"
    database.query(f"CREATE ROLE {role} LOGIN PASSWORD 'pw'")
    fields = json.loads(os.environ["AIRFLOW_CONN_WAREHOUSE"])
    monkeypatch.setenv("AIRFLOW_CONN_WAREHOUSE", json.dumps({**fields, "login": role, "password": "pw"}))
    return role


@both_drivers
@pytest.mark.parametrize("is_there", [False, True], ids=["new table", "existing table"])
def test_the_grants_that_an_error_names_suffice(
    database: Target, written: Written, monkeypatch: pytest.MonkeyPatch, is_there: bool
) -> None:
    """An administrator runs the statements of each error until the load works."""
    [(schema, name)] = database.query("SELECT current_schema(), current_database()")
    if is_there:
        load(written([page(1)]), columns=ONLY)
    database.query(f'REVOKE ALL ON DATABASE "{name}" FROM public')
    role = as_role(database, monkeypatch)
    database.query(f'GRANT CONNECT ON DATABASE "{name}" TO {role}')
    try:
        with pytest.raises(TableError, match=r"WD-060"):
            load(written([page(1)]), columns=ONLY)
        run: list[str] = []
        for _ in range(4):
            try:
                found = load(written([page(1, "new")]), f"{schema}.pages", columns=ONLY)
                break
            except TableError as error:
                [statements] = re.findall(r"run: (GRANT .*?)\. Then clear", str(error).replace("\n", " "))
                run += statements.split("; ")
                database.query(statements)
        assert found["loaded"] == 1
        assert len(run) == len({*run}) == 3, run
        if is_there:
            assert texts(database) == {1: "new"}
            with pytest.raises(TableError, match=r"Only wd_owner, .*add_columns=False"):
                load(written([page(1)]), f"{schema}.pages", add_columns=True)
            with pytest.raises(TableError, match="Run: ALTER TABLE"):
                load(written([page(1)]), f"{schema}.pages")
    finally:
        database.query(f'GRANT CONNECT, TEMPORARY ON DATABASE "{name}" TO public')


@pytest.mark.parametrize("database", ["postgresql"], indirect=True)
def test_a_missing_schema_has_its_statement(database: Target, written: Written) -> None:
    name = f"New {uuid.uuid4().hex}"
    with pytest.raises(TableError, match=r"(?s)Create the schema, then clear") as error:
        load(written([page(1)]), f"{name}.pages")
    [statement] = re.findall(r'CREATE SCHEMA "[^"]*"', str(error.value))
    database.query(statement)
    assert load(written([page(1)]), f"{name}.pages")["loaded"] == 1


HOLDER = "import duckdb, sys; held = duckdb.connect(sys.argv[1]); print('held', flush=True); sys.stdin.read()"


@pytest.mark.parametrize("database", ["duckdb", "sqlite"], indirect=True)
def test_a_locked_file_asks_to_wait(database: Target, written: Written, tmp_path: Path) -> None:
    """Nothing is to be repaired: once it is closed, the load works."""
    path, file = written([page(1)]), str(tmp_path / "warehouse.db")
    if database.name == "sqlite":
        holder = sqlite3.connect(file, isolation_level=None)
        holder.execute("BEGIN IMMEDIATE")
        with pytest.raises(
            LoadError, match=r"(?s)is locked.*End its transaction, then clear the task"
        ) as error:
            load(path)
        holder.close()
    else:
        with subprocess.Popen(
            [sys.executable, "-c", HOLDER, file], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        ) as process:
            assert process.stdout is not None
            assert process.stdout.readline()
            with pytest.raises(LoadError, match=r"(?s)lock.*Close it there, then clear the task") as error:
                load(path)
            process.communicate()
    assert "repair" not in str(error.value)
    assert load(path)["loaded"] == 1


@pytest.mark.parametrize("database", ["duckdb", "sqlite"], indirect=True)
def test_a_file_that_cannot_be_opened_has_its_own_next_step(
    database: Target, written: Written, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each step is followed."""
    path, file = written([page(1)]), tmp_path / "warehouse.db"
    file.write_bytes(b"another file " * 1000)
    with pytest.raises(
        LoadError, match=r"(?s)Correct the path in the connection: the file is of another kind"
    ):
        load(path)
    file.unlink()
    file = tmp_path / "no" / "x.db"
    fields = {"conn_type": database.name, "host": str(file)}
    monkeypatch.setenv("AIRFLOW_CONN_WAREHOUSE", json.dumps(fields))
    with pytest.raises(LoadError, match=r"(?s)Correct the path in the connection, or create its folder"):
        load(path)
    file.parent.mkdir()
    assert load(path)["loaded"] == 1
    if database.name == "sqlite":
        with pytest.raises(LoadError, match=r"(?s)unknown database.*Use a table without a schema"):
            load(path, "nowhere.pages")


@each_way
def test_an_item_without_key_loads_nothing(database: Target, written: Written) -> None:
    load(written([page(1)]))
    with pytest.raises(TableError, match=r"(?s)item 2 of .*\.jsonl has no source_url"):
        load(written([page(2), {"markdown": "?", "metadata": {}}]))
    assert texts(database) == {1: "text"}


@on_sqlite
@each_row(
    "content, words",
    [
        (b'{"metadata":{"sourceURL":"https://a.example"}}\n{"metada', "after item 1"),
        (b"\xff\xfe", "after item 0"),
    ],
)
def test_a_file_that_is_cut_loads_nothing(
    database: Target, tmp_path: Path, content: bytes, words: str
) -> None:
    file = tmp_path / "cut.jsonl"
    file.write_bytes(content)
    with pytest.raises(TableError, match=words):
        load(str(file))
    assert tables(database) == []


@each_way
@pytest.mark.parametrize("moment", ["while rows are read", "before the commit"])
def test_a_killed_attempt_leaves_the_table_as_it_was(database: Target, written: Written, moment: str) -> None:
    load(written([page(number) for number in range(50)]))
    path = written([page(number, "new") for number in range(20, 3_000)])

    child = os.fork()
    if not child:
        try:
            _kill_itself(moment)
            load(path)
        finally:
            os._exit(1)
    _, status = os.waitpid(child, 0)

    assert os.WTERMSIG(status) == signal.SIGKILL
    assert texts(database) == dict.fromkeys(range(50), "text")
    assert load(path)["loaded"] == 2_980
    assert texts(database) == {number: "text" if number < 20 else "new" for number in range(3_000)}


def _kill_itself(moment: str) -> None:
    def kill(*_: Any) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    if moment == "before the commit":
        Database.commit = kill  # type: ignore[method-assign, assignment]
        return
    rows = ResultsFile.rows

    def some(self: ResultsFile) -> Any:
        for number, found in enumerate(rows(self)):
            if number == 2_500:
                kill()
            yield found

    ResultsFile.rows = some  # type: ignore[method-assign]


@pytest.mark.parametrize("database", ["postgresql", "sqlite"], indirect=True)
def test_loads_into_one_table_wait_for_each_other(database: Target, written: Written) -> None:
    paths = [written([page(number, name) for number in range(300)], f"{name}.jsonl") for name in "abcd"]
    with ThreadPoolExecutor(4) as pool:
        counts = [*pool.map(load, paths)]
    assert [count["loaded"] for count in counts] == [300] * 4
    assert len({*texts(database).values()}) == 1


@both_drivers
@pytest.mark.parametrize("isolation", ["read committed", "repeatable read", "serializable"])
def test_a_load_waits_for_one_that_names_the_schema(
    database: Target, written: Written, monkeypatch: pytest.MonkeyPatch, isolation: str
) -> None:
    fields = json.loads(os.environ["AIRFLOW_CONN_WAREHOUSE"])
    fields["extra"]["options"] += " -c default_transaction_isolation=" + isolation.replace(" ", "\\ ")
    monkeypatch.setenv("AIRFLOW_CONN_WAREHOUSE", json.dumps(fields))
    [(schema,)] = database.query("SELECT current_schema()")
    has_lock = "SELECT granted FROM pg_locks WHERE locktype = 'advisory'"
    waits_for = "SELECT locktype FROM pg_locks WHERE NOT granted"
    rows = ResultsFile.rows
    loads: list[Future[Any]] = []

    def rows_of_the_first(self: ResultsFile) -> Any:
        is_first = threading.current_thread() is threading.main_thread()
        if is_first and not loads and database.query(has_lock) == [(True,)]:
            loads.append(pool.submit(load, second, table=f"{schema}.pages"))
            assert wait_until(lambda: loads[0].done() or database.query(waits_for))
            assert database.query(waits_for) == [("advisory",)]
        return rows(self)

    first, second = written([page(1)], "first.jsonl"), written([page(1, "later")], "second.jsonl")
    with ThreadPoolExecutor(1) as pool:
        monkeypatch.setattr(ResultsFile, "rows", rows_of_the_first)
        load(first)
    assert loads[0].result()["loaded"] == 1
    assert texts(database) == {1: "later"}


@pytest.mark.parametrize("database", ["duckdb"], indirect=True)
def test_duckdb_is_loaded_without_pyarrow(
    database: Target, written: Written, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    for _ in range(2):
        load(written([page(1), page(2)]))
    assert texts(database) == {1: "text", 2: "text"}


LEVEL = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "level": {"type": "number"},
        "readings": {"type": "integer"},
        "rising": {"type": ["boolean", "null"]},
        "links": {"type": "string"},
        "tags": {"type": "array"},
        "url": {"type": "string"},
    },
}
LEVELS = [
    {"name": "north", "level": 1, "readings": 2**40, "rising": True, "links": "a", "tags": ["x"], "url": "u"},
    {"name": "south", "level": 2.5, "readings": None, "rising": False, "change": "removed", "url": "v"},
    {"validationErrors": ["level: no"], "name": "west", "level": "high", "url": "w"},
]


@everywhere_from(*SUFFIXES)
def test_what_was_extracted_has_the_columns_of_its_schema(database: Target, tmp_path: Path, end: str) -> None:
    schema = ResultSchema.of(LEVEL)
    path = str(tmp_path / f"levels{end}")
    with OutputFile(path, schema.columns("generic")) as file:
        file.write(LEVELS)
    more = {} if FORMATS[end].columns == "typed" else {"result_schema": LEVEL}
    assert load(path, key="name", **more)["loaded"] == 3
    assert database.rows("pages", "name", "level", "readings", "rising", "links") == [
        ("north", 1.0, 2**40, True, "a"),
        ("south", 2.5, None, False, None),
        ("west", None, None, None, None),
    ]
    tags, extra, errors = (database.text(name, "json") for name in ("tags", "extra", "validation_errors"))
    assert database.query(f'SELECT {tags}, {extra}, {errors} FROM "pages" ORDER BY "name"') == [
        ('["x"]', None, None),
        (None, '{"change":"removed"}', None),
        (None, '{"level":"high"}', '["level: no"]'),
    ]
    assert load(path, key="name", **more)["loaded"] == 3


@on_sqlite
@pytest.mark.parametrize("name", [f"pages{end}" for end in SUFFIXES])
def test_pages_have_columns_of_what_was_extracted(database: Target, tmp_path: Path, name: str) -> None:
    path = str(tmp_path / name)
    with OutputFile(path, ResultSchema.of(LEVEL).columns("document")) as file:
        file.write([page(1, json={"name": "north", "rising": True}), page(2)])
    load(path, result_schema=LEVEL)
    assert database.rows("pages", "source_url", "json_name", "json_rising") == [
        ("https://river.example/1", "north", True),
        ("https://river.example/2", None, None),
    ]


ARTICLES = [
    {
        "url": "a",
        "name": "A",
        "price": 1,
        "stock": 2**40,
        "sold": True,
        "sizes": [1],
        "any": "x",
        "page": "p",
        "none": None,
    },
    {"url": "b", "name": "B\0", "price": 2.5, "stock": 7, "sold": None, "any": 2, "change": "cut"},
]
FIELDS = {
    **{name: name for name in ("name", "price", "stock", "sold", "sizes", "any", "page", "change", "extra")},
    "url": "link",
}


@everywhere
def test_fields_of_items_are_columns_if_they_are_named(database: Target, tmp_path: Path) -> None:
    path = tmp_path / "articles.jsonl"
    path.write_text("".join(f"{json_text(one)}\n" for one in ARTICLES))
    for _ in range(2):
        assert load(str(path), columns=FIELDS, kind="generic")["loaded"] == 2
    json_columns = ("sizes", "any", "extra")
    columns = ", ".join(
        database.text(name, "json") if name in json_columns else f'"{name}"'
        for name in ("link", "name", "price", "stock", "sold", "page", "change", *json_columns)
    )
    b = "B\0" if database.keeps_nul else "B\ufffd"
    assert database.query(f"SELECT {columns} FROM pages ORDER BY 1") == [
        ("a", "A", 1, 2**40, True, "p", None, "[1]", '"x"', '{"none":null}'),
        ("b", b, 2.5, 7, None, None, "cut", None, "2", None),
    ]


@on_sqlite
def test_a_field_of_no_item_and_of_two_types_is_refused(database: Target, tmp_path: Path) -> None:
    path = tmp_path / "articles.jsonl"
    path.write_text("".join(f'{{"url":"{number}","sku":"{number}"}}\n' for number in range(101)))
    with pytest.raises(TableError, match=r"columns: the file has no column 'skus'\.\nChoose from "):
        load(str(path), columns=["url", "skus"])
    other = tmp_path / "other.jsonl"
    other.write_text(path.read_text() + '{"url":"x","sku":7}\n')
    with pytest.raises(TableError, match=r"item 102 of \S+ has a 'sku' of another type .* result_schema"):
        load(str(other), columns=["url", "sku"])
    # Together, the files show both types.
    path.write_text('{"url":"x","sku":7}\n')
    load([str(other), str(path)], columns=["url", "sku"])
    assert database.query("SELECT count(*), max(url) FROM pages WHERE sku = '7'") == [(1, "x")]


def failing(number: int, status: int | str = 404, **more: Any) -> dict[str, Any]:
    found = page(number, "503 Service Unavailable", json={"name": "not found"}, **more)
    return {**found, "metadata": {**found["metadata"], "statusCode": status}}


def marked(number: int) -> dict[str, Any]:
    """Return a failed page without extracted data, as a task with a schema marks it."""
    found = failing(number, 503)
    del found["json"]
    return {"validationErrors": ["not validated: the site responded with status 503"], **found}


FAILING: dict[str, dict[str, Any]] = {
    "status": failing(1, 503),
    "status as text": failing(1, "404"),
    "error": page(1, metadata={**page(1)["metadata"], "error": "timed out"}),
    "error of another form": page(1, metadata={**page(1)["metadata"], "error": {"code": 7}}),
    "error that is no UTF-8": page(1, metadata={**page(1)["metadata"], "error": "cut \ud83d"}),
}
KINDS_OF_PAGES: dict[str, tuple[Any, Any, dict[str, Any]]] = {
    "pages": (list, columns_of("document"), {}),
    "pages with a schema": (list, ResultSchema.of(LEVEL).columns("document"), {"result_schema": LEVEL}),
    "flat documents": (lambda items: [*flat_documents(items)], columns_of(KIND), {}),
}


# What shows a failed page does not depend on the database.
@pytest.mark.parametrize(
    ("database", "kind"), [*zip(DATABASES, KINDS_OF_PAGES, strict=True)], indirect=["database"]
)
def test_failed_pages_are_loaded_from_no_file(database: Target, tmp_path: Path, kind: str) -> None:
    """In no mode, and whatever shows the failure; an empty text may not be taken for one."""
    made, columns, arguments = KINDS_OF_PAGES[kind]
    text = "text" if kind == "flat documents" else "markdown"
    for end, mode in zip(SUFFIXES, ("upsert", "replace", "append", "upsert", "replace"), strict=True):
        path, table = str(tmp_path / f"pages{end}"), f"{mode}{end.replace('.', '_')}"

        def written(*pages: Any, path: str = path) -> str:
            with OutputFile(path, columns) as file:
                file.write(made(pages))
            return path

        load(written(page(1), page(2)), table, TaskInstance(run_id="first"), mode=mode, **arguments)
        for how, failed in FAILING.items():
            ti = TaskInstance(run_id=how)
            found = load(written(failed), table, ti, mode=mode, **arguments)
            assert found.items() >= {"loaded": 0, "failed_pages": 1}.items(), (end, how)
            assert ti.xcom["incomplete"] == [{"kind": "pages_failed", "number": 1, "of": 1}]
        last = load(
            written(page(1, "new"), failing(2), page(3)),
            *(table, TaskInstance(run_id="last")),
            mode=mode,
            **arguments,
        )
        assert last["loaded"] == 2
        assert {found for (found,) in database.rows(table, text)} == {"new", "text"}, (end, mode)


@on_sqlite
def test_failed_pages_without_data_are_pages_of_their_schema(database: Target, tmp_path: Path) -> None:
    path = str(tmp_path / "pages.jsonl")
    for pages, loaded in (([page(1, json={"name": "north"})], 1), ([marked(1)], 0)):
        with OutputFile(path, ResultSchema.of(LEVEL).columns("document")) as file:
            file.write(pages)
        assert load(path, result_schema=LEVEL)["loaded"] == loaded
    assert database.rows("pages", "source_url", "json_name") == [("https://river.example/1", "north")]


def result(number: int, title: str, **page: Any) -> dict[str, Any]:
    return {"url": f"https://river.example/{number}", "title": title, "position": number, **page}


def scraped(status: int, **more: Any) -> dict[str, Any]:
    error = {"error": "scrape failed"} if status == 500 else {}
    return {**more, "metadata": {"title": f"{status}", "statusCode": status, "ogTitle": "t", **error}}


@each_way
@pytest.mark.parametrize("end", [".jsonl", ".parquet", ".csv.gz"])
def test_a_search_result_is_loaded_without_its_failed_page(
    database: Target, tmp_path: Path, end: str
) -> None:
    columns = ResultSchema.of(LEVEL).columns("search_web")
    shown = ("url", "title", "markdown", "json_name", "status_code", "page_title")

    def loaded(*results: Any, **arguments: Any) -> dict[str, Any]:
        path = str(tmp_path / f"found{end}")
        with OutputFile(path, columns) as file:
            file.write(results)
        return load(path, result_schema=LEVEL, kind="search_web", **arguments)

    good = scraped(200, markdown="north", json={"name": "north", "rising": True})
    assert "failed_pages" not in loaded(result(1, "a", **good))
    bad = scraped(500, markdown="500 Internal Server Error", json={"name": "oops"})
    found = loaded(
        result(1, "b", **bad), result(2, "c", **bad), result(3, "d", **good), result(3, "e", **bad)
    )
    assert found.items() >= {"loaded": 3, "failed_pages": 3, "duplicates": 1}.items()
    assert database.rows("pages", *shown) == [
        ("https://river.example/1", "b", "north", "north", 200, "200"),
        ("https://river.example/2", "c", None, None, None, None),
        # The last result, and the last page that did not fail.
        ("https://river.example/3", "e", "north", "north", 200, "200"),
    ]
    # A key of the page's own identifies no page that failed.
    assert loaded(result(4, "f", **good), table="titles", key="page_title")["loaded"] == 1
    assert loaded(result(5, "g", **bad), table="titles", key="page_title")["loaded"] == 0
    assert loaded(result(4, "f", **bad), mode="replace")["loaded"] == 1
    assert database.rows("pages", *shown) == [("https://river.example/4", "f", None, None, None, None)]


@everywhere_from(".jsonl", ".parquet", ".csv")
def test_a_format_that_was_not_returned_replaces_no_value(database: Target, tmp_path: Path, end: str) -> None:
    def loaded(*pages: Any, table: str = "pages", **arguments: Any) -> None:
        path = str(tmp_path / f"pages{end}")
        with OutputFile(path, ResultSchema.of(LEVEL).columns("document")) as file:
            file.write(pages)
        load(path, table, result_schema=LEVEL, **arguments)

    def titled(title: str | None) -> dict[str, Any]:
        return {**page(1)["metadata"], "title": title}

    loaded(page(1, "a", summary="s", links=["l"], warning="w", metadata=titled("t")), page(2, "b"))
    shown = ["title", "markdown", "summary", "warning", "json_name", "json_rising"]

    def first(table: str = "pages") -> tuple[Any, ...]:
        return database.query(f"""SELECT {", ".join(shown)} FROM "{table}" WHERE source_url LIKE '%/1'""")[0]

    loaded({"summary": "s2", "metadata": titled(None)}, page(3, "c", json={"name": "south", "rising": True}))
    assert first() == (None, "a", "s2", None, None, None)
    assert len(database.query(f"SELECT 1 FROM pages WHERE {database.text('links', 'json')} = '[\"l\"]'")) == 1
    # A page with a schema that returned its data, then none, then other data.
    loaded(page(1, json={"name": "north", "rising": True}))
    assert first()[4:] == ("north", True)
    loaded(page(1), page(2, json={"name": "east"}))
    assert first()[4:] == ("north", True)
    loaded(page(1, json={"rising": False}))
    assert first()[4:] == (None, False)
    # The extracted columns do not depend on whether `json` itself is loaded.
    chosen = ["source_url", "json_name"]
    loaded(page(1, json={"name": "north"}), table="chosen", columns=chosen)
    loaded(page(1), page(2), table="chosen", columns=chosen)
    assert [name for _, name in database.rows("chosen", *chosen)] == ["north", None]
    # What replaces the table, or is added to it, is not merged with it.
    loaded({"summary": "s3", "metadata": titled("t")}, mode="replace")
    assert first() == ("t", None, "s3", None, None, None)
    ti = TaskInstance()
    loaded(page(1), table="history", mode="append", ti=ti)
    loaded({"summary": "s3", "metadata": titled("t")}, table="history", mode="append", ti=ti)
    assert first("history") == ("t", None, "s3", None, None, None)


@each_way
def test_files_loaded_together_are_loaded_as_one_after_another(database: Target, tmp_path: Path) -> None:
    """Also with several items of a page in one file."""
    days = [
        [page(1, "a", summary="s", json={"name": "north", "rising": True}), page(2, "a")],
        [page(1, "b"), page(1, json={"rising": False}), page(3, "a", json={"name": "west"})],
        [{"summary": "s2", "metadata": page(1)["metadata"]}, page(3, "b"), page(3, "c", links=["l"])],
    ]
    paths = []
    for number, pages in enumerate(days):
        paths.append(str(tmp_path / f"{number}.parquet"))
        with OutputFile(paths[-1], ResultSchema.of(LEVEL).columns("document")) as file:
            file.write(pages)
    for path in paths:
        load(path, "single")
    assert load(paths, "together").items() >= {"loaded": 3, "duplicates": 5}.items()
    shown = ("source_url", "markdown", "summary", "json_name", "json_rising")
    expected = [
        ("https://river.example/1", "text", "s2", None, False),
        ("https://river.example/2", "a", None, None, None),
        ("https://river.example/3", "c", None, "west", None),
    ]
    assert database.rows("together", *shown) == database.rows("single", *shown) == expected


@each_way
def test_a_flat_document_without_text_replaces_no_text(database: Target, tmp_path: Path) -> None:
    path = str(tmp_path / "found.parquet")
    empty = {"metadata": {**page(1)["metadata"], "language": "en"}}
    for items in ([page(1, "north")], [empty, {"metadata": page(2)["metadata"]}]):
        with OutputFile(path, columns_of(KIND)) as file:
            file.write(flat_documents(items))
        load(path)
    digests = [flat_document(item)["digest"] for item in (page(1, "north"), empty)]
    assert database.rows("pages", "url", "text", "digest") == [
        ("https://river.example/1", "north", digests[0]),
        ("https://river.example/2", "", digests[1]),
    ]
    metadata = database.text("metadata", "json")
    assert len(database.query(f"SELECT 1 FROM pages WHERE {metadata} LIKE '%language%'")) == 1


@on_sqlite
def test_a_schema_that_cannot_be_fails_without_a_retry(database: Target, tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_text("{}")
    with pytest.raises(AirflowFailException, match="result_schema"):
        load(str(path), result_schema="nowhere.Model")


TEXT = st.text(st.characters(exclude_categories=()), max_size=20)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=6,
)
NAMES = [column.path for column in columns_of("document") if column.path]


@st.composite
def pages(draw: Any) -> list[dict[str, Any]]:
    items = []
    for number in range(draw(st.integers(1, 6))):
        item: dict[str, Any] = draw(
            st.dictionaries(TEXT.filter(lambda name: name != "change"), JSON, max_size=2)
        )
        metadata = draw(st.dictionaries(TEXT, JSON, max_size=2))
        for path in draw(st.lists(st.sampled_from(NAMES), max_size=4)):
            (metadata if path[0] == "metadata" else item)[path[-1]] = draw(JSON)
        items.append({**item, "metadata": {**metadata, "sourceURL": f"{number} {draw(TEXT)}"}})
    return items


@everywhere
@examples(0.4)
@given(items=pages(), name=st.sampled_from([f"any{end}" for end in SUFFIXES]))
def test_what_is_loaded_is_what_was_written(
    database: Target, tmp_path: Path, items: list[dict[str, Any]], name: str
) -> None:
    columns = columns_of("document")
    path = str(tmp_path / name)
    items = [item for item in items if not site_failed(item["metadata"])]
    with OutputFile(path, columns) as file:
        file.write(items)
    expected = [row(item, columns) for item in items]
    if not items or any(values["source_url"] is None for values in expected):
        return  # half a character cannot be a key
    load(path, kind="document", mode="replace")
    listed = ", ".join(database.text(column.name, column.type) for column in columns)

    def kept(value: Any) -> Any:
        return value.replace("\0", "\ufffd") if isinstance(value, str) and not database.keeps_nul else value

    found = {values[3]: values for values in database.query(f'SELECT {listed} FROM "pages"')}
    assert found == {
        kept(values["source_url"]): tuple(kept(values[column.name]) for column in columns)
        for values in expected
    }


@each_row(
    "arguments, words",
    [
        ({"path": "x.xlsx"}, "path must name a file"),
        ({"path": ["x.jsonl", "y.json"]}, "y.json"),
        ({"kind": "documents"}, "kind must be one of"),
        ({"mode": "merge"}, "mode must be one of"),
    ],
)
def test_what_cannot_work_fails_while_the_dag_file_is_read(arguments: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        WebDataToTableOperator(
            **{"task_id": "t", "path": "x.jsonl", "table": "t", "conn_id": "c", **arguments}
        )


@each_row(
    "path, table, conn, words",
    [
        ("no.jsonl", "pages", "sqlite://", "does not exist"),
        ("", "pages", "sqlite://", "path is empty"),
        ("x.jsonl", "a.b.c", "sqlite://", "table must be"),
        ("x.jsonl", "", "sqlite://", "table must be"),
        (
            "no.jsonl",
            "pages",
            "mysql://x.example",
            r"has the type 'mysql'\.\sOnly PostgreSQL, SQLite, and DuckDB .*with dlt",
        ),
        ("no.jsonl", "pages", "duckdb://x", "no hook for the type 'duckdb'.*install the provider"),
    ],
)
def test_what_cannot_work_fails_without_a_retry(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str, table: str, conn: str, words: str
) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_WAREHOUSE", conn)
    monkeypatch.chdir(tmp_path)
    task = WebDataToTableOperator(task_id="t", path="x.jsonl", table="t", conn_id="warehouse")
    task.path, task.table = path, table  # as templates render them
    with pytest.raises(AirflowFailException, match=words):
        task.execute({})
