# SPDX-License-Identifier: Apache-2.0
"""The forms, the workflow, and the template that the repository's host reads."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.snippets import ROOT

FOLDER = ROOT / ".github"
FORMS = sorted(set((FOLDER / "ISSUE_TEMPLATE").glob("*.yml")) - {FOLDER / "ISSUE_TEMPLATE" / "config.yml"})
# What a form may be made of, and what each part must have.
PARTS = {
    "markdown": {"value"},
    "input": {"label"},
    "textarea": {"label"},
    "dropdown": {"label", "options"},
    "checkboxes": {"label", "options"},
}
OPTIONAL = {"description", "placeholder", "value", "render", "multiple", "default"}


def read(path: Path) -> Any:
    return yaml.safe_load(path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("path", FORMS, ids=lambda path: path.name)
def test_form(path: Path) -> None:
    form = read(path)
    assert set(form) <= {"name", "description", "title", "labels", "assignees", "projects", "type", "body"}
    assert form["name"]
    assert form["description"]
    names = []
    for part in form["body"]:
        assert set(part) <= {"type", "id", "attributes", "validations"}
        given = set(part["attributes"])
        assert PARTS[part["type"]] <= given <= PARTS[part["type"]] | OPTIONAL
        if part["type"] == "markdown":
            assert "id" not in part
            continue
        names.append(part["id"])
        options = part["attributes"].get("options", [])
        assert all(isinstance(option, str) for option in options)
        assert len(set(options)) == len(options)
        assert set(part.get("validations", {})) <= {"required"}
    assert names
    assert len(set(names)) == len(names)
    assert all(re.fullmatch(r"[a-z][\w-]*", name) for name in names)


def test_there_are_forms_and_a_way_to_report_in_private() -> None:
    assert [path.stem for path in FORMS] == ["bug", "proposal"]
    config = read(FOLDER / "ISSUE_TEMPLATE" / "config.yml")
    assert config["blank_issues_enabled"] is False
    for link in config["contact_links"]:
        assert set(link) == {"name", "url", "about"}
    private = "/security/advisories/new"
    assert any(link["url"].endswith(private) for link in config["contact_links"])
    assert private in (ROOT / "SECURITY.md").read_text()


def test_the_workflow_runs_what_everybody_runs() -> None:
    workflow = read(FOLDER / "workflows" / "ci.yml")
    # YAML 1.1 reads `on` as true.
    assert set(workflow[True]) == {"push", "pull_request"}
    # A pull request of a stranger runs with the right to read only.
    assert workflow["permissions"] == {"contents": "read"}
    (job,) = workflow["jobs"].values()
    assert job["timeout-minutes"] <= 120
    commands = [step["run"] for step in job["steps"] if "run" in step]
    assert commands == [".ci/run"]
    assert os.access(ROOT / ".ci" / "run", os.X_OK)
    actions = {
        step["uses"].partition("@")[0]: step.get("with", {}) for step in job["steps"] if "uses" in step
    }
    assert actions["actions/checkout"]["persist-credentials"] is False
    for path in actions["actions/setup-python"]["cache-dependency-path"].split():
        assert (ROOT / path).is_file()
    assert "secrets." not in (FOLDER / "workflows" / "ci.yml").read_text()


def test_the_site_is_published_with_no_more_rights_than_it_needs() -> None:
    workflow = read(FOLDER / "workflows" / "docs.yml")
    assert workflow["permissions"] == {"contents": "read"}
    build, publish = workflow["jobs"].values()
    assert [step["run"] for step in build["steps"] if "run" in step] == ["make docs"]
    assert "permissions" not in build
    assert build["steps"][-1]["with"]["path"] == "build/docs/html"
    assert publish["permissions"] == {"pages": "write", "id-token": "write"}
    assert publish["environment"]["name"] == "github-pages"
    assert "run" not in publish["steps"][0]


def test_actions_are_pinned() -> None:
    """A tag can be moved to other code."""
    pages = [*sorted((FOLDER / "workflows").glob("*.yml")), ROOT / "docs" / "testing.md"]
    used = [line for page in pages for line in re.findall(r"uses: (.*)", page.read_text(encoding="utf-8"))]
    assert [line for line in used if not re.fullmatch(r"[\w./-]+@[0-9a-f]{40}  # v\d+\.\d+\.\d+", line)] == []
    assert len(used) > 5


def targets(file: str) -> set[str]:
    """Return the targets of a makefile."""
    (phony,) = re.findall(r"^\.PHONY: (.*)$", (ROOT / file).read_text(), re.MULTILINE)
    return {*phony.split()}


def test_contributors_are_told_of_commands_that_there_are() -> None:
    existing = targets("Makefile") | targets("tools/maintain.mk")
    pages = [
        ROOT / page
        for page in ("CONTRIBUTING.md", "README.md", ".github/pull_request_template.md", "SECURITY.md")
    ]
    for page in [*pages, *(ROOT / "docs/contributing").glob("*.md")]:
        named = set(re.findall(r"`make ([\w-]+)`", page.read_text()))
        assert named <= existing, page.name


def test_help_lists_the_targets() -> None:
    """Those of maintainers are apart. A target without an entry is a part of others."""
    for target, file, parts in (
        ("help", "Makefile", {"help", "lint-without-tests", "browser", "services", "clean"}),
        ("help-maintain", "tools/maintain.mk", {"help-maintain"}),
    ):
        shown = subprocess.run(["make", target], cwd=ROOT, capture_output=True, text=True, check=True).stdout
        assert {*re.findall(r"^make ([\w-]+) ", shown, re.MULTILINE)} == targets(file) - parts
