# SPDX-License-Identifier: Apache-2.0
"""Loads of files with versions: in every order, the newest version of each row wins, and removed pages are marked."""

from __future__ import annotations

import itertools
import logging
import re
from collections.abc import Iterable
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, ClassVar

import pytest
from airflow.sdk import DAG
from airflow.sdk.exceptions import AirflowFailException
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_webdata.operators.crawl import WebDataCrawlOperator
from airflow_provider_webdata.results.columns import REMOVED_AT, SOURCE, VERSION, columns_of
from airflow_provider_webdata.results.files.formats import SUFFIXES
from airflow_provider_webdata.results.files.output import OutputFile
from airflow_provider_webdata.results.pages.retrieval import KIND
from airflow_provider_webdata.results.result_schema import ResultSchema
from airflow_provider_webdata.results.tables.errors import TableError
from airflow_provider_webdata.results.tables.layout import TableName
from airflow_provider_webdata.results.tables.load import Source, load_files
from airflow_provider_webdata.results.tables.postgresql import PostgreSQL
from airflow_provider_webdata.results.tables.sqlite import SQLite
from airflow_provider_webdata.results.tombstones import MARK
from airflow_provider_webdata.transfers.webdata_to_table import WebDataToTableOperator
from tests.integration.tables.conftest import Target
from tests.integration.tables.test_load import (
    LEVEL,
    PLAIN,
    advised,
    drop,
    each_way,
    everywhere_from,
    failing,
    load,
    on_sqlite,
    page,
    tables,
    texts,
)
from tests.support.direct import TaskInstance, context_of
from tests.support.emissions import SOURCE as TASK
from tests.support.emissions import Night
from tests.support.examples import examples
from tests.support.tables import each_row

URL = "https://river.example/"
ONE, TWO, THREE = (f"{URL}{number}" for number in (1, 2, 3))


def marks(database: Target, table: str = "pages") -> dict[str, tuple[int, bool, str]]:
    """Return the version, whether the row is marked, and the source of each row."""
    rows = database.rows(table, "page", VERSION, REMOVED_AT, SOURCE)
    return {
        url[len(URL) :]: (version, removed_at is not None, source)
        for url, version, removed_at, source in rows
    }


@everywhere_from(*SUFFIXES)
def test_the_newest_version_wins_and_removed_pages_are_marked(
    database: Target, tmp_path: Path, end: str
) -> None:
    spelled = page(3)
    spelled["metadata"]["sourceURL"] = f"{THREE}?utm_source=feed"
    first = Night(1).emit(page(1), page(2, links=["a"], unknown=7), spelled)
    second = Night(2).emit(page(1, "new")).fail(failing(3, 503)).remove(TWO, f"{URL}9")
    one, two = first.write(f"{tmp_path}/1{end}"), second.write(f"{tmp_path}/2{end}")
    counts = {"table": "pages", "loaded": 3, "removed": 0, "outdated": 0, "duplicates": 0, "files": 1}
    assert load(one) == counts
    for _ in range(2):
        assert load(two) == {**counts, "loaded": 1, "removed": 2, "failed_pages": 1}
    former = (first.version, False, TASK)
    expected = {"1": (second.version, False, TASK), "2": (second.version, True, TASK), "3": former}
    assert marks(database) == {**expected, "9": (second.version, True, TASK)}
    [(removed_at,)] = database.query(f"SELECT {REMOVED_AT} FROM pages WHERE page = '{TWO}'")
    assert datetime.fromisoformat(removed_at) == datetime.fromtimestamp(second.moment, timezone.utc)
    # A marked row keeps its content, and the requested URL is as the service has it.
    shown = database.rows("pages", "page", "markdown", "source_url")
    assert shown[:3] == [(ONE, "new", ONE), (TWO, "text", TWO), (THREE, "text", f"{THREE}?utm_source=feed")]
    assert shown[3] == (f"{URL}9", None, None)
    # An older file changes nothing, and says so.
    assert load(one) == {**counts, "loaded": 1, "outdated": 2}
    assert database.rows("pages", "page", "markdown", "source_url") == shown
    # A page that comes back loses its mark.
    third = Night(3).emit(page(2, "again"))
    load(third.write(f"{tmp_path}/3{end}"))
    assert marks(database)["2"] == (third.version, False, TASK)
    assert texts_by_page(database)[TWO] == "again"


