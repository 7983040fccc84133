# SPDX-License-Identifier: Apache-2.0
"""The pages of the site: those of docs/ and of the repository's root, and generated ones.

Links in the repository refer to files. This module rewrites them to paths in the site. A linked file that is not a
page, such as an example DAG, becomes a page with its text.
"""

from __future__ import annotations

import posixpath
import re
import shutil
from pathlib import Path

ROOT = Path(__file__).parents[2]
MOVED = {
    "README.md": "index.md",
    "docs/index.md": "contents.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing/guide.md",
    "SECURITY.md": "security.md",
    "docs/search.md": "searching.md",
    "sandbox/docs/service.md": "service.md",
}
"""The site paths of pages that are moved. Sphinx has its own page `search`."""

ALIASES = {
    "cli-ref.md": "reference/commands.md",
    "configurations-ref.md": "reference/configuration.md",
    "connections/webdata.md": "connection.md",
    "connections/index.md": "connection.md",
    "sensors/index.md": "reference/sensors/index.md",
    "triggers/index.md": "reference/triggers/index.md",
}
"""Paths in the documentation of Airflow's own providers, and the pages to which they redirect."""

GROUPS = {
    "cookbook/": "cookbook/index.md",
    "operators/": "operators/index.md",
    "contributing/upstream/": "contributing/upstream/index.md",
}
"""Folders whose pages are collapsed below one page in the sidebar."""

CONTRIBUTING = "contributing/index.md"
"""The page below which those that it lists are collapsed in the sidebar."""

CARDS = (
    ("A crawl into PostgreSQL", "docs/cookbook/into_postgresql.md"),
    ("A crawl into Snowflake or BigQuery", "docs/cookbook/into_snowflake_or_bigquery.md"),
    ("An alert when a price changes", "docs/cookbook/alert_when_a_page_or_a_price_changes.md"),
    ("The tutorial in six steps", "docs/tutorial.md"),
)
"""Titles and pages of the front page's cards."""

_LINK = re.compile(r"(?<=\]\()[^()\s#]+(?=(?:#[^()\s]*)?\))")
_PICTURE = re.compile(
    r'<picture>\s*<source [^>]*srcset="([^"]+)">\s*<img alt="([^"]+)" src="([^"]+)">\s*</picture>'
)
_FENCED = re.compile(r"^(```.*?^```)$", re.MULTILINE | re.DOTALL)
_LANGUAGES = {
    ".py": "python",
    ".toml": "toml",
    ".yaml": "yaml",
    ".yml": "yaml",
    ".json": "json",
    ".sh": "sh",
    ".conf": "nginx",
}

Pages = dict[str, str]
"""Text of pages, by path in the site."""


def collected(generated: Pages) -> Pages:
    """Return all pages of the site.

    :param generated: the pages that are not in the repository.
    """
    places = _places()
    found: Pages = {}
    files: dict[str, str] = {}
    for name, place in places.items():
        if (ROOT / name).exists():
            found[place] = _rewrite_links(
                (ROOT / name).read_text(encoding="utf-8"), name, place, places, files
            )
    for name, place in files.items():
        found[place] = _shown(name)
    found["contents.md"], toctrees = with_toctrees(found["contents.md"], generated)
    found["contents.md"] = f"---\norphan: true\n---\n\n{found['contents.md']}"
    found["index.md"] = with_cards(found["index.md"]) + toctrees
    for parent, children in nested(found["contents.md"]).items():
        found[parent] += _toctree([f"{title} <{_relative(parent, place)}>" for title, place in children])
    listed_apart = {
        f"/{match[2]}" for line in found["contents.md"].splitlines() if (match := _ENTRY.match(line.strip()))
    }
    for folder, index in GROUPS.items():
        listing = found[index]
        places = [place for place in sorted(found) if place.startswith(folder)]
        places.sort(key=lambda place: listing.find(f"]({place.removeprefix(folder)})"))
        children = [f"/{place.removesuffix('.md')}" for place in places]
        own = f"/{index.removesuffix('.md')}"
        found[index] += _toctree([child for child in children if child not in {own, *listed_apart}])
    found[CONTRIBUTING] += _toctree(_entries(found[CONTRIBUTING].splitlines()))
    found |= generated
    aliases = {place: _redirect(place, target) for place, target in ALIASES.items() if target in found}
    return {**found, **aliases}


def write(pages: Pages, folder: Path) -> None:
    """Write pages and images to a folder, and delete files of removed pages.

    Unchanged files are not written, so that Sphinx does not rebuild them.
    """
    for path in folder.rglob("*.md"):
        if path.relative_to(folder).as_posix() not in pages:
            path.unlink()
    for name, text in pages.items():
        path = folder / name
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
    shutil.copytree(ROOT / "docs" / "images", folder / "images", dirs_exist_ok=True)


