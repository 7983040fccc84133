# SPDX-License-Identifier: Apache-2.0
"""The caps of a guarded hook, against a sandbox that records requests."""

from __future__ import annotations

import asyncio
import io
import json
import re
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from airflow_provider_webdata.api.endpoints import ENDPOINTS
from airflow_provider_webdata.api.errors import (
    CallRefusedError,
    PageError,
    RateLimitError,
    TransportError,
    WebDataError,
)
from airflow_provider_webdata.api.models import DataTool
from airflow_provider_webdata.common.attempt import Attempt
from airflow_provider_webdata.common.coded_errors import ArgumentError
from airflow_provider_webdata.hooks import ledger
from airflow_provider_webdata.hooks.calls import Call
from airflow_provider_webdata.hooks.webdata import WebDataHook
from airflow_provider_webdata.hooks.webdata_async import WebDataAsyncHook
from airflow_provider_webdata.states.task_record import KEY
from tests.integration.hooks.conftest import one_hook
from tests.support.direct import StateStore, TaskInstance, context_of, killed_in_a_call
from tests.support.fault_server import answer, reset
from tests.support.waiting import settled

PAGE = "https://river.example/floods"
BOUNDED = {"parsers": [{"type": "pdf", "maxPages": 1}]}
CHEAP = {"proxy": "basic", **BOUNDED}
MONITOR = {
    "name": "m",
    "schedule": {"text": "hourly"},
    "targets": [{"type": "scrape", "urls": [PAGE]}],
}
ID = "11111111-2222-4333-8444-555555555555"
INSIDE = "https://169.254.169.254/keys"


@pytest.fixture
async def hook(kind_of_hook: Any, sandbox: Any, connect: Any) -> Any:
    connect(sandbox.url, sandbox.api_key)
    return kind_of_hook()


# The call, its arguments, the caps, and a part of the refusal.
REFUSED: dict[str, tuple[str, tuple[Any, ...], dict[str, Any], str]] = {
    "too dear": (
        "scrape",
        ({"url": PAGE, **BOUNDED},),
        {"max_credits": 4},
        "up to 5 credits.* 4 of max_credits",
    ),
    "unknown price": ("scrape", ({"url": PAGE},), {"max_credits": 400}, "each page of a PDF is billed"),
    "monitor": (
        "create_monitor",
        (MONITOR,),
        {"max_credits": 400},
        "the price of a call to create monitor is unknown",
    ),
    "agent": ("start_agent", ({"prompt": "p"},), {"max_credits": 99}, "up to 2500 credits"),
    "browser": ("open_session", ({"ttl": 60},), {"max_credits": 6}, "up to 7 credits"),
    "developer search": ("search_developer", ({"query": "q"},), {"max_credits": 1}, "up to 2 credits"),
    "paper search": ("search_papers", ({"query": "q", "k": 100},), {"max_credits": 19}, "up to 20 credits"),
    "paper": (
        "get_paper",
        ("arxiv:1706.03762",),
        {"max_credits": 99},
        "the price of a call to .* is unknown",
    ),
    "no call": ("map", ({"url": PAGE},), {"max_calls": 0}, "max_calls=0 is reached"),
    "other domain": (
        "scrape",
        ({"url": "https://evil.example/"},),
        {"allowed_domains": ["river.example"]},
        r"evil\.example is not among the allowed domains \(river\.example\)",
    ),
    "clicks away": (
        "scrape",
        ({"url": PAGE, "actions": [{"type": "click", "selector": "a"}]},),
        {"allowed_domains": ["river.example"]},
        "actions may visit any domain",
    ),
    "clicks away in a search": (
        "search",
        (
            {
                "query": "q",
                "scrapeOptions": {"formats": ["markdown"], "actions": [{"type": "wait", "milliseconds": 1}]},
            },
        ),
        {"allowed_domains": ["river.example"]},
        "actions may visit any domain",
    ),
    "code in another's browser": (
        "execute",
        (ID, {"code": "1"}),
        {},
        "this guarded hook did not open the session",
    ),
    "search elsewhere": (
        "search",
        ({"query": "q", "includeDomains": ["evil.example"]},),
        {"allowed_domains": ["river.example"]},
        "include_domains: evil.example is not among",
    ),
    "search without": (
        "search",
        ({"query": "q", "excludeDomains": ["a.river.example"]},),
        {"allowed_domains": ["river.example"]},
        "exclude_domains cannot be combined with",
    ),
    "search nowhere": (
        "search",
        ({"query": "q"},),
        {"allowed_domains": []},
        r"can be limited to none of \[\]",
    ),
    "search of an address": (
        "search",
        ({"query": "q"},),
        {"allowed_domains": ["fd00::5", "my_host.example"]},
        r"a search can be limited to none of \['fd00::5', 'my_host.example'\]",
    ),
    "monitor at any cost": (
        "update_monitor",
        ("m", {"name": "n"}),
        {"max_credits": 100},
        "is unknown",
    ),
    "private": ("scrape", ({"url": "http://169.254.169.254/"},), {}, "169.254.169.254 is a private address"),
    "private crawl": ("start_crawl", ({"url": "http://10.0.0.1/"},), {}, "private address"),
    "private agent": ("start_agent", ({"prompt": "p", "urls": ["http://[::1]/"]},), {}, "private address"),
    "private webhook": (
        "start_batch_scrape",
        ({"urls": ["https://1.1.1.1/"], "webhook": {"url": "http://10.0.0.1/"}},),
        {},
        "private address",
    ),
    "private target of a monitor": (
        "update_monitor",
        ("m", {"targets": [{"type": "scrape", "urls": ["http://10.0.0.1/"]}]}),
        {},
        "private address",
    ),
}


