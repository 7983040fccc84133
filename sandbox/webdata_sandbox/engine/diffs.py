# SPDX-License-Identifier: Apache-2.0
"""The difference between two versions of a page.

Libraries do not fit: converting the tree of unidiff would need as many lines, and its chunk headers differ. deepdiff
joins renamed fields, and its paths are not JSON paths.
"""

from __future__ import annotations

import difflib
import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from webdata_sandbox.reference.wire import Json

_HUNK = re.compile(r"@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@")


def text_diff(before: str, after: str) -> str:
    """Return the unified diff of two texts."""
    lines = list(
        difflib.unified_diff(before.splitlines(), after.splitlines(), "previous", "current", lineterm="")
    )
    return "\n".join(lines)


def diff_tree(text: str) -> Json:
    """Return the tree of a unified diff: files, chunks, and changes with line numbers."""
    chunks: list[Json] = []
    old = new = 0
    for line in text.split("\n"):
        if hunk := _HUNK.match(line):
            old, new = int(hunk[1]), int(hunk[2])
            chunks.append({"content": line, "changes": []})
        elif not chunks:
            continue
        elif line.startswith("+"):
            chunks[-1]["changes"].append({"type": "add", "add": True, "ln": new, "content": line})
            new += 1
        elif line.startswith("-"):
            chunks[-1]["changes"].append({"type": "del", "del": True, "ln": old, "content": line})
            old += 1
        else:
            chunks[-1]["changes"].append({"type": "normal", "ln1": old, "ln2": new, "content": line})
            old, new = old + 1, new + 1
    return {"files": [{"from": "previous", "to": "current", "chunks": chunks}]}


def json_diff(before: Any, after: Any) -> Json:
    """Return the previous and current value of each difference, by JSON path such as ``plans[0].price``."""
    old, new = dict(_leaves(before, "")), dict(_leaves(after, ""))
    paths = [*old, *(path for path in new if path not in old)]
    return {
        path: {"previous": old.get(path), "current": new.get(path)}
        for path in paths
        if old.get(path) != new.get(path)
    }


def _leaves(value: Any, path: str) -> list[tuple[str, Any]]:
    if isinstance(value, dict) and value:
        return [
            leaf for key, item in value.items() for leaf in _leaves(item, f"{path}.{key}" if path else key)
        ]
    if isinstance(value, list) and value:
        return [leaf for number, item in enumerate(value) for leaf in _leaves(item, f"{path}[{number}]")]
    return [(path, value)]


def changed_lines(text: str) -> tuple[list[str], list[str]]:
    """Return the removed and the added lines of a unified diff."""
    body = [line for line in text.split("\n") if not line.startswith(("---", "+++"))]
    removed = [line[1:] for line in body if line.startswith("-")]
    added = [line[1:] for line in body if line.startswith("+")]
    return removed, added
