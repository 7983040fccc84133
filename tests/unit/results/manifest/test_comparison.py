"""What of a run's items is new, changed, the same, removed or failed."""

from __future__ import annotations

import gzip
from io import BytesIO
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_webdata.common.arguments import count_or_share, removal_limit
from airflow_provider_webdata.common.coded_errors import ArgumentError
from airflow_provider_webdata.results.changes.content import compared, digest
from airflow_provider_webdata.results.errors import OutputError
from airflow_provider_webdata.results.manifest.comparison import Comparison
from airflow_provider_webdata.results.manifest.entries import Entry, decoded, encoded
from tests.support.tables import each_row


def page(name: str, text: str = "text", **more: Any) -> dict[str, Any]:
    return {
        "markdown": text,
        "metadata": {"sourceURL": f"https://a.example/{name}", "statusCode": 200, **more},
    }


def unresolved(name: str, **more: Any) -> dict[str, Any]:
    """Return the page of a host that does not resolve, as a self-hosted server may return it."""
    url = f"http://b.example/{name}"
    told = {"statusCode": 404, "error": "Not Found", "contentType": "text/plain; charset=utf-8"}
    return page("", "Not Found", sourceURL=url, url=url, **told, **more)


def stored(comparison: Comparison) -> dict[str, Entry]:
    """Return what the next run reads of a comparison."""
    lines = gzip.compress(b"".join(encoded(comparison.entries())))
    return dict(decoded(gzip.GzipFile(fileobj=BytesIO(lines))))


def runs(
    *seen: list[dict[str, Any]],
    compare: Any = "content",
    after: int = 2,
    by_links: bool = True,
    **options: Any,
) -> list[Any]:
    """Return, for each run, the changes of its items and the URLs of what it removed."""
    entries: dict[str, Entry] = {}
    told = []
    for number, items in enumerate(seen):
        comparison = Comparison(entries, f"2026-01-{number + 1:02}", compare, **options)
        changes = [comparison.change_of(item)[0] for item in items]
        removed = [*comparison.removed(after, most=len(entries), by_links=by_links)]
        assert sum(comparison.counts.values()) + comparison.repeated == len(items) + len(removed)
        told.append((changes, removed))
        entries = stored(comparison)
    return told


def test_a_site_that_loses_most_of_its_pages_keeps_them() -> None:
    entries: dict[str, Entry] = {}
    found = []
    # Of 1,000 pages one is answered, twice; then the rest but one is there again.
    for names in (range(1000), range(1), range(1), range(1), range(999), range(999), range(999)):
        comparison = Comparison(entries, "2026-01-01", "content")
        changes = {comparison.change_of(page(str(name)))[0] for name in names}
        gone = comparison.removed(2, removal_limit(None, comparison.known))
        found.append((changes, len(gone), comparison.held_back))
        entries = stored(comparison)
    held = ({"same"}, 0, 999)
    assert found == [
        *(({"new"}, 0, 0), ({"same"}, 0, 0), held, held),
        *(({"same"}, 1, 0), ({"same"}, 0, 0), ({"same"}, 0, 0)),
    ]


@pytest.mark.parametrize(
    ("max_removed", "known", "most"),
    [
        *((None, 0, 0), (None, 20, 20), (None, 21, 10), (None, 1000, 500)),
        *((0, 1000, 0), (7, 1000, 7), (1, 1000, 1)),
        *((0.0, 1000, 0), (0.1, 1000, 100), (1.0, 21, 21), (0.5, 3, 1)),
    ],
)
def test_how_much_may_be_removed(max_removed: float | None, known: int, most: int) -> None:
    assert removal_limit(count_or_share("max_removed", max_removed), known) == most


@pytest.mark.parametrize("given", [-1, 1.1, -0.1, True, "5", float("nan"), float("inf"), [1]])
def test_what_is_neither_a_count_nor_a_share(given: Any) -> None:
    with pytest.raises(ArgumentError, match="max_removed must be a count"):
        count_or_share("max_removed", given)


