# SPDX-License-Identifier: Apache-2.0
"""Values on the pages."""

from __future__ import annotations

import json
from datetime import datetime, timedelta, timezone
from html import unescape
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_webdata.airflow_db.tasks import TaskName
from airflow_provider_webdata.ui.rendering import (
    _ENVIRONMENT,
    MAX_NODES,
    moment_markup,
    number,
    outside,
    size,
    span,
    tree,
)

NOW = datetime(2026, 1, 31, 12, tzinfo=timezone.utc)


def test_a_moment_is_told_to_the_browser_in_utc() -> None:
    text = moment_markup(NOW.astimezone(timezone(timedelta(hours=5))))
    assert 'datetime="2026-01-31T12:00:00+00:00"' in text
    assert "never" in moment_markup(None)


@pytest.mark.parametrize(
    ("distance", "words"),
    [
        (timedelta(0), "a few seconds ago"),
        (timedelta(minutes=-100), "1 hour ago"),
        (timedelta(hours=-50), "2 days ago"),
        (timedelta(hours=3.5), "in 3 hours"),
    ],
)
def test_a_moment_has_its_age(distance: timedelta, words: str) -> None:
    assert f">{words}<" in moment_markup(datetime.now(timezone.utc) + distance)


@pytest.mark.parametrize(
    ("length", "words"),
    [
        (timedelta(0), "a few seconds"),
        (timedelta(seconds=75), "1 minute"),
        (timedelta(hours=5, minutes=50), "5 hours"),
        (timedelta(days=3), "3 days"),
    ],
)
def test_a_duration_is_written_in_its_largest_unit(length: timedelta, words: str) -> None:
    assert span(length) == words


@pytest.mark.parametrize(
    ("is_list_incomplete", "shown", "hidden"),
    [
        (False, "No connection of type webdata", "unknown"),
        (True, "a secrets backend cannot be read", "Create one"),
    ],
)
def test_without_a_connection_the_inbox_leads_to_one(
    is_list_incomplete: bool, shown: str, hidden: str
) -> None:
    """And not to the field of a connection that is missing. If a secrets backend is down, there may be one."""
    names = ("conn_id", "dag_id", "event", "find", "since", "until", "started")
    flags = dict.fromkeys(("is_any_hidden", "is_filtered", "are_any_started"), False)
    flags["is_list_incomplete"] = is_list_incomplete
    missing = dict.fromkeys(("since", "until", "following", "first", "opened"))
    texts = dict.fromkeys(("root", "airflow", "version", "title", "csv", "refused_step"), "")
    lists: dict[str, Any] = {"conn_ids": [], "rows": [], "refused": [], "given": dict.fromkeys(names, "")}
    page = _ENVIRONMENT.get_template("inbox.html").render(
        path="/inbox", most_exported=1, **flags, **missing, **texts, **lists
    )
    assert shown in page
    assert hidden not in page
    assert "Webhook URL" not in page


def test_secrets_in_urls_are_masked() -> None:
    url = "https://user:hush-one@a.example/?page=2&access_token=hush-two&b=c"
    token = "https://hush0123456789abcdefghij:x-oauth@a.example/?key=hush"
    assert outside(token).striptags() == "https://***:***@a.example/?key=***"
    texts = [outside(url), tree({"url": url, "text": f"Failed: {url}"}, "/p?x=1")]
    texts.append(_ENVIRONMENT.from_string("{{ url }} {{ text }}").render(url=url, text=f"at {url}"))
    for text in texts:
        assert "hush" not in text
        assert "https://user:***@a.example/?page=2&amp;access_token=***&amp;b=c" in text


