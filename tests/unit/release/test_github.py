# SPDX-License-Identifier: Apache-2.0
"""The forms, the workflows, and the template that the repository's host reads."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.snippets import ROOT
from tools.airflow_versions import SUPPORTED
from tools.release.__main__ import ALL
from tools.release.pythons import VERSIONS

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


WORKFLOWS = sorted((FOLDER / "workflows").glob("*.yml"))
# The jobs that may do more than read, and what for.
RIGHTS = {
    ("codeql", "analyze"): {"contents": "read", "security-events": "write"},
    ("docs", "publish"): {"pages": "write", "id-token": "write"},
    ("release", "attest"): {"id-token": "write", "attestations": "write"},
    ("release", "publish"): {"id-token": "write"},
    ("release", "announce"): {"contents": "write"},
    ("release", "documentation"): {"contents": "read", "pages": "write", "id-token": "write"},
}
# They have no program of this repository: the one that publishes must run none.
OTHER_COMMANDS = {("release", "announce"): "gh release create"}


def jobs() -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path in WORKFLOWS:
        for name, job in read(path)["jobs"].items():
            yield path.stem, name, job


def steps(workflow: str, name: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = read(FOLDER / "workflows" / f"{workflow}.yml")["jobs"][name]["steps"]
    return found


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_a_workflow_may_read_and_no_more(path: Path) -> None:
    workflow = read(path)
    assert workflow["permissions"] == {"contents": "read"}
    assert "secrets." not in path.read_text()
    for name, job in workflow["jobs"].items():
        assert job.get("permissions") == RIGHTS.get((path.stem, name)), name
        assert "uses" in job or job["timeout-minutes"] <= 120, name


def test_what_runs_here_runs_there() -> None:
    """Each command is a target of make, so that it can be run without the host."""
    existing = targets("Makefile") | targets("tools/maintain.mk")
    for workflow, name, job in jobs():
        for step in job.get("steps", []):
            command = step.get("run", ".ci/run")
            if other := OTHER_COMMANDS.get((workflow, name)):
                assert command == ".ci/run" or command.startswith(other)
            elif command != ".ci/run":
                assert re.fullmatch(r"make ([\w-]+)( [A-Z]+=.+)?", command), command
                assert command.split()[1] in existing, command
            if step.get("uses", "").startswith("actions/checkout@"):
                assert step["with"]["persist-credentials"] is False
            for cached in step.get("with", {}).get("cache-dependency-path", "").split():
                assert (ROOT / cached).is_file()
    assert os.access(ROOT / ".ci" / "run", os.X_OK)


def test_the_matrix_has_what_is_supported() -> None:
    matrix = read(FOLDER / "workflows" / "ci.yml")["jobs"]["airflow"]["strategy"]["matrix"]
    assert tuple(matrix["airflow"]) == SUPPORTED
    assert {*matrix["python"]} <= {*VERSIONS}
    wheels = read(FOLDER / "workflows" / "release.yml")["jobs"]["wheels"]["strategy"]["matrix"]
    assert tuple(wheels["python"]) == VERSIONS


def test_the_stages_of_a_release_are_those_of_the_dry_run() -> None:
    named = []
    for workflow, _, job in jobs():
        for step in job.get("steps", []) if workflow == "release" else []:
            if found := re.fullmatch(r'make release-dry STAGES="?([\w ]+)"?', step.get("run", "")):
                named += found[1].split()
    assert {*named} == {"tag", *ALL}


def test_only_tested_files_are_published() -> None:
    """The job that publishes has no code of this repository, and its files passed all other jobs."""
    workflow = read(FOLDER / "workflows" / "release.yml")
    assert workflow[True] == {"push": {"tags": ["v*"]}}
    order = ["build", "wheels", "attest", "publish", "announce", "documentation"]
    assert list(workflow["jobs"]) == order
    assert [workflow["jobs"][name]["needs"] for name in order[1:]] == order[:-1]
    publish = workflow["jobs"]["publish"]
    assert publish["environment"]["name"] == "release"
    download, *uploads = publish["steps"]
    assert download["uses"].startswith("actions/download-artifact@")
    assert [step["with"] for step in uploads] == [
        {"packages-dir": "dist/sandbox", "attestations": True},
        {"packages-dir": "dist/provider", "attestations": True},
    ]


def test_the_site_is_published_with_no_more_rights_than_it_needs() -> None:
    build, publish = steps("docs", "build"), steps("docs", "publish")
    assert [step["run"] for step in build if "run" in step] == [
        "make docs",
        'make release-dry STAGES="archives assemble"',
    ]
    assert build[-1]["with"]["path"] == "build/release/site"
    assert "run" not in publish[0]


def test_updates_wait_for_a_week() -> None:
    """A version that was published by somebody else is often gone by then."""
    updates = read(FOLDER / "dependabot.yml")["updates"]
    assert [one["package-ecosystem"] for one in updates] == ["github-actions", "pip"]
    assert {one["cooldown"]["default-days"] for one in updates} == {7}


def test_actions_are_pinned() -> None:
    """A tag can be moved to other code."""
    pages = [*sorted((FOLDER / "workflows").glob("*.yml")), ROOT / "docs" / "testing.md"]
    used = [line for page in pages for line in re.findall(r"uses: (.*)", page.read_text(encoding="utf-8"))]
    others = [line for line in used if not line.startswith("./.github/workflows/")]
    assert [
        line for line in others if not re.fullmatch(r"[\w./-]+@[0-9a-f]{40}  # v\d+\.\d+\.\d+", line)
    ] == []
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
