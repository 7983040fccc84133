# SPDX-License-Identifier: Apache-2.0
"""The list of stored forms in docs/contributing/state.md is what the code stores."""

from __future__ import annotations

import ast
import asyncio
import difflib
import inspect
import re
import textwrap
from collections.abc import Iterator
from datetime import datetime, timezone
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages
from typing import Any

import msgspec
import pytest
from airflow.triggers.base import BaseTrigger

from airflow_provider_webdata import __version__, states, triggers, waiting
from airflow_provider_webdata.api.models import MonitorCheck
from airflow_provider_webdata.base.links import LINKS
from airflow_provider_webdata.get_provider_info import get_provider_info
from airflow_provider_webdata.inbox.reader import Delivery
from airflow_provider_webdata.inbox_server.storage.tables import VERSION_TABLE, metadata
from airflow_provider_webdata.plugin import WebDataPlugin
from airflow_provider_webdata.policies.retry import WebDataRetryPolicy
from airflow_provider_webdata.results.changes.pages import Page
from airflow_provider_webdata.results.changes.snapshots import Emitter, Header
from airflow_provider_webdata.runs.billed_response import _Response
from airflow_provider_webdata.runs.searches.answer_files import _AmbiguousCall, _Answer
from airflow_provider_webdata.states.credits import Credits, Entry
from airflow_provider_webdata.states.stored import Stored
from airflow_provider_webdata.states.task_record import KEY, PlanSummary, Source, Started, TaskRecord
from airflow_provider_webdata.triggers.events import WebDataMonitorCheckEventTrigger, payload_of
from airflow_provider_webdata.waiting.streams.check_stream import cursor_behind
from airflow_provider_webdata.waiting.streams.webhook_stream import cursor_at
from tests.support.snippets import ROOT, snippets

PACKAGE = "airflow_provider_webdata"
PAGE = "docs/contributing/state.md"
NOON = datetime(2026, 1, 31, 12, tzinfo=timezone.utc)
DELIVERY = Delivery(
    id=7, size=2, received_at=NOON.isoformat(), position=5, key="key", event="crawl.completed", job_id="job",
    monitor_id="monitor", success=True, body=msgspec.Raw(b"{}"),
)  # fmt: skip
RECORD: dict[str, type[msgspec.Struct]] = {
    f"task state {KEY}": TaskRecord,
    f"task state {KEY}: started": Started,
    f"task state {KEY}: plan": PlanSummary,
    f"task state {KEY}: sources": Source,
    f"task state {KEY}: credits": Credits,
    f"task state {KEY}: credits: an entry": Entry,
}
"""The record of a task, and the structs in it."""
NOT_STORED = {"webdata_card", "webdata_conn_id", "webdata_default", "webdata_task"}
IN_TASKS = (
    *("base", "common", "hooks", "operators", "policies", "runs", "sensors", "toolsets", "transfers"),
    *("triggers", "waiting"),
)
"""The rooms whose code runs in tasks and triggers."""


def struct(cls: type[msgspec.Struct]) -> list[str]:
    """Return the fields of a struct with types and defaults, by their stored names."""
    kinds = {
        name: kind for base in reversed(cls.__mro__) for name, kind in inspect.get_annotations(base).items()
    }
    required = len(cls.__struct_fields__) - len(cls.__struct_defaults__)
    made = [one.factory() if hasattr(one, "factory") else one for one in cls.__struct_defaults__]
    defaults = [inspect.Parameter.empty] * required + made
    fields = zip(cls.__struct_fields__, cls.__struct_encode_fields__, defaults, strict=True)
    return [field(stored, kinds[name], default) for name, stored, default in fields]


def arguments(cls: type) -> list[str]:
    """Return the arguments of a class with types and defaults."""
    # From 3.4 on, Airflow stores the queue separately; older versions have none.
    parameters = [one for one in inspect.signature(cls).parameters.values() if one.name != "queue"]
    return [field(one.name, one.annotation, one.default) for one in parameters]


def items(cls: type) -> list[str]:
    """Return the items of a `TypedDict` with types."""
    return [field(name, kind.__forward_arg__) for name, kind in cls.__annotations__.items()]