def with_toctrees(contents: str, generated: Pages) -> tuple[str, str]:
    """Return the list of all pages, and hidden toctrees for the front page: one per section of the list.

    :param contents: the page's text; each section is a list of links.
    :param generated: additional pages for the section "References".
    """
    head, *sections = re.split(r"^(?=## )", contents, flags=re.MULTILINE)
    parts, toctrees = [head], []
    for section in sections:
        caption = section.partition("\n")[0].removeprefix("## ")
        lines = section.rstrip().splitlines()
        if caption == "References":
            listed = [place for place in generated if place.count("/") == 1 or place.endswith("/index.md")]
            lines += [f"- [{generated[place].partition(chr(10))[0][2:]}]({place})" for place in listed]
        parts.append("\n".join([*lines, "", ""]))
        toctrees.append(_toctree(_entries(lines), f":caption: {caption}"))
    return "".join(parts), "".join(toctrees)


def nested(contents: str) -> dict[str, list[tuple[str, str]]]:
    """Return the pages that the list of all pages indents below another one: titles and places, by the page above."""
    found: dict[str, list[tuple[str, str]]] = {}
    above = ""
    for line in contents.splitlines():
        if match := _ENTRY.match(line):
            above = f"{match[2]}.md"
        elif match := _ENTRY.match(line.strip()):
            found.setdefault(above, []).append((match[1], match[2]))
    return found


def _relative(page: str, place: str) -> str:
    return posixpath.relpath(place, posixpath.dirname(page) or ".")


def with_cards(front: str) -> str:
    """Return the front page with its cards after the introduction."""
    head, heading, rest = front.partition("\n## ")
    cards = "\n".join(f"- [{title}]({place_of(name)})" for title, name in CARDS)
    return f"{head}\n```{{container}} cards\n\n{cards}\n```\n{heading}{rest}"


def _toctree(entries: list[str], *options: str) -> str:
    return "\n".join(["", "", "```{toctree}", ":hidden:", *options, "", *entries, "```", "", ""])


def _entries(lines: list[str]) -> list[str]:
    return [f"{match[1]} <{match[2]}>" for line in lines if (match := _ENTRY.match(line))]


_ENTRY = re.compile(r"- \[([^\]]+)\]\(([^)#]+)\.md\)")


def place_of(name: str) -> str:
    """Return the site path of a page of the repository.

    :param name: path in the repository.
    """
    return MOVED.get(name) or name.removeprefix("docs/").replace("README.md", "index.md")


def _places() -> dict[str, str]:
    """Return the site path of each page, by path in the repository."""
    names = sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").rglob("*.md"))
    return {name: place_of(name) for name in [*names, *MOVED]}


def _rewrite_links(text: str, name: str, place: str, places: dict[str, str], files: dict[str, str]) -> str:
    """Return a page with its links rewritten for the site.

    :param name: path of the page in the repository.
    :param place: path of the page in the site.
    :param places: site paths of all pages, by name.
    :param files: receives the linked files and their site paths.
    """

    def rewritten(match: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(posixpath.dirname(name), match[0]))
        meant = target + "/README.md" if f"{target}/README.md" in places else target
        if meant in places:
            found = places[meant]
        elif meant.startswith("docs/images/"):
            found = meant.removeprefix("docs/")
        elif (ROOT / meant).is_file() or (ROOT / meant).is_dir():
            files.update({one: f"files/{one}.md" for one in (meant, *_files_in(meant))})
            found = files[meant]
        else:
            return match[0]
        return posixpath.relpath(found, posixpath.dirname(place) or ".")

    # Furo has its own switch between light and dark.
    text = _PICTURE.sub(r"![\2](\3){.only-light}\n![\2](\1){.only-dark}", text)
    parts = _FENCED.split(text)
    return "".join(part if number % 2 else _LINK.sub(rewritten, part) for number, part in enumerate(parts))


def _redirect(place: str, target: str) -> str:
    """Return a page that redirects to another one; it is in no toctree and excluded from the search."""
    link = posixpath.relpath(target, posixpath.dirname(place) or ".")
    return (
        "---\norphan: true\nnosearch: true\nmyst:\n  html_meta:\n"
        f'    "http-equiv=refresh": "0; url={link.removesuffix(".md")}.html"\n---\n\n'
        f"# Moved\n\n[The page is here]({link}).\n"
    )


def _files_in(folder: str) -> list[str]:
    """Return the files of a folder that a page can show, without subfolders."""
    path = ROOT / folder
    found = sorted(path.iterdir()) if path.is_dir() else []
    return [f"{folder}/{one.name}" for one in found if one.suffix in _LANGUAGES]


def _shown(name: str) -> str:
    """Return a page that shows a file or a folder; it is in no toctree and excluded from the search."""
    head = f"---\norphan: true\nnosearch: true\n---\n\n# {name}\n\n"
    if (ROOT / name).is_dir():
        folder = posixpath.basename(name)
        return head + "".join(
            f"- [{one}]({folder}/{posixpath.basename(one)}.md)\n" for one in _files_in(name)
        )
    text = (ROOT / name).read_text(encoding="utf-8").rstrip()
    return f"{head}````{_LANGUAGES.get(posixpath.splitext(name)[1], 'text')}\n{text}\n````\n"
