# SPDX-License-Identifier: Apache-2.0
"""Text from outside cannot change the direction of the text around it."""

from __future__ import annotations

from typing import Any

import pytest
from markupsafe import Markup

from airflow_provider_webdata.ui.rendering import _ENVIRONMENT, outside, tree

HEBREW = "\u05d0"
ISOLATED = f"<bdi>{HEBREW}</bdi>"


@pytest.mark.parametrize(
    ("source", "html"),
    [
        ("<p>{{ x }}</p>", f"<p>{ISOLATED}</p>"),
        ("{{ x }}", ISOLATED),
        (
            '<a href="/{{ x }}" title="{{ x }}">{{ x }}</a>',
            f'<a href="/{HEBREW}" title="{HEBREW}">{ISOLATED}</a>',
        ),
        ("<title>{{ x }}</title>{{ x }}", f"<title>{HEBREW}</title>{ISOLATED}"),
        ("<option{{ x }}>{{ x }}</option><p>{{ x }}", f"<option{HEBREW}>{HEBREW}</option><p>{ISOLATED}"),
        ("{{ 'a' if false else x }}{{ x if true else 'a' }}", ISOLATED * 2),
        ("{{ 'a' ~ x }}", f"<bdi>a{HEBREW}</bdi>"),
        ("{{ x | upper }}", ISOLATED),
        ("{{ latin }}{{ 5 }}{{ none }}", "a&lt;b5None"),
        ("{{ markup }}", f"<b>{HEBREW}</b>"),
        ("{% macro m(y) %}<i>{{ y }}</i>{% endmacro %}<p>{{ m(x) }}</p>", f"<p><i>{ISOLATED}</i></p>"),
        ("{% if x %}<a class='{{ x }}'>{% endif %}{{ x }}", f"<a class='{HEBREW}'>{ISOLATED}"),
    ],
)
def test_between_tags_only(source: str, html: str) -> None:
    markup = Markup(f"<b>{HEBREW}</b>")
    assert _ENVIRONMENT.from_string(source).render(x=HEBREW, latin="a<b", markup=markup) == html


def test_a_mark_cannot_leave_its_element() -> None:
    """A mark that ends an isolate would end `<bdi>`, too: none of them is shown, in attributes and titles either."""
    text = f"\u2069\u202e{HEBREW}</bdi><script>"
    shown = f"{HEBREW}&lt;/bdi&gt;&lt;script&gt;"
    template = '<title>{{ x }}</title><a aria-label="{{ x }}">{{ x }}</a>'
    assert (
        _ENVIRONMENT.from_string(template).render(x=text)
        == f'<title>{shown}</title><a aria-label="{shown}"><bdi>{shown}</bdi></a>'
    )
    assert "\u202e" not in tree([text, text * 500], "part?id=1")


@pytest.mark.parametrize(
    "shown",
    [
        lambda: outside(f"https://a.example/{HEBREW}"),
        lambda: outside(HEBREW),
        lambda: tree({HEBREW: 1}, "part?id=1"),
        lambda: tree([HEBREW], "part?id=1"),
        lambda: tree([HEBREW + "x" * 5000], "part?id=1"),
    ],
)
def test_values_that_are_rendered_apart(shown: Any) -> None:
    assert f"{HEBREW}</bdi>" in shown() or f"<bdi>{HEBREW}x" in shown()
