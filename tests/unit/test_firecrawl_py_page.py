# SPDX-License-Identifier: Apache-2.0
"""The page for users of the public Python client names its methods, and operators and methods that exist."""

from __future__ import annotations

import ast
import inspect
import re
from importlib import import_module
from importlib.metadata import version
from pkgutil import walk_packages
from typing import Any

import pytest
from firecrawl.v2.client import FirecrawlClient

from airflow_provider_webdata import operators, sensors, transfers
from airflow_provider_webdata.api import models
from airflow_provider_webdata.api.errors import InvalidRequestError
from airflow_provider_webdata.hooks.operations.jobs import DocumentPart
from airflow_provider_webdata.hooks.webdata import WebDataHook
from tests.support.snippets import ROOT

PAGE = (ROOT / "docs" / "firecrawl_py.md").read_text(encoding="utf-8")
ROWS = re.findall(r"^\| `(\w+)` \| (.*?) \| (.*?) \| (.*?) \|$", PAGE, re.MULTILINE)
SAME = re.findall(r"^\| `(firecrawl\.[^`]+)` \| `(hook\.[^`]+)` \|$", PAGE, re.MULTILINE)
ALIASES = {"active_crawls", "delete_scrape_browser", "scrape_execute", "stop_interactive_browser"}
OF_V1 = re.compile(r"\w+_urls?|check_\w+_(status|errors)")


def public(kind: type) -> set[str]:
    return {name for name in dir(kind) if not name.startswith("_")}


def classes() -> set[str]:
    found: set[str] = set()
    for package in (operators, sensors, transfers):
        for module in walk_packages(package.__path__, f"{package.__name__}."):
            content = vars(import_module(module.name))
            found |= {name for name in content if name.startswith("WebData")}
    return found


def test_each_call_of_the_client_has_a_row() -> None:
    calls = {name for name in public(FirecrawlClient) if not OF_V1.fullmatch(name)} - ALIASES
    assert sorted(name for name, *_ in ROWS) == sorted(calls)


def test_each_name_on_the_right_exists() -> None:
    of_hook, of_dags = public(WebDataHook), classes()
    named = re.findall(r"`(hook\.)?(\w+)[^`]*`", " ".join(here for _, here, _, _ in ROWS))
    missing = [name for prefix, name in named if name not in (of_hook if prefix else of_dags)]
    assert missing == []
    assert len(named) > len(ROWS) > 50


def test_each_result_is_where_the_page_says() -> None:
    missing, found = [], 0
    for name, here, result, _ in ROWS:
        kinds = [kind for method in re.findall(r"`hook\.(\w+)\(", here) for kind in returned(method)]
        for path in re.findall(r"`\.([\w.]+)`", result):
            found += 1
            if not any(has(kind, path) for kind in kinds):
                missing.append((name, path))
    assert missing == []
    assert found > 40


def bound(call: str, kind: type) -> dict[str, Any]:
    """Return the arguments of a call, bound to the signature of the method."""
    node = ast.parse(call, mode="eval").body
    assert isinstance(node, ast.Call)
    assert isinstance(node.func, ast.Attribute)
    keywords = {str(one.arg): one.value for one in node.keywords}
    signature = inspect.signature(getattr(kind, node.func.attr))
    return signature.bind(None, *node.args, **keywords).arguments


def test_each_call_of_the_hook_has_its_arguments() -> None:
    calls = re.findall(r"`(hook\.[^`]+)`", " ".join(here for _, here, _, _ in ROWS))
    for call in calls:
        bound(call, WebDataHook)
    assert len(calls) > 50


def test_each_call_of_the_client_has_its_arguments() -> None:
    for theirs, ours in SAME:
        assert bound(theirs, FirecrawlClient).keys() > {"self"}
        assert bound(ours, WebDataHook).keys() > {"self"}
    assert len(SAME) > 8


def test_the_version_is_the_tested_one() -> None:
    assert f"Verified with firecrawl-py {'.'.join(version('firecrawl-py').split('.')[:2])}." in PAGE


def test_the_hint_is_the_hooks() -> None:
    with pytest.raises(InvalidRequestError, match=r"max_results: no such field; write limit=\.\.\."):
        WebDataHook().search(query="river", max_results=5)  # type: ignore[call-arg]


def returned(method: str) -> list[Any]:
    """Return the classes of a hook method's result, or of its items."""
    annotation = str(inspect.signature(getattr(WebDataHook, method)).return_annotation)
    if annotation == "JobState":
        return [models.JobStatus, models.AgentStatus]
    if "DocumentPart" in annotation:
        return [DocumentPart]
    return [getattr(models, name) for name in re.findall(r"models\.(\w+)", annotation)]


def has(kind: Any, path: str) -> bool:
    name, _, rest = path.partition(".")
    if not rest:
        return name in getattr(kind, "model_fields", ()) or hasattr(kind, name)
    return has(kind.model_fields[name].annotation, rest)
