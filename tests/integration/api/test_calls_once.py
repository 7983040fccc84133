"""Calls that start or bill reach the service once after an ambiguous failure; all others are repeated.

Each endpoint says whether it may be repeated, and one case for each shows that the client obeys. What a fault means is
decided apart from the endpoint, and is shown for one endpoint of either kind.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from airflow_provider_webdata.api import endpoints, errors, exchange
from tests.integration.api.calls import AMBIGUOUS, BILLING, CONTENT, HARMLESS, PAGE, Operation, failure
from tests.support.fault_server import Caller, answer, never_answer
from tests.support.waiting import PATIENCE


def names(table: dict[str, Operation]) -> set[str]:
    return {operation.make()["endpoint"].name for operation in table.values()}


@pytest.mark.rule("repeat-safe", "repeat-unsafe")
def test_no_endpoint_is_left_out() -> None:
    declared = [value for value in vars(endpoints).values() if isinstance(value, endpoints.Endpoint)]
    assert names(BILLING) == {one.name for one in declared if not one.repeatable}
    assert names(HARMLESS) == {one.name for one in declared if one.repeatable}
    assert len({one.name for one in declared}) == len(declared)


@pytest.mark.rule("repeat-unsafe")
@pytest.mark.parametrize("name", BILLING)
async def test_an_endpoint_that_starts_or_bills(serve: Any, name: str) -> None:
    server = serve(AMBIGUOUS["closed without an answer"][0], answer(body=BILLING[name].good))
    with pytest.raises(errors.TransportError) as caught:
        await Caller("sync").call(server.url, **BILLING[name].make())
    assert caught.value.sent
    assert len(server.requests) == 1


@pytest.mark.rule("repeat-safe", "crawl-preview")
@pytest.mark.parametrize("name", HARMLESS)
async def test_an_endpoint_that_does_no_harm(serve: Any, name: str) -> None:
    server = serve(AMBIGUOUS["closed without an answer"][0], answer(body=HARMLESS[name].good))
    assert await Caller("sync").call(server.url, **HARMLESS[name].make())
    assert len(server.requests) == 2
    assert server.requests[0].target == server.requests[1].target


@pytest.mark.rule("repeat-unsafe")
@pytest.mark.parametrize("fault", AMBIGUOUS)
@pytest.mark.parametrize("name", ["scrape", "parse"])
async def test_a_fault_of_a_call_that_bills(caller: Caller, serve: Any, name: str, fault: str) -> None:
    step, error = AMBIGUOUS[fault]
    server = serve(step, answer(body=BILLING[name].good))
    with pytest.raises(errors.WebDataError) as caught:
        await caller.call(server.url, **BILLING[name].make())
    assert type(caught.value) is error
    assert not isinstance(caught.value, errors.TransportError) or caught.value.sent
    assert len(server.requests) == 1


@pytest.mark.rule("repeat-unsafe")
@pytest.mark.parametrize("name", ["scrape", "run monitor", "parse", "execute"])
async def test_no_answer_to_a_call_that_bills(
    caller: Caller, serve: Any, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    made = BILLING[name].make()
    # With the service's own time it would take minutes.
    made["endpoint"] = replace(made["endpoint"], service_seconds=None)
    caller.options["timeout"] = 0.3
    server = serve(never_answer, answer(body=BILLING[name].good))
    # A slow machine may come to the whole call's deadline before it sees that a single read took too long.
    monkeypatch.setattr(exchange.Prepared, "seconds", PATIENCE)
    with pytest.raises(errors.TransportError, match=r"no answer from .* within 0\.3 s") as caught:
        await caller.call(server.url, **made)
    assert caught.value.sent
    assert server.count(1) == 1


@pytest.mark.rule("repeat-safe")
@pytest.mark.parametrize("fault", ["closed without an answer", "cut inside the body", "408", "500", "503"])
@pytest.mark.parametrize("name", ["crawl status", "update monitor"])
async def test_a_fault_of_a_call_that_does_no_harm(caller: Caller, serve: Any, name: str, fault: str) -> None:
    server = serve(AMBIGUOUS[fault][0], answer(body=HARMLESS[name].good))
    assert await caller.call(server.url, **HARMLESS[name].make())
    assert len(server.requests) == 2
    assert server.requests[0].target == server.requests[1].target
    assert server.requests[0].body == server.requests[1].body


@pytest.mark.rule("status-400", "status-401", "status-402", "status-403", "status-404", "status-409")
@pytest.mark.rule("status-410", "status-413")
@pytest.mark.parametrize(
    "status, error",
    [
        (400, errors.BadRequestError),
        (401, errors.AuthenticationError),
        (402, errors.PaymentRequiredError),
        (403, errors.EntitlementError),
        (404, errors.NotFoundError),
        (409, errors.ConflictError),
        (410, errors.ClientError),
        (413, errors.ClientError),
    ],
)
@pytest.mark.parametrize("name", ["scrape", "parse", "start crawl", "crawl status", "delete monitor"])
async def test_a_refusal_is_final(
    caller: Caller, serve: Any, name: str, status: int, error: type[errors.APIError]
) -> None:
    operation = {**BILLING, **HARMLESS}[name]
    server = serve(failure(status, error="no", code="SOME_CODE"), answer(body=operation.good))
    with pytest.raises(errors.APIError, match="no") as caught:
        await caller.call(server.url, **operation.make())
    assert type(caught.value) is error
    assert caught.value.code == "SOME_CODE"
    assert len(server.requests) == 1


@pytest.mark.rule("status-409")
async def test_a_key_that_started_a_crawl_before(caller: Caller, serve: Any) -> None:
    operation = BILLING["start crawl with a key"]
    server = serve(failure(409, error="no", code="SOME_CODE"), answer(body=operation.good))
    with pytest.raises(errors.IdempotencyKeyUsedError, match="no"):
        await caller.call(server.url, **operation.make())
    assert len(server.requests) == 1


async def test_a_reference_serves_once(caller: Caller, serve: Any) -> None:
    server = serve(failure(429, {"Retry-After": "0"}, error="Rate limit exceeded"), answer(body=PAGE))
    with pytest.raises(errors.RateLimitError):
        await caller.call(server.url, **BILLING["parse by reference"].make())
    assert len(server.requests) == 1


@pytest.mark.rule("repeat-rate-limit")
@pytest.mark.parametrize("name", [name for name in BILLING if name != "parse by reference"])
async def test_a_refusal_for_rate_is_repeated_with_the_same_body(serve: Any, name: str) -> None:
    # The two callers differ in how they send a body; that of `parse` is sent by both below.
    await repeated_for_rate(Caller("sync"), serve, name)


@pytest.mark.rule("repeat-rate-limit")
@pytest.mark.parametrize("name", ["search", "parse"])
async def test_an_asynchronous_call_repeats_the_same_body(serve: Any, name: str) -> None:
    await repeated_for_rate(Caller("async"), serve, name)


async def repeated_for_rate(caller: Caller, serve: Any, name: str) -> None:
    server = serve(
        failure(429, {"Retry-After": "0"}, error="Rate limit exceeded"),
        failure(429, error="Concurrency limit reached"),
        answer(body=BILLING[name].good),
    )
    assert await caller.call(server.url, **BILLING[name].make())
    first, *others = server.requests
    assert len(others) == 2
    assert all(other.body == first.body and other.headers == first.headers for other in others)
    assert name != "parse" or CONTENT in first.body
