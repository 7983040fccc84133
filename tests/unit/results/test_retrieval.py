# SPDX-License-Identifier: Apache-2.0
"""Flat documents: the same page has the same id in all runs, and another text another digest."""

from __future__ import annotations

import hashlib
import uuid
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_webdata.common.item_urls import url_of
from airflow_provider_webdata.results.columns import columns_of
from airflow_provider_webdata.results.encoding import json_text
from airflow_provider_webdata.results.pages.retrieval import KIND, flat_documents
from airflow_provider_webdata.results.tombstones import MARK, Tombstone, marked
from tests.support.rows import item_of, row
from tests.support.tables import each_row

URL = "https://a.example/x"
OF_A_RUN = {"change": "new", "page": URL, "webdata_version": 1, "webdata_source": "dag/task"}
# It is stored in vector stores: an id that changes leaves every document there twice.
ID = "db989ecd-e8d4-56dd-969e-8be79ea20919"


def flat(item: Any) -> dict[str, Any]:
    [found] = flat_documents([item])
    return found


def test_a_page_becomes_a_flat_document() -> None:
    metadata = {
        "sourceURL": URL,
        "url": f"{URL}/",
        "title": "T",
        "language": "en",
        "scrapeId": "7",
        "cachedAt": "now",
    }
    assert flat({"change": "new", "markdown": "# T", "html": "<h1>", "metadata": metadata}) == {
        "change": "new",
        "id": ID,
        "url": URL,
        "title": "T",
        "text": "# T",
        "metadata": {"sourceURL": URL, "language": "en"},
        "digest": hashlib.sha256(b"# T").hexdigest(),
    }


@each_row(
    "item, text",
    [
        ({"markdown": "m", "summary": "s"}, "m"),
        ({"markdown": "", "summary": "s", "html": "h"}, "s"),
        ({"markdown": "\n\u200b\n", "summary": "s"}, "s"),
        ({"html": "h", "description": "d"}, "h"),
        ({"description": "d"}, "d"),
        ({"snippet": "n"}, "n"),
        ({"markdown": 7}, ""),
        ({"markdown": "half \ud83d"}, "half \\ud83d"),
        ([1, "x"], '[1,"x"]'),
    ],
)
def test_the_text_is_the_first_that_there_is(item: Any, text: str) -> None:
    assert flat(item)["text"] == text


@each_row(
    "one, other, same",
    [
        (
            {"metadata": {"sourceURL": URL, "url": "https://b.example"}},
            {"metadata": {"sourceURL": URL}},
            True,
        ),
        ({"metadata": {"sourceURL": URL}}, {"url": URL, "position": 1}, True),
        ({"metadata": {"sourceURL": URL}}, Tombstone("document", change="removed", url=URL), True),
        ({"metadata": {"sourceURL": URL}}, {**OF_A_RUN, "url": f"{URL}?gclid=1"}, True),
        ({"metadata": {"sourceURL": URL}}, {**OF_A_RUN, "url": f"{URL}?a=1"}, True),
        # A field of the item's own.
        ({"metadata": {"sourceURL": URL}}, {"change": "new", "page": URL, "url": f"{URL}y"}, False),
        ({"metadata": {"sourceURL": URL}}, {"change": "new", "page": [URL], "url": f"{URL}y"}, False),
        ({"metadata": {"url": URL}}, {"markdown": "x", "metadata": {"url": URL}}, True),
        ({"url": URL}, {"url": f"{URL}?"}, False),
        ({"markdown": "a"}, {"markdown": "a"}, True),
        ({"markdown": "a"}, {"markdown": "b"}, False),
    ],
)
def test_ids_are_those_of_pages(one: Any, other: Any, same: bool) -> None:
    assert (flat(one)["id"] == flat(other)["id"]) is same


def test_a_removed_page_keeps_what_says_so() -> None:
    found = flat(Tombstone("document", change="removed", page=URL, url=URL, lastSeen="x"))
    assert marked(found) == {
        "change": "removed",
        "page": URL,
        "id": ID,
        "url": URL,
        "lastSeen": "x",
        MARK: KIND,
    }
    assert flat({"change": "removed", "url": URL, "markdown": "text"})["text"] == "text"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(st.characters(exclude_categories=())),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)
NAMES = st.sampled_from(["url", "markdown", "title", "metadata", "query", "summary", "sourceURL"])


@given(JSON | st.dictionaries(NAMES, JSON | st.dictionaries(NAMES, JSON)))
def test_anything_becomes_a_row_that_is_read_back(item: Any) -> None:
    found = flat(item)
    columns = columns_of(KIND)
    values = row(found, columns)
    json_text(found).encode()
    assert (values["id"], values["text"], values["digest"]) == (found["id"], found["text"], found["digest"])
    assert uuid.UUID(values["id"]).version == 5
    assert values["url"] == found["url"] or values["extra"] is not None
    assert item_of(values, columns).keys() >= {"id", "text", "metadata", "digest"}


@each_row(
    "item, key",
    [
        ({"metadata": {"sourceURL": "a", "url": "b"}}, "a"),
        ({"metadata": {"sourceURL": "", "url": "b"}}, "b"),
        ({"metadata": {"sourceURL": 7}}, None),
        ({"url": "c", "metadata": {"sourceURL": "a"}}, "c"),
        ({"metadata": "x"}, None),
        ("x", None),
    ],
)
def test_what_an_item_is_known_by(item: Any, key: str | None) -> None:
    assert url_of(item) == key
