# SPDX-License-Identifier: Apache-2.0
"""The results of a check, in each form that the service has."""

from __future__ import annotations

from typing import Any

import pytest

from airflow_provider_webdata.api.models import MonitorCheckPage
from airflow_provider_webdata.ui.diffs import (
    MAX_LINES,
    Difference,
    Line,
    Value,
    Word,
    WordBudget,
    lines_of,
    numbers_of,
    screenshot_of,
    side_by_side,
    values_of,
)

UNIFIED = "--- a\n+++ b\n@@ -1 +1 @@\n-8 EUR\n+9 EUR\n same"
TREE = {"files": [{"chunks": [{"content": "@@ -1 +1 @@", "changes": [
    {"type": "del", "content": "-8 EUR"}, {"type": "add", "content": "+9 EUR"}, {"type": "normal", "content": " same"}
]}]}]}  # fmt: skip
COLOURED = [
    Line("place", "@@ -1 +1 @@"),
    Line("removed", "-8 EUR"),
    Line("added", "+9 EUR"),
    Line("same", " same"),
]
ODD_TREE = {"files": [{"chunks": [{"changes": [7, {"type": 7}]}]}, 7]}
MAP = {"price": {"previous": 8, "current": 9}, "name": {"previous": None, "current": "A"}}
SIDE_BY_SIDE = [Value("price", "8", "9", Difference("+1", "+12.5%")), Value("name", "null", "A", None)]


@pytest.mark.parametrize(
    ("diff", "lines", "values"),
    [
        ({"text": UNIFIED}, [Line("place", "--- a"), Line("place", "+++ b"), *COLOURED], []),
        (UNIFIED, [Line("place", "--- a"), Line("place", "+++ b"), *COLOURED], []),
        ({"json": TREE}, COLOURED, []),
        ({"json": MAP}, [], SIDE_BY_SIDE),
        ({"text": UNIFIED, "json": MAP}, [Line("place", "--- a"), Line("place", "+++ b"), *COLOURED], SIDE_BY_SIDE),
        (None, [], []),
        ({"json": {"files": "none"}}, [], []),
        ({"json": ODD_TREE}, [Line("place", ""), Line("same", "")], []),
        ({"json": [1]}, [], []),
        ({"json": {"price": 8}}, [], []),
    ],
)  # fmt: skip
def test_diffs(diff: Any, lines: list[Line], values: list[Value]) -> None:
    page = MonitorCheckPage.model_validate({"diff": diff})
    assert lines_of(page) == lines
    assert values_of(page) == values


def test_a_long_diff_is_cut() -> None:
    page = MonitorCheckPage.model_validate({"diff": {"text": "+x\n" * (MAX_LINES + 7)}})
    assert len(lines_of(page)) == MAX_LINES + 1
    assert lines_of(page)[-1].text == "… and 7 more lines"


@pytest.mark.parametrize(
    ("snapshot", "found"),
    [
        ({"screenshot": "https://cdn.example/a.png"}, "https://cdn.example/a.png"),
        ({"screenshot": "data:image/png;base64,AA=="}, "data:image/png;base64,AA=="),
        ({"screenshot": "javascript:alert(1)"}, None),
        ({"screenshot": "data:text/html,x"}, None),
        ({"screenshot": 7}, None),
        ({"json": {}}, None),
        (None, None),
    ],
)
def test_screenshots(snapshot: Any, found: str | None) -> None:
    assert screenshot_of(MonitorCheckPage.model_validate({"snapshot": snapshot})) == found


def test_lines_stand_side_by_side_with_changed_words_marked() -> None:
    """A line that was added in place of a removed one is beside it."""
    lines = [
        "@@ -1 +1 @@",
        " # Plans",
        "-Basic 8.50 EUR",
        "+Basic 8.05 EUR",
        "+More",
        " ",
        "-Gone",
        "-8 EUR",
        "+9 EUR",
    ]
    kinds = {"@": "place", " ": "same", "-": "removed", "+": "added"}
    rows = side_by_side([Line(kinds[line[0]], line) for line in lines], WordBudget())

    def text(words: list[Word] | None) -> str | None:
        return (
            None
            if words is None
            else "".join(f"[{word.text}]" if word.differs else word.text for word in words)
        )

    assert [(row.kind, text(row.before), text(row.after)) for row in rows] == [
        ("place", "@@ -1 +1 @@", "@@ -1 +1 @@"),
        ("same", "# Plans", "# Plans"),
        ("changed", "Basic [8.50] EUR", "Basic [8.05] EUR"),
        ("changed", None, "[More]"),
        ("same", "", ""),
        ("changed", "[Gone]", "[9 EUR]"),
        ("changed", "[8 EUR]", None),
    ]


def test_the_words_of_hostile_lines_are_not_compared() -> None:
    """Each pair takes more than a second; a page may have 250, and a response 25 pages."""
    costly = [Line("removed", "-" + ".,;" * 333), Line("added", "+" + "..,;;," * 166)]
    prose = " ".join(f"word{number % 50} is" for number in range(60))
    usual = [Line("removed", f"-{prose} old"), Line("added", f"+{prose} new")]
    budget, same = WordBudget(), Line("same", " ")
    rows = [*side_by_side([*costly, same, *usual] * 20, budget)]
    marked = [len(row.before or ()) for row in rows if row.kind == "changed"]
    assert marked == [1, 2] * 20


def test_many_lines_of_distinct_words_exhaust_the_budget() -> None:
    """Every second word differs: each pair takes two milliseconds, and a response may have thousands."""
    signs = [chr(0x2190 + number) for number in range(100)]
    lines = [Line("removed", "-" + "a".join(signs)), Line("added", "+" + "b".join(signs)), Line("same", " ")]
    rows = [*side_by_side(lines * 1_000, WordBudget())]
    assert 100 < sum(len(row.before or ()) > 1 for row in rows) < 500


@pytest.mark.parametrize(
    ("before", "after", "change"),
    [
        (10, 12.5, "+2.5 (+25.0%)"),
        (0.1, 0.3, "+0.2 (+200.0%)"),
        (0, 3, "+3"),
        ("$12.50", "$10.00", "-2.50 (-20.0%)"),
        ("1,299.00 EUR", "999.00 EUR", "-300.00 (-23.1%)"),
        ("$5", "EUR 5", ""),
        # Decimals or thousands?
        ("1.299 EUR", "999 EUR", ""),
        ("2 for 5 EUR", "2 for 6 EUR", ""),
        # A sign, or a hyphen?
        ("-5 °C", "-3 °C", ""),
        (True, False, ""),
        (10**400, 1, ""),
        (1e-9, 1e299, "+1e+299"),
        ("x", "y", ""),
    ],
)
def test_the_difference_of_two_values(before: Any, after: Any, change: str) -> None:
    page = MonitorCheckPage(
        url="https://a.example/", diff={"json": {"p": {"previous": before, "current": after}}}
    )
    assert str(values_of(page)[0].difference or "") == change


def test_numbers_of_a_check() -> None:
    """Only what can be drawn; a value may have been no number before."""
    changes = {
        "price": {"previous": 8, "current": 9.5},
        "stock": {"previous": None, "current": 4},
        "name": {"previous": "A", "current": "B"},
        "flag": {"previous": False, "current": True},
        "large": {"previous": 1, "current": 10**400},
        "odd": 7,
    }
    page = MonitorCheckPage(url="https://shop.example/", status="changed", diff={"json": changes})
    assert numbers_of(page) == {"price": (8, 9.5), "stock": (None, 4)}