@pytest.mark.says("The message says whether it was sent")
async def test_a_call_that_exceeds_a_cap_is_not_sent(hook: Any, sandbox: Any) -> None:
    for name, (method, arguments, caps, part) in REFUSED.items():
        guarded = hook.guarded(**caps)
        with pytest.raises(CallRefusedError, match=part) as refused:
            await settled(getattr(guarded, method)(*arguments))
        assert "the call was not sent" in str(refused.value), name
        assert "(WD-027)" in str(refused.value), name
        await settled(guarded.close())
    assert sandbox.control.requests() == []


DOMAINS = {"allowed_domains": ["river.example"]}
SENT_WITHIN_DOMAINS = {"search", "scrape", "map"}


async def test_within_domains_every_other_call_is_refused_by_its_name(
    kind_of_hook: Any, sandbox: Any, connect: Any
) -> None:
    """Also a call that reads, cancels, or is free."""
    connect(sandbox.url, sandbox.api_key)
    hook = kind_of_hook().guarded(**DOMAINS)
    for name, endpoint in ENDPOINTS.items():
        if name in SENT_WITHIN_DOMAINS:
            continue
        path = dict.fromkeys(re.findall(r"{(\w+)}", endpoint.path), "x")
        with pytest.raises(CallRefusedError) as refused:
            await settled(hook._execute(Call(endpoint, path=path)))
        assert str(refused.value).startswith(
            f"{endpoint.label}: the call was not sent: with allowed_domains"
        ), name
    assert sandbox.control.requests() == []
    for name in SENT_WITHIN_DOMAINS:
        request = {"query": "river"} if name == "search" else {"url": PAGE}
        assert await settled(getattr(hook, name)(request))
    assert {request["path"] for request in sandbox.control.requests()} == {
        f"/v2/{name}" for name in SENT_WITHIN_DOMAINS
    }
    await settled(hook.close())


