"""The stored data of this version is listed in `tests/stored`, and listed names stay."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import airflow_provider_webdata
from airflow_provider_webdata import __version__
from tests.integration.stored.conftest import RELEASES
from tools.stored import triggers
from tools.stored.forms import COMMAND, differences, forms

PACKAGE = Path(airflow_provider_webdata.__file__).parent
GROWING = ("paths", "connection", "options", "asset_events", "columns", "xcom")
"""Sections with names that DAGs, `airflow.cfg`, and other files use: names are added, none is removed."""


@pytest.fixture(scope="module")
def now() -> dict[str, Any]:
    return forms()


def test_all_stored_data_is_listed(now: dict[str, Any]) -> None:
    assert __version__ in RELEASES, f"tests/stored/{__version__}.json is missing: run {COMMAND}"
    lost, new = differences(RELEASES[__version__], now)
    assert not lost, f"this code stores differently, or no longer, what {__version__} stores: {lost}"
    assert not new, f"this is stored and not listed: {new}. Add it: {COMMAND}"


def test_names_stay(stored: dict[str, Any], now: dict[str, Any]) -> None:
    lost, _ = differences({name: stored[name] for name in GROWING}, now)
    assert lost == []


def test_columns_keep_their_order(stored: dict[str, Any], now: dict[str, Any]) -> None:
    for kind, columns in stored["columns"].items():
        assert [name for name in now["columns"][kind] if name in columns] == [*columns]


def test_every_record_of_the_task_state_store_is_listed(now: dict[str, Any]) -> None:
    """The source names the key of a record where it creates the record."""
    source = "\n".join(file.read_text() for file in PACKAGE.rglob("*.py"))
    keys = set(re.findall(r'(?:Intent|TaskState)\([\w.]+, "(\w+)"', source)) | set(
        re.findall(r'^_KEY = "(webdata_\w+)"', source, re.M)
    )
    assert keys == set(now["task_state"])
    pushed = set(re.findall(r'xcom_push\("(\w+)"', source))
    assert pushed <= {key for task in now["xcom"].values() for key in task}


def test_an_argument_without_an_example_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    needed, more = triggers.TRIGGERS["job.WebDataJobTrigger"]
    without = {name: value for name, value in more.items() if name != "reports"}
    monkeypatch.setitem(triggers.TRIGGERS, "job.WebDataJobTrigger", (needed, without))
    with pytest.raises(LookupError, match=r"reports of job\.WebDataJobTrigger: set a value other than"):
        list(triggers.example_triggers())


def test_a_trigger_without_an_example_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(triggers.TRIGGERS, "job.WebDataJobTrigger")
    with pytest.raises(LookupError, match=r"job\.WebDataJobTrigger: add its arguments"):
        list(triggers.example_triggers())


@pytest.mark.parametrize(
    ("before", "after", "lost", "new"),
    [
        ({"a": 1}, {"a": 1}, [], []),
        ({"a": 1}, {"a": 2}, ["/a: 1 became 2"], []),
        ({"a": {"b": 1}}, {"a": {"c": 1}}, ["/a/b is gone"], ["/a/c"]),
        ({"a": {"b": 1}}, {"a": {"b": 1, "c": {}}, "d": 2}, [], ["/d", "/a/c"]),
        ({"a": [1]}, {"a": [1, 2]}, ["/a: [1] became [1, 2]"], []),
        ({"a": {}}, {"a": 1}, ["/a: {} became 1"], []),
    ],
    ids=["same", "changed", "renamed", "added", "list", "type"],
)
def test_differences(before: Any, after: Any, lost: list[str], new: list[str]) -> None:
    assert differences(before, after) == (lost, new)
