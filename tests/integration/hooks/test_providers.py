# SPDX-License-Identifier: Apache-2.0
"""Data providers and their catalog through both hooks, over HTTP."""

from __future__ import annotations

import inspect
import json
from typing import Any

import pytest

from airflow_provider_webdata.api import errors, models
from tests.integration.hooks.conftest import one_hook
from tests.support.fault_server import answer
from tests.support.waiting import settled
from webdata_sandbox.server import SandboxServer

HISTORY = {"provider": "market-prices", "capability": "prices/history", "options": {"symbol": "URM"}}
EPISODES = {"provider": "episode-index", "capability": "episodes/search", "options": {"query": "river"}}
GOOD = {"success": True, "scrape_id": "s", "data": {"alexandria": [{"provider": "p"}], "creditsCost": 1}}
GIVEN = {"provider": "p", "capability": "c"}


@pytest.fixture
def hook(sandbox: SandboxServer, connect: Any, kind_of_hook: Any) -> Any:
    connect(sandbox.url, is_service=True)
    return kind_of_hook()


async def listed(items: Any) -> list[Any]:
    return [item async for item in items] if inspect.isasyncgen(items) else list(items)


def refused(status: int, code: str, **more: Any) -> Any:
    return answer(status, body=json.dumps({"success": False, "error": "no", "code": code, **more}))


@pytest.mark.rule("provider-answer", "provider-call-error", "provider-calls")
async def test_calls_and_their_errors(sandbox: SandboxServer, hook: Any) -> None:
    found = await settled(hook.run_provider([HISTORY, {**HISTORY, "options": {}}], request_id="a:1"))
    prices, failed = found.data.alexandria
    assert (found.credits_used, prices.credits_cost, prices.records, prices.error) == (5, 5, 5, None)
    assert (failed.error.code, failed.error.status) == ("invalid_options", 400)
    (sent,) = sandbox.control.requests("/v2/scrape")
    assert sent["body"] == {"alexandria": [HISTORY, {**HISTORY, "options": {}}]}
    assert sent["headers"]["x-request-id"] == "a:1"
    await settled(hook.close())


@pytest.mark.rule("provider-request-id")
@pytest.mark.parametrize("fault", ["drop_after_work", "truncate", "garbage"])
async def test_a_lost_answer_is_not_billed_twice(sandbox: SandboxServer, hook: Any, fault: str) -> None:
    before = sandbox.control.state()["credits"]
    sandbox.control.add_fault(fault, path="/v2/scrape")
    if fault == "garbage":
        with pytest.raises(errors.InvalidResponseError):
            await settled(hook.run_provider([HISTORY], request_id="a:1"))
        await settled(hook.run_provider([HISTORY], request_id="a:1"))
    else:
        # Repeated by the client itself, by an id of its own.
        assert (await settled(hook.run_provider([HISTORY]))).credits_used == 5
    first, second = sandbox.control.requests("/v2/scrape")
    assert first["headers"]["x-request-id"] == second["headers"]["x-request-id"]
    assert sandbox.control.state()["credits"] == before - 5
    await settled(hook.close())


@pytest.mark.rule("find-tools-call", "find-tools-page", "find-tools-contract")
async def test_the_catalog(sandbox: SandboxServer, hook: Any) -> None:
    before = sandbox.control.state()["credits"]
    tools = await listed(hook.find_tools(level="tools", limit=2))
    assert len(tools) == 5
    assert not tools[0].is_complete
    assert len(sandbox.control.requests("/v2/scrape")) == 3
    assert next(item.id for item in await listed(hook.find_tools())) == "company-register"
    tool = await settled(hook.data_tool("company-register", "companies/search"))
    assert (tool.credits_cost, tool.per_record, tool.records_key) == (1, True, "companies")
    assert [item["name"] for item in tool.fields][:2] == ["number", "name"]
    assert await settled(hook.data_tool("company-register", "nothing")) is None
    assert sandbox.control.state()["credits"] == before
    await settled(hook.close())


@one_hook
@pytest.mark.rule("find-tools-contract")
async def test_the_contract_of_a_summary_is_followed(serve: Any) -> None:
    link = {"provider": "firecrawl", "capability": "find-tools", "options": {"capabilities": ["p/c"]}}

    def page(**tool: Any) -> dict[str, Any]:
        data = {"level": "tools", "items": [{"id": "p/c", **tool}], "total": 1}
        return {"success": True, "data": {"alexandria": [{"data": data}], "creditsCost": 0}}

    server, hook = serve(
        page(next=link),
        page(execute={"provider": "p", "capability": "c"}, options=[], response={"fields": [{"name": "a"}]}),
    )
    assert hook.data_tool("p", "c").fields == [{"name": "a"}]
    assert json.loads(server.requests[1].body)["alexandria"] == [link]