async def test_code_runs_in_a_session_of_the_guard(hook: Any, sandbox: Any) -> None:
    guarded = hook.guarded(max_credits=100)
    session = await settled(guarded.open_session({"ttl": 60}))
    with pytest.raises(CallRefusedError, match="accepts no extra_body"):
        await settled(guarded.execute(session.id, {"code": "1"}, extra_body={"timeout": 1}))
    assert (await settled(guarded.execute(session.id, {"code": "1"}))).success
    other = await settled(hook.open_session(ttl=60))
    with pytest.raises(CallRefusedError, match="this guarded hook did not open the session"):
        await settled(guarded.execute(other.id, {"code": "1"}))
    await settled(guarded.close())
    await settled(hook.close())


async def test_unchecked_calls_are_refused(hook: Any, sandbox: Any) -> None:
    guarded = hook.guarded()
    with pytest.raises(CallRefusedError, match="accepts no extra_body"):
        await settled(guarded.scrape({"url": PAGE}, extra_body={"url": "http://10.0.0.1/"}))
    with pytest.raises(CallRefusedError, match="does not expose its client"):
        await settled(guarded.get_conn())
    assert sandbox.control.requests() == []


async def test_credits_are_counted_as_they_are_spent(hook: Any, sandbox: Any) -> None:
    guarded = hook.guarded(max_credits=8)
    found = await settled(guarded.scrape({"url": PAGE, **BOUNDED}))
    assert found.data.metadata.credits_used == 1
    await settled(guarded.map({"url": PAGE}))
    results = await settled(guarded.search({"query": "river", "limit": 5}))
    assert results.credits_used == 2
    # 4 are spent, and a page may cost 5.
    with pytest.raises(CallRefusedError, match="4 of max_credits=8 are left"):
        await settled(guarded.scrape({"url": PAGE, **BOUNDED}))
    await settled(guarded.scrape({"url": PAGE, **CHEAP}))
    # Reading is free.
    assert (await settled(guarded.get_scrape(found.data.metadata.scrape_id))).data.markdown
    assert (await settled(guarded.credit_usage())).remaining_credits
    await settled(guarded.close())


@one_hook
async def test_a_job_counts_with_the_most_that_it_may_cost(hook: Any, sandbox: Any) -> None:
    guarded = hook.guarded(max_credits=12)
    crawl = {"url": PAGE, "limit": 10, "scrapeOptions": CHEAP}
    await settled(guarded.start_crawl(crawl))
    assert await settled(guarded.active_crawls())
    with pytest.raises(CallRefusedError, match="2 of max_credits"):
        await settled(guarded.start_crawl(crawl))
    assert len(sandbox.control.requests("/v2/crawl", method="POST")) == 1
    await settled(guarded.close())


@pytest.mark.rule("credits-map", "credits-threat")
@one_hook
async def test_a_map_counts_with_its_reported_or_its_highest_cost(serve: Any) -> None:
    scanned = {"url": PAGE, "limit": 10, "threatProtection": {"mode": "normal"}}
    links: dict[str, Any] = {"success": True, "links": []}
    _, hook = serve({**links, "creditsUsed": 9}, {**links, "creditsUsed": -1}, links)
    guarded = hook.guarded(max_credits=9 + 1 + 23 + 23)
    for request in ({"url": PAGE}, {"url": PAGE}, scanned):
        await settled(guarded.map(request))
    with pytest.raises(CallRefusedError, match="only 23 of max_credits=56 are left"):
        await settled(guarded.start_agent({"prompt": "p", "maxCredits": 24}))
    await settled(guarded.close())


@one_hook
async def test_searches_of_an_index_are_counted(hook: Any) -> None:
    guarded = hook.guarded(max_credits=5)
    await settled(guarded.search_developer({"query": "river"}))
    await settled(guarded.search_papers({"query": "river", "k": 10}))
    with pytest.raises(CallRefusedError, match="1 of max_credits"):
        await settled(guarded.search_developer({"query": "river"}))
    await settled(guarded.close())


