"""Values on the pages."""

from __future__ import annotations

import json
from datetime import datetime, timedelta, timezone
from html import unescape
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_webdata.ui.rendering import ago, moment_markup, number, outside, size, tree

NOW = datetime(2026, 1, 31, 12, tzinfo=timezone.utc)


@pytest.mark.parametrize(
    ("distance", "words"),
    [
        (timedelta(seconds=0), "0 seconds ago"),
        (timedelta(seconds=-1), "1 second ago"),
        (timedelta(seconds=-59.9), "59 seconds ago"),
        (timedelta(seconds=-60), "1 minute ago"),
        (timedelta(minutes=-119), "1 hour ago"),
        (timedelta(hours=-48), "2 days ago"),
        (timedelta(hours=3), "in 3 hours"),
        (timedelta(days=400), "in 400 days"),
    ],
)
def test_how_long_ago(distance: timedelta, words: str) -> None:
    assert ago(NOW + distance, NOW) == words


def test_a_moment_is_told_to_the_browser_in_utc() -> None:
    text = moment_markup(NOW.astimezone(timezone(timedelta(hours=5))))
    assert 'datetime="2026-01-31T12:00:00+00:00"' in text
    assert "never" in moment_markup(None)


@pytest.mark.parametrize(
    ("value", "text"), [(None, "unknown"), (0, "0"), (1234567, "1,234,567"), (2.5, "2.5"), (3.0, "3")]
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
    shown = str(tree(value))
    for text in _texts(value):
        assert text in unescape(shown)
    assert shown.count("<") == shown.count(">")


def _texts(value: Any) -> list[str]:
    if isinstance(value, dict):
        return [text for name, item in value.items() for text in (name, *_texts(item))]
    if isinstance(value, list):
        return [text for item in value for text in _texts(item)]
    return [value if isinstance(value, str) else json.dumps(value)]


def test_large_values_are_cut() -> None:
    assert "and 800 more" in tree(list(range(1000)))
    assert "(5,000 characters)" in tree("x" * 5000)
