# SPDX-License-Identifier: Apache-2.0
"""What the tests of monitors and their checks share."""

from __future__ import annotations

from typing import Any

LEVELS = "https://weather.example/levels"
SUMMARY = {"totalPages": 0, "same": 0, "changed": 0, "new": 0, "removed": 0, "error": 0}


def summary(**counts: int) -> dict[str, int]:
    return {**SUMMARY, **counts, "totalPages": sum(counts.values())}


def statuses(check: dict[str, Any]) -> dict[str, str]:
    return {page["url"]: page["status"] for page in check["pages"]}


def search_target(**fields: Any) -> dict[str, Any]:
    return {"type": "search", "queries": ["zeppelin"], **fields}


def news(sandbox, number: int, text: str = "A zeppelin landed.") -> str:
    url = f"https://sky.example/{number}"
    sandbox.control.set_page(
        url, f"<p>{text}</p>", title=f"Report {number}", published=sandbox.control.state()["now"]
    )
    return url