def field(name: str, kind: str, default: Any = inspect.Parameter.empty) -> str:
    kind = kind.strip('"')
    return f"{name}: {kind}" if default is inspect.Parameter.empty else f"{name}: {kind} = {default!r}"


def defined_in(room: Any, base: type) -> list[type]:
    """Return the subclasses of a class that the modules of a package define, in the order of their names."""
    modules = [import_module(module.name) for module in walk_packages(room.__path__, f"{room.__name__}.")]
    found = {
        cls
        for module in modules
        for cls in vars(module).values()
        if inspect.isclass(cls) and issubclass(cls, base) and cls.__module__ == module.__name__
    }
    return sorted(found - {base}, key=lambda cls: f"{cls.__module__}.{cls.__name__}")


def path_of(cls: type) -> str:
    return f"{cls.__module__}.{cls.__name__}".removeprefix(f"{PACKAGE}.")


def by_path() -> Iterator[tuple[str, list[str]]]:
    """Yield what is stored or configured by path or name alone."""
    info = get_provider_info()
    (kind,) = info["connection-types"]
    yield "retry policy", [WebDataRetryPolicy().serialize()["__type"]]
    yield "DB managers", info["db-managers"]
    yield "connection type", [f"{kind['connection-type']}: {kind['hook-class-name']}"]
    yield "macros", [f"macros.{WebDataPlugin.name}.{macro.__name__}" for macro in WebDataPlugin.macros]
    yield "connection: extra fields", [*kind["conn-fields"]]
    options = info["config"]["webdata"]["options"]
    yield "section [webdata]", [f"{name}: {option['type']}" for name, option in options.items()]


def of_waits() -> Iterator[tuple[str, list[str]]]:
    """Yield the triggers, and the values that their arguments and events are made of."""
    for cls in defined_in(triggers, BaseTrigger):
        if not inspect.isabstract(cls):
            yield f"trigger {path_of(cls)}", arguments(cls)
    for cls in [*defined_in(states, Stored), *defined_in(waiting, Stored)]:
        yield f"value {path_of(cls)}", struct(cls)


def of_attempts() -> Iterator[tuple[str, list[str]]]:
    """Yield the records in the task state store and the asset state store."""
    for name, cls in RECORD.items():
        yield name, struct(cls)
    yield "task state webdata_paid, and the file of a response: JSON text", items(_Response)
    yield "batch search: the file of an answer", items(_Answer)
    yield "batch search: the file of a call of unknown outcome", items(_AmbiguousCall)
    yield "asset state: after a delivery", [*cursor_at(DELIVERY)]
    yield (
        "asset state: after a check",
        [*cursor_behind({"after": NOON.isoformat(), "ids": []}, "check", NOON)],
    )


def of_results() -> Iterator[tuple[str, list[str]]]:
    """Yield the links and events that DAGs read, and the files. Columns and XComs have pages of their own."""
    yield "XCom of links", [f"{link.xcom_key}: {link.name}" for link in LINKS]
    check = MonitorCheck.model_validate({"id": "check", "monitorId": "monitor", "status": "completed"})
    trigger = WebDataMonitorCheckEventTrigger("stored", "monitor")
    found: Any = ("monitor", (check, None, "polling"))
    payload = asyncio.run(trigger._payload(found))
    assert payload is not None
    yield "asset event of a watched check", [*payload]
    yield "asset event of a watched delivery", [*payload_of("stored", DELIVERY)]
    yield "snapshot of changes: header", struct(Header)
    yield "snapshot of changes: a run that emitted pages", struct(Emitter)
    yield "snapshot of changes: a page, an array", struct(Page)


def of_the_inbox() -> Iterator[tuple[str, list[str]]]:
    """Yield the tables."""
    yield "table with the revision", [VERSION_TABLE]
    for name, table in metadata.tables.items():
        yield f"table {name}", [f"{column.name}: {column.type}" for column in table.columns]


def stored() -> list[str]:
    """Return the lines of the list."""
    lines = []
    for part in (by_path, of_waits, of_attempts, of_results, of_the_inbox):
        for name, fields in part():
            # A field is not broken over lines.
            text = " ".join(f"{field},".replace(" ", "\N{NO-BREAK SPACE}") for field in fields).rstrip(",")
            wrapped = textwrap.wrap(text, 116, break_long_words=False)
            lines += [name, *(f"    {line}".replace("\N{NO-BREAK SPACE}", " ") for line in wrapped)]
    return lines