# The allowed domains, the filter of the caller, and the one that is sent. Some hosts cannot be in a filter.
FILTERS: list[tuple[list[str], dict[str, list[str]], list[str]]] = [
    (["river.example", "shop.example"], {}, ["river.example", "shop.example"]),
    (["fd00::5", "river.example"], {}, ["river.example"]),
    (["river.example", "shop.example"], {"includeDomains": ["docs.river.example"]}, ["docs.river.example"]),
]


@one_hook
@pytest.mark.parametrize(("allowed", "given", "expected"), FILTERS)
async def test_a_search_is_limited_to_the_domains(
    hook: Any, sandbox: Any, allowed: Any, given: Any, expected: Any
) -> None:
    with hook.guarded(allowed_domains=allowed) as guarded:
        guarded.search({"query": "river", **given})
    (sent,) = sandbox.control.requests("/v2/search")
    found = {name: sent["body"][name] for name in sent["body"] if name.endswith("Domains")}
    assert found == {"includeDomains": expected}


async def test_a_file_counts(hook: Any, sandbox: Any) -> None:
    guarded = hook.guarded(max_credits=1)
    assert (await settled(guarded.parse(io.BytesIO(b"<p>The river.</p>"), "river.html"))).data.markdown
    with pytest.raises(CallRefusedError, match="0 of max_credits"):
        await settled(guarded.parse(io.BytesIO(b"<p>The river.</p>"), "river.html"))
    await settled(guarded.close())


async def test_a_file_is_priced_before_its_upload(hook: Any, sandbox: Any) -> None:
    guarded = hook.guarded(max_credits=2, max_calls=1)

    async def parse(name: str, **more: Any) -> Any:
        return await settled(
            guarded.parse(io.BytesIO(b"<p>The river.</p>"), name, upload="reference", **more)
        )

    with pytest.raises(CallRefusedError, match="each page of a PDF is billed"):
        await parse("river.pdf")
    with pytest.raises(CallRefusedError, match="accepts no extra_body"):
        await parse("river.html", extra_body={"fastMode": True})
    assert sandbox.control.requests() == []
    assert (await parse("river.html")).data.markdown
    sent = len(sandbox.control.requests())
    with pytest.raises(CallRefusedError, match="max_calls=1 is reached"):
        await parse("river.html")
    assert len(sandbox.control.requests()) == sent
    await settled(guarded.close())


async def test_a_page_that_leads_elsewhere_is_billed_and_not_read(serve: Any) -> None:
    page = {
        "success": True,
        "data": {"markdown": "hush", "metadata": {"url": "http://10.0.0.1/keys", "creditsUsed": 1}},
    }
    server, hook = serve(page)
    guarded = hook.guarded(max_credits=6)
    with pytest.raises(
        CallRefusedError, match=r"(?s)redirected to a forbidden URL: 10\.0\.0\.1 .* The scrape is billed"
    ):
        await settled(guarded.scrape({"url": PAGE, **BOUNDED}))
    with pytest.raises(CallRefusedError, match="redirected to a forbidden URL"):
        await settled(guarded.scrape({"url": PAGE, **BOUNDED}))
    with pytest.raises(CallRefusedError, match="4 of max_credits"):
        await settled(guarded.scrape({"url": PAGE, **BOUNDED}))
    assert len(server.requests) == 2
    await settled(guarded.close())


# The final URL of the page, and whether the hook returns it with and without domain limits.
ARRIVALS: list[tuple[Any, bool, bool]] = [
    (PAGE, True, True),
    ([PAGE, "https://www.river.example/"], True, True),
    ([PAGE, "https://evil.example/"], False, True),
    ([PAGE, "http://10.0.0.1/"], False, False),
    ([PAGE, 1], False, True),
    ([], False, True),
    ({"a": 1}, False, True),
    ("", False, True),
    (None, False, True),
]