def texts_by_page(database: Target) -> dict[str, str | None]:
    return dict(database.rows("pages", "page", "markdown"))  # type: ignore[arg-type]


@each_way
def test_the_statements_of_the_guide(database: Target, tmp_path: Path) -> None:
    guide = (Path(__file__).parents[3] / "docs" / "operators" / "to_table.md").read_text(encoding="utf-8")
    [view] = re.findall(r"```sql\n(CREATE VIEW pages_of_today .*?)```", guide, re.DOTALL)
    [delete] = re.findall(r"```sql\n(DELETE FROM pages .*?)```", guide, re.DOTALL)
    load(Night(1).emit(page(1), page(2)).write(f"{tmp_path}/1.jsonl"))
    load(Night(2).remove(TWO).write(f"{tmp_path}/2.jsonl"))
    load(Night(200).remove(THREE).write(f"{tmp_path}/3.jsonl"))
    database.query(view)
    assert database.rows("pages_of_today", "page") == [(ONE,)]
    database.query(delete)
    assert sorted(marks(database)) == ["1", "3"]


# What a night has of a page: nothing, or its formats (None: not returned), with its number as text.
EVENTS = ("", "title markdown summary", "title markdown", "summary", "removed", "failed")
PAGES = (1, 2)


def night_of(number: int, events: Iterable[str]) -> Night:
    night = Night(number)
    for url, event in zip(PAGES, events, strict=False):
        if event == "removed":
            night.remove(f"{URL}{url}")
        elif event == "failed":
            night.fail(failing(url, 503))
        elif event:
            night.emit(partial(url, str(number), event))
    return night


def partial(url: int, text: str, event: str) -> dict[str, Any]:
    item = page(url, text, summary=text)
    item["metadata"]["title"] = text if "title" in event else None
    return {name: value for name, value in item.items() if name == "metadata" or name in event}


def check_table(database: Target, nights: list[tuple[str, ...]], *, is_in_order: bool) -> None:
    """Check the table after loads of all nights, against what each column may be."""
    rows = {
        row[0]: row[1:]
        for row in database.rows("pages", "page", VERSION, REMOVED_AT, "title", "markdown", "summary")
    }
    for number, url in enumerate(PAGES):
        events = [(night, events[number]) for night, events in enumerate(nights, 1)]
        emitted = [(night, event) for night, event in events if event not in ("", "failed")]
        if not emitted:
            assert f"{URL}{url}" not in rows
            continue
        version, removed_at, title, *formats = rows[f"{URL}{url}"]
        newest, last = emitted[-1]
        assert version >> 20 == Night(newest).version >> 20
        assert (removed_at is not None) == (last == "removed")
        contents = [(night, event) for night, event in emitted if event != "removed"]
        titles = [str(night) if "title" in event else None for night, event in contents]
        if last == "removed" and not is_in_order and len(contents) > 1:
            assert title in (*titles, None)
        else:
            assert title == ([None, *titles][-1])
        for name, value in zip(("markdown", "summary"), formats, strict=True):
            having = [night for night, event in contents if name in event]
            if is_in_order or len(having) < 2 or name in last:
                assert value == (str(having[-1]) if having else None)
            else:
                assert value in map(str, having)


def load_nights(
    database: Target, folder: Path, nights: list[tuple[str, ...]], order: Iterable[int], table: str = "pages"
) -> None:
    paths = [
        night_of(number, events).write(f"{folder}/{number}.jsonl") for number, events in enumerate(nights, 1)
    ]
    database.query(f"DROP TABLE IF EXISTS {table}")
    # The table exists, whatever the first file has.
    load(Night(0).emit(page(7)).write(f"{folder}/0.jsonl"), table)
    for place in order:
        load(paths[place], table)


def is_chronological(order: Iterable[int]) -> bool:
    """Return whether each night is first loaded after those before it; repeated loads do not matter."""
    first = [*dict.fromkeys(order)]
    return first == sorted(first)


STORY = [
    ("title markdown summary", "title markdown summary"),
    ("title markdown", "removed"),
    ("removed", "title markdown summary"),
    ("summary", "failed"),
]