@one_hook
async def test_only_links_into_the_catalog_are_followed(serve: Any) -> None:
    data = {"items": [], "next": {"provider": "paid", "capability": "find-tools", "options": {}}}
    server, hook = serve({"success": True, "data": {"alexandria": [{"data": data}]}})
    assert list(hook.find_tools()) == []
    assert len(server.requests) == 1


@one_hook
@pytest.mark.parametrize("items", [[], [{"id": "p/c", "options": "text", "creditsCost": 10**400}]])
async def test_a_page_without_new_items_is_the_last(serve: Any, items: list[Any]) -> None:
    """Whatever link it has."""

    def page(offset: int) -> dict[str, Any]:
        link = {"provider": "firecrawl", "capability": "find-tools", "options": {"offset": offset}}
        return {"success": True, "data": {"alexandria": [{"data": {"items": items, "next": link}}]}}

    server, hook = serve(*map(page, range(1, 9)))
    assert [tool.id for tool in hook.find_tools()] == [item["id"] for item in items]
    assert len(server.requests) == 1 + len(items)


@one_hook
@pytest.mark.rule("find-tools-call")
async def test_an_error_of_the_catalog(serve: Any) -> None:
    error = {"code": "invalid_options", "message": "no such level", "status": 400}
    _, hook = serve(
        {"success": True, "data": {"alexandria": [{"error": error}]}},
        {"success": True, "data": {"alexandria": [{"data": 5}]}},
    )
    with pytest.raises(errors.BadRequestError, match="no such level"):
        list(hook.find_tools())
    with pytest.raises(errors.InvalidResponseError, match="contains no catalog page"):
        list(hook.find_tools())


@one_hook
@pytest.mark.rule("provider-terms")
async def test_terms(sandbox: SandboxServer, hook: Any) -> None:
    with pytest.raises(
        errors.TermsRequiredError, match=r"https://service.example/app/\S+/episode-index\.\s[\s\S]*\(WD-029\)"
    ):
        hook.run_provider([EPISODES])
    accept = {"provider": "firecrawl", "capability": "terms/accept", "options": {"provider": "episode-index"}}
    for calls in ([accept], [{**accept, "provider": " Firecrawl "}]):
        with pytest.raises(errors.InvalidRequestError, match="a task cannot accept terms"):
            hook.run_provider(calls)
    with pytest.raises(errors.InvalidRequestError, match="extra_body"):
        hook.run_provider([HISTORY], extra_body={"alexandria": [accept]})
    assert len(sandbox.control.requests("/v2/scrape")) == 1


@one_hook
@pytest.mark.rule("provider-request-id")
@pytest.mark.parametrize(
    ("status", "code", "kind"),
    [
        (409, "duplicate_request", errors.RequestIdUsedError),
        (409, "request_unresolved", errors.RequestUnresolvedError),
        (503, "request_unresolved", errors.RequestUnresolvedError),
    ],
)
async def test_conflicts_of_ids(serve: Any, status: int, code: str, kind: type[errors.APIError]) -> None:
    server, hook = serve(refused(status, code))
    with pytest.raises(kind) as caught:
        hook.run_provider([GIVEN])
    assert caught.value.verdict == "never"
    assert len(server.requests) == 1


@one_hook
@pytest.mark.rule("provider-request-id")
async def test_an_execution_in_flight_is_waited_for(serve: Any) -> None:
    server, hook = serve(refused(409, "request_in_flight", retry_after_seconds=0), GOOD)
    assert hook.run_provider([GIVEN], request_id="a").scrape_id == "s"
    assert [request.headers["x-request-id"] for request in server.requests] == ["a", "a"]


@one_hook
async def test_bad_ids_and_calls_are_not_sent(serve: Any) -> None:
    server, hook = serve()
    for arguments in ({"calls": [GIVEN], "request_id": "a b"}, {"calls": []}, {"calls": [GIVEN] * 11}):
        with pytest.raises(errors.InvalidRequestError):
            hook.run_provider(**arguments)
    assert server.requests == []


@one_hook
@pytest.mark.rule("provider-price")
async def test_a_guarded_hook_needs_contracts(sandbox: SandboxServer, hook: Any) -> None:
    guarded = hook.guarded(max_credits=9)
    with pytest.raises(errors.CallRefusedError, match="its price is in its contract"):
        guarded.run_provider([HISTORY])
    tool = guarded.data_tool("market-prices", "prices/history")
    assert guarded.run_provider([HISTORY], tools=[tool]).credits_used == 5
    with pytest.raises(errors.CallRefusedError, match="only 4 of max_credits"):
        guarded.run_provider([HISTORY], tools=[tool])
    live = {"provider": "market-prices", "capability": "prices/live", "options": {"symbol": "URM"}}
    with pytest.raises(errors.CallRefusedError, match="only its response states"):
        guarded.run_provider([live], tools=[guarded.data_tool("market-prices", "prices/live")])


def test_an_answer_keeps_what_is_new() -> None:
    answered = models.ProviderResponse.model_validate({**GOOD, "receipt": {"a": 1}})
    assert answered.to_wire()["receipt"] == {"a": 1}
