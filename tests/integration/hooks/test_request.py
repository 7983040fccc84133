# SPDX-License-Identifier: Apache-2.0
"""`hook.request`: operations without a separate method, through both hooks."""

from __future__ import annotations

import json
from typing import Any

import pytest

from airflow_provider_webdata.api import errors
from airflow_provider_webdata.hooks import ledger
from tests.integration.hooks.conftest import one_hook
from tests.support.fault_server import answer, hang_up
from tests.support.waiting import settled

FEEDBACK = {"rating": "bad", "missingContent": [{"topic": "the level of today"}]}


@pytest.fixture
def hook(kind_of_hook: Any, sandbox: Any, connect: Any) -> Any:
    connect(sandbox.url, sandbox.api_key)
    return kind_of_hook()


async def test_calls_of_the_sandbox(hook: Any, sandbox: Any) -> None:
    found = await settled(hook.search(query="river", limit=1))
    path = f"/v2/search/{found.id}/feedback"
    told = await settled(hook.request("POST", path, json=FEEDBACK, billed=False))
    assert (told["success"], told["creditsRefunded"]) == (True, 1)
    again = await settled(hook.request("POST", path, json=FEEDBACK, billed=False))
    assert again["alreadySubmitted"] is True
    listed = await settled(hook.request("GET", "/v2/team/activity", params={"limit": 1, "cursor": None}))
    assert [item["endpoint"] for item in listed["data"]] == ["search"]
    with pytest.raises(errors.NotFoundError, match=r"POST /v2/search/\S+/feedback"):
        await settled(
            hook.request("POST", f"/v2/search/{'0' * 8}-0000-4000-8000-{'0' * 12}/feedback", json=FEEDBACK)
        )
    with pytest.raises(errors.NotFoundError, match="PUT /v2/none: HTTP 404"):
        await settled(hook.request("PUT", "/v2/none", json={}))
    await settled(hook.close())


async def test_what_is_sent_and_returned(serve: Any) -> None:
    """Any JSON, below the base URL, with the connection's key."""
    server, hook = serve(answer(body="[1, {}]"), answer(body=""), answer(body='{"a": null}'))
    params = {"ids": ["x y", 2], "all": True, "none": None}
    assert await settled(hook.request("GET", "/v2/a-b/c%2Fd", params=params)) == [1, {}]
    assert await settled(hook.request("POST", "/v2/e_f", json={})) == {}
    assert await settled(hook.request("DELETE", "/v2/g", json={"h": [1.5]}, billed=False)) == {"a": None}
    first, second, third = server.requests
    assert (first.method, first.target, first.body) == ("GET", "/v2/a-b/c%2Fd?ids=x+y&ids=2&all=true", b"")
    assert (second.method, second.target, second.body) == ("POST", "/v2/e_f", b"{}")
    assert (third.method, third.target, json.loads(third.body)) == ("DELETE", "/v2/g", {"h": [1.5]})
    assert {request.headers["authorization"] for request in server.requests} == {f"Bearer {hook_key(hook)}"}
    await settled(hook.close())


def hook_key(hook: Any) -> str:
    client = hook._client
    return str(client.config.api_key)


INVALID: dict[str, tuple[tuple[Any, ...], dict[str, Any], str]] = {
    "method": (("get", "/v2/a"), {}, "method: must be one of GET, POST, PUT, PATCH, DELETE (given: 'get')"),
    "no slash": (("GET", "v2/a"), {}, "path: must start with /"),
    "another host": (("GET", "//evil.example/v2"), {}, "path: must start with /"),
    "a scheme": (("GET", "https://evil.example/"), {}, "path: must start with /"),
    "parent": (("GET", "/v2/../admin"), {}, "dotted segment"),
    "hidden parent": (("GET", "/v2/%2E%2e/admin"), {}, "dotted segment"),
    "hidden slash": (("GET", "/v2/..%2Fadmin"), {}, "dotted segment"),
    "backslash": (("GET", "/v2/..\\admin"), {}, "dotted segment"),
    "empty segment": (("GET", "/v2//a"), {}, "no empty"),
    "query": (("GET", "/v2/a?b=c"), {}, "pass a query in params"),
    "placeholder": (("GET", "/v2/{a}"), {}, "path: must"),
    "line": (("GET", "/v2/a\n"), {}, "path: must"),
    "no text": (("GET", None), {}, "path: must"),
    "body of a GET": (("GET", "/v2/a"), {"json": {}}, "json: a GET has no body; pass params instead"),
    "list": (("POST", "/v2/a"), {"json": [1]}, "json: must be a mapping (given: list)"),
    "no JSON": (("POST", "/v2/a"), {"json": {"a": "\ud800"}}, "json: is not valid JSON"),
    "no scalar": (("GET", "/v2/a"), {"params": {"a": {"b": 1}}}, "params: 'a' must be a text"),
    "a billed one": (
        ("POST", "/v2/scrape"),
        {"json": {"url": "https://a.example"}, "billed": False},
        "billed: this operation may bill credits; omit billed=False",
    ),
    "a billed one in another case": (
        ("POST", "/v2/Scrape"),
        {"json": {}, "billed": False},
        "billed: this operation may bill",
    ),
    "parent with a parameter": (("GET", "/v2/..;/admin"), {}, "dotted segment"),
    "parent encoded twice": (("GET", "/v2/%252e%252e/admin"), {}, "dotted segment"),
    "NaN": (("POST", "/v2/a"), {"json": {"a": [float("nan")]}}, "json: is not valid JSON"),
    "params as text": (("GET", "/v2/a"), {"params": "a=1"}, "params: must be a mapping (given: str)"),
    "one with an id": (("POST", "/v2/monitor/m/run"), {"billed": False}, "billed: this operation may bill"),
    "a change": (("PATCH", "/v2/monitor/m"), {"billed": False}, "billed: this operation may bill"),
}