@each_way
def test_every_order_of_loads_ends_in_the_same_table(database: Target, tmp_path: Path) -> None:
    """Of new, changed, failed, removed, and returned pages, some without a format, also loaded twice or together."""
    every = [*itertools.permutations(range(len(STORY)))]
    orders = every if database.name == "sqlite" else every[::5]
    for order in orders:
        load_nights(database, tmp_path, STORY, order)
        check_table(database, STORY, is_in_order=is_chronological(order))
        for place in order[:2]:
            load(f"{tmp_path}/{place + 1}.jsonl")
        check_table(database, STORY, is_in_order=is_chronological(order))
    # A marked row keeps its content when an older file is loaded again.
    until_removed = [("title markdown summary", ""), ("title markdown", ""), ("removed", "")]
    load_nights(database, tmp_path, until_removed, (0, 1, 2, 0))
    check_table(database, until_removed, is_in_order=True)
    load_nights(database, tmp_path, STORY, ())
    load([f"{tmp_path}/{number}.jsonl" for number in (3, 1, 4, 2)])
    check_table(database, STORY, is_in_order=True)


@on_sqlite
@examples(0.5)
@given(
    nights=st.lists(st.tuples(*[st.sampled_from(EVENTS)] * len(PAGES)), min_size=2, max_size=5),
    draw=st.data(),
)
def test_any_order_and_repetition_of_loads_has_the_newest_versions(
    database: Target, tmp_path: Path, nights: list[tuple[str, ...]], draw: st.DataObject
) -> None:
    again = draw.draw(st.lists(st.sampled_from(range(len(nights))), max_size=3))
    order = draw.draw(st.permutations([*range(len(nights)), *again]))
    load_nights(database, tmp_path, nights, order)
    check_table(database, nights, is_in_order=is_chronological(order))


@everywhere_from(".jsonl", ".parquet", ".csv")
def test_what_a_page_did_not_return_does_not_depend_on_the_order(
    database: Target, tmp_path: Path, end: str
) -> None:
    """Of pages with a schema, flat documents, and search results whose page failed."""
    schema = ResultSchema.of(LEVEL)
    plain = {"metadata": page(1)["metadata"]}
    found = {"url": ONE, "title": "t"}
    cases: list[tuple[str, tuple[Any, Any], list[str], tuple[Any, ...]]] = [
        (
            "document",
            (page(1, "a", json={"name": "north"}), page(1, "b")),
            ["markdown", "json_name"],
            ("b", "north"),
        ),
        ("document", (page(1, json={"name": "x"}), page(1, json={"rising": True})), ["json_name"], (None,)),
        (KIND, (page(1, "a"), plain), ["text", "url"], ("a", ONE)),
        (
            "search_web",
            ({**found, **page(1, "a")}, {**found, "title": "new", **failing(1, 503)}),
            ["title", "markdown", "status_code"],
            ("new", "a", 200),
        ),
    ]
    for number, (kind, items, shown, expected) in enumerate(cases):
        columns = None if kind == KIND else schema.columns(kind)
        paths = [
            Night(night, kind=kind).emit(item).write(f"{tmp_path}/{night}{end}", columns)
            for night, item in enumerate(items, 1)
        ]
        for order in ((0, 1), (1, 0), (1, 0, 1, 0)):
            table = f"t{number}_{len(order)}_{order[0]}"
            for place in order:
                load(paths[place], table, result_schema=None if kind == KIND else LEVEL, kind=kind)
            assert database.rows(table, *shown) == [expected], (kind, order)
        load([*reversed(paths)], "together", result_schema=None if kind == KIND else LEVEL, kind=kind)
        assert database.rows("together", *shown) == [expected], kind
        database.query("DROP TABLE together")


def to_run(error: TableError) -> str:
    """Return the statement at the end of an error."""
    return error.text().partition(" run: ")[2]


