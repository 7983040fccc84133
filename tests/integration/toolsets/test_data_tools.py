"""Tools that call data providers, as an agent calls them."""

from __future__ import annotations

from typing import Any

import pytest

from airflow_provider_webdata.api.models import DataTool
from airflow_provider_webdata.commands.providers import _price
from airflow_provider_webdata.toolsets.web_tools import _described
from airflow_provider_webdata.toolsets.webdata import WebDataToolset
from tests.integration.toolsets.test_web_tools import attempt, call, results

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
