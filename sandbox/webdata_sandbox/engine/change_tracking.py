# SPDX-License-Identifier: Apache-2.0
"""The changeTracking format: compares a scrape with the previous one of the same page and tag."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .diffs import diff_tree, json_diff, text_diff

if TYPE_CHECKING:
    from webdata_sandbox.reference.wire import Json
    from webdata_sandbox.state.clock import Clock
    from webdata_sandbox.state.store import Store

    from .page import Page

GONE = (404, 410)


class ChangeTracker:
    """Stores the last tracked state of pages."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store, self._clock = store, clock

    def track(self, page: Page, options: Json, markdown: str, extraction: Any, *, remember: bool) -> Json:
        """Compare a page with its previous state, and store the current one if ``remember`` is true.

        :param options: the format's options.
        :param extraction: the data that json mode compares.
        """
        key = f"{page.url} {options.get('tag') or ''}"
        before = self._store.get("tracked", key)
        now = {"at": self._clock.iso(), "status": page.status, "markdown": markdown, "json": extraction}
        if remember:
            self._store.put("tracked", key, now)
        modes = options.get("modes") or ()
        found: Json = {
            "previousScrapeAt": before["at"] if before else None,
            "changeStatus": _status(before, now, modes),
            # Only a page of an earlier crawl can be hidden. Here, every page was requested or linked.
            "visibility": "visible",
        }
        if "git-diff" in modes and before is not None and before["markdown"] != markdown:
            text = text_diff(before["markdown"], markdown)
            found["diff"] = {"text": text, "json": diff_tree(text)}
        if "json" in modes:
            found["json"] = _fields(before["json"], extraction) if before else None
        return found


def _status(before: Json | None, now: Json, modes: list[str] | tuple[str, ...]) -> str:
    if before is None:
        return "new"
    if now["status"] in GONE and before["status"] not in GONE:
        return "removed"
    # If json is the only mode, the rest of the text may change.
    compared = (
        ("json",) if list(modes) == ["json"] else ("markdown", "json") if "json" in modes else ("markdown",)
    )
    return "same" if all(before[name] == now[name] for name in compared) else "changed"


def _fields(before: Any, after: Any) -> Json:
    """Return the previous and current value of each field; if either is not an object, the differences by JSON path."""
    if not isinstance(before, dict) or not isinstance(after, dict):
        return json_diff(before, after)
    return {name: {"previous": before.get(name), "current": after.get(name)} for name in {**before, **after}}
