# SPDX-License-Identifier: Apache-2.0
"""Hostile texts on every page, and hostile values of every parameter."""

from __future__ import annotations

from html.parser import HTMLParser
from typing import Any

import pytest

from airflow_provider_webdata.ui.application import VIEWS
from tests.integration.ui.conftest import CONN_ID, HOSTILE, Pages
from tests.integration.ui.test_access import ids, params_of

__all__ = ["ids"]

TRICKS = (
    "' OR 1=1 --",
    '"; DROP TABLE webdata_inbox_delivery; --',
    "../../../etc/passwd",
    "%2e%2e%2f",
    "{{ 7*7 }}",
    "<script>alert(1)</script>",
    "javascript:alert(1)",
    "\x00",
    "\r\nSet-Cookie: a=b",
    "9" * 400,
    "-1",
    "1e309",
    "NaN",
    "２",
    "\u202etxt",
    "{MAP_INDEX}",
    "",
)
PARAMETERS = {
    "/": ("conn_id", "days", "dag"),
    "/attention": ("days",),
    "/changes": ("days",),
    "/card": (),
    "/credits": ("conn_id", "dag"),
    "/credits.csv": ("conn_id", "since", "until", "by"),
    "/inbox": ("conn_id", "event", "find", "since", "until", "started", "before", "id"),
    "/inbox.csv": ("conn_id", "event", "find"),
    "/inbox/delivery": ("id",),
    "/inbox/body": ("id", "at", "start"),
    "/monitors": ("conn_id",),
    "/monitors/list": ("conn_id", "offset"),
    "/monitors/monitor": ("conn_id", "monitor_id", "check_id"),
    "/monitors/monitor/part": ("conn_id", "monitor_id", "check_id"),
    "/monitors/values": ("conn_id", "monitor_id"),
    "/monitors/check": ("conn_id", "monitor_id", "check_id", "skip", "status"),
    "/task": ("dag_id", "run_id", "task_id", "map_index"),
    "/task/job": ("conn_id", "operation", "job_id"),
}


def test_the_parameters_of_every_route_are_listed() -> None:
    assert set(PARAMETERS) == set(VIEWS)


# Every parameter is tried with these, and one parameter of each kind with all.
ALWAYS = ("<script>alert(1)</script>", "{{ 7*7 }}", "\x00", "9" * 400, "")
KINDS = {
    ("/monitors/list", "conn_id"),
    ("/credits.csv", "by"),
    ("/inbox", "find"),
    ("/inbox", "since"),
    ("/inbox", "before"),
    ("/inbox/delivery", "id"),
    ("/inbox/body", "at"),
    ("/monitors/check", "check_id"),
    ("/task/job", "operation"),
    ("/task", "map_index"),
}


@pytest.mark.parametrize("path", PARAMETERS)
def test_tricks_in_the_parameters(pages: Pages, ids: dict[str, Any], path: str) -> None:
    for name in PARAMETERS[path]:
        for trick in TRICKS if (path, name) in KINDS else ALWAYS:
            answer = pages.get(path, **{**params_of(path, ids), name: trick})
            assert answer.status_code in {200, 400, 403, 404}, (name, trick, answer.text[:500])
            assert "set-cookie" not in answer.headers, (name, trick)
            # A file that the browser saves contains texts unchanged.
            assert path.endswith(".csv") or "<script>alert" not in answer.text, (name, trick)
            assert 'href="javascript:' not in answer.text, (name, trick)
            assert "root:" not in answer.text, (name, trick)
            assert ">49<" not in answer.text, (name, trick)


EVERYWHERE = {
    "type": HOSTILE,
    "id": HOSTILE,
    "success": False,
    "data": [
        {"monitorId": HOSTILE, "url": f"javascript:{HOSTILE}", "title": HOSTILE, HOSTILE: [HOSTILE] * 300}
    ],
    "metadata": {"dag_id": HOSTILE, "task_id": HOSTILE, "run_id": HOSTILE, "map_index": HOSTILE},
}


def test_hostile_texts_are_escaped(pages: Pages, ids: dict[str, Any]) -> None:
    delivery = pages.deliver(EVERYWHERE, key="k")
    shown = {
        "/inbox": {},
        "/inbox/delivery": {"id": delivery},
        "/": {},
        "/task": {"dag_id": "shop", "run_id": "run", "task_id": "crawl"},
        "/monitors/list": {"conn_id": CONN_ID},
        "/monitors/monitor/part": params_of("/monitors/monitor/part", ids),
        "/monitors/check": params_of("/monitors/check", ids),
    }
    for path, params in shown.items():
        text = pages.get(path, **params).text
        assert "<script>alert" not in text, path
        assert "&lt;script&gt;alert" in text or path == "/", path
        assert 'href="javascript:' not in text
        assert outside_of_bdi(text) == [], path
        assert "\u202e" not in text, path


def outside_of_bdi(html: str) -> list[str]:
    """Return the attributes that contain `bdi`, and the texts from right to left that no element isolates."""
    found: list[str] = []
    open_elements: list[str] = []

    class Parser(HTMLParser):
        def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
            found.extend(str(value) for _, value in attrs if "<bdi>" in str(value))
            open_elements.append(tag)

        def handle_endtag(self, tag: str) -> None:
            while open_elements and open_elements.pop() != tag:
                pass

        def handle_data(self, data: str) -> None:
            if "\u05d0" in data and not {"bdi", "title", "option", "pre"} & {*open_elements}:
                found.append(data)

    Parser().feed(html)
    return found
