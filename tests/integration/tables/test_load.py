"""`WebDataToTableOperator` on real databases."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowFailException
from hypothesis import given, settings
from hypothesis import strategies as st

from airflow_provider_webdata.operators.to_table import WebDataToTableOperator
from airflow_provider_webdata.results.columns import columns_of, row
from airflow_provider_webdata.results.encoding import json_text
from airflow_provider_webdata.results.output import open_output
from airflow_provider_webdata.results.partitions import open_partitions
from airflow_provider_webdata.results.retrieval import KIND, flat_document, flat_documents
from airflow_provider_webdata.tasks.failures import TableError
from airflow_provider_webdata.tasks.tables.database import Database
from airflow_provider_webdata.tasks.tables.items import ResultsFile
from tests.integration.tables.conftest import HOOKS, OWN_WAYS, Target

Written = Callable[..., str]

everywhere = pytest.mark.parametrize("database", HOOKS, indirect=True)
own_ways = pytest.mark.parametrize("database", OWN_WAYS, indirect=True)


def load(path: str | list[str], table: str = "pages", **arguments: Any) -> dict[str, Any]:
    task = WebDataToTableOperator(task_id="load", path=path, table=table, conn_id="warehouse", **arguments)
    found: dict[str, Any] = task.execute({})
    return found


def page(number: int, text: str = "text", **more: Any) -> dict[str, Any]:
    url = f"https://river.example/{number}"
    return {"markdown": text, "metadata": {"sourceURL": url, "url": f"{url}/", "statusCode": 200}, **more}


def gone(number: int) -> dict[str, Any]:
    """What stands for a removed page: where pages have their URLs (even numbers), or beside (odd ones)."""
    url = f"https://river.example/{number}"
    urls: dict[str, Any] = {"url": url} if number % 2 else {"metadata": {"url": f"{url}/", "sourceURL": url}}
    return {"change": "removed", "lastSeen": "2026-01-01T00:00:00Z", **urls}


def texts(database: Target) -> dict[int, str]:
    """Return the markdown of the table's pages by their numbers."""
    return {
        int(url.rpartition("/")[2]): text for url, text in database.rows("pages", "source_url", "markdown")
    }


@everywhere
@pytest.mark.parametrize("name", ["items.jsonl", "items.jsonl.gz", "items.parquet"])
def test_a_table_is_made_and_loaded_twice(database: Target, written: Written, name: str) -> None:
    path = written([page(1), page(2, links=["a"], unknown=7)], name)
    counts = {"table": "pages", "loaded": 2, "deleted": 0, "duplicates": 0, "files": 1}
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


@everywhere
@pytest.mark.parametrize("name", ["second.jsonl", "second.parquet"])
def test_rows_are_upserted_and_removed_pages_deleted(database: Target, written: Written, name: str) -> None:
    load(written([page(1), page(2), page(3), page(6)]))
    second = [page(2, "new", change="changed"), gone(3), gone(6), gone(8), page(4, change="new")]
    assert load(written(second, name)) == {
        "table": "pages",
        "loaded": 2,
        "deleted": 2,
        "duplicates": 0,
        "files": 1,
    }
    assert texts(database) == {1: "text", 2: "new", 4: "text"}


@everywhere
def test_the_last_one_of_a_key_wins(database: Target, written: Written) -> None:
    items = [page(1, "a"), page(2), page(1, "b"), page(1, "c"), page(3), gone(3), gone(4), page(4, "again")]
    assert load(written(items)) == {"table": "pages", "loaded": 3, "deleted": 0, "duplicates": 2, "files": 1}
    assert texts(database) == {1: "c", 2: "text", 4: "again"}


@everywhere
@pytest.mark.parametrize("mode", ["upsert", "replace"])
@pytest.mark.parametrize("name", ["items.jsonl", "items.jsonl.gz", "items.parquet"])
def test_an_empty_file_changes_nothing(database: Target, written: Written, mode: Any, name: str) -> None:
    load(written([page(1)]))
    assert load(written([], name), mode=mode)["loaded"] == 0
    assert texts(database) == {1: "text"}


@everywhere
def test_removed_pages_alone_are_deleted(database: Target, written: Written) -> None:
    assert load(written([gone(1)]))["deleted"] == 0, "no table yet"
    load(written([page(1), page(2), page(3)]))
    assert load(written([gone(1), gone(2), gone(7)]))["deleted"] == 2
    assert texts(database) == {3: "text"}


@everywhere
def test_replace_leaves_what_the_file_holds(database: Target, written: Written) -> None:
    load(written([page(1), page(2)]))
    assert load(written([page(2, "new"), page(3), page(3, "last")]), mode="replace")["loaded"] == 2
    assert texts(database) == {2: "new", 3: "last"}


