# SPDX-License-Identifier: Apache-2.0
"""Findings of a monitor check for display: colored diff lines, and changed values side by side."""

from __future__ import annotations

import difflib
import json
import math
import re
from collections import Counter
from decimal import Decimal
from typing import TYPE_CHECKING, Any, NamedTuple

from airflow_provider_webdata.api.models import PageDiff
from airflow_provider_webdata.ui.charts import is_finite

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from airflow_provider_webdata.api.models import MonitorCheckPage

MAX_LINES = 500
MAX_PICTURE = 2**20
"""Maximum characters of a screenshot's URL, which may be a `data:` URL."""
_MAX_MARKED = 2000
"""Maximum characters of two lines whose words are compared."""
_MAX_AMOUNT = 40
_LONG = 10**15
"""Lowest number that is not written with all its digits."""
MAX_STEPS = 10**8
"""Default of `WordBudget`: about a second."""
_STEPS_OF_WORD = 10
# A number with its separators is one word, such as 12.50 or 1,299.
_WORD = re.compile(r"\s+|\d+(?:[.,]\d+)+|\w+|[^\w\s]")
# A number in a text, such as $1,299.00. Three digits after a point may be decimals or thousands.
_NUMBER = re.compile(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+\.(?!\d{3}(?!\d))\d+|\d+")
_SIGNS = ("-", "\N{MINUS SIGN}", "\N{EN DASH}")
_KINDS = {"+": "added", "-": "removed", "@": "place"}
_CHANGE_KINDS = {"add": "added", "del": "removed"}


class Line(NamedTuple):
    """A line of a diff.

    :param kind: `added`, `removed`, `place` or `same`.
    :param text: the line with its sign.
    """

    kind: str
    text: str


class Word(NamedTuple):
    """Adjacent words of a line.

    :param text: the words, with the blanks between them.
    :param differs: whether the other side lacks them.
    """

    text: str
    differs: bool


class WordBudget:
    """A limit on the comparison of words, which all diffs of a response share.

    Comparing lines of repeated words takes cubic time, and the sites that are watched write the lines.

    :param steps: maximum number of steps, estimated from the words and the equal ones among them.
    """

    def __init__(self, steps: int = MAX_STEPS) -> None:
        self._left = steps

    def covers(self, before: list[str], after: list[str]) -> bool:
        """Deduct the comparison of two lines; return False if the rest does not suffice."""
        counts = Counter(after)
        equal = sum(counts[word] for word in before)
        steps = (equal + _STEPS_OF_WORD * len(before)) * min(len(before), len(after))
        if steps > self._left:
            return False
        self._left -= steps
        return True


class SideBySide(NamedTuple):
    """A row of a diff: a line before and after.

    :param kind: `place`, `same`, or `changed`.
    :param before: words before; None if the line was added.
    :param after: words after; None if the line was removed.
    """

    kind: str
    before: list[Word] | None
    after: list[Word] | None


class Difference(NamedTuple):
    """The difference of two numbers.

    :param amount: such as `+2.50`.
    :param percent: such as `+25.0%`; empty if the first number is 0, or too small to compare.
    """

    amount: str
    percent: str

    def __str__(self) -> str:
        return f"{self.amount} ({self.percent})" if self.percent else self.amount


class Value(NamedTuple):
    """A changed value.

    :param path: path in the extracted JSON.
    :param before: previous value as JSON.
    :param after: current value as JSON.
    :param difference: of two numbers, also in texts with one number; None for other values.
    """

    path: str
    before: str
    after: str
    difference: Difference | None


def lines_of(page: MonitorCheckPage) -> list[Line]:
    """Return at most `MAX_LINES` lines of a page's diff, and one that counts the others; empty without a diff."""
    diff = page.diff
    text = diff if isinstance(diff, str) else diff.text if isinstance(diff, PageDiff) else None
    if text:
        lines = [Line(_kind(line), line) for line in text.splitlines()]
    else:
        lines = list(_tree_lines(diff.json_)) if isinstance(diff, PageDiff) else []
    if len(lines) > MAX_LINES:
        return [*lines[:MAX_LINES], Line("place", f"… and {len(lines) - MAX_LINES} more lines")]
    return lines


def side_by_side(lines: Sequence[Line], budget: WordBudget) -> Iterator[SideBySide]:
    """Yield the lines of a diff in two columns: removed lines beside the lines that were added in their place.

    :param budget: when it is exhausted, lines count as different in all words.
    """
    removed: list[str] = []
    added: list[str] = []
    for line in lines:
        if line.kind == "place" and line.text.startswith(("---", "+++")):
            continue
        if line.kind == "added":
            added.append(line.text[1:])
            continue
        if line.kind != "removed" or added:
            yield from _paired(removed, added, budget)
            removed, added = [], []
        if line.kind == "removed":
            removed.append(line.text[1:])
        else:
            words = [Word(line.text if line.kind == "place" else line.text[1:], False)]
            yield SideBySide(line.kind, words, words)
    yield from _paired(removed, added, budget)


def _paired(removed: list[str], added: list[str], budget: WordBudget) -> Iterator[SideBySide]:
    for index in range(max(len(removed), len(added))):
        before = removed[index] if index < len(removed) else None
        after = added[index] if index < len(added) else None
        if before is None or after is None:
            yield SideBySide(
                "changed",
                None if before is None else [Word(before, True)],
                None if after is None else [Word(after, True)],
            )
        else:
            yield SideBySide("changed", *_marked(before, after, budget))


def _marked(before: str, after: str, budget: WordBudget) -> tuple[list[Word], list[Word]]:
    is_short = len(before) + len(after) <= _MAX_MARKED
    one, other = (_WORD.findall(before), _WORD.findall(after)) if is_short else ([], [])
    if not is_short or not budget.covers(one, other):
        return [Word(before, True)], [Word(after, True)]
    first, second = [], []
    for kind, start, end, other_start, other_end in difflib.SequenceMatcher(
        None, one, other, autojunk=False
    ).get_opcodes():
        if end > start:
            first.append(Word("".join(one[start:end]), kind != "equal"))
        if other_end > other_start:
            second.append(Word("".join(other[other_start:other_end]), kind != "equal"))
    return first, second


def values_of(page: MonitorCheckPage) -> list[Value]:
    """Return the changed values of a check that compares JSON."""
    tree = page.diff.json_ if isinstance(page.diff, PageDiff) else None
    if not isinstance(tree, dict) or "files" in tree:
        return []
    return [
        Value(
            path,
            _shown(before := change.get("previous")),
            _shown(after := change.get("current")),
            _difference_in(before, after),
        )
        for path, change in list(tree.items())[:MAX_LINES]
        if isinstance(change, dict)
    ]


def difference(before: float | Decimal, after: float | Decimal) -> Difference:
    """Return the difference of two numbers.

    :param before: finite.
    :param after: finite.
    """
    # The shortest text of a float is what the page says.
    before, after = Decimal(str(before)), Decimal(str(after))
    change = after - before
    ratio = float(change / abs(before)) if before else math.inf
    return Difference(
        f"{change:+,f}" if abs(change) < _LONG else f"{float(change):+.6g}",
        f"{ratio:+,.1%}" if abs(ratio) < _LONG else "",
    )


def _difference_in(before: Any, after: Any) -> Difference | None:
    if is_finite(before) and is_finite(after):
        return difference(before, after)
    if isinstance(before, str) and isinstance(after, str):
        one, other = _amount(before), _amount(after)
        # In two currencies, the difference has no meaning.
        if one and other and one[1] == other[1]:
            return difference(one[0], other[0])
    return None


def _amount(text: str) -> tuple[Decimal, list[str]] | None:
    """Return the number in a short text, and the text around it; None without a number or with several."""
    if len(text) > _MAX_AMOUNT or not (found := _NUMBER.search(text)):
        return None
    around = [text[: found.start()], text[found.end() :]]
    # A sign before the number may be a hyphen.
    if around[0].endswith(_SIGNS) or any(any(map(str.isdigit, part)) for part in around):
        return None
    return Decimal(found[0].replace(",", "")), around


def numbers_of(page: MonitorCheckPage) -> dict[str, tuple[float | None, float]]:
    """Return the changed values of a check that are numbers: before, if it was a number, and after, by path."""
    tree = page.diff.json_ if isinstance(page.diff, PageDiff) else None
    if not isinstance(tree, dict) or "files" in tree:
        return {}
    found = {}
    for path, change in list(tree.items())[:MAX_LINES]:
        before, after = (
            value if isinstance(change, dict) and is_finite(value := change.get(name)) else None
            for name in ("previous", "current")
        )
        if after is not None:
            found[path] = before, after
    return found


def screenshot_of(page: MonitorCheckPage) -> str | None:
    """Return the page's screenshot as an http(s) or `data:` URL, or None."""
    snapshot = page.snapshot
    found = snapshot.get("screenshot") if isinstance(snapshot, dict) else None
    if not isinstance(found, str) or len(found) > MAX_PICTURE:
        return None
    return found if found.startswith(("https://", "http://", "data:image/")) else None


def _kind(line: str) -> str:
    if line.startswith(("+++", "---")):
        return "place"
    return _KINDS.get(line[:1], "same")


def _tree_lines(tree: Any) -> list[Line]:
    found = []
    for file in _items(tree, "files"):
        for chunk in _items(file, "chunks"):
            found.append(Line("place", str(chunk.get("content", ""))))
            found += [
                Line(_CHANGE_KINDS.get(str(change.get("type")), "same"), str(change.get("content", "")))
                for change in _items(chunk, "changes")
            ]
    return found


def _items(value: Any, name: str) -> list[dict[str, Any]]:
    found = value.get(name) if isinstance(value, dict) else None
    return [item for item in found if isinstance(item, dict)] if isinstance(found, list) else []


def _shown(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=1)
