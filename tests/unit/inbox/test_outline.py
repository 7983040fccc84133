# SPDX-License-Identifier: Apache-2.0
"""An envelope is the same as that of the whole parsed body, but takes less memory."""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pydantic_core import to_json

from airflow_provider_webdata.common.item_urls import was_fetched
from airflow_provider_webdata.common.storable import storable
from airflow_provider_webdata.inbox.envelope import (
    Envelope,
    NotJSONError,
    first_of,
    parse_body,
    parse_json,
    split_event,
)
from airflow_provider_webdata.inbox.outline import DEEPEST, outline_of
from tests.support.examples import examples

SIZE = 2**19
FIELDS = [
    "type", "id", "webhookId", "success", "data", "monitorId", "checkId", "url", "metadata", "sourceURL", "other",
    "status", "summary", "creditsUsed", "isMeaningful", "monitor", "dag_id", "statusCode", "error",
]  # fmt: skip
EVENTS = ["crawl.completed", "crawl.page", "monitor.check.completed", "monitor.page", "completed"]
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"]))
    | st.sampled_from(
        [
            *EVENTS,
            "changed",
            "x" * 200,
            "\U0001f600" * 200,
            "x" * 201,
            "\U0001f600" * 2048,
            "x" * 2049,
            '\\"[{',
        ]
    ),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(FIELDS), inner, max_size=4),
)


def text(value: object, longest: int = 200) -> str | None:
    return value if isinstance(value, str) and 0 < len(value) <= longest and value.isprintable() else None