@one_hook
async def test_a_page_without_a_final_url_may_be_of_any_domain(serve: Any) -> None:
    pages = [{"success": True, "data": {"metadata": {"url": url, "creditsUsed": 1}}} for url, *_ in ARRIVALS]
    _, hook = serve(*(page for page in pages for _ in range(2)))
    limited, free = hook.guarded(allowed_domains=["river.example"]), hook.guarded()
    for _, *expected in ARRIVALS:
        for guarded, is_read in zip((limited, free), expected, strict=True):
            if is_read:
                assert guarded.scrape({"url": PAGE}).success
                continue
            with pytest.raises(CallRefusedError, match="The scrape is billed"):
                guarded.scrape({"url": PAGE})
    limited.close()
    free.close()


@one_hook
async def test_a_page_that_was_not_fetched_has_its_own_error(serve: Any) -> None:
    _, hook = serve({"success": True, "data": {"metadata": {"error": "no such host"}}})
    with hook.guarded(allowed_domains=["river.example"]) as guarded, pytest.raises(PageError):
        guarded.scrape({"url": PAGE})


@pytest.mark.parametrize("max_tries", [5, 9], ids=["retried", "cleared"])
async def test_a_cap_holds_for_all_attempts_of_a_task(
    hook: Any, sandbox: Any, monkeypatch: pytest.MonkeyPatch, max_tries: int
) -> None:
    """Each is killed in the middle of its second call, by the first hook of two."""
    store = StateStore()

    def begin(number: int, max_tries: int) -> tuple[Any, Any]:
        context = context_of(TaskInstance(try_number=number, max_tries=max_tries), store)
        monkeypatch.setattr(
            "airflow.sdk.definitions._internal.contextmanager._CURRENT_CONTEXT", [context], raising=False
        )
        monkeypatch.setattr("airflow.sdk.definitions.context._CURRENT_CONTEXT", [context], raising=False)
        return hook.guarded(max_credits=12), hook.guarded(max_credits=6)

    for number in (1, 2):
        guarded, _ = begin(number, 5)
        await settled(guarded.scrape({"url": PAGE, **CHEAP}))
        with killed_in_a_call(store):
            await settled(guarded.scrape({"url": PAGE, **BOUNDED}))
    before = len(sandbox.control.requests())
    guarded, other = begin(6, max_tries)
    if max_tries == 5:
        with pytest.raises(CallRefusedError, match="0 of max_credits=12 are left"):
            await settled(guarded.scrape({"url": PAGE, **CHEAP}))
        assert len(sandbox.control.requests()) == before
    else:
        await settled(guarded.scrape({"url": PAGE, **BOUNDED}))
    await settled(other.scrape({"url": PAGE, **BOUNDED}))
    await settled(guarded.close())
    await settled(other.close())


