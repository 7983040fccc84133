# SPDX-License-Identifier: Apache-2.0
"""Repetition of calls: how many requests of each reach the service.

Whether a call may be repeated is declared by its endpoint, and each endpoint has a case. The outcome of a fault does
not depend on the endpoint; `test_faults` has the table. Cases for both clients are those in which a body is sent again
or not at all.
"""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from airflow_provider_webdata.api import errors, exchange
from airflow_provider_webdata.api.client import ClientConfig, WebDataClient
from tests.integration.api.calls import BILLING, CONTENT, HARMLESS, PAGE, failure
from tests.support.fault_server import API_KEY, Caller, answer, hang_up, never_answer
from tests.support.service import SERVICE
from tests.support.waiting import PATIENCE

# Jobs, checks, and code report failures in fields of their own.
JUDGED_BY_STATUS = {
    "agent_status",
    "batch_scrape_documents",
    "batch_scrape_status",
    "crawl_documents",
    "crawl_status",
    "execute",
    "get_monitor_check",
    "interact_with_scrape",
}


@pytest.mark.rule("repeat-unsafe")
@pytest.mark.parametrize("name", BILLING)
async def test_an_endpoint_that_starts_or_bills(serve: Any, name: str) -> None:
    server = serve(hang_up, answer(body=BILLING[name].good))
    with pytest.raises(errors.TransportError) as caught:
        await Caller("sync").call(server.url, **BILLING[name].make())
    assert caught.value.sent
    assert len(server.requests) == 1


@pytest.mark.rule("repeat-safe", "crawl-preview")
@pytest.mark.parametrize("name", HARMLESS)
async def test_an_endpoint_that_may_be_repeated(serve: Any, name: str) -> None:
    """At the service's own host, where a key makes a call of data providers repeatable."""
    server = serve(hang_up, answer(body=HARMLESS[name].good))
    assert await Caller("sync", {"proxy": server.url}).call(SERVICE, **HARMLESS[name].make())
    first, second = server.requests
    assert (first.target, first.body) == (second.target, second.body)


@pytest.mark.rule("ok-but-failed", "ok-but-failed-job", "ok-but-failed-code")
def test_success_false_fails_every_call_that_is_not_judged_by_its_status(serve: Any) -> None:
    operations = {**BILLING, **HARMLESS}
    server = serve(*[answer(body=one.unsuccessful) for one in operations.values()])
    accepted = set()
    with WebDataClient(ClientConfig(server.url, API_KEY, declared="hosted")) as client:
        for name, operation in operations.items():
            try:
                client.call(**operation.make())
            except errors.UnsuccessfulError:
                continue
            accepted.add(name)
    assert accepted == JUDGED_BY_STATUS
    assert len(server.requests) == len(operations)
    assert not any(request.body for request in server.requests if request.method == "GET")


@pytest.mark.rule("repeat-unsafe")
@pytest.mark.parametrize("name", ["scrape", "parse"])
async def test_no_answer_to_a_call_that_bills(
    caller: Caller, serve: Any, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    call = BILLING[name].make()
    # The service's own time would add minutes.
    call["endpoint"] = replace(call["endpoint"], service_seconds=None)
    caller.options["timeout"] = 0.3
    server = serve(never_answer, answer(body=BILLING[name].good))
    # On a slow machine, the deadline of the whole call must not pass before the timeout of a single read.
    monkeypatch.setattr(exchange.Prepared, "seconds", PATIENCE)
    with pytest.raises(errors.TransportError, match=r"no response from .* within 0\.3 s") as caught:
        await caller.call(server.url, **call)
    assert caught.value.sent
    assert server.count(1) == 1


@pytest.mark.rule("repeat-rate-limit")
@pytest.mark.parametrize("name", ["search", "parse"])
async def test_a_refusal_for_rate_is_repeated_with_the_same_body(
    caller: Caller, serve: Any, name: str
) -> None:
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


async def test_a_reference_serves_once(serve: Any) -> None:
    server = serve(failure(429, {"Retry-After": "0"}, error="Rate limit exceeded"), answer(body=PAGE))
    with pytest.raises(errors.RateLimitError):
        await Caller("sync").call(server.url, **BILLING["parse_by_reference"].make())
    assert len(server.requests) == 1