@everywhere
def test_items_of_any_shape_replace_a_table(database: Target, written: Written) -> None:
    items = [{"price": 7, "change": "removed", "url": "x"}, [1], "text", None]
    for _ in range(2):
        load(written(items, kind="generic"), mode="replace", kind="generic")
    found = [extra for (extra,) in database.query(f'SELECT {database.text("extra", "json")} FROM "pages"')]
    assert sorted(found) == sorted(map(json_text, items))


@everywhere
def test_several_files_are_loaded_together(database: Target, written: Written) -> None:
    paths = [written([page(1), page(2, "a")], "a.jsonl"), written([page(2, "b")], "b.parquet")]
    assert load([*paths, written([], "c.jsonl")]) == {
        "table": "pages",
        "loaded": 2,
        "deleted": 0,
        "duplicates": 1,
        "files": 3,
    }
    assert texts(database) == {1: "text", 2: "b"}


@everywhere
def test_flat_documents_are_upserted_and_deleted_by_page(database: Target, tmp_path: Path) -> None:
    def deliver(items: list[Any]) -> dict[str, Any]:
        path = str(tmp_path / "flat.parquet")
        with open_output(path, columns_of(KIND)) as file:
            file.write(flat_documents(items))
        return load(path)

    deliver([page(1), page(2)])
    assert deliver([page(1, "new"), gone(2)])["deleted"] == 1
    assert database.rows("pages", "url", "text") == [("https://river.example/1", "new")]
    assert {name for (name,) in database.rows("pages", "id")} == {flat_document(page(1))["id"]}


@everywhere
def test_a_partitioned_output_is_loaded_by_its_list(database: Target, tmp_path: Path) -> None:
    with open_partitions(f"{tmp_path}/run.parquet", columns_of("document"), "host", "2026-01-31") as output:
        output.write([page(1), page(2), {"markdown": "b", "metadata": {"sourceURL": "https://b.example/3"}}])
    assert load(output.url) == {"table": "pages", "loaded": 3, "deleted": 0, "duplicates": 0, "files": 2}
    assert texts(database) == {1: "text", 2: "text", 3: "b"}


TRICKS = [
    'pages"; DROP TABLE victim; --',
    "%s",
    "select",
    "Größe 💧",
    "a b\n`]",
    "?",
]


@everywhere
@pytest.mark.parametrize("trick", TRICKS)
def test_names_and_data_are_no_sql(database: Target, written: Written, trick: str) -> None:
    database.query("CREATE TABLE victim (a INTEGER)")
    item = {"markdown": trick, "metadata": {"sourceURL": trick, "title": "x"}, trick: trick}
    for _ in range(2):
        load(
            written([item, {"change": "removed", "url": trick + trick, "lastSeen": ""}]),
            trick,
            columns={"source_url": trick, "markdown": "m", "extra": "e"},
        )
    quoted = '"' + trick.replace('"', '""') + '"'
    [(key, text, extra)] = database.query(f"SELECT {quoted}, m, {database.text('e', 'json')} FROM {quoted}")
    assert (key, text, json.loads(extra)[trick]) == (trick, trick, trick)
    assert database.query("SELECT count(*) FROM victim") == [(0,)]


@own_ways
def test_a_schema_may_be_named(database: Target, written: Written) -> None:
    schema = "main" if database.name == "sqlite" else "web"
    if schema == "web":
        database.query("CREATE SCHEMA web")
    for _ in range(2):
        load(written([page(1)]), f"{schema}.pages")
    assert database.query(f"SELECT count(*) FROM {schema}.pages") == [(1,)]


PLAIN = 'CREATE TABLE "pages" (source_url VARCHAR(100) PRIMARY KEY, markdown VARCHAR(100){more})'
ONLY = ["source_url", "markdown"]


