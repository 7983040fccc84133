# SPDX-License-Identifier: Apache-2.0
"""The columns of tables: what each kind of item becomes, and that nothing is lost."""

from __future__ import annotations

import json

import pytest

from airflow_provider_webdata.results.columns import TABLES, columns_of
from airflow_provider_webdata.results.encoding import json_text
from tests.support.rows import item_of, row
from tests.support.tables import each_row

# What is written to tables by now: a column that is renamed or retyped breaks whoever reads them.
STABLE = {
    "link": "url:text title:text description:text extra:json",
    "generic": "extra:json",
    "data_tool": "query:text source:text id:text provider:text capability:text name:text description:text "
    "credits_cost:number per_record:boolean options:json response:json extra:json",
    "provider_record": "call:integer tool:text error:json extra:json",
    "retrieval": "id:text url:text title:text text:text metadata:json digest:text extra:json",
    "search_images": "query:text source:text position:integer url:text title:text image_url:text image_width:integer "
    "image_height:integer extra:json",
    "document": "url:text title:text description:text source_url:text language:text status_code:integer "
    "content_type:text page_error:text scrape_id:text source_file:text num_pages:integer total_pages:integer "
    "proxy_used:text cache_state:text cached_at:text page_credits_used:number markdown:text summary:text html:text "
    "raw_html:text screenshot:text audio:text video:text answer:text highlights:json links:json images:json "
    "json:json change_tracking:json branding:json product:json menu:json attributes:json pages:json blocks:json "
    "actions:json kept_media:json warning:text extra:json",
    "search_web": "query:text source:text position:integer url:text title:text description:text category:text "
    "page_url:text page_title:text page_description:text",
    "search_news": "query:text source:text position:integer url:text title:text snippet:text date:text image_url:text "
    "category:text page_url:text page_title:text page_description:text",
    "search": "query:text source:text position:integer url:text title:text description:text category:text "
    "snippet:text date:text image_url:text image_width:integer image_height:integer page_url:text page_title:text "
    "page_description:text",
}


@each_row("kind", TABLES)
def test_columns_are_stable(kind):
    columns = [f"{column.name}:{column.type}" for column in columns_of(kind)]
    expected = STABLE[kind].split()
    if kind.startswith("search") and kind != "search_images":
        # A page that was found has what every page has.
        expected += STABLE["document"].split()[3:]
    assert columns == expected
    assert len({column.path for column in columns_of(kind)}) == len(columns)


@pytest.mark.rule("document-metadata", "metadata-urls")
def test_document():
    item = {
        "markdown": "# Hi",
        "links": ["https://x.example/"],
        "json": {"a": 1},
        "metadata": {
            "url": "https://x.example/final",
            "sourceURL": "https://x.example/",
            "title": "Hi",
            "statusCode": 404,
            "creditsUsed": 1,
            "ogTitle": "Hi there",
        },
        "newFormat": {"deep": [1]},
    }
    made = row(item, columns_of("document"))
    assert {name: value for name, value in made.items() if value is not None} == {
        "markdown": "# Hi",
        "links": '["https://x.example/"]',
        "json": '{"a":1}',
        "url": "https://x.example/final",
        "source_url": "https://x.example/",
        "title": "Hi",
        "status_code": 404,
        "page_credits_used": 1.0,
        "extra": '{"metadata":{"ogTitle":"Hi there"},"newFormat":{"deep":[1]}}',
    }
    assert item_of(made, columns_of("document")) == item


UNFITTING = {
    "list for text": {"metadata": {"title": ["a", "b"]}},
    "text for a number": {"metadata": {"statusCode": "200"}},
    "switch for a number": {"metadata": {"statusCode": True, "creditsUsed": False}},
    "number beyond 64 bits": {"metadata": {"statusCode": 2**63}},
    "number that a float would round": {"metadata": {"creditsUsed": 2**53 + 1}},
    "fraction for an integer": {"metadata": {"numPages": 1.5}},
    "half a surrogate pair": {"markdown": "\ud83d"},
    "metadata that are none": {"metadata": "none"},
    "empty metadata": {"metadata": {}},
    "a field called extra": {"extra": {"extra": 1}},
}


@each_row("item", UNFITTING.values())
def test_what_fits_no_column_is_in_extra(item):
    made = row(item, columns_of("document"))
    assert json.loads(made.pop("extra")) == item
    assert set(made.values()) == {None}


@each_row("item", [None, 7, "https://x.example/", [1]])
def test_what_is_no_object_is_in_extra(item):
    made = row(item, columns_of("link"))
    assert item_of(made, columns_of("link")) == item


def test_null_is_as_good_as_absent():
    made = row({"markdown": None, "metadata": {"title": None}, "other": None}, columns_of("document"))
    assert item_of(made, columns_of("document")) == {"other": None}


def test_unknown_kind():
    with pytest.raises(ValueError, match="kind must be one of document"):
        columns_of("page")


TEXTS = [
    ({"a": "ä\n\u2028"}, '{"a":"ä\\n\u2028"}'),
    ({"a": "\ud83d"}, '{"a":"\\ud83d"}'),
    ([float("nan"), float("inf"), {"b": (float("-inf"), 1.5)}], "[null,null,{\"b\":[null,1.5]}]"),
    (2**70, str(2**70)),
]  # fmt: skip


@each_row("value, text", TEXTS)
def test_text_is_json_on_one_line(value, text):
    assert json_text(value) == text
    json.loads(text, parse_constant=pytest.fail)
    assert b"\n" not in json_text(value).encode()