def test_a_task_in_a_delivery_leads_to_no_other_page() -> None:
    """Its metadata may name any task."""
    macros = _ENVIRONMENT.get_template("macros.html").make_module({"airflow": ""})
    link = macros.task_link("", TaskName("..", "", "../../auth/logout"))  # type: ignore[attr-defined]
    assert 'href="/dags/../tasks/..%2F..%2Fauth%2Flogout"' in link


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "unknown"),
        (0, "0"),
        (1234567, "1,234,567"),
        (2.5, "2.5"),
        (3.0, "3"),
        (0.0125, "0.0125"),
        (72.25, "72.2"),
    ],
)
def test_numbers(value: float | None, text: str) -> None:
    assert number(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0 bytes"), (1023, "1,023 bytes"), (1024, "1.0 KiB"), (16 * 2**20, "16.0 MiB"), (2**31, "2.0 GiB")],
)
def test_sizes(value: int, text: str) -> None:
    assert size(value) == text


@pytest.mark.parametrize(
    ("url", "is_link"),
    [
        ("https://shop.example/a?b=c&d", True),
        ("http://[::1]/", True),
        ("javascript:alert(1)", False),
        ("JaVaScRiPt:alert(1)", False),
        (" https://shop.example/", False),
        ("https://shop.example/\n", False),
        ("//shop.example/", False),
        ("https:", False),
        ("http://[abc", False),
        ("data:text/html,x", False),
        ('https://shop.example/"><script>', True),
        (None, False),
    ],
)
def test_only_addresses_of_the_web_are_links(url: Any, is_link: bool) -> None:
    text = str(outside(url))
    assert ("<a " in text) is is_link
    assert ('rel="noopener noreferrer"' in text) is is_link
    assert "<script>" not in text


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=20),
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
        max_leaves=20,
    )
)
def test_a_tree_shows_every_text_and_no_markup(value: Any) -> None:
    shown = str(tree(value, "part?id=1"))
    for text in _texts(value):
        assert text in unescape(shown)
    assert shown.count("<") == shown.count(">")


def _texts(value: Any) -> list[str]:
    if isinstance(value, dict):
        return [text for name, item in value.items() for text in (name, *_texts(item))]
    if isinstance(value, list):
        return [text for item in value for text in _texts(item)]
    return [value if isinstance(value, str) else json.dumps(value)]


WIDE = [{"name": number, "tags": list(range(10))} for number in range(40_000)]
DEEP = json.loads("[" * 150 + "]" * 150)


@pytest.mark.parametrize(
    "value", [WIDE, DEEP, {"data": WIDE, "metadata": {"dag_id": "shop"}}, {"a" * 10**6: 1}]
)
def test_a_tree_is_bounded(value: Any) -> None:
    shown = tree(value, "part?id=1")
    assert shown.count("<li>") <= 2 * MAX_NODES
    assert len(shown) < 100_000


def test_a_large_part_leaves_its_neighbors_in_sight() -> None:
    assert "shop" in tree({"data": WIDE, "metadata": {"dag_id": "shop"}}, "part?id=1")


def test_links_lead_to_the_rest() -> None:
    shown = tree(list(range(1000)), "part?id=1", "3.0")
    assert '<a class="more" href="part?id=1&amp;at=3.0&amp;start=200">… and 800 more</a>' in shown
    rest = tree(list(range(1000)), "part?id=1", "3.0", 900)
    assert "<code>900</code>" in rest
    assert "<code>999</code>" in rest
    assert "<code>899</code>" not in rest
    assert "more" not in rest


def test_long_texts_are_cut() -> None:
    text = "x" * 5000
    assert "(5,000 characters)" in tree([text], "part?id=1")
    assert text not in tree([text], "part?id=1")
    assert text in tree(text, "part?id=1", "0")
    assert text not in outside(f"https://shop.example/{text}")


@pytest.mark.parametrize(
    ("value", "text"),
    [(10**399, "1,000"), (-(10**399), "-1,000"), (1e308, "1"), (float("inf"), "inf"), (float("nan"), "nan")],
    ids=("huge", "minus huge", "1e308", "inf", "nan"),
)
def test_odd_numbers(value: float, text: str) -> None:
    assert number(value).startswith(text)


@pytest.mark.parametrize("text", ["0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-12:00"])
def test_moments_at_the_edge_of_the_calendar(text: str) -> None:
    assert text[:4] in moment_markup(datetime.fromisoformat(text))