CASES: list[tuple[str, list[list[dict[str, Any]]], list[Any]]] = [
    ("nothing", [[]], [([], [])]),
    ("the same twice", [[page("a")], [page("a")]], [(["new"], []), (["same"], [])]),
    ("white space", [[page("a", "b c")], [page("a", " b \n\n c")]], [(["new"], []), (["same"], [])]),
    (
        "tracking parameters in links",
        [[page("a", "[x](https://b.example/?utm_id=1)")], [page("a", "[x](https://b.example/?utm_id=2)")]],
        [(["new"], []), (["same"], [])],
    ),
    ("other text", [[page("a")], [page("a", "other")]], [(["new"], []), (["changed"], [])]),
    (
        "gone for good",
        [[page("a"), page("b")], [page("a")], [page("a")], [page("a")]],
        [(["new", "new"], []), (["same"], []), (["same"], ["https://a.example/b"]), (["same"], [])],
    ),
    (
        "missing once",
        [[page("a"), page("b")], [page("a")], [page("a"), page("b")], [page("a")]],
        [(["new", "new"], []), (["same"], []), (["same", "same"], []), (["same"], [])],
    ),
    (
        "gone, by what its site says",
        [[page("a")], [page("a", "x", statusCode=404)], [page("a", "x", statusCode=410, error="Gone")]],
        [(["new"], []), (["failed"], []), (["failed"], ["https://a.example/a"])],
    ),
    (
        "a host that no longer resolves",
        [
            [page("a"), page("", sourceURL="http://b.example/a"), page("", sourceURL="http://b.example/b")],
            *[[page("a"), unresolved("a"), unresolved("b")]] * 3,
        ],
        [(["new"] * 3, []), *[(["same", "failed", "failed"], [])] * 3],
    ),
    (
        "gone, by what a host says that served another page",
        [
            [page("", sourceURL="http://b.example/a"), page("", sourceURL="http://b.example/b")],
            *[[unresolved("a"), page("", sourceURL="http://b.example/b")]] * 2,
        ],
        [(["new"] * 2, []), (["failed", "same"], []), (["failed", "same"], ["http://b.example/a"])],
    ),
    (
        "failing for long, which does not count",
        [
            [page("a")],
            [page("a", "x", statusCode=404)],
            *([page("a", "x", statusCode=status)] for status in (500, 503, 403, 429, "502")),
            [page("a", "", statusCode=None, error="timeout")],
            [page("a", "x", statusCode=404)],
        ],
        [(["new"], []), *[(["failed"], [])] * 7, (["failed"], ["https://a.example/a"])],
    ),
    (
        "failing, then found in the same run",
        [[page("a")], [page("a", "x", statusCode=503), page("a")], [], []],
        [(["new"], []), (["failed", "same"], []), ([], []), ([], ["https://a.example/a"])],
    ),
    (
        "back again",
        [[page("a")], [], [], [page("a")]],
        [(["new"], []), ([], []), ([], ["https://a.example/a"]), (["new"], [])],
    ),
    ("twice in one run", [[page("a"), page("a")], [page("a")]], [(["new", "new"], []), (["same"], [])]),
    (
        "moved: it is found by what was asked for",
        [[page("a")], [page("a", url="https://a.example/new")]],
        [(["new"], []), (["same"], [])],
    ),
    ("without a URL", [[{"markdown": "x"}], [{"markdown": "x"}]], [(["new"], []), (["new"], [])]),
    (
        "no markdown: all that was asked for",
        [
            [{"json": {"price": 1}, "metadata": {"sourceURL": "https://a.example/", "scrapeId": "1"}}],
            [{"json": {"price": 1}, "metadata": {"sourceURL": "https://a.example/", "scrapeId": "2"}}],
            [{"json": {"price": 2}, "metadata": {"sourceURL": "https://a.example/", "scrapeId": "3"}}],
        ],
        [(["new"], []), (["same"], []), (["changed"], [])],
    ),
]


@each_row("seen, told", [case[1:] for case in CASES])
def test_runs(seen: list[list[dict[str, Any]]], told: list[Any]) -> None:
    assert runs(*seen) == told


@each_row(
    "cached_at, seen",
    [
        ("2026-01-01T22:00:00.5-01:00", "2026-01-01T22:00:00.500000-01:00"),
        ("2026-01-03T00:00:00Z", "2026-01-02T00:00:00+00:00"),
        (None, "2026-01-02T00:00:00+00:00"),
    ],
)
def test_a_cached_page_is_as_old_as_its_cache(cached_at: Any, seen: str) -> None:
    """Otherwise an incremental crawl skips a page that changed after it was cached."""
    comparison = Comparison({}, "2026-01-02T00:00:00+00:00", "content")
    comparison.change_of(page("a", cacheState="hit", cachedAt=cached_at))
    assert [entry.last_seen for entry in comparison.entries().values()] == [seen]