@one_hook
async def test_an_invalid_argument_is_named(serve: Any) -> None:
    server, hook = serve({})
    for name, (arguments, more, words) in INVALID.items():
        with pytest.raises(errors.InvalidRequestError) as caught:
            await settled(hook.request(*arguments, **more))
        assert words in str(caught.value), name
    assert server.requests == []


@pytest.mark.parametrize(
    ("method", "billed", "sent"),
    [("GET", False, 2), ("GET", True, 1), ("POST", False, 1), ("DELETE", False, 1), ("PATCH", True, 1)],
)
@pytest.mark.parametrize("fault", [hang_up, answer(502, "bad gateway")], ids=["lost", "502"])
async def test_only_a_free_get_is_repeated(
    serve: Any, method: str, billed: bool, sent: int, fault: Any
) -> None:
    server, hook = serve(fault, answer(body='{"a": 1}'))
    if sent == 2:
        assert await settled(hook.request(method, "/v2/a", billed=billed)) == {"a": 1}
    else:
        with pytest.raises(errors.WebDataError):
            await settled(hook.request(method, "/v2/a", billed=billed))
    assert len(server.requests) == sent
    await settled(hook.close())


FAILURES: list[tuple[Any, type[Exception]]] = [
    (answer(401, '{"error": "Unauthorized"}'), errors.AuthenticationError),
    (answer(429, '{"error": "Rate limit exceeded"}', headers={"retry-after": "3600"}), errors.RateLimitError),
    (answer(200, '{"success": false, "error": "no"}'), errors.APIError),
    (answer(200, "<html>", content_type="text/html"), errors.InvalidResponseError),
    (answer(302, "", headers={"location": "https://evil.example/"}), errors.InvalidResponseError),
]


@one_hook
async def test_failures_are_those_of_other_calls(serve: Any) -> None:
    for step, kind in FAILURES:
        _, hook = serve(step)
        with pytest.raises(kind) as caught:
            await settled(hook.request("POST", "/v2/a", json={"b": 1}))
        assert "POST /v2/a" in str(caught.value)
        await settled(hook.close())


# The caps, the call's arguments, and a part of the refusal.
REFUSED: list[tuple[dict[str, Any], dict[str, Any], str]] = [
    ({"max_credits": 400}, {"json": {}}, "the price of a call to POST /v2/a is unknown"),
    ({"max_calls": 0}, {"json": {}}, "max_calls=0 is reached"),
    (
        {"allowed_domains": ["a.example"]},
        {"json": {}, "billed": False},
        "sends only searches, scrapes, and maps",
    ),
    ({}, {"json": {"deep": [{"url": "https://169.254.169.254/keys"}]}, "billed": False}, "169.254.169.254"),
    ({}, {"json": {"webhook": "http://127.0.0.1/x"}}, "127.0.0.1"),
    ({}, {"json": {"x": " https://127.0.0.1/"}}, "127.0.0.1"),
]


async def test_what_a_guarded_hook_refuses(hook: Any, sandbox: Any) -> None:
    for caps, arguments, words in REFUSED:
        guarded = hook.guarded(**caps)
        with pytest.raises(errors.CallRefusedError, match=words):
            await settled(guarded.request("POST", "/v2/a", **arguments))
        await settled(guarded.close())
    guarded = hook.guarded(max_calls=5)
    with pytest.raises(errors.CallRefusedError, match="it uses a browser session"):
        await settled(guarded.request("POST", "/v2/interact/s1/execute", json={"code": "1"}))
    await settled(guarded.close())
    assert sandbox.control.requests() == []


async def test_what_a_guarded_hook_counts(serve: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The credits that the response reports, else a call of unknown cost; nothing for a free call."""
    server, hook = serve(
        answer(body='{"creditsUsed": 3}'), answer(body='{"data": []}'), hang_up, answer(body="{}")
    )
    made: list[ledger.Ledger] = []
    create = ledger.ledger_of_process
    monkeypatch.setattr(ledger, "ledger_of_process", lambda *args: made.append(create(*args)) or made[-1])
    guarded = hook.guarded(max_calls=3)
    await settled(guarded.request("POST", "/v2/a"))
    await settled(guarded.request("GET", "/v2/a"))
    with pytest.raises(errors.TransportError):
        await settled(guarded.request("POST", "/v2/a"))
    await settled(guarded.request("POST", "/v2/a", billed=False))
    with pytest.raises(errors.CallRefusedError, match="max_calls=3 is reached"):
        await settled(guarded.request("POST", "/v2/a"))
    credits = made[0].to_wire()
    assert (credits["used"], credits["unknown"], credits["by_operation"]) == (3, 2, {"request": 3})
    assert len(server.requests) == 4
    await settled(guarded.close())
