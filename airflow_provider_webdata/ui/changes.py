# SPDX-License-Identifier: Apache-2.0
"""Changes of pages: values that checks of monitors compared, and counts of tasks with `changes`."""

from __future__ import annotations

import json
from collections import Counter
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from airflow_provider_webdata.airflow_db.changed_tasks import changed_tasks
from airflow_provider_webdata.ui.diffs import lines_of, numbers_of, values_of
from airflow_provider_webdata.ui.rendering import number

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from datetime import datetime

    from airflow_provider_webdata.airflow_db.tasks import TaskName
    from airflow_provider_webdata.api.models import MonitorCheckPage

MAX_TASKS = 500
"""Maximum number of tasks with `changes` that are read."""
COUNTS = ("new", "changed", "removed")
_CHANGES = "changes"
_PATH = "path"
_TEXT = "text"
"""Name of the field of a page whose text changed."""
_MAX_COUNT = 2**53
_MAX_IN_SENTENCE = 100
"""Maximum characters of a value in a sentence."""

Course = dict[tuple[str, str], list[float]]
"""Values of a field over several checks, oldest first, by URL and field."""


class ChangedValue(NamedTuple):
    """A field of a page, before and after a check.

    :param url: URL of the page.
    :param field: path of the value, or `text`.
    :param before: previous value as text; empty: none.
    :param after: current value as text; empty: none.
    :param percent: change of a number, such as `+3.8%`; empty for other values.
    """

    url: str
    field: str
    before: str
    after: str
    percent: str = ""

    @property
    def sentence(self) -> str:
        """The change as one line."""
        before, after = (
            f"{text[:_MAX_IN_SENTENCE]}…" if len(text) > _MAX_IN_SENTENCE else text or "nothing"
            for text in (self.before, self.after)
        )
        change = f"{before} → {after}"
        return f"{self.url} {self.field}: {change}{f' ({self.percent})' if self.percent else ''}"


class ChangedTask(NamedTuple):
    """The newest run of a task that found changes.

    :param task: the task.
    :param at: time of its end.
    :param counts: numbers of pages by `COUNTS`.
    :param path: URL of the file that it wrote; empty: none.
    :param earlier: number of earlier runs with changes.
    """

    task: TaskName
    at: datetime
    counts: dict[str, int]
    path: str
    earlier: int

    @property
    def sentence(self) -> str:
        """The counts as one line."""
        return ", ".join(f"{number(count)} {name}" for name, count in self.counts.items() if count)


def values_in(page: MonitorCheckPage) -> Iterator[ChangedValue]:
    """Yield the changed values of a page in a check; of a page without values, the first lines of its first change."""
    url, numbers, values = page.url or "", numbers_of(page), values_of(page)
    for one in values:
        before, after = numbers.get(one.path, (None, None))
        if before is None or after is None:
            texts = _on_one_line(one.before), _on_one_line(one.after)
        else:
            texts = _exact(before), _exact(after)
        yield ChangedValue(url, one.path, *texts, one.difference.percent if one.difference else "")
    if not values:
        first: dict[str, str] = {}
        for line in lines_of(page):
            if line.kind in ("removed", "added"):
                if text := _on_one_line(line.text[1:]):
                    first.setdefault(line.kind, text)
            elif first:
                break
        if first:
            yield ChangedValue(url, _TEXT, first.get("removed", ""), first.get("added", ""))


def courses_of(checks: Iterable[Sequence[MonitorCheckPage]]) -> Course:
    """Return the values of numeric fields over several checks.

    :param checks: changed pages of each check, oldest first.
    """
    found: Course = {}
    for pages in checks:
        for page in pages:
            for field, (before, after) in numbers_of(page).items():
                course = found.setdefault((page.url or "", field), [] if before is None else [before])
                course.append(after)
    return found


def changed_summaries(since: datetime) -> list[ChangedTask]:
    """Return the newest run with changes of each task, newest first. Blocks."""
    newest: dict[tuple[str, str], ChangedTask] = {}
    earlier: Counter[tuple[str, str]] = Counter()
    for task, at, pushed in changed_tasks(since, _CHANGES, (_CHANGES, _PATH), MAX_TASKS):
        counts = _counts(pushed.get(_CHANGES))
        if not any(counts.values()):
            continue
        place = task.dag_id, task.task_id
        if place in newest:
            earlier[place] += 1
        else:
            path = pushed.get(_PATH)
            newest[place] = ChangedTask(task, at, counts, path if isinstance(path, str) else "", 0)
    return [one._replace(earlier=earlier[place]) for place, one in newest.items()]


def _counts(value: Any) -> dict[str, int]:
    # Any task may push an XCom of that name.
    found = value if isinstance(value, dict) and "emit" in value else {}
    return {
        name: count for name in COUNTS if type(count := found.get(name)) is int and 0 <= count < _MAX_COUNT
    }


def _exact(value: float) -> str:
    """Format a number with all its digits: of a price, each cent counts."""
    return f"{value:,.12g}"


def _on_one_line(text: str) -> str:
    """Return a value on one line; JSON without its indentation."""
    if text.startswith(("{", "[")):
        with suppress(ValueError, RecursionError):
            text = json.dumps(json.loads(text), ensure_ascii=False)
    return " ".join(text.split())
