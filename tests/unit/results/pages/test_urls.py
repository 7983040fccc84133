# SPDX-License-Identifier: Apache-2.0
"""By which text two URLs are one page."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_webdata.results.pages.urls import canonical_url, without_tracking
from tests.support.tables import each_row


@each_row(
    "url, key",
    [
        ("https://a.example", "https://a.example/"),
        ("HTTPS://A.example/B", "https://a.example/B"),
        ("https://a.example:443/b#part", "https://a.example/b"),
        ("https://a.example/b#!", "https://a.example/b#!"),
        ("https://A.example?utm_id=1#/c?d=1", "https://a.example/#/c?d=1"),
        ("http://a.example:80/", "http://a.example/"),
        ("http://a.example:8080/", "http://a.example:8080/"),
        ("https://a.example/?utm_source=x&id=2", "https://a.example/?id=2"),
        ("https://a.example/?UTM_Source=x", "https://a.example/"),
        ("https://a.example/?gclid=1&fbclid=2&a=%C3%A4", "https://a.example/?a=%C3%A4"),
        ("https://a.example/?b=2&a=1", "https://a.example/?b=2&a=1"),
        ("https://a.example/?q=a+b%20c", "https://a.example/?q=a+b%20c"),
        ("https://a.example/?q=%E4&utm_id=1", "https://a.example/?q=%E4"),
        ("https://a.example/?gclid=1&tags=a,b&&c", "https://a.example/?tags=a,b&&c"),
        ("https://a.example/?srsltid=1&gad_source=2&gad_campaignid=3", "https://a.example/"),
        ("https://a.example/?twclid=1&ttclid=2&li_fat_id=3&id=4", "https://a.example/?id=4"),
        ("https://a.example/b?", "https://a.example/b"),
        (" https://a.example/b ", "https://a.example/b"),
        ("no url", "no url"),
        ("https://[broken", "https://[broken"),
        ("", ""),
    ],
)
def test_one_key_for_all_urls_of_a_page(url: str, key: str) -> None:
    assert canonical_url(url) == key


def test_the_query_may_be_left_out() -> None:
    assert canonical_url("https://a.example/b?c=1&utm_source=x", ignore_query=True) == "https://a.example/b"


@given(st.text())
def test_a_key_is_its_own_key(url: str) -> None:
    assert canonical_url(canonical_url(url)) == canonical_url(url)


@given(
    st.lists(
        st.sampled_from(
            [
                *"aA/?&=#%+:;@._-[ \x1f\x85\xa0\tä",
                "\ud83d",
                "https://",
                "a.example/",
                "utm_x",
                "gclid",
                "%75tm_x",
            ]
        )
    ).map("".join),
    st.booleans(),
)
def test_a_simple_url_has_the_key_of_any_other(end: str, ignore_query: bool) -> None:
    """With a space in front, a URL is split even if it is canonical."""
    url = f"https://a.example/{end}"
    assert canonical_url(url, ignore_query=ignore_query) == canonical_url(
        f" {url}", ignore_query=ignore_query
    )


PARTS = st.text(alphabet="aZ09=%+,;/?:@!$*~._-äé", max_size=6).filter(bool)
KEPT = st.one_of(PARTS, st.sampled_from(["q=%E4", "tags=a,b", "tags=a%2Cb", "a=%zz", "gclids=1", "=gclid=1"]))
CUT = st.sampled_from(["utm_source=a%20b", "GCLID=", "srsltid=x", "gad_source=1", "li_fat_id=%E4"])


@given(st.lists(st.tuples(KEPT, st.booleans())), CUT, st.sampled_from(["&", "&amp;", "&#38;"]))
def test_a_query_is_cut_and_never_rewritten(
    parts: list[tuple[str, bool]], tracking: str, entity: str
) -> None:
    kept = [part for part, _ in parts]
    mixed = [one for part, is_before in parts for one in ([tracking, part] if is_before else [part])]

    def link(found: list[str], by: str) -> str:
        return "https://a.example/b" + ("?" if found else "") + by.join(found)

    assert canonical_url(link([*mixed, tracking], "&")) == link(kept, "&")
    page = f'Why? <a href="{{}}">a & b</a> {entity}c?'
    cleaned = without_tracking(page.format(link([*mixed, tracking], entity)))
    assert cleaned == page.format(link(kept, entity))


@each_row(
    "text, cleaned",
    [
        ("[a](https://a.example/?utm_source=x&id=2)", "[a](https://a.example/?id=2)"),
        ("[a](https://a.example/?id=2&utm_source=x)", "[a](https://a.example/?id=2)"),
        ("[a](https://a.example/?gclid=x) b", "[a](https://a.example/) b"),
        ("https://a.example/?utm_a=1&utm_b=2", "https://a.example/"),
        ('<a href="/?id=2&amp;utm_source=x&amp;b=1">', '<a href="/?id=2&amp;b=1">'),
        ('<a href="/?utm_source=x&amp;utm_id=1&#38;b=1">', '<a href="/?b=1">'),
        ("Really? Yes & no: /?utm_id=1", "Really? Yes & no: /"),
        ("Is a=b? utm_source=x stays", "Is a=b? utm_source=x stays"),
        ("What? Nothing = nothing", "What? Nothing = nothing"),
    ],
)
def test_links_without_tracking(text: str, cleaned: str) -> None:
    assert without_tracking(text) == cleaned
