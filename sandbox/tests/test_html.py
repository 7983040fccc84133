# SPDX-License-Identifier: Apache-2.0
"""Turning pages into what a scrape returns."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.tables import each_row
from webdata_sandbox.engine import html
from webdata_sandbox.engine.diffs import diff_tree, json_diff, text_diff
from webdata_sandbox.engine.page import compose
from webdata_sandbox.reference.urls import canonical, is_public

BASE = "https://a.example/dir/page"


@each_row(
    "source, markdown",
    [
        ("<h2>A <em>b</em></h2>", "## A *b*"),
        ("<p>a<br>b</p>", "a  \nb"),
        ("<p>one<p>two", "one\n\ntwo"),
        ("<p>a<br/>b<span/>c</p>", "a  \nbc"),
        ("<p>a <svg><title>x</title></svg>b</p>", "a b"),
        ("<p>a <b>b</b> c <i>d</i><span> e</span></p>", "a **b** c *d* e"),
        ('<a href="../x">y</a>', "[y](https://a.example/x)"),
        ('<a href="#s"></a>', ""),
        ('<img src="i.png" alt="I">', "![I](https://a.example/dir/i.png)"),
        ("<ul><li>a<li>b<ul><li>c</ul></ul>", "- a\n- b\n  - c"),
        ("<ol><li>a</li><li><p>b</p></li></ol>", "1. a\n2. b"),
        ("<pre>  x\n y</pre>", "```\n  x\n y\n```"),
        ("<p><code>a  b</code></p>", "`a b`"),
        ("<blockquote><p>a</p><p>b</p></blockquote>", "> a\n>\n> b"),
        ("<hr>", "---"),
        ("<table><tr><th>a<th>b|c</tr><tr><td>1</tr></table>", "| a | b\\|c |\n| --- | --- |\n| 1 |"),
        ("<table></table>", ""),
        ('<h2>A <img src="i.png" alt="I"></h2>', "## A ![I](https://a.example/dir/i.png)"),
        ("<p>snake_case * b\n  c</p>", "snake_case * b c"),
        ("<title>t</title><main>a</main><nav>b</nav><p>c", "a\n\nb\n\nc"),
        ("<header>a</header><main>b</main><footer>c</footer>", "a\n\nb\n\nc"),
        ("<title>t</title><meta name=x><main>a</main>b<p>c", "a\n\nb\n\nc"),
        ("<html><head><title>t</title></head><main>a</main>", "a"),
        ('<a href="http://[x">y</a>', "[y](http://[x)"),
        ("<script>x</script><style>y</style><p>z</p>", "z"),
        ("<div>a<div>b</div>c</div>", "a\n\nb\n\nc"),
        ("a &amp; b &lt;c&gt;", "a & b <c>"),
    ],
)
def test_markdown(source: str, markdown: str) -> None:
    assert html.to_markdown(html.parse(source), BASE) == markdown


@each_row(
    "markdown, source",
    [
        ("# A", "<h1>A</h1>"),
        ("a **b** [c](https://d.example)", '<p>a <strong>b</strong> <a href="https://d.example">c</a></p>'),
        ("- a\n- b", "<ul>\n<li>a</li>\n<li>b</li>\n</ul>"),
        ("```\n<x>\n```", "<pre><code>&lt;x&gt;\n</code></pre>"),
        ("![a](b.png)", '<p><img src="b.png" alt="a"></p>'),
    ],
)
def test_from_markdown(markdown: str, source: str) -> None:
    assert html.from_markdown(markdown) == source


@each_row(
    "selector, ids",
    [
        ("p", ["1", "2"]),
        (".x", ["1", "3"]),
        ("#2", ["2"]),
        ("p.x", ["1"]),
        ("p, div", ["1", "2", "3"]),
        ("[lang]", ["2"]),
        ('[lang="de"]', ["2"]),
        ("[lang=fr]", []),
        ("body > *", ["1", "2", "3"]),
        ("body p", ["1", "2"]),
        ("p:first-child", ["1"]),
    ],
)
def test_selectors(selector: str, ids: list[str]) -> None:
    tree = html.parse('<p id=1 class="x y">a</p><p id=2 lang=de>b</p><div id=3 class=x>c</div>')
    assert [node.get("id") for node in html.selector(selector)(tree)] == ids


@each_row("selector", ["", "a >", "p,,a", "!", "p:no-such-thing", "[a"])
def test_what_is_no_selector(selector: str) -> None:
    with pytest.raises(ValueError, match="not a CSS selector"):
        html.selector(selector)


def test_of_nested_elements_only_the_outer_is_taken() -> None:
    tree = html.parse("<div><p>a <b>b</b></p>c</div><b>d</b>")
    assert html.to_html(html.together(html.selector("b, p")(tree))) == "<div><p>a <b>b</b></p><b>d</b></div>"


@each_row("depth", [250, 100_000])
def test_deep_pages_are_read_as_far_as_they_go(depth: int) -> None:
    tree = html.parse("a" + "<div>" * depth + "b" + "</div>" * depth)
    assert html.text(tree) == ("a b" if depth == 250 else "a")
    assert html.to_markdown(tree, BASE) == ("a\n\nb" if depth == 250 else "a")


def test_control_characters_are_white_space() -> None:
    tree = html.parse("<p>a<b>\f</b>&#1;b&#xffff;</p>c")
    html.drop(html.selector("b")(tree))
    assert html.text(tree) == "a b c"


@each_row("source", ["", " ", "<!-- x -->", "x.html", "\ud800", "a\0b", '<?xml version="1.0"?><p>x'])
def test_odd_documents(source: str) -> None:
    tree = html.parse(source)
    assert html.text(tree) == html.to_markdown(tree, BASE)


@given(st.text(alphabet="<>/=\"' ab&;!-pdivulai\n"))
def test_any_markup_gives_some_tree(source: str) -> None:
    tree = html.parse(source)
    html.to_markdown(tree, BASE)
    assert html.to_html(html.parse(html.to_html(tree))) == html.to_html(tree)


@given(st.lists(st.text(alphabet="ab-+@ ")), st.lists(st.text(alphabet="ab-+@ ")))
def test_the_tree_of_a_diff_holds_its_lines(before: list[str], after: list[str]) -> None:
    text = text_diff("\n".join(before), "\n".join(after))
    chunks = diff_tree(text)["files"][0]["chunks"]
    lines = [
        line for chunk in chunks for line in (chunk["content"], *(c["content"] for c in chunk["changes"]))
    ]
    assert lines == (text.split("\n")[2:] if text else [])
    old, new = "\n".join(before).splitlines(), "\n".join(after).splitlines()
    for change in (change for chunk in chunks for change in chunk["changes"]):
        body = change["content"][1:]
        if change["type"] != "add":
            assert old[change.get("ln1", change.get("ln")) - 1] == body
        if change["type"] != "del":
            assert new[change.get("ln2", change.get("ln")) - 1] == body


@each_row(
    "before, after, diff",
    [
        ({"a": 1}, {"a": 1}, {}),
        ({"a": [{"b": 1}]}, {"a": [{"b": 2}]}, {"a[0].b": {"previous": 1, "current": 2}}),
        ({"a": 1}, {"b": 1}, {"a": {"previous": 1, "current": None}, "b": {"previous": None, "current": 1}}),
        (
            {"a": []},
            {"a": [1]},
            {"a": {"previous": [], "current": None}, "a[0]": {"previous": None, "current": 1}},
        ),
        (None, {"a": 1}, {"a": {"previous": None, "current": 1}}),
    ],
)
def test_json_diff(before: object, after: object, diff: object) -> None:
    assert json_diff(before, after) == diff


@each_row(
    "url, kept",
    [
        ("A.example", "https://a.example/"),
        ("http://a.example/x/", "https://a.example/x"),
        ("https://a.example/x?y=1#z", "https://a.example/x?y=1"),
        ("https://a.example:8443", "https://a.example:8443/"),
    ],
)
def test_canonical(url: str, kept: str) -> None:
    assert canonical(url) == kept


@each_row(
    "url, public",
    [
        ("https://a.example", True),
        ("http://10.0.0.1/x", True),
        ("http://[::1]/", True),
        ("https://ü.example/", True),
        ("https://localhost", False),
        ("ftp://a.example", False),
        ("https://a.example:port", False),
        ("https://[broken", False),
        ("https://a b.example", False),
        ("", False),
    ],
)
def test_is_public(url: str, public: bool) -> None:
    assert is_public(url) is public


@each_row(
    "parts",
    [
        {},
        {"html": "a", "markdown": "b"},
        {"html": "a", "published": "yesterday"},
        {"html": "a", "status": 200, "x": 1},
    ],
)
def test_pages_are_checked(parts: dict[str, object]) -> None:
    with pytest.raises((ValueError, TypeError)):
        compose(BASE, **parts)  # type: ignore[arg-type]