@each_way
@pytest.mark.says(
    "says which folder to copy, and has the statement that hands them over",
    "the error has the statement to run",
)
def test_a_row_of_another_task_is_refused_until_it_is_renamed(database: Target, tmp_path: Path) -> None:
    load(Night(1).emit(page(1), page(2)).write(f"{tmp_path}/1.jsonl"))
    renamed = Night(2, source="shop/new's").emit(page(1, "new"), page(3)).write(f"{tmp_path}/2.jsonl")
    removing = Night(2, source="shop/new's").remove(ONE).write(f"{tmp_path}/3.jsonl")
    before = marks(database)
    for path, mode in itertools.product((renamed, removing), ("upsert", "replace")):
        if (path, mode) == (removing, "replace"):
            continue  # omits removed pages, so it changes nothing
        ti = written_by("load", {"path": path, "changes": {"emit": "all"}})
        with pytest.raises(
            TableError, match=r"(?s)is from shop/crawl, but the file is from shop/new's"
        ) as error:
            load(path, ti=ti, mode=mode) if mode == "upsert" else replace(path, ti)
        assert marks(database) == before
    assert "copy its state (in its folder of changes, from " in error.value.text()
    database.query(to_run(error.value))
    load(renamed)
    assert {row[2] for row in marks(database).values()} == {"shop/new's"}
    # Rows without a source are taken over, and another task may load other pages.
    database.query(f"UPDATE pages SET {SOURCE} = NULL, {VERSION} = NULL")
    load(Night(3).emit(page(1)).write(f"{tmp_path}/4.jsonl"))
    load(Night(3, source="shop/other").emit(page(4)).write(f"{tmp_path}/5.jsonl"))
    assert [row[2] for row in marks(database).values()] == [TASK, None, None, "shop/other"]


@each_way
def test_rows_without_versions_replace_none_that_have_one(
    database: Target, written: Any, tmp_path: Path
) -> None:
    """A file of failed pages has no rows, and changes nothing."""
    load(Night(1).emit(page(1)).write(f"{tmp_path}/1.jsonl"))
    for mode in ("upsert", "replace"):
        with pytest.raises(
            TableError, match=r"(?s)rows with versions, from shop/crawl, but .*items\.jsonl"
        ) as error:
            load(written([page(1, "old")]), mode=mode)
        assert load(written([failing(1, 503)]), mode=mode)["failed_pages"] == 1
        assert load(Night(2).fail(failing(1, 503)).write(f"{tmp_path}/2.jsonl"))["failed_pages"] == 1
    assert texts_by_page(database) == {ONE: "text"}
    database.query(to_run(error.value))
    assert load(written([page(1, "old")]))["loaded"] == 1


@each_way
@each_row(
    "statement, arguments, words",
    [
        (
            f"CREATE TABLE pages (page VARCHAR(2000) PRIMARY KEY, {VERSION} BIGINT, {REMOVED_AT} VARCHAR(40), "
            f"{SOURCE} VARCHAR(900), markdown VARCHAR(100) NOT NULL, note VARCHAR(9) NOT NULL DEFAULT 'x')",
            {"columns": ["markdown"]},
            ["'markdown' must not be null, but rows of removed pages have no values"],
        ),
        (PLAIN.format(more=""), {"columns": ["markdown"]}, ["no columns 'page', ", VERSION, REMOVED_AT, SOURCE]),
        ("", {"key": "source_url"}, ["key: rows of a task with changes are identified by 'page'", "omit key"]),
        ("", {"key": "source_url", "mode": "replace"}, ["omit key"]),
        ("", {"columns": {"markdown": "m", VERSION: "v"}}, [f"'{VERSION}' cannot be renamed"]),
    ],
    before=drop,
)  # fmt: skip
def test_a_table_that_cannot_have_marks_is_refused(
    database: Target, tmp_path: Path, statement: str, arguments: Any, words: list[str]
) -> None:
    if statement:
        database.query(statement)
    before = tables(database)
    path = Night(1).emit(page(1)).write(f"{tmp_path}/1.jsonl")
    with pytest.raises(TableError) as error:
        load(path, **arguments)
    assert [word for word in words if word not in str(error.value).replace("\n", " ")] == []
    assert tables(database) == before
    if "NOT NULL DEFAULT" in statement:
        for one in advised(error.value):
            database.query(one)
        load(path, **arguments)
        load(Night(2).remove(ONE, TWO).write(f"{tmp_path}/2.jsonl"), **arguments)
        assert database.rows("pages", "page", "markdown") == [(ONE, "text"), (TWO, None)]


