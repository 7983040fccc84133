"""Tools that call data providers, as an agent calls them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from airflow_provider_webdata.commands.providers import _price

from airflow_provider_webdata.api.models import DataTool
from airflow_provider_webdata.toolsets.web_tools import _described
from airflow_provider_webdata.toolsets.webdata import WebDataToolset
from tests.integration.toolsets.test_web_tools import attempt, call, results
from tests.support.fault_server import FaultServer, Step, answer
from tests.support.service import connection_text

__all__ = ["attempt"]

HISTORY = "market-prices/prices/history"


def executions(sandbox: Any) -> list[str]:
    """Return the ids of the requests that were more than lookups in the catalog."""
    sent = sandbox.control.requests("/v2/scrape")
    return [
        one["headers"]["x-request-id"]
        for one in sent
        if one["body"]["alexandria"][0]["provider"] != "firecrawl"
    ]


def test_find_and_run(obey: Any, sandbox: Any, attempt: Any) -> None:
    ti = attempt()
    orders = [
        call("find_data", query="closing price"),
        call("run_data_tool", tool=HISTORY, options={"symbol": "URM", "days": 2}),
        call("run_data_tool", tool=HISTORY, options={"days": 2, "symbol": "URM"}),
        call("find_data", query="zzz"),
    ]
    found, records, again, nothing = results(obey("\n".join(orders), WebDataToolset(max_credits=5)))
    tools = {tool["tool"]: tool for tool in found["untrusted"]["tools"]}
    assert tools[HISTORY]["credits"] == 5
    assert tools[HISTORY]["options"][0] == {
        "name": "symbol",
        "type": "string",
        "description": "Symbol, such as URM",
        "required": True,
    }
    assert len(records["untrusted"]["data"]["prices"]) == 2
    assert again == records
    assert nothing["note"].startswith("No data provider matches")
    assert len(executions(sandbox)) == 1
    assert ti.xcom["credits"]["byOperation"] == {"provider": 5}
    assert ti.xcom["sources"] == [{"tool": "run_data_tool", "url": HISTORY, "title": "Price history"}]


def test_a_negative_price_is_unknown() -> None:
    tool = DataTool.model_validate({"provider": "p", "capability": "c", "creditsCost": -5})
    assert (_described(tool)["credits"], _price(tool)) == (None, "known after the call")


@pytest.mark.parametrize(
    ("caps", "tool", "words"),
    [
        ({"max_credits": 4}, HISTORY, "4 of max_credits=4 are left"),
        ({"allowed_domains": ["river.example"]}, HISTORY, "the call may visit any domain"),
        ({}, "episode-index/episodes/search", "HTTP 403"),
        ({}, "firecrawl/terms/accept", "is not a tool id returned by find_data"),
        ({}, "market-prices", "is not a tool id returned by find_data"),
        ({}, "market-prices/nothing", "'market-prices/nothing' does not exist"),
    ],
)
def test_what_is_refused(obey: Any, sandbox: Any, caps: dict[str, Any], tool: str, words: str) -> None:
    before = sandbox.control.state()["credits"]
    seen = obey(call("run_data_tool", tool=tool, options={"symbol": "URM"}), WebDataToolset(**caps))
    assert words in seen.replace("\\", "")
    assert sandbox.control.state()["credits"] == before


@pytest.mark.usefixtures("sandbox")
def test_an_error_of_the_call_is_told(obey: Any) -> None:
    (told,) = results(obey(call("run_data_tool", tool=HISTORY, options={"symbol": "NONE"}), WebDataToolset()))
    assert told["untrusted"] == {"error": {"code": "not_found", "message": "There is no symbol 'NONE'"}}
    assert told["note"] == "The provider returned an error."


@pytest.mark.usefixtures("sandbox")
def test_many_records_are_cut(obey: Any) -> None:
    order = call("run_data_tool", tool=HISTORY, options={"symbol": "URM", "days": 28})
    (told,) = results(obey(order, WebDataToolset(max_chars=200)))
    assert len(told["untrusted"]["data"]) <= 200
    assert "request fewer records" in told["note"]


def test_an_earlier_attempt_has_paid_for_the_call(obey: Any, sandbox: Any, attempt: Any) -> None:
    before = sandbox.control.state()["credits"]
    for number in (1, 2):
        attempt(number)
        obey(call("run_data_tool", tool=HISTORY, options={"symbol": "URM"}), WebDataToolset())
    first, second = executions(sandbox)
    assert first == second
    assert sandbox.control.state()["credits"] == before - 5


CATALOG = {"data": {"level": "tools", "items": [{"provider": "p", "capability": "c", "creditsCost": 1}]}}
RECORDS = {"data": {"price": 5}, "records": 1, "creditsCost": 1}


def told(result: dict[str, Any]) -> Step:
    data = {"alexandria": [result], "creditsCost": result.get("creditsCost", 0)}
    return answer(body=json.dumps({"success": True, "scrape_id": "a", "data": data}))


def failed(**charge: Any) -> Step:
    return told({"error": {"code": "down" * 999, "message": "try again", "status": 503, **charge}})


def test_a_call_that_failed_is_sent_again_unless_it_was_billed(
    obey: Any, monkeypatch: pytest.MonkeyPatch, attempt: Any
) -> None:
    """A call that fails without being billed is sent up to three times in each attempt."""
    billed = failed(chargeId="x")
    replies = [failed(), failed(), failed(), failed(), told(RECORDS), billed, billed]
    server = FaultServer([step for reply in replies for step in (told(CATALOG), reply)])
    monkeypatch.setenv("AIRFLOW_CONN_WEBDATA_DEFAULT", connection_text(server.url))
    order = call("run_data_tool", tool="p/c")
    other = call("run_data_tool", tool="p/c", options={"n": 2})
    seen: list[dict[str, Any]] = []
    for number, orders in enumerate(([order] * 4, [order, order, other, other], [other]), 1):
        ti, toolset = attempt(number), WebDataToolset()
        seen += [results(obey(one, toolset))[0]["untrusted"] for one in orders]
    server.close()
    codes = {one["error"]["code"] for one in seen if "error" in one}
    assert [len(code) for code in codes] == [500]
    assert ["data" in one for one in seen] == [False] * 5 + [True] + [False] * 3
    ids = [request.headers["x-request-id"] for request in server.requests[1::2]]
    assert len(ids) == len(replies)
    assert len({*ids[:5]}) == 5
    assert ids[5] == ids[6]
    assert [source["url"] for source in ti.xcom["sources"]] == ["p/c"]
