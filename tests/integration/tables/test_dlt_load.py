"""`WebDataToTableOperator(engine="dlt")` on real destinations."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import dlt
import duckdb
import pytest
from airflow.sdk import Connection
from airflow.sdk.exceptions import AirflowFailException
from deltalake import DeltaTable
from pyiceberg.table import StaticTable

from airflow_provider_webdata.common.coded_errors import ArgumentError
from airflow_provider_webdata.results.columns import columns_of
from airflow_provider_webdata.results.output import OutputFile
from airflow_provider_webdata.results.result_schema import ResultSchema
from airflow_provider_webdata.results.tables import dlt_load
from airflow_provider_webdata.results.tables.duckdb import DuckDB
from airflow_provider_webdata.results.tables.errors import TableError
from airflow_provider_webdata.results.tables.layout import TableName
from airflow_provider_webdata.results.tables.load import dataset_of_table
from airflow_provider_webdata.results.tombstones import Tombstone
from tests.integration.tables import test_load
from tests.integration.tables.conftest import Target
from tests.integration.tables.test_load import ONLY, Written, gone, page, tables, texts

load: Callable[..., dict[str, Any]] = partial(test_load.load, engine="dlt")
everywhere = pytest.mark.parametrize("database", ["duckdb", "sqlite", "postgresql"], indirect=True)
on_sqlite = pytest.mark.parametrize("database", ["sqlite"], indirect=True)


@everywhere
def test_rows_are_merged_removed_pages_deleted_and_tables_replaced(
    database: Target, written: Written
) -> None:
    again = [page(1), page(2, links=["a"], unknown=7), page(1, "b\0c"), page(9), gone(9)]
    counts = {"table": "pages", "loaded": 2, "deleted": 0, "duplicates": 1, "files": 1}
    assert load(written(again)) == counts
    assert texts(database) == {1: "b\ufffdc", 2: "text"}
    extra, links = (database.text(name, "text") for name in ("extra", "links"))
    assert database.query(f"SELECT {extra}, {links} FROM \"pages\" WHERE url LIKE '%2/'") == [
        ('{"unknown":7}', '["a"]')
    ]
    second = load(written([page(1, "new"), page(3), gone(2), gone(7)]))
    assert (second["loaded"], second["deleted"]) == (2, 1)
    assert texts(database) == {1: "new", 3: "text"}
    assert load(written([page(5)]), mode="replace")["loaded"] == 1
    assert texts(database) == {5: "text"}
    assert load(written([gone(5)]))["deleted"] == 1
    assert texts(database) == {}


@pytest.mark.parametrize(
    "database, test, arguments",
    [
        ("sqlite", test_load.test_the_last_one_of_a_key_wins, {}),
        ("duckdb", test_load.test_an_empty_file_changes_nothing, {}),
        ("postgresql", test_load.test_removed_pages_alone_are_deleted, {}),
        ("sqlite", test_load.test_more_rows_than_may_be_deleted_stay, {"is_alone": False}),
        ("duckdb", test_load.test_more_rows_than_may_be_deleted_stay, {"is_alone": True}),
        ("sqlite", test_load.test_deletes_that_are_held_back_keep_the_last_row_of_each_page, {}),
        ("postgresql", test_load.test_replace_leaves_what_the_file_holds, {}),
        ("sqlite", test_load.test_items_of_any_shape_replace_a_table, {}),
        ("sqlite", test_load.test_an_item_without_key_loads_nothing, {}),
    ],
    indirect=["database"],
)
def test_loads_have_the_semantics_of_the_hook_s(
    database: Target,
    written: Written,
    monkeypatch: pytest.MonkeyPatch,
    test: Callable[..., None],
    arguments: dict[str, Any],
) -> None:
    monkeypatch.setattr(test_load, "load", load)
    test(database, written, **arguments)


@pytest.mark.parametrize("database", ["postgresql"], indirect=True)
def test_types_are_those_of_a_schema(
    database: Target, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(test_load, "load", load)
    test_load.test_what_was_extracted_has_the_columns_of_its_schema(database, tmp_path, ".jsonl")


@pytest.mark.parametrize("database", ["duckdb"], indirect=True)
def test_failed_pages_stay_out_of_tables_with_a_schema(database: Target, tmp_path: Path) -> None:
    path = str(tmp_path / "pages.parquet")
    with OutputFile(path, ResultSchema.of(test_load.LEVEL).columns("document")) as file:
        file.write([page(1), test_load.failing(2), page(3)])
    assert load(path).items() >= {"loaded": 2, "failedPages": 1, "duplicates": 0}.items()
    assert {*texts(database)} == {1, 3}


@on_sqlite
def test_a_removed_page_is_deleted_under_each_query(database: Target, tmp_path: Path) -> None:
    def run(*items: Any) -> dict[str, Any]:
        path = str(tmp_path / "found.jsonl")
        with OutputFile(path, columns_of("search_web")) as file:
            file.write(items)
        return load(path, key=["query", "url"], kind="search_web", max_removed=9)

    run(*({"url": f"https://river.example/{url}", "query": query} for url in "12" for query in "ab"))
    removed = Tombstone("link", change="removed", url="https://river.example/1", lastSeen="x")
    assert run(removed)["deleted"] == 2
    assert database.rows("pages", "query", "url") == [(query, "https://river.example/2") for query in "ab"]


@on_sqlite
def test_the_schema_contract_decides_about_new_columns(database: Target, written: Written) -> None:
    path = written([page(1)])
    with pytest.raises(TableError, match="WD-060"):
        load(path, create_table=False)
    load(path, columns=ONLY)
    before = tables(database)
    path = written([page(2), page(3, html="<p>")])
    more = [*ONLY, "html"]
    with pytest.raises(TableError, match=r"html.*schema_contract='evolve'"):
        load(path, columns=more)
    assert load(path, columns=more, schema_contract="discard_row")["loaded"] == 1
    assert texts(database) == {1: "text", 2: "text"}
    assert tables(database) == before
    assert load(path, columns=more, schema_contract="evolve")["loaded"] == 2
    assert database.rows("pages", "source_url", "html")[1:] == [
        ("https://river.example/2", None),
        ("https://river.example/3", "<p>"),
    ]


@pytest.mark.parametrize("database", ["postgresql"], indirect=True)
def test_parameters_of_the_hook_are_not_the_driver_s(
    database: Target, written: Written, monkeypatch: pytest.MonkeyPatch
) -> None:
    fields = json.loads(os.environ["AIRFLOW_CONN_WAREHOUSE"])
    fields["extra"]["cursor"] = "dictcursor"
    monkeypatch.setenv("AIRFLOW_CONN_WAREHOUSE", json.dumps(fields))
    load(written([page(1)]))
    assert texts(database) == {1: "text"}


def test_a_table_of_a_type_without_hook_is_named_by_its_connection(tmp_path: Path) -> None:
    connection = Connection(conn_id="warehouse", conn_type="duckdb", host=f"{tmp_path}/warehouse.db")
    named = (f"duckdb://{tmp_path}/warehouse.db", "web.pages")
    assert dataset_of_table(connection, TableName("web", "pages")) == named


@pytest.mark.parametrize("database", ["duckdb"], indirect=True)
def test_arrow_tables_are_bounded_by_their_texts(
    database: Target, written: Written, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = written([page(number, "x" * 2**20) for number in range(20)])
    by_dlt = [found.num_rows for found in dlt_load.webdata_resource(path)]
    by_hook: list[int] = []
    insert = DuckDB._insert_arrow

    def counted(self: DuckDB, layout: Any, batch: list[Any], pa: Any) -> None:
        by_hook.append(len(batch))
        insert(self, layout, batch, pa)

    monkeypatch.setattr(DuckDB, "_insert_arrow", counted)
    test_load.load(path)
    assert by_dlt == by_hook == [8, 8, 4]


def iceberg_rows(folder: str) -> Any:
    metadata = sorted(Path(folder, "metadata").glob("*.json"))
    return StaticTable.from_metadata(str(metadata[-1])).scan().to_arrow()


@pytest.mark.parametrize(
    ("library", "extra", "read"),
    [
        ("deltalake", {}, lambda folder: DeltaTable(folder).to_pyarrow_table()),
        ("pyiceberg", {"table_format": "iceberg"}, iceberg_rows),
    ],
)
def test_a_folder_holds_delta_or_iceberg_tables(
    written: Written,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    library: str,
    extra: dict[str, str],
    read: Callable[[str], Any],
) -> None:
    def connect(**extra: str) -> None:
        fields = {"conn_type": "fs", "extra": {"path": f"{tmp_path}/lake", **extra}}
        monkeypatch.setenv("AIRFLOW_CONN_WAREHOUSE", json.dumps(fields))

    def run(*items: Any, **more: Any) -> tuple[dict[str, Any], dict[str, str]]:
        counts = load(written([*items]), table="web.pages", **more)
        assert counts.pop("table") == "web.pages"
        rows = read(f"{tmp_path}/lake/web/pages").to_pylist()
        return counts, {row["source_url"][-1]: row["markdown"] for row in rows}

    def counts(loaded: int, deleted: int, **more: int) -> dict[str, Any]:
        return {"loaded": loaded, "deleted": deleted, "duplicates": 0, "files": 1, **more}

    connect(table_format="native")
    with pytest.raises(TableError, match="table_format must be delta or iceberg"):
        load(written([page(1)]), table="web.pages")
    connect(**extra)
    with pytest.raises(TableError, match=r"table must be 'dataset\.name'"):
        load(written([page(1)]))
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, library, None)
        patch.delitem(sys.modules, f"dlt.common.libs.{library}", raising=False)
        with pytest.raises(TableError, match=rf'pip install "dlt\[{library}\]"'):
            load(written([page(1)]), table="web.pages")
    assert run(page(1), page(2), page(3)) == (counts(3, 0), {"1": "text", "2": "text", "3": "text"})
    assert run(page(1, "new"), gone(2), gone(7)) == (counts(1, 1), {"1": "new", "3": "text"})
    assert run(gone(1), gone(3), max_removed=1) == (counts(0, 0, heldBack=2), {"1": "new", "3": "text"})
    assert run(gone(3)) == (counts(0, 1), {"1": "new"})
    assert run(page(5), mode="replace") == (counts(1, 0), {"5": "text"})
    other = "delta" if extra else "iceberg"
    connect(table_format=other)
    with pytest.raises(TableError, match=rf"table_format is {other}, but the existing table web\.pages has"):
        load(written([page(6)]), table="web.pages")
    connect(**extra)
    assert run(gone(7)) == (counts(0, 0), {"5": "text"})


def test_a_pipeline_of_one_s_own_loads_the_resource(written: Written, tmp_path: Path) -> None:
    file = f"{tmp_path}/mine.db"
    pipeline = dlt.pipeline(
        "mine",
        pipelines_dir=f"{tmp_path}/dlt",
        destination=dlt.destinations.duckdb(file),
        dataset_name="web",
    )
    pipeline.run(dlt_load.webdata_resource(written([page(1), page(2)]), name="pages"))
    pipeline.run(dlt_load.webdata_resource(written([page(1, "new"), gone(2), gone(3)]), name="pages"))
    with duckdb.connect(file) as found:
        assert found.execute("SELECT source_url, markdown FROM web.pages").fetchall() == [
            ("https://river.example/1", "new")
        ]
    assert dlt_load.webdata_resource(written([])) is None
    with pytest.raises(TableError, match="use only that column as key"):
        dlt_load.webdata_resource(written([page(1), gone(2)]), key=["source_url", "url"])


@on_sqlite
def test_what_cannot_work_fails_without_a_retry(
    database: Target, written: Written, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = written([page(1)])
    for arguments in ({"destination": "duckdb"}, {"schema_contract": "freeze"}, {"engine": "spark"}):
        with pytest.raises(ArgumentError, match="engine"):
            test_load.load(path, **arguments)
    with pytest.raises(ArgumentError, match="schema_contract must be one of"):
        load(path, schema_contract="strict")
    for destination in ("paper", "destination", "dummy"):
        with pytest.raises(TableError, match="destination must be one of"):
            load(path, destination=destination)
    with pytest.raises(TableError, match="are the same name in dlt"):
        load(path, columns={"source_url": "pageUrl", "url": "page_url"}, key="source_url")
    for name in ("webdata_removed", "webdataRemoved"):
        with pytest.raises(TableError, match=f"'{name}' is the name of a hidden column in dlt"):
            dlt_load.webdata_resource(path, columns={"source_url": "source_url", "url": name})
    with monkeypatch.context() as patch:
        patch.setenv("AIRFLOW_CONN_WAREHOUSE", "http://x.example")
        with pytest.raises(TableError, match="has no SQL database"):
            load(path)
    monkeypatch.setitem(sys.modules, "dlt", None)
    monkeypatch.delitem(sys.modules, dlt_load.__name__)
    with pytest.raises(AirflowFailException, match=r"pip install 'airflow-provider-webdata\[dlt\]'"):
        load(path)
    assert tables(database) == []
