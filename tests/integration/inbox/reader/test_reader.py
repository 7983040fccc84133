# SPDX-License-Identifier: Apache-2.0
"""The blocking and the asynchronous reader against valid and invalid responses."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest

from airflow_provider_webdata.inbox import tokens
from airflow_provider_webdata.inbox.reader import (
    END,
    AsyncInboxReader,
    CursorAheadError,
    DeliveryGoneError,
    InboxAddress,
    InboxAnswerError,
    InboxError,
    InboxMissingError,
    InboxReader,
    InboxRefusedError,
    InboxUnreachableError,
)
from tests.support.fault_server import FaultServer, Step, answer, hang_up
from tests.support.tables import each_row

SECRET = "a-webhook-secret-of-the-tests"
KINDS = ("sync", "async")
RECORD = {
    "id": 7,
    "position": 9,
    "key": "k",
    "event": "crawl.page",
    "job_id": "j",
    "monitor_id": None,
    "success": True,
    "received_at": "2026-01-01T00:00:00+00:00",
    "size": 20,
    "body": {"a": [1, 2.5, "\u00e4"]},
    "something_new": 1,
}
PAGE = {"deliveries": [RECORD], "cursor": "9", "more": False}


def reply(status: int, body: Any, **headers: str) -> Step:
    content = body if isinstance(body, bytes) else json.dumps(body)
    kind = headers.pop("content_type", "application/json")
    return answer(status, content, kind, {name.replace("_", "-"): value for name, value in headers.items()})


class EitherReader:
    """Calls the blocking or the asynchronous reader."""

    def __init__(self, kind: str, address: InboxAddress) -> None:
        self._kind, self._address = kind, address

    def __getattr__(self, name: str) -> Any:
        def call(*values: Any, **named: Any) -> Any:
            if self._kind == "sync":
                with InboxReader(self._address) as reader:
                    return getattr(reader, name)(*values, **named)

            async def ask() -> Any:
                async with AsyncInboxReader(self._address) as reader:
                    return await getattr(reader, name)(*values, **named)

            return asyncio.run(ask())

        return call


Serve = Callable[..., tuple[EitherReader, FaultServer]]


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Start a server, and return a reader of it."""
    servers: list[FaultServer] = []

    def start(*steps: Step, kind: str = "sync") -> tuple[EitherReader, FaultServer]:
        server = FaultServer(steps)
        servers.append(server)
        return EitherReader(kind, InboxAddress(server.url, "my conn/x", SECRET)), server

    yield start
    for server in servers:
        server.close()


@pytest.mark.parametrize("kind", KINDS)
def test_a_page_of_the_feed(serve: Serve, kind: str) -> None:
    reader, server = serve(reply(200, PAGE), kind=kind)
    page = reader.feed(
        "5", 2.0, limit=3, keys=["a", "b"], events=["page"], received_after="2026-01-01T00:00:00Z"
    )
    (delivery,) = page.deliveries
    assert (page.cursor, page.more) == ("9", False)
    assert {
        name: getattr(delivery, name) for name in RECORD if hasattr(delivery, name) and name != "body"
    } == {name: value for name, value in RECORD.items() if name not in ("body", "something_new")}
    assert delivery.payload() == RECORD["body"]
    (request,) = server.requests
    url = urlsplit(request.target)
    assert (request.method, url.path) == ("GET", "/webdata/deliveries/my%20conn%2Fx")
    assert sorted(parse_qsl(url.query)) == sorted(
        [
            ("after", "5"),
            ("wait", "2"),
            ("limit", "3"),
            ("key", "a"),
            ("key", "b"),
            ("event", "page"),
            ("received_after", "2026-01-01T00:00:00Z"),
        ]
    )
    token = request.headers["authorization"].removeprefix("Bearer ")
    assert tokens.verify(token, [SECRET], "my conn/x")
    assert SECRET not in repr(request)


def test_the_end_of_the_feed(serve: Serve) -> None:
    reader, server = serve(reply(200, {"deliveries": [], "cursor": "9", "more": False}))
    assert reader.feed(END).cursor == "9"
    assert urlsplit(server.requests[0].target).query == "after=end"


