"""The page for users of the public Python client names its methods, and operators and methods that exist."""

from __future__ import annotations

import re
from importlib import import_module
from pkgutil import walk_packages

from firecrawl.v2.client import FirecrawlClient

from airflow_provider_webdata import operators, sensors
from airflow_provider_webdata.hooks.webdata import WebDataHook
from tests.support.snippets import ROOT

PAGE = (ROOT / "docs" / "firecrawl_py.md").read_text(encoding="utf-8")
ROWS = re.findall(r"^\| `(\w+)` \| (.*?) \| (.*?) \|$", PAGE, re.MULTILINE)
ALIASES = {"active_crawls", "delete_scrape_browser", "scrape_execute", "stop_interactive_browser"}
OF_V1 = re.compile(r"\w+_urls?|check_\w+_(status|errors)")


def public(kind: type) -> set[str]:
    return {name for name in dir(kind) if not name.startswith("_")}


def classes() -> set[str]:
    found: set[str] = set()
    for package in (operators, sensors):
        for module in walk_packages(package.__path__, f"{package.__name__}."):
            content = vars(import_module(module.name))
            found |= {name for name in content if name.startswith("WebData")}
    return found


def test_each_call_of_the_client_has_a_row() -> None:
    calls = {name for name in public(FirecrawlClient) if not OF_V1.fullmatch(name)} - ALIASES
    assert sorted(name for name, _, _ in ROWS) == sorted(calls)


def test_each_name_on_the_right_exists() -> None:
    of_hook, of_dags = public(WebDataHook), classes()
    named = re.findall(r"`(hook\.)?(\w+)[^`]*`", " ".join(right for _, right, _ in ROWS))
    missing = [name for prefix, name in named if name not in (of_hook if prefix else of_dags)]
    assert missing == []
    assert len(named) > len(ROWS) > 50
