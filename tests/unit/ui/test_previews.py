# SPDX-License-Identifier: Apache-2.0
"""The first rows of results and the checks of data, as XComs hold them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from airflow_provider_webdata.airflow_db.tasks import TaskName
from airflow_provider_webdata.results.lineage import Assertion
from airflow_provider_webdata.results.pages.preview import preview_row
from airflow_provider_webdata.ui.previews import preview
from airflow_provider_webdata.ui.quality import quality_of
from airflow_provider_webdata.ui.tasks import TaskSummary

NESTED = json.loads('{"data":' * 90 + "1" + "}" * 90)
NAME = TaskName("shop", "scheduled__2026-01-31", "crawl")
DOCUMENT = {
    "markdown": "# A\n\nb",
    "metadata": {"sourceURL": "https://shop.example/", "title": "A", "scrapeId": "x"},
}


@pytest.mark.parametrize(
    ("value", "columns", "first"),
    [
        ([DOCUMENT] * 9, ["url", "title", "markdown"], ["https://shop.example/", "A", "# A b"]),
        (DOCUMENT, ["url", "title", "markdown"], ["https://shop.example/", "A", "# A b"]),
        (["https://shop.example/"], ["value"], ["https://shop.example/"]),
        ({"data": {"web": [{"url": "u", "id": 1}]}}, ["url"], ["u"]),
        ({"data": [{"price": 1.5}, {"name": "n", "price": 2}]}, ["name", "price"], ["", "1.5"]),
        ({"status": "completed", "data": {"title": "One answer"}}, ["title"], ["One answer"]),
        ({"pages": [{"status": "new", "url": "u"}], "summary": {}}, ["url", "status"], ["u", "new"]),
        ([{"text": "x" * 999}], ["text"], ["x" * 160 + "…"]),
        ([{"paid": 1, "scrapeId": "x", "job_id": "y"}], ["paid"], ["1"]),
        (NESTED, ["data"], ["1"]),
    ],
)
def test_preview(value: Any, columns: list[str], first: list[str]) -> None:
    found = preview(value)
    assert found is not None
    assert (found.columns, found.rows[0]) == (columns, first)
    assert len(found.rows) <= 5


def test_schema() -> None:
    rows = [
        {
            "url": "u",
            "price": 1,
            "paid": None,
            "tags": ["a"],
            "page": {"a": 1},
            "at": "2026-01-31",
            "none": None,
        },
        {"url": "", "price": 2.5, "paid": True, "mixed": [], "at": "2026-01-31T10:00:00.1Z"},
        {"id": "20260131", "mixed": "2026-01-31"},
        {"id": "2026-01-31"},
    ]
    types = {
        "url": "text",
        "price": "number",
        "paid": "boolean, nullable",
        "tags": "list",
        "page": "object",
        "at": "time",
        "none": "null",
        "mixed": "list or time",
        "id": "text",
    }
    for value in (rows, [preview_row(row) for row in rows]):
        found = preview(value)
        assert found is not None
        assert found.schema == types


@pytest.mark.parametrize("value", [None, 7, "text", [], {}, {"path": "s3://bucket/a"}, {"data": []}])
def test_nothing_to_preview(value: Any) -> None:
    assert preview(value) is None


@pytest.mark.parametrize(
    ("value", "count"),
    [
        ({"web": [{}] * 5, "news": [{}] * 3}, 8),
        ({"data": {"web": [{}], "images": [{}, {}]}}, 3),
        ({"count": 4, "data": [{}]}, 4),
        ([1] * 7, 7),
        ([], 0),
        ({"web": [], "warning": "x"}, 0),
        ({}, None),
        ({"path": "s3://bucket/a"}, None),
    ],
)
def test_count(value: Any, count: int | None) -> None:
    assert TaskSummary(NAME, "success", None, pushed={"return_value": value}).count == count
    shown = preview(value)
    assert (shown.total if shown else 0) == (1 if count == 4 else count or 0)


@pytest.mark.parametrize(
    ("fix", "command"),
    [
        ("Check it with `airflow webdata doctor`", "airflow webdata doctor"),
        ("Run `airflow webdata inbox show 5`", "airflow webdata inbox show 5"),
        ("Run `airflow db migrate`", "airflow db migrate"),
        *(
            (f"Run `airflow {text}`", "")
            for text in ("db reset", "webdata doctor; id", "webdata doctor\nid", "webdata $(id)")
        ),
        ("run: airflow webdata doctor && id", ""),
    ],
)
def test_a_command_is_one_of_this_package(fix: str, command: str) -> None:
    """Any task may push an XCom of this name."""
    pushed = {"failure": {"message": "`airflow webdata doctor`", "fix": fix}}
    failure = TaskSummary(NAME, "failed", None, pushed=pushed).failure
    assert failure is not None
    assert failure.command == command


def checked(**pushed: Any) -> Any:
    facts = TaskSummary(NAME, "success", None, pushed=pushed)
    return quality_of(
        facts, lambda: [(NAME.run_id, {"quality": {"items": count}}) for count in (4, "odd", True, 2)]
    )


def test_quality() -> None:
    failed = Assertion("coverage", "json.price", "at least 0.95", "0.5 (1 of 2)", False)._asdict()
    facts = {
        "items": 2,
        "coverage": {"json.price": 0.5, "odd": "x"},
        "blocked": {"login wall": 1},
        "failed": [failed],
    }
    found = checked(quality=facts, validation={"checked": 2, "invalid": 1})
    assert not found.is_rejected
    [failed] = found.failed
    assert failed[:3] == ("coverage json.price", "at least 0.95", "0.5 (1 of 2)")
    assert [(one.name, one.value) for one in found.coverage] == [("json.price", 0.5)]
    assert found.blocked == {"login wall": 1}
    assert found.invalid == (1, 2)
    assert ">4</text>" in found.chart
    assert checked(quality_rejected=facts).is_rejected


@pytest.mark.parametrize(
    "odd",
    [
        7,
        [],
        "text",
        {"failed": 7, "coverage": [], "blocked": None},
        {"failed": [None, 3], "blocked": {"a": 10**400, "b": 0.5}},
    ],
)
def test_odd_quality(odd: Any) -> None:
    assert (checked(quality=odd) is not None) is isinstance(odd, dict)
    assert checked(validation=odd) is None