def test_by_paths() -> None:
    def priced(price: int, title: str) -> dict[str, Any]:
        return {**page("a", title), "json": {"offers": [{"price": price}]}}

    by = compared(["json.offers.0.price"], "document")
    told = runs([priced(1, "a")], [priced(1, "b")], [priced(2, "b")], compare=by)
    assert [changes for changes, _ in told] == [["new"], ["same"], ["changed"]]


@each_row(
    "said, change",
    [("same", "same"), ("changed", "changed"), ("new", "changed"), ("removed", "failed"), (None, "changed")],
)
def test_by_what_the_service_says(said: str | None, change: str) -> None:
    tracked = {**page("a", "b"), "changeTracking": {"changeStatus": said}}
    told = runs([page("a")], [tracked], compare="changeTracking")
    assert told[1][0] == [change]


def test_links_by_url() -> None:
    link = {"url": "https://a.example/b?c=1", "title": "x"}
    told = runs([link], [{**link, "title": "y"}], [{**link, "url": "https://a.example/b?c=2"}], compare="url")
    assert told == [(["new"], []), (["same"], []), (["new"], [])]
    told = runs([link], [{**link, "url": "https://a.example/b?c=2"}], compare="url", ignore_query=True)
    assert told[1] == (["same"], [])


@each_row(
    "compare, kind, by",
    [
        (None, "document", "content"),
        (None, "search_news", "url"),
        (None, "link", "url"),
        ("content", "link", "content"),
        ("json.price", "document", ("json.price",)),
        (["markdown", "metadata.title"], "document", ("markdown", "metadata.title")),
    ],
)
def test_what_is_compared(compare: Any, kind: str, by: Any) -> None:
    assert compared(compare, kind) == by


@each_row("compare", ["contents", "", [], [""], ["a", 3], ["."]])
def test_nothing_to_compare_by(compare: Any) -> None:
    with pytest.raises(OutputError, match="compare must be one of content, url, changeTracking"):
        compared(compare, "document")


@pytest.mark.parametrize("by_links", [True, False])
def test_pages_of_the_cache_behind_an_unread_page(by_links: bool) -> None:
    """Each has its own time in the cache. Without links, no page hides another."""

    def cached(name: str, day: int) -> dict[str, Any]:
        return page(name, name, cacheState="hit", cachedAt=f"2025-12-{day:02}T00:00:00Z")

    down = [page("hub", "", statusCode=503)]
    seen = "2026-01-01T00:00:00+00:00"
    told = runs([cached("hub", 1), cached("deep", 2)], down, down, by_links=by_links, seen=seen)
    assert told[2][1] == ([] if by_links else [page("deep")["metadata"]["sourceURL"]])


_SITES = st.dictionaries(st.sampled_from("abcdef"), st.sampled_from(["x", "y", 404, 503]), max_size=6)


@given(st.lists(_SITES, max_size=6), st.integers(1, 3))
def test_any_history(sites: list[dict[str, str | int]], after: int) -> None:
    """Replaying what flowed on gives what was seen, but for what is not missing for long enough."""
    seen = [
        [
            page(name, "", statusCode=shown) if isinstance(shown, int) else page(name, shown)
            for name, shown in site.items()
        ]
        for site in sites
    ]
    copy: dict[str, str] = {}
    missing: dict[str, int] = {}
    last: dict[str, int] = {}
    for number, (items, (changes, removed)) in enumerate(zip(seen, runs(*seen, after=after), strict=True)):
        read = {
            item["metadata"]["sourceURL"]: item["markdown"]
            for item in items
            if item["metadata"]["statusCode"] == 200
        }
        for item, change in zip(items, changes, strict=True):
            url = item["metadata"]["sourceURL"]
            expected = (
                "changed" if url in copy and copy[url] != read.get(url) else "same" if url in copy else "new"
            )
            assert change == (expected if url in read else "failed")
        copy.update(read)
        last.update(dict.fromkeys(read, number))
        status = {item["metadata"]["sourceURL"]: item["metadata"]["statusCode"] for item in items}
        outages = {last[url] for url in copy if status.get(url) == 503}
        for url in copy:
            missing[url] = 0 if url in read else missing.get(url, 0) + (status.get(url) != 503)
        assert set(removed) == {
            url
            for url in copy
            if missing[url] >= after
            and (status.get(url) == 404 or (url not in status and last[url] not in outages))
        }
        for url in removed:
            del copy[url], missing[url]


@given(
    st.recursive(
        st.none() | st.booleans() | st.floats(allow_nan=True) | st.text() | st.integers(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    )
)
def test_any_content_has_a_digest(value: Any) -> None:
    assert digest({"json": value}, "content") == digest({"json": value, "warning": "x"}, "content")