@own_ways
@pytest.mark.parametrize(
    ("statement", "arguments", "words"),
    [
        (PLAIN, {}, ["no column 'url'", "ADD COLUMN", "add_columns=True", "columns"]),
        (PLAIN, {"columns": [*ONLY, "title"]}, ["no column 'title'"]),
        (PLAIN.replace("markdown VARCHAR(100)", "markdown INTEGER"), {"columns": ONLY}, ["'markdown'", "INTEGER"]),
        (PLAIN.replace(" PRIMARY KEY", ""), {"columns": ONLY}, ["no unique constraint", "CREATE UNIQUE INDEX"]),
        (PLAIN.format(more=", owner VARCHAR(9) NOT NULL"), {"columns": ONLY}, ["'owner'", "must not be null"]),
        ("CREATE TABLE other (a INTEGER)", {"create_table": False}, ["is not there", "CREATE TABLE"]),
    ],
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


def tables(database: Target) -> Any:
    if database.name == "sqlite":
        return database.query("SELECT sql FROM sqlite_master ORDER BY 1")
    return database.query(
        "SELECT table_name, column_name FROM information_schema.columns "
        "WHERE table_schema = current_schema() ORDER BY 1, 2"
    )


@own_ways
@pytest.mark.parametrize(
    "statement",
    [PLAIN, PLAIN.replace(" PRIMARY KEY", "") + '; CREATE UNIQUE INDEX i ON "pages" (source_url)'],
)
def test_a_table_of_ones_own_is_loaded(database: Target, written: Written, statement: str) -> None:
    for part in statement.format(more=", seen INTEGER DEFAULT 7").split("; "):
        database.query(part)
    for text in ("a", "b"):
        load(written([page(1, text)]), columns=ONLY)
    assert database.rows("pages", "markdown", "seen") == [("b", 7)]
    load(written([page(1, "c", html="<p>")]), columns=[*ONLY, "html", "status_code"], add_columns=True)
    assert database.rows("pages", "markdown", "html", "status_code") == [("c", "<p>", 200)]


@everywhere
def test_an_item_without_key_loads_nothing(database: Target, written: Written) -> None:
    load(written([page(1)]))
    with pytest.raises(TableError, match=r"item 2 of .*\.jsonl has no source_url"):
        load(written([page(2), {"markdown": "?", "metadata": {}}]))
    assert texts(database) == {1: "text"}


@own_ways
@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b'{"metadata":{"sourceURL":"https://a.example"}}\n{"metada', "after line 1"),
        (b"\xff\xfe", "after line 0"),
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


@own_ways
@pytest.mark.parametrize("moment", ["while rows are read", "before the commit"])
def test_a_killed_attempt_leaves_the_table_as_it_was(database: Target, written: Written, moment: str) -> None:
    load(written([page(number) for number in range(50)]))
    path = written([page(number, "new") for number in range(20, 5_000)] + [gone(3)])

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
    assert load(path)["loaded"] == 4_980
    assert texts(database) == {
        number: "text" if number < 20 else "new" for number in range(5_000) if number != 3
    }


def _kill_itself(moment: str) -> None:
    def kill(*_: Any) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    if moment == "before the commit":
        for kind in (Database, *Database.__subclasses__()):
            kind.commit = kill  # type: ignore[method-assign, assignment]
        return
    rows = ResultsFile.rows

    def some(self: ResultsFile) -> Any:
        for number, found in enumerate(rows(self)):
            if number == 4_000:
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


@pytest.mark.parametrize("database", ["duckdb"], indirect=True)
def test_duckdb_is_loaded_without_pyarrow(
    database: Target, written: Written, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    for _ in range(2):
        load(written([page(1), page(2)]))
    assert texts(database) == {1: "text", 2: "text"}


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
def test_a_missing_package_is_named(
    database: Target, written: Written, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = written([page(1)])
    monkeypatch.setitem(sys.modules, "airflow.providers.common.sql.hooks.sql", None)
    with pytest.raises(TableError, match=r"pip install 'airflow-provider-webdata\[sql\]'"):
        load(path)


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
@settings(max_examples=15)
@given(items=pages(), name=st.sampled_from(["any.jsonl", "any.jsonl.gz", "any.parquet"]))
def test_what_is_loaded_is_what_was_written(
    database: Target, tmp_path: Path, items: list[dict[str, Any]], name: str
) -> None:
    columns = columns_of("document")
    path = str(tmp_path / name)
    with open_output(path, columns) as file:
        file.write(items)
    expected = [row(item, columns) for item in items]
    if any(values["source_url"] is None for values in expected):
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


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"path": "x.csv"}, "path must name a file"),
        ({"path": ["x.jsonl", "y.json"]}, "y.json"),
        ({"kind": "documents"}, "kind must be one of"),
        ({"mode": "append"}, "mode must be one of"),
    ],
)
def test_what_cannot_work_fails_while_the_dag_file_is_read(arguments: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        WebDataToTableOperator(
            **{"task_id": "t", "path": "x.jsonl", "table": "t", "conn_id": "c", **arguments}
        )


@pytest.mark.parametrize(
    ("path", "table", "conn", "words"),
    [
        ("no.jsonl", "pages", "sqlite://", "is not there"),
        ("", "pages", "sqlite://", "path is empty"),
        ("x.jsonl", "a.b.c", "sqlite://", "table must be"),
        ("x.jsonl", "", "sqlite://", "table must be"),
        ("x.jsonl", "pages", "http://x.example", "leads to no SQL database"),
    ],
)
def test_what_cannot_work_fails_without_a_retry(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str, table: str, conn: str, words: str
) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_WAREHOUSE", conn)
    monkeypatch.chdir(tmp_path)
    task = WebDataToTableOperator(task_id="t", path="x.jsonl", table=table, conn_id="warehouse")
    task.path = path  # as a template renders it
    with pytest.raises(AirflowFailException, match=words):
        task.execute({})