async def test_the_record_of_a_guarded_hook_does_not_grow_with_its_calls(
    hook: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = StateStore()
    context = context_of(TaskInstance(), store)
    monkeypatch.setattr(ledger, "attempt_of_process", lambda: Attempt(context))
    guarded = hook.guarded(max_credits=50)
    for _ in range(3):
        await settled(guarded.scrape({"url": PAGE, **CHEAP}))
    (entry,) = store.get(KEY)["credits"]["settled"].values()
    assert entry["by_operation"] == {"scrape": 3}
    await settled(guarded.close())


DNS = json.dumps({"success": False, "code": "SCRAPE_DNS_RESOLUTION_ERROR", "error": "no such host"})


@pytest.mark.parametrize(
    ("step", "error", "left"),
    [
        # It may have been billed: it counts in full.
        (reset, TransportError, 5),
        (answer(500, "{}"), WebDataError, 5),
        (answer(200, "no json"), WebDataError, 5),
        # Documented: 1 for a host that does not resolve, nothing for a request that is refused.
        (answer(500, DNS), PageError, 9),
        (answer(400, '{"error": "bad"}'), WebDataError, 10),
        (answer(402, '{"error": "no credits"}'), WebDataError, 10),
    ],
    ids=["reset", "500", "no json", "no host", "400", "402"],
)
@pytest.mark.rule("credits-failed")
@one_hook
async def test_the_cost_of_a_failed_call(serve: Any, step: Any, error: Any, left: int) -> None:
    _, hook = serve(step)
    guarded = hook.guarded(max_credits=10)
    with pytest.raises(error):
        await settled(guarded.scrape({"url": PAGE, **BOUNDED}))
    with pytest.raises(CallRefusedError, match=rf"only {left} of max_credits"):
        await settled(guarded.start_agent({"prompt": "p", "maxCredits": 11}))
    await settled(guarded.close())


@pytest.mark.rule("provider-request-id")
@one_hook
async def test_a_repeated_call_to_a_data_provider_counts_once(serve: Any) -> None:
    """The first response is lost, and the first repetition is rate limited."""
    good = {"success": True, "scrape_id": "s", "data": {"creditsCost": 4, "alexandria": [{"data": {}}]}}
    _, hook = serve(reset, answer(429, "{}"), good, retry_budget=0)
    call = {"provider": "p", "capability": "c"}
    tool = DataTool.model_validate({"id": "p/c", "creditsCost": 5})
    with hook.guarded(max_credits=9) as guarded:
        for error in (TransportError, RateLimitError):
            with pytest.raises(error, match="may have been billed"):
                guarded.run_provider([call], request_id="a", tools=[tool])
            assert guarded._guard._ledger.spent == 5
        with pytest.raises(CallRefusedError, match="only 4 of max_credits=9 are left"):
            guarded.run_provider([{**call, "version": "2"}], request_id="a", tools=[tool])
        guarded.run_provider([call], request_id="a", tools=[tool])
        assert guarded._guard._ledger.spent == 4


async def test_concurrent_calls_do_not_exceed_a_cap(sandbox: Any, connect: Any) -> None:
    connect(sandbox.url, sandbox.api_key)
    request = {"url": PAGE, **BOUNDED}

    async with WebDataAsyncHook().guarded(max_credits=10) as guarded:
        found = await asyncio.gather(*(guarded.scrape(request) for _ in range(8)), return_exceptions=True)
    assert sum(not isinstance(one, CallRefusedError) for one in found) == 2

    sandbox.control.clear_requests()
    with WebDataHook().guarded(max_calls=3) as hook, ThreadPoolExecutor(8) as threads:
        futures = [threads.submit(hook.scrape, request) for _ in range(8)]
        refused = [future.exception() for future in futures if future.exception() is not None]
    assert len(refused) == 5
    assert len(sandbox.control.requests("/v2/scrape")) == 3


def test_an_invalid_cap_is_an_error(kind_of_hook: Any) -> None:
    invalid: list[dict[str, Any]] = [
        {"max_credits": -1},
        {"max_calls": True},
        {"max_credits": "5"},
        {"allowed_domains": ["https://a.example"]},
    ]
    for caps in invalid:
        with pytest.raises(ArgumentError, match=next(iter(caps))):
            kind_of_hook().guarded(**caps)


def test_a_sibling_keeps_the_caps() -> None:
    with pytest.raises(CallRefusedError):
        WebDataHook().guarded(max_calls=1).sibling().get_conn()


@one_hook
async def test_a_change_of_a_monitor_costs_nothing(hook: Any) -> None:
    """Its checks do."""
    monitor = (await settled(hook.create_monitor(MONITOR))).id
    guarded = hook.guarded()
    await settled(guarded.update_monitor(monitor, {"name": "n"}))
    assert guarded._guard._ledger.to_wire()["unknown"] == 0
    await settled(guarded.run_monitor(monitor))
    assert guarded._guard._ledger.to_wire()["unknown"] == 1
    await settled(guarded.close())
    await settled(hook.close())
