# SPDX-License-Identifier: Apache-2.0
"""What a file's items are found to be, and what tells its rows apart."""

from __future__ import annotations

from typing import Any

import pytest

from airflow_provider_webdata.results.columns import CHANGES, TABLES, VERSION, columns_of
from airflow_provider_webdata.results.tables.errors import TableError
from airflow_provider_webdata.results.tables.items import kind_of
from airflow_provider_webdata.results.tables.layout import TableName, layout, table_name
from airflow_provider_webdata.results.tombstones import MARK
from tests.support.tables import each_row

PAGE = {"markdown": "x", "metadata": {"sourceURL": "https://a.example"}}
LINK = {"url": "https://a.example", "title": "x"}
RESULT = {**LINK, "position": 1}
GONE = {"change": "removed", "url": "https://a.example", "lastSeen": "2026-01-01", MARK: "document"}
VERSIONED = {"change": "same", "page": "https://a.example", VERSION: 7, "webdata_source": "d/t"}


@each_row(
    "items, kind",
    [
        ([], None),
        ([GONE], "document"),
        ([{**GONE, MARK: "link"}], "link"),
        ([PAGE], "document"),
        ([GONE, PAGE], "document"),
        ([LINK, {**GONE, MARK: "link"}], "link"),
        ([{"change": "new", **PAGE}], "document"),
        ([LINK], "link"),
        ([{"url": "https://a.example"}], "link"),
        ([{**VERSIONED, **LINK}], "link"),
        ([LINK, RESULT], "search"),
        ([{**RESULT, "metadata": {"title": "x"}}], "search"),
        ([{"price": 7}], "generic"),
        ([LINK, {"price": 7}], "generic"),
        ([{"url": 7}], "generic"),
        ([7, "x", None], "generic"),
    ],
)
def test_the_kind_is_found_from_the_items(items: list[Any], kind: str | None) -> None:
    assert kind_of(items) == kind


@each_row(
    "kind, given, key",
    [
        ("document", None, ["source_url"]),
        ("document", ["source_url", "language"], ["source_url", "language"]),
        ("link", None, ["url"]),
        ("retrieval", None, ["id"]),
        ("retrieval", ["title"], ["title"]),
        *((kind, None, ["url"]) for kind in TABLES if kind.startswith("search")),
    ],
)
def test_rows_are_told_apart_by_what_a_page_is_known_by(
    kind: str, given: list[str] | None, key: list[str]
) -> None:
    assert layout(TableName(None, "t"), columns_of(kind), given, None, replace=False).key == (*key,)


@each_row("kind", TABLES)
def test_a_table_has_all_but_what_is_about_a_run(kind: str) -> None:
    columns = {column.name for column in columns_of(kind)}
    assert {*layout(TableName(None, "t"), columns_of(kind), None, None, replace=True).names} == columns
    made = layout(TableName(None, "t"), (*columns_of(kind), *CHANGES), None, None, replace=False)
    assert made.key == ("page",)
    assert {*made.names} == columns | {column.name for column in CHANGES} - {"change", "last_seen"}


def test_columns_are_chosen_and_named() -> None:
    chosen = {"url": "link", "title": "name"}
    made = layout(TableName(None, "t"), columns_of("link"), None, chosen, replace=False)
    assert (made.names, made.key) == (("link", "name"), ("link",))


@each_row(
    "kind, key, chosen, words",
    [
        ("generic", None, None, "key: these items have no default key"),
        ("link", ["urls"], None, "key: the column 'urls' is not loaded"),
        ("link", None, ["title"], "key: the column 'url' is not loaded"),
        ("link", None, ["url", "titel"], "columns: the file has no column 'titel'. Choose from url, title"),
        ("link", None, {"url": "a", "title": "a"}, "two columns have the same name"),
    ],
)
def test_a_layout_that_cannot_be_names_the_argument(kind: str, key: Any, chosen: Any, words: str) -> None:
    with pytest.raises(TableError, match=words):
        layout(TableName(None, "t"), columns_of(kind), key, chosen, replace=False)


@each_row("given, parts", [("pages", ("pages",)), ("web.pages", ("web", "pages")), ("a b", ("a b",))])
def test_a_table_is_named_with_or_without_its_schema(given: str, parts: tuple[str, ...]) -> None:
    assert table_name(given).parts == parts
    assert str(table_name(given)) == given


@each_row("given", ["", ".", "a.", ".a", "a.b.c", "a\0"])
def test_what_names_no_table_is_refused(given: str) -> None:
    with pytest.raises(TableError, match="table must be"):
        table_name(given)