def mapping(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def label(value: object, most: int) -> str | None:
    return value if isinstance(value, str) and 0 < len(value) <= most and "\0" not in value else None


def envelope_of(payload: Any, is_short: Callable[[object], bool]) -> Envelope:
    """Return the envelope of a whole parsed body, whose facts are short."""
    if not isinstance(payload, dict):
        return Envelope()
    event = text(payload.get("type"))
    operation, name = split_event(event) if event else (None, None)
    first = first_of(payload)
    page, labels = mapping(first.get("metadata")), mapping(payload.get("metadata"))
    monitor_id = text(first.get("monitorId"))
    success = payload.get("success") if isinstance(payload.get("success"), bool) else None
    facts = is_meaningful = None
    if name == "check.completed":
        facts = {"status": first.get("status"), "summary": first.get("summary")}
    elif name == "completed":
        facts = {"creditsUsed": first.get("creditsUsed"), "metadata": payload.get("metadata")}
    elif name == "page":
        success = success and was_fetched(page)
        if monitor_id and first.get("status") in ("changed", "new"):
            is_meaningful = bool(success) and first.get("isMeaningful") is True
    urls = [text(url, 2048) for url in (first.get("url"), page.get("sourceURL"), page.get("url"))]
    return Envelope(
        event=event,
        operation=operation,
        name=name,
        job_id=text(payload.get("id")) or text(first.get("checkId")),
        monitor_id=monitor_id,
        webhook_id=text(payload.get("webhookId")),
        success=success,
        page_url=next((url for url in urls if url), None),
        monitor_name=label(labels.get("monitor"), 200),
        dag_id=label(labels.get("dag_id"), 250),
        is_meaningful=is_meaningful,
        facts=None
        if facts is None
        else to_json(storable({key: fact if is_short(fact) else None for key, fact in facts.items()})),
    )


def filled(part: bytes, around: bytes = b'{"id":"job-1","data":[%s]}') -> bytes:
    return around % b",".join([part] * (SIZE // (len(part) + 1)))


DENSE = [
    pytest.param(filled(b"[]"), id="arrays"),
    pytest.param(filled(b"{}"), id="objects"),
    pytest.param(filled(b'{"a":[]}'), id="objects with arrays"),
    pytest.param(filled(b"1.5"), id="numbers"),
    pytest.param(filled(b'"ab"'), id="texts"),
    pytest.param(filled(b'"\\\\\\"["'), id="texts with escapes and brackets"),
    pytest.param(filled(b"[]", b'{"id":"job-1","other":[%s]}'), id="not in the data"),
    pytest.param(filled(b"[]", b'{"id":"job-1","data":[{"other":[%s]}]}'), id="in the first of the data"),
    pytest.param(filled(b"[[[[[[[[[[]]]]]]]]]]"), id="steep"),
]


@pytest.mark.parametrize("body", DENSE)
def test_a_dense_body_makes_no_objects(body: bytes) -> None:
    tracemalloc.start()
    envelope = Envelope.read(body)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert envelope.job_id == "job-1"
    # As objects it takes ten to fifty times its size.
    assert peak < 4 * len(body)


@pytest.mark.slow
@pytest.mark.rule("envelope-data")
@examples(2)
@example({"type": "\0"}, False, None)
@example({"type": "monitor.check.completed"}, False, None)
@example({"type": "monitor.page", "data": {"monitorId": "m", "status": "new"}, "success": True}, False, None)
@given(
    JSON
    | st.fixed_dictionaries({}, optional=dict.fromkeys(FIELDS, JSON))
    | st.fixed_dictionaries(
        {"type": st.sampled_from(EVENTS)},
        optional={
            "success": st.booleans(),
            "data": st.fixed_dictionaries({}, optional=dict.fromkeys(FIELDS, JSON)),
            "metadata": JSON,
        },
    ),
    st.booleans(),
    st.sampled_from([None, 1]),
)
def test_the_envelope_is_that_of_the_whole(payload: object, ascii_only: bool, indent: int | None) -> None:
    def written(value: object) -> bytes:
        return json.dumps(value, ensure_ascii=ascii_only, indent=indent).encode()

    body = written(payload)
    envelope = Envelope.read(body)
    assert envelope == envelope_of(parse_json(body), lambda fact: len(written(fact)) <= 16 * 1024)
    for text in (envelope.event, envelope.job_id, envelope.monitor_id, envelope.webhook_id):
        assert text is None or (0 < len(text) <= 200 and text.isprintable())
    assert envelope.success in (True, False, None)
    assert envelope.page_url is None or 0 < len(envelope.page_url) <= 2048


@examples(4)
@given(st.binary(max_size=60) | st.text(st.sampled_from('[]{}",:\\ue1- \n'), max_size=40).map(str.encode))
def test_both_accept_the_same_bytes(body: bytes) -> None:
    def accepted(read: Callable[[bytes], object]) -> bool:
        try:
            read(body)
        except NotJSONError:
            return False
        return True

    assert accepted(Envelope.read) == accepted(parse_body)


WIDE = b",".join([b'[[]],"]\\\\\\"]"'] * 10_000)


PLAIN = b"[%s]"


@pytest.mark.parametrize(
    ("body", "opening", "innermost", "closing"),
    [
        pytest.param(PLAIN, b"[", b"", b"]", id="arrays"),
        pytest.param(PLAIN, b"[", b"1", b"]", id="arrays around a number"),
        pytest.param(PLAIN, b'{"a":', b"null", b"}", id="objects"),
        pytest.param(PLAIN, b'[{"a":', b"1", b"}]", id="both in turn"),
        pytest.param(b'[%s,"]]]]]]"]', b"[", b"", b"]", id="text behind"),
        pytest.param(b'["]]]]]]",%s]', b'{"a":', b"1", b"}", id="text before"),
        pytest.param(b'["\\\\","]]\\"]]",%s]', b"[", b"1", b"]", id="escapes"),
        pytest.param(b"[" + WIDE + b",%s]", b'[{"a":', b"null", b"}]", id="wide before"),
        pytest.param(b"[%s," + WIDE + b"]", b"[", b"", b"]", id="wide behind"),
        pytest.param(b'["' + b"\\\\" * 300_000 + b'",%s]', b'{"a":', b"null", b"}", id="backslashes"),
        pytest.param(b'["' + b'\\"' * 300_000 + b'",%s]', b"[", b"1", b"]", id="quotes"),
    ],
)
def test_depth(body: bytes, opening: bytes, innermost: bytes, closing: bytes) -> None:
    levels = len(closing)

    def nested(depth: int) -> bytes:
        return body.replace(b"%s", opening * depth + innermost + closing * depth)

    most = (DEEPEST - 1) // levels
    outline_of(nested(most))
    parse_body(nested(most))
    with pytest.raises(ValueError, match="nested deeper"):
        outline_of(nested(DEEPEST // levels + 1))