def test_the_list_is_what_the_code_stores() -> None:
    """Add a new form, and think of installations with the old one before you change a line."""
    (listed,) = snippets(ROOT / PAGE, "text")
    difference = difflib.unified_diff(listed.code.splitlines(), stored(), PAGE, "the code", lineterm="", n=0)
    assert not (changes := [*difference]), "\n".join(changes)


RECORDED = Path(__file__).with_name("stored_forms")
"""The lists of releases, by their versions."""
NEEDS_DEFAULTS = ("trigger ", "value ", "task state ")
"""The forms that an older version may have written without a new field."""


def parsed(lines: list[str]) -> dict[str, list[str]]:
    """Return the fields of each form in a list."""
    forms: dict[str, str] = {}
    for line in lines:
        if not line.startswith(" "):
            name, forms[line] = line, ""
        else:
            forms[name] += f" {line.strip()}"
    # A comma within brackets or quotes is no end of a field; each name of a field is followed by a colon or a comma.
    return {name: re.split(r", (?=\w+(?:: |,|$))", fields.strip()) for name, fields in forms.items()}


def broken(old: list[str], new: list[str]) -> list[str]:
    """Return what a later version would no longer load of what an earlier one stored."""
    now = parsed(new)
    found = []
    for name, fields in parsed(old).items():
        if name not in now:
            found.append(f"{name} is missing")
            continue
        found += [f"{name}: {field} is missing" for field in fields if field not in now[name]]
        if name.startswith(NEEDS_DEFAULTS):
            found += [
                f"{name}: {field} needs a default"
                for field in now[name]
                if field not in fields and " = " not in field
            ]
    return found


@pytest.mark.parametrize(
    ("before", "after", "problem"),
    [
        ("kind: JobKind, ", "", "trigger triggers.job.WebDataJobTrigger: kind: JobKind is missing"),
        (
            "cancel_on_kill: bool = False",
            "cancel_on_kill: bool = True",
            "cancel_on_kill: bool = False is missing",
        ),
        (
            "trigger triggers.resume.ResumeTrigger",
            "trigger other",
            "trigger triggers.resume.ResumeTrigger is missing",
        ),
        (
            "    when: float, ",
            "    when: float, who: str, ",
            "triggers.resume.ResumeTrigger: who: str needs a default",
        ),
        ("    when: float, ", "    when: float, who: str = '', ", None),
    ],
)
def test_what_a_later_version_may_change(before: str, after: str, problem: str | None) -> None:
    text = "\n".join(stored())
    changed = text.replace(before, after)
    assert changed != text
    found = broken(text.splitlines(), changed.splitlines())
    assert [one for one in found if problem is None or problem not in one] == []
    assert bool(found) is (problem is not None)


def test_what_releases_stored_is_loaded_and_recorded() -> None:
    """A version whose section of the changelog has a date has a recorded list."""
    now = stored()
    lists = {path.stem: path.read_text(encoding="utf-8").splitlines() for path in RECORDED.glob("*.txt")}
    assert {version: found for version, old in lists.items() if (found := broken(old, now))} == {}
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    released = re.findall(r"^## (\S+) \(\d{4}-\d\d-\d\d\)$", changelog, re.MULTILINE)
    assert {*lists} == {*released}
    if __version__ in released:
        assert lists[__version__] == now


def test_each_key_of_a_record_has_its_type() -> None:
    """A key of the task state store, or of an XCom of a link, is a constant that begins with `webdata_`."""
    keys = {
        node.value
        for room in IN_TASKS
        for file in (ROOT / PACKAGE / room).rglob("*.py")
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant) and re.fullmatch(r"webdata_[a-z]+", str(node.value))
    }
    assert keys - NOT_STORED == {"webdata_paid", *(link.xcom_key for link in LINKS)}


if __name__ == "__main__":
    RECORDED.mkdir(exist_ok=True)
    (RECORDED / f"{__version__}.txt").write_text("\n".join(stored()) + "\n", encoding="utf-8")