@on_sqlite
def test_the_columns_of_versions_are_always_loaded(database: Target, tmp_path: Path) -> None:
    path = Night(1).emit(page(1)).write(f"{tmp_path}/1.jsonl")
    load(path, columns={"markdown": "body", "page": "address"})
    [(_, removed_at, *row)] = database.rows("pages", VERSION, REMOVED_AT, SOURCE, "body", "address")
    assert (removed_at, *row) == (None, TASK, "text", ONE)
    load(path, "more", columns=["change", "last_seen"])
    assert database.rows("more", "page", "change", "last_seen") == [(ONE, "new", None)]


@on_sqlite
@each_row(
    "kind, found, failed",
    [
        ("search_web", page(1, "a"), failing(1, 503)),
        ("provider_record", {"call": 1}, {"error": "no credits"}),
    ],
    before=drop,
)
def test_a_failed_result_replaces_no_row(
    database: Target, tmp_path: Path, kind: str, found: dict[str, Any], failed: dict[str, Any]
) -> None:
    """Not even the part of a search result that did not fail, because it has no version."""
    first, second = {"url": ONE, "title": "a", **found}, {"url": ONE, "title": "b", **failed}
    load(Night(1, kind=kind).emit(first).write(f"{tmp_path}/1.jsonl"), kind=kind)
    before = marks(database)
    result = load(Night(2, kind=kind).fail(second).write(f"{tmp_path}/2.jsonl"), kind=kind)
    assert result.items() >= {"loaded": 0, "failed_pages": 1}.items()
    both = Night(3, kind=kind).fail(second).emit({**first, "url": TWO})
    assert (
        load(both.write(f"{tmp_path}/3.jsonl"), kind=kind).items() >= {"loaded": 1, "failed_pages": 1}.items()
    )
    assert marks(database) == {**before, "2": (both.version, False, TASK)}


@on_sqlite
def test_an_item_without_a_url_is_refused_and_can_be_appended(database: Target, tmp_path: Path) -> None:
    path = (
        Night(1).emit(page(1)).fail({"markdown": "of no page", "metadata": {}}).write(f"{tmp_path}/1.jsonl")
    )
    ti = TaskInstance()
    found = load(path, "latest", ti=ti)
    assert (found["loaded"], found["refused"]) == (1, 1)
    assert ti.xcom == {"incomplete": [{"kind": "rows_refused", "number": 1, "of": 2}]}
    ti = TaskInstance()
    assert load(path, "history", ti, mode="append")["loaded"] == 2
    assert {name for name, *_ in tables_columns(database, "history")} >= {"page", "run_id"}
    assert not {VERSION, SOURCE, REMOVED_AT, "change"} & {
        name for name, *_ in tables_columns(database, "history")
    }


def tables_columns(database: Target, table: str) -> list[tuple[Any, ...]]:
    return database.query(f"SELECT name FROM pragma_table_info('{table}')")


FORGED: list[dict[str, Any]] = [
    {"change": "removed", "page": ONE, MARK: "document", REMOVED_AT: "2026-01-01"},
    {"change": "new", "page": ONE, VERSION: 2**62, REMOVED_AT: "2026-01-01", SOURCE: TASK},
]


@on_sqlite
@each_row("forged, end", [(forged, end) for forged in FORGED for end in SUFFIXES], before=drop)
def test_content_marks_no_row(database: Target, tmp_path: Path, forged: dict[str, Any], end: str) -> None:
    """What a site, a model, or the service may say is data."""
    load(Night(1).emit(page(1)).write(f"{tmp_path}/1{end}"))
    second = Night(2).emit(page(2, **forged))
    load(second.write(f"{tmp_path}/2{end}"))
    assert [(key, row[1]) for key, row in marks(database).items()] == [("1", False), ("2", False)]
    assert marks(database)["2"][0] == second.version