@pytest.mark.parametrize("kind", KINDS)
def test_a_search(serve: Serve, kind: str) -> None:
    reader, server = serve(reply(200, {**PAGE, "more": True}), kind=kind)
    page = reader.search(keys=["k"], job_ids=["j"], monitor_ids=["m"], events=["e"], after="1", limit=5)
    assert page.more
    assert server.requests[0].target.endswith("/search")
    assert json.loads(server.requests[0].body) == {
        "keys": ["k"],
        "job_ids": ["j"],
        "monitor_ids": ["m"],
        "events": ["e"],
        "received_after": None,
        "after": "1",
        "limit": 5,
    }


@pytest.mark.parametrize("kind", KINDS)
def test_one_delivery(serve: Serve, kind: str) -> None:
    reader, server = serve(reply(200, RECORD), kind=kind)
    assert reader.fetch(7).payload() == RECORD["body"]
    assert server.requests[0].target.endswith("/7")


def test_a_large_delivery_is_listed_without_its_body(serve: Serve) -> None:
    reader, _ = serve(reply(200, {**PAGE, "deliveries": [{k: v for k, v in RECORD.items() if k != "body"}]}))
    (delivery,) = reader.feed().deliveries
    assert not delivery.has_body
    assert delivery.payload() is None


@each_row("body", ["1e999", "9" * 5000, '"\\u0000"', "[" * 150 + "]" * 150, '{"a": 1, "a": 2}', " 1 "])
def test_unusual_bodies(serve: Serve, body: str) -> None:
    record = json.dumps({**RECORD, "body": "BODY"}).replace('"BODY"', body)
    reader, _ = serve(reply(200, f'{{"deliveries":[{record}],"cursor":"1","more":false}}'.encode()))
    (delivery,) = reader.feed().deliveries
    delivery.payload()


FAILURES: dict[str, tuple[Any, type[InboxError], str]] = {
    "token rejected": (reply(401, {"error": "no"}), InboxRefusedError, "webhook_secret"),
    "reset": (reply(410, {"error": "reset", "cursor": "3"}), CursorAheadError, "reset"),
    "no plugin": (reply(404, {"detail": "Not Found"}), InboxMissingError, "has no inbox"),
    "a page of something else": (
        reply(200, b"<html>", content_type="text/html"),
        InboxMissingError,
        "text/html",
    ),
    "redirect": (reply(302, b"", location="https://elsewhere.example/"), InboxMissingError, "no inbox"),
    "database down": (
        reply(503, {"error": "run airflow db migrate"}, retry_after="7"),
        InboxUnreachableError,
        "run airflow db migrate",
    ),
    "too often": (reply(429, b""), InboxUnreachableError, "429"),
    "bad request": (reply(400, {"error": "limit: no"}), InboxAnswerError, "limit: no"),
    "another shape": (reply(200, {"cursor": 5}), InboxAnswerError, "cannot be parsed"),
    "cut short": (reply(200, b'{"deliveries": ['), InboxAnswerError, "cannot be parsed"),
    "hung up": (hang_up, InboxUnreachableError, "does not respond"),
}


# The reader of a failure. Both share the protocol, and differ only in how a request fails.
CASES = [*((case, "sync") for case in FAILURES), ("database down", "async"), ("hung up", "async")]


@each_row("case, kind", CASES)
@pytest.mark.says("The message has the inbox's own error")
def test_failures(serve: Serve, case: str, kind: str) -> None:
    step, error, words = FAILURES[case]
    for call in (lambda reader: reader.feed(), lambda reader: reader.search(keys=["k"])):
        reader, _ = serve(step, kind=kind)
        with pytest.raises(error, match=words) as caught:
            call(reader)
        assert type(caught.value) is error
        assert SECRET not in str(caught.value)
        if isinstance(caught.value, CursorAheadError):
            assert caught.value.cursor == "3"
        if case == "database down":
            assert caught.value.retry_after == 7.0


def test_a_deleted_delivery(serve: Serve) -> None:
    reader, _ = serve(reply(404, {"error": "the delivery does not exist"}))
    with pytest.raises(DeliveryGoneError, match="7"):
        reader.fetch(7)
    reader, _ = serve(reply(404, {"detail": "Not Found"}))
    with pytest.raises(InboxMissingError):
        reader.fetch(7)


def test_a_closed_port() -> None:
    with InboxReader(InboxAddress("http://127.0.0.1:9", "c", SECRET)) as reader:
        with pytest.raises(InboxUnreachableError, match=r"127\.0\.0\.1:9"):
            reader.feed()


def test_the_secret_is_not_shown() -> None:
    assert SECRET not in repr(InboxAddress("http://x", "c", SECRET))
