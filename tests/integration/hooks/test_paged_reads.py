# SPDX-License-Identifier: Apache-2.0
"""Every paged read ends: at a page without new items, or, if a page is repeated, with the reason."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import pytest

from airflow_provider_webdata.api.errors import UnsupportedError
from airflow_provider_webdata.hooks.webdata import WebDataHook
from tests.support.fault_server import FaultServer, answer

MONITOR = "0190c0de-0000-7000-8000-00000000abcd"
MONITORS = [{"id": f"m{number}", "name": "m"} for number in range(100)]


def endless(body: Callable[[int, list[Any]], dict[str, Any]], items: list[Any]) -> Iterator[dict[str, Any]]:
    """Yield pages with new links or cursors, and the same items; the list of monitors, which has no links, goes on."""
    for number in range(8):
        yield {"success": True, **body(number, items)}


def linked(path: str, key: str, **more: Any) -> Callable[[int, list[Any]], dict[str, Any]]:
    return lambda number, items: {**more, key: items, "next": f"https://host.example{path}?at={number}"}


def of_check(number: int, items: list[Any]) -> dict[str, Any]:
    link = f"https://host.example/v2/monitor/{MONITOR}/checks/c?skip={number}"
    return {"data": {"id": "c", "status": "completed", "pages": items}, "next": link}


def of_catalog(number: int, items: list[Any]) -> dict[str, Any]:
    link = {"provider": "firecrawl", "capability": "find-tools", "options": {"offset": number}}
    return {"data": {"alexandria": [{"data": {"items": items, "next": link}}]}}


READS: dict[
    str, tuple[Callable[[WebDataHook], Any], Callable[[int, list[Any]], dict[str, Any]], list[Any]]
] = {
    "iter_activity": (
        lambda hook: hook.iter_activity(),
        lambda number, items: {"data": items, "cursor": f"c{number}", "has_more": True},
        [{"id": "a", "endpoint": "crawl"}],
    ),
    "iter_monitors": (
        lambda hook: hook.iter_monitors(),
        # Each page begins with the last monitor of the one before.
        lambda number, items: {"data": items[99 * number :]},
        MONITORS,
    ),
    "iter_monitor_check_pages": (
        lambda hook: hook.iter_monitor_check_pages(MONITOR, "c"),
        of_check,
        [{"id": "p", "url": "https://a.example", "status": "new"}],
    ),
    "iter_job_documents": (
        lambda hook: (page for part in hook.iter_job_documents("crawl", "j") for page in part.documents),
        linked("/v2/crawl/j", "data", status="completed"),
        [],
    ),
    "find_tools": (lambda hook: hook.find_tools(), of_catalog, [{"id": "p/c"}]),
}


def test_each_paged_read_is_listed() -> None:
    assert {name for name in dir(WebDataHook) if name.startswith("iter_")} == {*READS} - {"find_tools"}


@pytest.mark.parametrize("name", READS)
def test_a_read_ends_at_a_page_without_new_items(connect: Any, name: str) -> None:
    read, body, items = READS[name]
    for given in ([], items):
        with closing(FaultServer([answer(body=json.dumps(page)) for page in endless(body, given)])) as server:
            connect(server.url)
            with WebDataHook() as hook:
                assert len([*read(hook)]) == len(given)
            assert len(server.requests) == 1 + bool(given)


REPEATED: dict[str, tuple[str, list[Any]]] = {
    "calls": ("iter_activity", READS["iter_activity"][2]),
    "pages of a check": ("iter_monitor_check_pages", READS["iter_monitor_check_pages"][2]),
    "documents": ("iter_job_documents", [{"markdown": "x", "metadata": {"sourceURL": "https://a.example"}}]),
    "monitors": ("iter_monitors", MONITORS),
    # Without its query, the request is for a page of the default size.
    "monitors of a default page": ("iter_monitors", MONITORS[:25]),
}


@pytest.mark.parametrize("name", REPEATED)
def test_a_page_that_is_repeated_names_what_lies_between(connect: Any, name: str) -> None:
    """A gateway that drops queries returns the first page each time: the rest must not be missed silently."""
    method, items = REPEATED[name]
    read, body, _ = READS[method]
    with closing(FaultServer([answer(body=json.dumps({"success": True, **body(0, items)}))])) as server:
        connect(server.url)
        with (
            WebDataHook() as hook,
            pytest.raises(UnsupportedError, match="a gateway on the way drops the query"),
        ):
            list(read(hook))
        assert len(server.requests) == 2
