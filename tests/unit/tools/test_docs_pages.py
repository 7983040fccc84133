# SPDX-License-Identifier: Apache-2.0
"""The repository's pages become those of the site, whose links are checked."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tools.docs_site import pages
from tools.docs_site.links import dead_links

INDEX = """\
# Title

Words.

## Start

- [First](first.md): what it is
    - [Below](below.md): part of it

## References

Generated.
"""


def test_the_list_of_all_pages_makes_the_sidebar() -> None:
    contents, toctrees = pages.with_toctrees(
        INDEX, {"reference/hook.md": "# Hook\n", "reference/operators/A.md": "# A\n"}
    )

    assert "- [First](first.md): what it is" in contents
    assert "- [Hook](reference/hook.md)" in contents
    assert "toctree" not in contents
    assert "```{toctree}\n:hidden:\n:caption: Start\n\nFirst <first>\n```" in toctrees
    assert ":caption: References\n\nHook <reference/hook>\n```" in toctrees
    assert pages.nested(contents) == {"first.md": [("Below", "below")]}


def test_the_front_page_has_cards_after_its_introduction() -> None:
    front = pages.with_cards("# Title\n\nWords.\n\n## Install\n\nMore.\n\n## Read on\n")

    introduction, cards, rest = front.partition("```{container} cards\n\n")
    assert introduction == "# Title\n\nWords.\n\n"
    listed = re.findall(r"^- \[[^]]+\]\(([^)]+)\)$", cards + rest.partition("```")[0], re.MULTILINE)
    assert len(listed) == len(pages.CARDS) == 4
    assert {place for place in listed if not (pages.ROOT / "docs" / place).exists()} == set()
    assert rest.endswith("## Install\n\nMore.\n\n## Read on\n")


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, text in {
        "README.md": (
            "# Read me\n\n![p](docs/images/p.svg) [w](docs/waiting.md#waiting)\n\n## More\n\n[i](docs/index.md)\n"
        ),
        "CONTRIBUTING.md": "# How\n\n[rules](sandbox/docs/service.md#ids), [top](README.md)\n",
        "docs/index.md": "# Index\n\n## Cookbook\n\n- [One](cookbook/one.md)\n- [All](cookbook/README.md)\n",
        "docs/ui.md": (
            '# Pages\n\n<picture>\n  <source media="(prefers-color-scheme: dark)" srcset="images/p-dark.png">\n'
            '  <img alt="A page" src="images/p.png">\n</picture>\n'
        ),
        "sandbox/docs/service.md": "# Rules\n\n[a](#a) [self](service.md) [web](https://example.com/x.md)\n",
        "docs/contributing/README.md": "# Contributing\n\n- [Tests](tests.md): helpers\n",
        "docs/contributing/tests.md": "# Tests\n",
        "docs/contributing/upstream/README.md": "# Faults\n",
        "docs/cookbook/README.md": "# Cookbook\n",
        "docs/cookbook/one.md": "# One\n",
        "docs/cookbook/two.md": "# Two\n",
        "docs/operators/README.md": "# Operators\n",
        "docs/search.md": "# Searching\n\n[rules](../sandbox/docs/service.md)\n",
        "docs/waiting.md": (
            "# Waiting\n\n[`dag.py`](../example_dags/dag.py) [how](../CONTRIBUTING.md#how) "
            "[operators](operators/README.md) [folder](operators) [steps](steps) [gone](gone.md)\n\n"
            "```md\n[kept](../CONTRIBUTING.md)\n```\n"
        ),
        "docs/images/p.svg": "<svg/>",
        "docs/steps/one.py": "one = 1\n",
        "example_dags/dag.py": "x = 1\n",
    }.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    monkeypatch.setattr(pages, "ROOT", tmp_path)
    return tmp_path


@pytest.mark.usefixtures("repository")
def test_links_are_turned_towards_the_site() -> None:
    found = pages.collected({"reference/hook.md": "# Hook\n"})

    assert found.keys() == {
        "contents.md",
        "contributing/guide.md",
        "contributing/index.md",
        "contributing/tests.md",
        "contributing/upstream/index.md",
        "cookbook/index.md",
        "cookbook/one.md",
        "cookbook/two.md",
        "files/docs/steps.md",
        "files/docs/steps/one.py.md",
        "files/example_dags/dag.py.md",
        "index.md",
        "operators/index.md",
        "reference/hook.md",
        "searching.md",
        "service.md",
        "ui.md",
        "waiting.md",
    }
    assert "[rules](../service.md#ids), [top](../index.md)" in found["contributing/guide.md"]
    assert "![p](images/p.svg) [w](waiting.md#waiting)" in found["index.md"]
    assert "[i](contents.md)" in found["index.md"]
    assert ":caption: Cookbook\n\nOne <cookbook/one>\nAll <cookbook/index>\n```" in found["index.md"]
    # A page with an entry in the sidebar is not listed again below its folder.
    assert "```{toctree}\n:hidden:\n\n/cookbook/two\n```" in found["cookbook/index.md"]
    assert "```{toctree}\n:hidden:\n\nTests <tests>\n```" in found["contributing/index.md"]
    pictures = "![A page](images/p.png){.only-light}\n![A page](images/p-dark.png){.only-dark}"
    assert pictures in found["ui.md"]
    assert "[a](#a) [self](service.md) [web](https://example.com/x.md)" in found["service.md"]
    for link in (
        "[`dag.py`](files/example_dags/dag.py.md)",
        "[how](contributing/guide.md#how)",
        "[operators](operators/index.md)",
        "[folder](operators/index.md)",
        "[steps](files/docs/steps.md)",
        "[gone](gone.md)",
        "[kept](../CONTRIBUTING.md)",
    ):
        assert link in found["waiting.md"]
    assert found["files/docs/steps.md"].endswith("- [docs/steps/one.py](steps/one.py.md)\n")
    assert "````python\nx = 1\n````" in found["files/example_dags/dag.py.md"]


@pytest.mark.usefixtures("repository")
def test_paths_of_airflows_own_providers_lead_to_pages() -> None:
    found = pages.collected({"reference/sensors/index.md": "# Sensors\n"})

    assert found.keys() & pages.ALIASES.keys() == {"sensors/index.md"}
    assert '"0; url=../reference/sensors/index.html"' in found["sensors/index.md"]
    assert "[The page is here](../reference/sensors/index.md)" in found["sensors/index.md"]


def test_writing_leaves_what_has_not_changed_and_removes_what_is_gone(
    repository: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "out"
    pages.write({"a.md": "a", "sub/b.md": "b"}, folder)
    before = (folder / "a.md").stat().st_mtime_ns
    pages.write({"a.md": "a"}, folder)

    assert (folder / "a.md").stat().st_mtime_ns == before
    assert not (folder / "sub" / "b.md").exists()
    assert (folder / "images" / "p.svg").exists()


def test_dead_links_of_a_site_are_named(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "index.html").write_text(
        '<a href="sub/b.html#here"></a><a href="#top"></a><p id="top"><a href="https://example.com/nowhere">'
        '<a href="sub/b.html#there"></a><img src="no.png"><a href="#nothing"></a>'
    )
    (tmp_path / "sub" / "b.html").write_text(
        '<p id="here"><a href="../index.html"></a><a href="../gone.html"></a>'
    )

    assert sorted(dead_links(tmp_path)) == [
        "index.html: the target of #nothing does not exist",
        "index.html: the target of no.png does not exist",
        "index.html: the target of sub/b.html#there does not exist",
        "sub/b.html: the target of ../gone.html does not exist",
    ]
