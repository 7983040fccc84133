# SPDX-License-Identifier: Apache-2.0
"""Pages in place of the requested one: what the detector catches of the test pages, and what the documentation says."""

from __future__ import annotations

import re
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_webdata.results.pages.substitutes import RULES, substitute_kind
from tests.unit.results.shown_pages import INSTEAD, PAGES, page

DOCS = Path(__file__).parents[3] / "docs"
GUIDE = (DOCS / "quality.md").read_text(encoding="utf-8")
RULES_PAGE = (DOCS / "contributing" / "substitutes.md").read_text(encoding="utf-8")

MISSED = {
    "blocked by a shop's own words",
    "consent in Polish",
    "soft 404 that redirects to the front page",
    "shell with navigation only",
}
FALSE_ALARMS = {"music single"}


def test_what_is_caught() -> None:
    found = {shown.name: substitute_kind(shown.item) for shown in INSTEAD}
    assert {name for name, kind in found.items() if kind is None} == MISSED
    assert {shown.name: shown.kind for shown in INSTEAD if shown.name not in MISSED} == {
        name: kind for name, kind in found.items() if kind is not None
    }
    assert {shown.name for shown in PAGES if substitute_kind(shown.item) is not None} == FALSE_ALARMS
    caught = len(INSTEAD) - len(MISSED)
    said = f"catches {caught} of {len(INSTEAD)} and raises {len(FALSE_ALARMS)} false alarm on {len(PAGES)}"
    assert said in " ".join(GUIDE.split())


def test_each_rule_is_documented_with_its_source() -> None:
    rows = {f"| {rule.kind} | {rule.place} | {rule.source} | `{rule.phrases[0]}`" for rule in RULES}
    assert {row for row in rows if row not in RULES_PAGE} == set()
    assert len(re.findall(r"^\| \w+ \| (?:title|text|html|host) \|", RULES_PAGE, re.MULTILINE)) == len(RULES)


@given(st.text(), st.text(), st.text(), st.text())
def test_any_page_is_judged(title: str, markdown: str, html: str, url: str) -> None:
    substitute_kind(page(title, markdown, html=html, url=url, found=f"https://{url}"))
    substitute_kind(page(title, None, html=html))
