# SPDX-License-Identifier: Apache-2.0
"""Rules come from sandbox/docs/service.md, and claims from the source of the tests."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tools import coverage_page as page

SERVICE = """\
# The service
## Search
| Field | Rules |
|---|---|
| <a id="search-query"></a>`query` | at most 500 characters |
### Domains
- <a id="search-domains"></a>Not both.
## Team
Nothing is claimed here.
"""
TESTS = """\
import pytest
pytestmark = pytest.mark.rule("search-query")

@pytest.mark.rule("search-domains", "search-query")
@pytest.mark.parametrize("limit", [pytest.param(1, marks=pytest.mark.rule("search-limit"))])
def test_one(limit): ...

@pytest.mark.rule("team-credits")
class TestTeam:
    async def test_two(self): ...
    def helper(self): ...
"""


@pytest.fixture
def claimed(tmp_path: Path) -> dict[str, list[page.Claim]]:
    for path, text in {
        "tests/unit/test_it.py": TESTS,
        "sandbox/tests/test_emulator.py": '@pytest.mark.rule("search-domains")\ndef test_domains(): ...\n',
    }.items():
        (tmp_path / path).parent.mkdir(parents=True)
        (tmp_path / path).write_text(text)
    return page.claims(tmp_path)


def test_marks_are_read_wherever_they_stand(claimed: dict[str, list[page.Claim]]) -> None:
    assert {rule: [claim.test for claim in claims] for rule, claims in claimed.items()} == {
        "search-query": ["test_one", "TestTeam::test_two"],
        "search-domains": ["test_one", "test_domains"],
        "search-limit": ["test_one"],
        "team-credits": ["TestTeam::test_two"],
    }


def test_the_page_has_the_sections_that_have_rules(claimed: dict[str, list[page.Claim]]) -> None:
    text = page.page(page.sections(SERVICE), claimed)
    assert re.findall(r"^#+ .*", text, re.M) == ["# Coverage", "## Search", "### Domains"]
    row = (
        "| [search-domains](../sandbox/docs/service.md#search-domains) | tests/unit/test_it.py: `test_one` |"
    )
    assert f"{row} sandbox/tests/test_emulator.py: `test_domains` |" in text


@pytest.mark.parametrize(
    ("service", "problem"),
    [
        (SERVICE, "test_one claims search-limit, which is not a rule of sandbox/docs/service.md"),
        (SERVICE + '- <a id="team-queue"></a>', "no test covers team-queue"),
        (SERVICE + '- <a id="search-query"></a>', "two anchors are named search-query"),
        (SERVICE + '- <a id="team"></a>', "two anchors are named team"),
    ],
)
def test_what_is_wrong_is_named(service: str, problem: str, claimed: dict[str, list[page.Claim]]) -> None:
    assert [found for found in page.problems(page.sections(service), claimed) if problem in found]


def test_citations_that_lead_nowhere_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "docs").mkdir()
    page_of_service = (
        "service.md"  # apart from its anchors, or the check of this repository would follow them
    )
    text = f"See docs/{page_of_service}#search, #gone and [it]({page_of_service}#lost)."
    (tmp_path / "docs" / "a.md").write_text(text)
    monkeypatch.setattr(page, "ROOT", tmp_path)
    assert list(page.dead_citations({"search"})) == [
        "docs/a.md:1: sandbox/docs/service.md has no #gone",
        "docs/a.md:1: sandbox/docs/service.md has no #lost",
    ]
