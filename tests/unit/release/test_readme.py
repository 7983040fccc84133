# SPDX-License-Identifier: Apache-2.0
"""The README as the package index renders it, with every link alive."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import urlsplit

import pytest
from bs4 import BeautifulSoup
from hatchling.metadata.core import ProjectMetadata
from hatchling.plugin.manager import PluginManager
from readme_renderer import markdown

from tests.support.links import dead, links
from tests.support.snippets import ROOT

README = (ROOT / "README.md").read_text(encoding="utf-8")
PICTURES = {".png", ".svg", ".gif", ".jpg"}
FENCED = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)


class Index:
    """What the index has: the description, its HTML, and the release's addresses in the repository."""

    def __init__(self) -> None:
        metadata: ProjectMetadata[Any] = ProjectMetadata(str(ROOT), PluginManager())
        self.content_type = metadata.core.readme_content_type
        self.description = metadata.core.readme
        html = markdown.render(self.description)
        assert html, "the index could not render it"
        self.page = BeautifulSoup(html, "html.parser")
        source = metadata.core.urls["Source"]
        self.pages = f"{source}/blob/v{metadata.version}/"
        self.files = f"https://raw.githubusercontent.com{urlsplit(source).path}/v{metadata.version}/"

    def attributes(self, *wanted: tuple[str, str]) -> list[str]:
        return [
            str(tag[name]) for kind, name in wanted for tag in self.page.find_all(kind, attrs={name: True})
        ]


@pytest.fixture(scope="module")
def index() -> Index:
    return Index()


def test_links_lead_to_files_of_the_release(index: Index) -> None:
    assert index.content_type == "text/markdown"
    problems = []
    for target in index.attributes(("a", "href")):
        if target.startswith(index.pages):
            problems.append(dead(target.removeprefix(index.pages), ROOT))
        elif target.startswith("#"):
            if index.page.find(id=target[1:]) is None:
                problems.append(f"{target}: the index gives no heading this id")
        elif not target.startswith("https://"):
            problems.append(f"{target}: the index knows no such address")
    assert [problem for problem in problems if problem] == []


def test_pictures_are_files_of_the_release(index: Index) -> None:
    for target in index.attributes(("img", "src")):
        assert target.startswith(index.files), "the index shows no picture of a folder"
        path = ROOT / target.removeprefix(index.files)
        assert path.is_file()
        assert path.suffix in PICTURES
    for tag in index.page.find_all("img"):
        assert tag.get("alt"), f"{tag['src']}: nothing is said to those who do not see it"


def test_the_status_is_that_of_the_release() -> None:
    metadata: ProjectMetadata[Any] = ProjectMetadata(str(ROOT), PluginManager())
    [airflow] = [found for found in metadata.core.dependencies if found.startswith("apache-airflow>")]
    pythons = re.findall(r":: (3\.\d+)$", "\n".join(metadata.core.classifiers), re.MULTILINE)
    status = " ".join(README.split("\n\n")[2].split())
    for part in (
        f"Version {metadata.version} ",
        f"Airflow {airflow.partition('>=')[2]} or newer",
        f"Python {pythons[0]} to {pythons[-1]} ",
        metadata.core.license_expression or metadata.core.license,
    ):
        assert part in status


def test_it_is_one_screen() -> None:
    """Each benefit is one fact; the last links are the sections of the index, which make the site's sidebar."""
    benefits, links = (section(heading) for heading in ("What you get", "Read on"))
    bullets = [re.sub(r"\[([^]]+)\]\([^)]+\)", r"\1", line) for line in re.findall("^- (.+)", benefits, re.M)]
    assert len(bullets) == 5
    assert [bullet for bullet in bullets if len(bullet.split()) > 12] == []
    captions = re.findall(r"^## (.+)", (ROOT / "docs" / "index.md").read_text(encoding="utf-8"), re.M)
    assert re.findall(r"^- \[(\w+)\]\(docs/index\.md#(\w+)\)", links, re.M) == [
        (caption, caption.lower()) for caption in captions
    ]
    assert len(captions) == 4


def section(heading: str) -> str:
    return README.split(f"## {heading}\n")[1].split("\n## ")[0]


def test_nothing_is_lost_on_the_way(index: Index) -> None:
    """All that the README links to by a path is there, and its code is untouched."""
    own = [target for target in links(README) if not target.startswith(("https:", "#"))]
    # The index shows pictures in light colors only.
    own = [target for target in own if not target.endswith("-dark.png")]
    there = index.attributes(("a", "href"), ("img", "src"))
    made = [target for target in there if target.startswith((index.pages, index.files))]
    assert sorted(own) == sorted(
        target.removeprefix(index.pages).removeprefix(index.files) for target in made
    )
    assert FENCED.findall(README) == FENCED.findall(index.description)
