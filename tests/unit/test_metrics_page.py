# SPDX-License-Identifier: Apache-2.0
"""docs/metrics.md lists the metrics that the code emits, and no others."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import airflow_provider_webdata

PACKAGE = Path(airflow_provider_webdata.__file__).parent
PAGE = Path(__file__).parents[2] / "docs" / "metrics.md"
ROW = re.compile(r"^\| `(webdata\.[a-z_.]+)` \| (\w+) \| ([^|]*) \|", re.MULTILINE)
KINDS = {"count": "counter", "gauge": "gauge", "timing": "timer"}


@cache
def measured() -> dict[str, str]:
    """Return the names in the code, with the kind of each."""
    found: dict[str, str] = {}
    for path in PACKAGE.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        for node in ast.walk(ast.parse(text)) if "webdata." in text else ():
            if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.args):
                continue
            name = node.args[0]
            if node.func.id in KINDS and isinstance(name, ast.Constant):
                assert isinstance(name.value, str), path
                found[name.value] = KINDS[node.func.id]
    return found


def test_page_and_code() -> None:
    listed = {name: kind for name, kind, _ in ROW.findall(PAGE.read_text(encoding="utf-8"))}
    assert listed == measured()
    assert [name for name in listed if not re.fullmatch(r"webdata(\.[a-z_]+)+", name)] == []


def test_other_pages_name_existing_metrics() -> None:
    known = measured().keys()
    for page in PAGE.parent.rglob("*.md"):
        named = set(re.findall(r"metrics? `(webdata\.[a-z_.]+)`", page.read_text(encoding="utf-8")))
        assert named <= known, page
