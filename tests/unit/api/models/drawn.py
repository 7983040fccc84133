"""Parts of requests, drawn at random, that several operations share."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from tests.unit.api.models.limits import HOOK
from tests.unit.api.models.test_properties import headers, label, plain, scrape_options, some, text

labels = {"integration": st.none() | text, "origin": text}
# What shuts other fields out is left to tables.
options = scrape_options.map(lambda drawn: {k: v for k, v in drawn.items() if k != "onlyCleanContent"})
url = st.builds("https://{}.example/{}".format, label, label)
page_webhook = some(
    {"url": st.just(HOOK)},
    headers=headers,
    metadata=st.dictionaries(text, st.text(plain), max_size=2),
    events=st.lists(st.sampled_from(["started", "page", "completed", "failed"]), max_size=4),
)


def webhook(*events: str) -> st.SearchStrategy[Any]:
    return some({"url": url}, headers=headers, events=st.lists(st.sampled_from(events), max_size=3))


def both(one: st.SearchStrategy[Any], other: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.builds(lambda a, b: {**a, **b}, one, other)