@on_sqlite
def test_a_removed_page_of_an_unknown_form_is_refused(database: Target, tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_text(f'{{"change":"removed","page":"{ONE}","url":"{ONE}","{MARK}":"document"}}\n')
    with pytest.raises(TableError, match=r"(?s)item 1 of .* is a removed page of an unknown form; upgrade"):
        load(str(path))
    assert tables(database) == []


def written_by(task_id: str, result: Any, incomplete: Any = None) -> TaskInstance:
    """Return a task instance, downstream of a task with these XComs."""
    xcoms = {"return_value": [result], **({} if incomplete is None else {"incomplete": [incomplete]})}
    return TaskInstance(task_id=task_id, earlier=xcoms)


def replace(path: Any, ti: TaskInstance | None, **arguments: Any) -> dict[str, Any]:
    """Load a file directly downstream of the task that wrote it."""
    with DAG("d", schedule=None):
        crawl = WebDataCrawlOperator(task_id="crawl", url=URL)
        task = WebDataToTableOperator(
            task_id="load", path=path, table="pages", conn_id="warehouse", mode="replace", **arguments
        )
        crawl >> task
    found: dict[str, Any] = task.execute({} if ti is None else context_of(ti))
    return found


@each_way
def test_a_file_replaces_a_table_only_if_it_has_all_pages(database: Target, tmp_path: Path) -> None:
    load(Night(1).emit(page(1), page(2)).write(f"{tmp_path}/1.jsonl"))
    path = Night(2).emit(page(1, "new"), page(3)).remove(TWO).write(f"{tmp_path}/2.jsonl")
    every, some = ({"path": path, "changes": {"emit": emit}} for emit in ("all", "changed"))
    for xcom, ti in ((path, None), (some, None), (path, written_by("load", some))):
        with pytest.raises(
            TableError, match=r"(?s)rows of unchanged pages.*mode='upsert', or set Changes\(emit='all"
        ):
            replace(xcom, ti)
    assert sorted(marks(database)) == ["1", "2"]
    for xcom, ti in ((every, None), (path, written_by("load", [every]))):
        assert replace(xcom, ti).items() >= {"loaded": 2, "removed": 0}.items()
        assert texts_by_page(database) == {ONE: "new", THREE: "text"}


LACKS = [{"kind": "pages_failed", "number": 1, "of": 3}, {"kind": "pages_empty", "number": 1, "of": 3}]


@on_sqlite
def test_an_incomplete_file_replaces_no_table(database: Target, written: Any) -> None:
    load(written([page(1), page(2)]))
    path = written([page(1, "new")])
    result = {"path": path, "count": 1}
    for xcom, ti in (({**result, "incomplete": LACKS}, None), (path, written_by("load", result, LACKS))):
        with pytest.raises(
            AirflowFailException, match=r"(?s)lacks: 1 of 3 pages failed\.\sUse.*allow_incomplete=True"
        ):
            replace(xcom, ti)
    # Pages without content have rows, and XComs of another file say nothing.
    replace(path, written_by("load", result, LACKS[1:]))
    replace(path, written_by("load", {"path": "/another"}, LACKS))
    assert texts(database) == {1: "new"}
    assert replace(path, written_by("load", result, LACKS), allow_incomplete=True)["loaded"] == 1


class Instance(TaskInstance):
    """A task instance that can ask Airflow for the states of its run's instances."""

    instances: ClassVar[dict[str, str | None]] = {}

    def get_task_states(self, *_: Any, run_ids: list[str], **__: Any) -> dict[str, dict[str, str | None]]:
        return {run_ids[0]: self.instances}


@each_way
def test_rows_of_removed_instances_are_deleted(
    database: Target, written: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(index: int, run_id: str = "first", **states: str) -> dict[str, Any]:
        monkeypatch.setattr(Instance, "instances", states)
        ti = Instance(map_index=index, run_id=run_id, task_id="t")
        return load(written([page(index)]), ti=ti, mode="append")

    for index in range(11):
        run(index, **{f"t_{number}": "running" for number in range(11)})
    run(3, "first/0", t_3="running")
    # Cleared, with a list of two.
    run(
        1,
        t_0="success",
        t_1="running",
        t_10="removed",
        **{f"t_{number}": "removed" for number in range(2, 10)},
    )
    found = sorted(load_id for (load_id,) in database.rows("pages", "load_id"))
    assert found == ["d/t/first/0", "d/t/first/0/3", "d/t/first/1"]
    # No longer mapped.
    run(-1, t="running")
    assert sorted(load_id for (load_id,) in database.rows("pages", "load_id")) == [
        "d/t/first/-1",
        "d/t/first/0/3",
    ]


@everywhere_from(".jsonl", ".parquet", ".csv")
@pytest.mark.parametrize("has_versions", [False, True])
def test_two_dags_leave_each_other_s_columns_alone(
    database: Target, tmp_path: Path, end: str, has_versions: bool
) -> None:
    """With other formats and another schema, each on the same pages of one table."""
    shown = ("markdown", "html", "json_name", "json_depth")
    other = {"type": "object", "properties": {"depth": {"type": "integer"}}}
    dags = [
        (LEVEL, {"markdown": "a", "json": {"name": "north"}}),
        (other, {"html": "<p>", "json": {"depth": 7}}),
        (None, {"summary": "s"}),
    ]
    for _ in range(2):
        for number, (schema, formats) in enumerate(dags):
            columns = (
                columns_of("document") if schema is None else ResultSchema.of(schema).columns("document")
            )
            item = {"metadata": page(1)["metadata"], **formats}
            path = f"{tmp_path}/{number}{end}"
            if has_versions:
                Night(number).emit(item).write(path, columns)
            else:
                with OutputFile(path, columns) as file:
                    file.write([item])
            load(path, result_schema=schema, add_columns=True)
    assert database.rows("pages", *shown) == [("a", "<p>", "north", 7)]


@on_sqlite
@each_row("end", [".jsonl", ".parquet", ".csv"], before=drop)
def test_searches_of_two_sources_leave_each_other_s_columns_alone(
    database: Target, tmp_path: Path, end: str
) -> None:
    found = {"url": ONE, "title": "t", "position": 1}
    for _ in range(2):
        for more in ({"snippet": "s", "date": "d"}, {"description": "w"}, {"imageUrl": "i", "imageWidth": 7}):
            with OutputFile(f"{tmp_path}/found{end}", columns_of("search")) as file:
                file.write([{**found, **more}])
            load(file.url)
    shown = ("snippet", "date", "description", "image_url", "image_width")
    assert database.rows("pages", *shown) == [("s", "d", "w", "i", 7)]


@pytest.mark.parametrize("database", ["postgresql", "sqlite"], indirect=True)
def test_a_row_whose_key_is_too_long_is_skipped(
    database: Target, written: Any, caplog: pytest.LogCaptureFixture
) -> None:
    long = [{"markdown": "x", "metadata": {"sourceURL": f"{URL}{'long' * 700}{number}"}} for number in (1, 2)]
    path, ti = written([page(1), *long, page(2)]), TaskInstance()
    found = load(path, ti=ti)
    if database.name == "sqlite":
        assert (found["loaded"], ti.xcom) == (4, {})
        return
    assert (found["loaded"], found["refused"]) == (2, 2)
    assert ti.xcom == {"incomplete": [{"kind": "rows_refused", "number": 2, "of": 4}]}
    shown = re.sub(r"\s+", " ", caplog.text)
    assert (
        "2 rows were not loaded into pages, because their key is missing, or too long for an index" in shown
    )
    assert "(2,823 bytes)" in shown
    # The key of a task with changes is cut.
    assert load(Night(1).emit(*long).write(path), "versions")["loaded"] == 2
    assert load(path, "history", TaskInstance(), mode="append")["loaded"] == 2


@pytest.mark.parametrize("database", ["postgresql", "sqlite"], indirect=True)
def test_a_page_of_two_instances_is_refused_from_the_first_load_on(database: Target, tmp_path: Path) -> None:
    paths = [
        Night(1, f"shop/search/{name}").emit(page(1), page(number)).write(f"{tmp_path}/{name}.jsonl")
        for name, number in (("a", 2), ("b", 3))
    ]
    words = r"(?s)river\.example/1.* is in the results of shop/search/a and of shop/search/b.*batch search"
    with pytest.raises(AirflowFailException, match=words):
        load(paths)
    assert tables(database) == []


@pytest.mark.parametrize("database", ["postgresql", "sqlite"], indirect=True)
def test_a_file_of_each_instance_replaces_the_table_each_night(database: Target, tmp_path: Path) -> None:
    for night in (1, 2):
        paths = [
            Night(night, f"shop/crawl/{name}").emit(page(number)).write(f"{tmp_path}/{name}{night}.jsonl")
            for name, number in (("a", 1), ("b", 2))
        ]
        source = Source(paths, TableName(None, "pages"), replace=True)
        connection = database.connect()
        made = PostgreSQL(connection) if database.name == "postgresql" else SQLite(connection)
        load_files(made, source, logging.getLogger(), complete=paths)
    assert len(marks(database)) == 2
