# SPDX-License-Identifier: Apache-2.0
"""`webdata_resource` in pipelines of dlt, on a real destination."""

from __future__ import annotations

import sys
from pathlib import Path

import dlt
import duckdb
import pytest

from airflow_provider_webdata.results.tables import dlt_resource
from airflow_provider_webdata.results.tables.errors import TableError
from tests.integration.tables.test_load import Written, page
from tests.support.emissions import Night


def test_a_pipeline_merges_rows(written: Written, tmp_path: Path) -> None:
    file = f"{tmp_path}/mine.db"
    pipeline = dlt.pipeline(
        "mine",
        pipelines_dir=f"{tmp_path}/dlt",
        destination=dlt.destinations.duckdb(file),
        dataset_name="web",
    )
    first = [page(1), page(2, links=["a"], unknown=7), page(1, "b\0c")]
    pipeline.run(dlt_resource.webdata_resource(written(first), name="pages"))
    with duckdb.connect(file) as found:
        rows = found.execute("SELECT source_url, markdown, extra, links FROM web.pages ORDER BY 1").fetchall()
    assert rows == [
        ("https://river.example/1", "b\ufffdc", None, None),
        ("https://river.example/2", "text", '{"unknown":7}', '["a"]'),
    ]
    pages = dlt_resource.webdata_resource(written([page(5)]), name="pages")
    pages.apply_hints(write_disposition="replace")
    pipeline.run(pages)
    with duckdb.connect(file) as found:
        assert found.execute("SELECT source_url FROM web.pages").fetchall() == [("https://river.example/5",)]
    assert dlt_resource.webdata_resource(written([])) is None


def test_a_pipeline_marks_removed_pages(tmp_path: Path) -> None:
    """Of files that are loaded together, the newest version wins in any order."""
    url = "https://river.example/"
    nights = [
        Night(1).emit(page(1), page(2), page(3)),
        Night(2).emit(page(1, "new")).remove(f"{url}2"),
        Night(3).emit(page(2, "again")).remove(f"{url}3"),
    ]
    paths = [night.write(f"{tmp_path}/{night.number}.parquet") for night in nights]
    file = f"{tmp_path}/marks.db"
    pipeline = dlt.pipeline(
        "marks",
        pipelines_dir=f"{tmp_path}/dlt",
        destination=dlt.destinations.duckdb(file),
        dataset_name="web",
    )
    pipeline.run([dlt_resource.webdata_resource([paths[1], paths[0]], name="pages")])
    pipeline.run([dlt_resource.webdata_resource(paths[2], name="pages")])
    with duckdb.connect(file) as found:
        rows = found.execute(
            "SELECT page, markdown, webdata_version, webdata_removed_at IS NULL, webdata_source FROM web.pages "
            "ORDER BY 1"
        ).fetchall()
    assert rows == [
        (f"{url}1", "new", nights[1].version, True, "shop/crawl"),
        (f"{url}2", "again", nights[2].version, True, "shop/crawl"),
        (f"{url}3", None, nights[2].version, False, "shop/crawl"),
    ]


def test_failed_pages_replace_no_rows(written: Written, tmp_path: Path) -> None:
    pipeline = dlt.pipeline(
        "failed",
        pipelines_dir=f"{tmp_path}/dlt",
        destination=dlt.destinations.duckdb(f"{tmp_path}/failed.db"),
        dataset_name="web",
    )
    for kind, made in (
        ("document", page),
        (
            "search_web",
            lambda number, text="text": {"url": f"https://river.example/{number}", **page(number, text)},
        ),
    ):
        for status, text in ((200, "good"), (503, "503 Service Unavailable")):
            item = made(1, text)
            item["metadata"]["statusCode"] = status
            path = written([item, made(2, text)], kind=kind)
            pipeline.run(dlt_resource.webdata_resource(path, name=kind, kind=kind))
        with duckdb.connect(f"{tmp_path}/failed.db") as found:
            assert found.execute(f"SELECT markdown, status_code FROM web.{kind} ORDER BY url").fetchall() == [
                ("good", 200),
                ("503 Service Unavailable", 200),
            ]


def test_tables_are_bounded_by_their_texts(written: Written) -> None:
    path = written([page(number, "x" * 2**20) for number in range(20)])
    assert [found.num_rows for found in dlt_resource.webdata_resource(path)] == [8, 8, 4]


def test_what_cannot_work(written: Written, monkeypatch: pytest.MonkeyPatch) -> None:
    path = written([page(1)])
    with pytest.raises(TableError, match="are the same name in dlt"):
        dlt_resource.webdata_resource(
            path, columns={"source_url": "pageUrl", "url": "page_url"}, key="source_url"
        )
    monkeypatch.setitem(sys.modules, "dlt", None)
    monkeypatch.delitem(sys.modules, dlt_resource.__name__)
    with pytest.raises(TableError, match=r"pip install 'dlt\[duckdb\]' pyarrow "):
        from airflow_provider_webdata.results.tables.dlt_resource import webdata_resource  # noqa: F401
