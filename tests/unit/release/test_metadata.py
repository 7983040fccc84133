# SPDX-License-Identifier: Apache-2.0
"""The metadata of the package on the package index."""

from __future__ import annotations

import ast
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hatchling.metadata.core import ProjectMetadata
from hatchling.plugin.manager import PluginManager
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from trove_classifiers import classifiers

from airflow_provider_webdata import __version__
from airflow_provider_webdata.common import links
from tests.support.links import dead
from tests.support.snippets import ROOT
from tools.docs_site.pages import place_of

METADATA: ProjectMetadata[Any] = ProjectMetadata(str(ROOT), PluginManager())
SANDBOX: ProjectMetadata[Any] = ProjectMetadata(str(ROOT / "sandbox"), PluginManager())
REPOSITORY = METADATA.core.urls["Source"]
# The package reads their private parts: see `common/http_library.py` and `common/deadline.py`.
WITH_PRIVATE_PARTS = {"httpcore", "httpx"}


def upper_bounds(specifiers: SpecifierSet) -> bool:
    return any(one.operator in {"<", "<=", "==", "~="} for one in specifiers)


def test_each_dependency_has_a_lower_bound_and_an_upper_one_only_for_private_parts() -> None:
    """An upper bound without a reason keeps users from an update that works."""
    core = METADATA.core
    extras = [one for name, extra in core.optional_dependencies.items() if name != "sandbox" for one in extra]
    every = [Requirement(one) for one in (*core.dependencies, *extras)]
    sandbox = [Requirement(one) for one in SANDBOX.core.dependencies]
    for dependency in (*every, *sandbox):
        assert [one for one in dependency.specifier if one.operator == ">="], dependency
    assert {one.name for one in every if upper_bounds(one.specifier)} == WITH_PRIVATE_PARTS
    assert {one.name for one in sandbox if upper_bounds(one.specifier)} == set()


@pytest.mark.parametrize("metadata", [METADATA, SANDBOX], ids=["provider", "sandbox"])
def test_authors(metadata: ProjectMetadata[Any]) -> None:
    authors = {"name": ["The airflow-provider-webdata authors"], "email": []}
    assert metadata.core.authors_data == metadata.core.maintainers_data == authors


def test_classifiers() -> None:
    given = METADATA.core.classifiers
    assert set(given) <= set(classifiers)
    pythons = [one.rpartition(" ")[2] for one in given if re.search(r":: 3\.\d+$", one)]
    assert pythons == ["3.10", "3.11", "3.12", "3.13", "3.14"]
    assert all(METADATA.core.python_constraint.contains(f"{python}.0") for python in pythons)
    assert not METADATA.core.python_constraint.contains("3.9.9")


def test_addresses_lead_into_the_repository() -> None:
    urls = {**METADATA.core.urls}
    assert urls.pop("Documentation") == links.SITE
    for name, url in urls.items():
        assert url.startswith(REPOSITORY), name
        if found := re.fullmatch(r"/(?:blob|tree)/main/(.+)", url.removeprefix(REPOSITORY)):
            assert dead(found[1], ROOT) is None


@pytest.mark.slow
def test_messages_link_to_existing_sections_of_the_site() -> None:
    assert links.REPOSITORY == REPOSITORY
    owner, name = REPOSITORY.split("/")[-2:]
    assert links.SITE.removeprefix("https://") == f"{owner}.github.io/{name}/"
    for path in sorted((ROOT / "airflow_provider_webdata").rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        texts = {
            id(node.value): node.value.value
            for node in ast.walk(tree)
            if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        }
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "docs_link":
                (page,) = node.args
                if isinstance(page, ast.Constant):
                    assert dead(str(page.value), ROOT / "docs") is None
                    # Pages that are elsewhere on the site need another address.
                    name = str(page.value).partition("#")[0]
                    assert place_of(f"docs/{name}") == name
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in texts:
                assert not re.search(r"(?<!/)\bdocs/[\w/]+\.md", node.value), (path, node.value)


def test_the_repository_has_one_address() -> None:
    """Where another file names it, as issue forms must, it is the one of `[project.urls]`."""
    owner, name = REPOSITORY.split("/")[-2:]
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True)
    address = re.compile(rf"https://(?:raw\.githubusercontent|github)\.com/([\w.-]+)/{name}\b")
    owners = {
        (path, found)
        for path in filter(None, listed.stdout.split("\0"))
        if (ROOT / path).is_file()
        for found in address.findall((ROOT / path).read_text(encoding="utf-8", errors="replace"))
    }
    assert [path for path, found in owners if found != owner] == []


@pytest.mark.parametrize(
    ("path", "pattern"),
    [
        ("deploy/Dockerfile", r"airflow-webdata:([\d.]+) "),
        ("deploy/values.yaml", r'tag: "([\d.]+)"'),
        ("docs/managed.md", r"airflow-provider-webdata==([\d.]+)"),
        ("docs/managed.md", r"airflow-webdata:([\d.]+) "),
        (".github/ISSUE_TEMPLATE/bug.yml", r'placeholder: "([\d.]+)"'),
    ],
)
def test_files_name_the_version(path: str, pattern: str) -> None:
    assert set(re.findall(pattern, (ROOT / path).read_text())) == {__version__}


def test_the_version_is_stated_once() -> None:
    assert METADATA.version == SANDBOX.version == __version__
    assert re.search(
        rf"^## {re.escape(__version__)}\b", Path(ROOT / "CHANGELOG.md").read_text(), re.MULTILINE
    )


def test_security_policy_names_the_version() -> None:
    minor = __version__.rpartition(".")[0]
    assert f"| {minor} | yes |" in (ROOT / "SECURITY.md").read_text()
