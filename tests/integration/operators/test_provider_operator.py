# SPDX-License-Identifier: Apache-2.0
"""Calls of data providers."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from contextlib import closing
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowFailException

from airflow_provider_webdata.common.coded_errors import ArgumentError
from airflow_provider_webdata.operators.batch_search import WebDataBatchSearchOperator
from airflow_provider_webdata.operators.provider import WebDataProviderOperator
from airflow_provider_webdata.operators.search import WebDataSearchOperator
from airflow_provider_webdata.states.task_record import KEY
from tests.support import direct
from tests.support.airflow_versions import NEEDS_MEMORY
from tests.support.direct import StateStore, TaskInstance, context_of, killed_in_a_call
from tests.support.fault_server import FaultServer, answer, reset
from tests.support.service import SANDBOX_KEY
from webdata_sandbox.server import SandboxServer

IMPORT = "from airflow_provider_webdata.operators.provider import WebDataProviderOperator"
HISTORY: dict[str, Any] = {
    "provider": "market-prices",
    "capability": "prices/history",
    "options": {"symbol": "URM"},
}
LIVE: dict[str, Any] = {
    "provider": "market-prices",
    "capability": "prices/live",
    "options": {"symbol": "URM"},
}
SEARCH: dict[str, Any] = {
    "provider": "company-register",
    "capability": "companies/search",
    "options": {"query": "river"},
}
EPISODES: dict[str, Any] = {
    "provider": "episode-index",
    "capability": "episodes/search",
    "options": {"query": "river"},
}
MISSING = {**HISTORY, "options": {"symbol": "NONE"}}


def task(**arguments: Any) -> WebDataProviderOperator:
    return WebDataProviderOperator(task_id="t", **arguments)


def executions(sandbox: SandboxServer) -> list[dict[str, Any]]:
    """Return the requests that were more than lookups in the catalog, oldest first."""
    sent = sandbox.control.requests("/v2/scrape")
    return [one for one in sent if one["body"]["alexandria"][0]["provider"] != "firecrawl"]


def ids(sandbox: SandboxServer) -> list[str]:
    return [one["headers"]["x-request-id"] for one in executions(sandbox)]


def spent(sandbox: SandboxServer) -> int:
    return 100_000 - sandbox.control.state()["credits"]


@pytest.fixture(autouse=True)
def _credits(sandbox: SandboxServer) -> None:
    sandbox.control.configure(credits=100_000)


@pytest.mark.rule("provider-calls", "provider-answer", "provider-records", "credits-providers")
def test_records_in_xcom_and_in_a_table(run_dag: Any, sandbox: SandboxServer, tmp_path: Path) -> None:
    done = run_dag(
        f"""
        found = WebDataProviderOperator(
            task_id="found",
            provider="company-register",
            capability="companies/search",
            options={{"query": "{{{{ 'river' }}}}", "limit": 2}},
            credit_limit=10,
        )
        WebDataProviderOperator.partial(
            task_id="prices",
            provider="market-prices",
            capability="prices/history",
            save_to="{tmp_path}/{{{{ ti.map_index }}}}.csv",
        ).expand(options=[{{"symbol": "URM"}}, {{"symbol": "RGI"}}])
        """,
        before=IMPORT,
    )
    assert done.run["state"] == "success"
    value = done.xcom["found.return_value"]
    assert [record["number"] for record in value["data"]] == ["SC-1001", "SC-1002"]
    assert (value["creditsUsed"], value["failed"], value["count"]) == (2, 0, 2)
    assert value["calls"][0]["records"] == 2
    assert done.xcom["found.credits"]["by_operation"] == {"provider": 2}
    assert "may cost up to 2 credits: 1 for each of 2 records" in done.log_of("found")
    for index in range(2):
        with (tmp_path / f"{index}.csv").open() as file:
            rows = [*csv.DictReader(file)]
        assert [*rows[0]] == ["date", "close", "volume", "error", "extra"]
        assert len(rows) == 5
        assert rows[0]["error"] == rows[0]["extra"] == ""
    assert len(set(ids(sandbox))) == 3


@pytest.mark.rule("find-tools-contract")
def test_columns_have_the_types_of_the_contract(here: SandboxServer, tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "companies.parquet"
    direct.run(task(**SEARCH, save_to=str(path)))
    table = parquet.read_table(path)
    types = {field.name: str(field.type) for field in table.schema}
    assert types == {
        "number": "string",
        "name": "string",
        "country": "string",
        "founded": "string",
        "employees": "int64",
        "active": "bool",
        "officers": "string",
        "error": "string",
        "extra": "string",
    }
    assert table.to_pylist()[1]["officers"] == '["P. Level"]'


@pytest.mark.rule("provider-call-error")
def test_an_error_of_one_call_is_an_item(here: SandboxServer, tmp_path: Path) -> None:
    path = tmp_path / "all.jsonl"
    outcome = direct.run(
        task(calls=[HISTORY, MISSING, SEARCH], save_to=str(path), max_error_ratio="{{ 0.5 }}")
    )
    assert outcome.state == "success"
    items = [json.loads(line) for line in path.read_text().splitlines()]
    (failed,) = (item for item in items if "error" in item)
    assert failed == {
        "call": 1,
        "tool": "market-prices/prices/history",
        "error": {"code": "not_found", "message": "There is no symbol 'NONE'", "status": 404},
    }
    assert [item["call"] for item in items] == [0] * 5 + [1] + [2] * 2
    assert (outcome.value["failed"], outcome.value["credits_used"]) == (1, 7)
    assert len(executions(here)) == 1


@pytest.mark.rule("provider-call-error")
def test_too_many_errors_fail_the_task_after_delivery(here: SandboxServer, tmp_path: Path) -> None:
    path = tmp_path / "all.jsonl"
    outcome = direct.run(task(calls=[HISTORY, MISSING], save_to=str(path), retries=2), StateStore())
    assert outcome.ended == ("failed", 1)
    assert "1 of 2 calls failed, more than max_error_ratio=0 allows. The first: not_found" in str(
        outcome.error
    )
    assert "(WD-033)" in str(outcome.error)
    assert outcome.xcom["failure"]["accepted_with"] == {"max_error_ratio": 0.5}
    assert outcome.xcom["failure"]["reasons"] == [
        {
            "call": "market-prices/prices/history",
            "status": 404,
            "code": "not_found",
            "error": "There is no symbol 'NONE'",
        }
    ]
    assert len(path.read_text().splitlines()) == 6
    assert outcome.xcom["return_value"]["credits_used"] == 5


@pytest.mark.rule("provider-request-id")
def test_a_request_whose_calls_all_failed_is_made_again(here: SandboxServer) -> None:
    here.control.add_fault("fail_provider", path="market-prices/")
    outcome = direct.run(task(**HISTORY, retries=1), StateStore())
    assert outcome.ended == ("success", 2)
    first, second = ids(here)
    assert first != second
    assert spent(here) == 5


def test_a_stored_response_of_failed_calls_is_not_reused(
    here: SandboxServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The response is stored, because its credits could not be pushed."""
    push = TaskInstance.xcom_push
    failed: list[str] = []

    def push_later(ti: TaskInstance, key: str, value: Any) -> None:
        if key == "credits" and not failed:
            failed.append(key)
            raise OSError("the API server is down")
        push(ti, key, value)

    monkeypatch.setattr(TaskInstance, "xcom_push", push_later)
    here.control.add_fault("fail_provider", path="market-prices/")
    outcome = direct.run(task(**HISTORY, retries=3), StateStore())
    assert outcome.ended == ("success", 3)
    assert len(ids(here)) == 2


@pytest.mark.rule("provider-request-id")
@pytest.mark.parametrize("has_store", [True, False])
def test_a_lost_answer_is_not_billed_again(
    sandbox: SandboxServer, connect: Callable[..., None], has_store: bool
) -> None:
    connect(sandbox, retry_budget=0)
    sandbox.control.add_fault("drop_after_work", path="/v2/scrape", times=1)
    # The first request is a lookup.
    sandbox.control.clear_faults()
    lose = {1: lambda: sandbox.control.add_fault("garbage", path="/v2/scrape", times=3)}

    def before_try(number: int) -> None:
        sandbox.control.clear_faults()
        if number == 1:
            lose[1]()

    store = StateStore() if has_store else None
    outcome = direct.run(task(**HISTORY, retries=3), store, before_try=before_try)
    assert outcome.state == "success"
    assert spent(sandbox) == 5


@pytest.mark.rule("provider-request-id")
def test_a_lost_answer_counts_once_without_a_limit(connect: Callable[..., None]) -> None:
    tool = {"id": "p/c", "creditsCost": 1, "response": {"fields": []}}
    lookup = {"success": True, "data": {"alexandria": [{"data": {"items": [tool]}}], "creditsCost": 0}}
    good = {"success": True, "scrape_id": "s", "data": {"alexandria": [{"data": {}}], "creditsCost": 1}}
    found, billed = answer(body=json.dumps(lookup)), answer(body=json.dumps(good))
    with closing(FaultServer([found, reset, found, billed])) as server:
        server.api_key = SANDBOX_KEY  # type: ignore[attr-defined]
        connect(server, is_service=True, retry_budget=0)
        outcome = direct.run(task(provider="p", capability="c", retries=1), StateStore())
    assert outcome.ended == ("success", 2)
    assert (outcome.xcom["credits"]["used"], outcome.xcom["credits"]["unknown"]) == (1, 0)


@pytest.mark.rule("idempotency-key-servers", "provider-request-id")
@pytest.mark.parametrize(("kind", "sends_id"), [("hosted", True), ("gateway", False), (None, False)])
def test_a_lost_answer_of_another_host_may_be_billed_twice(
    connect: Callable[..., None], kind: str | None, sends_id: bool
) -> None:
    """What lies between may have dropped the id, so the lost response counts, too."""
    tool = {"id": "p/c", "creditsCost": 1, "response": {"fields": []}}
    lookup = {"success": True, "data": {"alexandria": [{"data": {"items": [tool]}}], "creditsCost": 0}}
    good = {"success": True, "scrape_id": "s", "data": {"alexandria": [{"data": {}}], "creditsCost": 1}}
    found, billed = answer(body=json.dumps(lookup)), answer(body=json.dumps(good))
    with closing(FaultServer([found, reset, found, billed])) as server:
        server.api_key = SANDBOX_KEY  # type: ignore[attr-defined]
        connect(server, server=kind, retry_budget=0)
        outcome = direct.run(task(provider="p", capability="c", retries=1), StateStore())
        assert ["x-request-id" in request.headers for request in server.requests[1::2]] == [sends_id] * 2
    assert outcome.ended == ("success", 2)
    assert (outcome.xcom["credits"]["used"], outcome.xcom["credits"]["unknown"]) == (1, 1)


@NEEDS_MEMORY
@pytest.mark.rule("provider-request-id")
def test_a_retry_on_a_real_airflow_gets_the_billed_answer(
    run_dag: Any, sandbox: SandboxServer, connect: Callable[..., None]
) -> None:
    """The catalog answers, then the answer to the calls is lost with the attempt; the limit holds one execution."""
    sandbox.control.add_fault("delay", path="/v2/scrape", times=1, seconds=0)
    done = run_dag(
        """
        WebDataProviderOperator(
            task_id="history",
            provider="market-prices",
            capability="prices/history",
            options={"symbol": "URM"},
            credit_limit=5,
            retries=1,
            retry_delay=datetime.timedelta(0),
            pre_execute=lambda context: lose(context["ti"].try_number),
        )
        """,
        before=f"""
{IMPORT}
import datetime
from webdata_sandbox.control import SandboxControl


def lose(attempt):
    control = SandboxControl({sandbox.url!r})
    control.clear_faults()
    if attempt == 1:
        from airflow_provider_webdata.hooks.webdata import WebDataHook

        run_provider = WebDataHook.run_provider

        def lost(hook, *args, **kwargs):
            WebDataHook.run_provider = run_provider
            control.add_fault("garbage", path="/v2/scrape", times=1)
            return run_provider(hook, *args, **kwargs)

        WebDataHook.run_provider = lost
""",
        is_service=True,
    )
    assert done.ended("history") == ("success", 2)
    first, second = ids(sandbox)
    assert first == second
    assert spent(sandbox) == 5
    assert done.xcom["history.credits"]["used"] == 5


@pytest.mark.rule("provider-request-id")
def test_the_limit_survives_a_kill(here: SandboxServer) -> None:
    """What the killed attempt reserved holds for the same execution, and counts against another one."""
    store = StateStore()
    with killed_in_a_call(store):
        direct.execute(task(**HISTORY, credit_limit=5), context_of(TaskInstance(1, 3), store))
    again = direct.execute(task(**HISTORY, credit_limit=5), context_of(TaskInstance(2, 3), store))
    assert again["creditsUsed"] == 5


@pytest.mark.rule("provider-request-id")
def test_a_changed_request_and_a_cleared_task_have_other_ids(
    here: SandboxServer,
) -> None:
    other, store = {**HISTORY, "options": {"symbol": "RGI"}}, StateStore()
    for number, max_tries, arguments in ((1, 3, HISTORY), (2, 3, other), (3, 5, other)):
        direct.execute(task(**arguments), context_of(TaskInstance(number, max_tries), store))
        store.values = {KEY: store.values[KEY]}
    assert len({*ids(here)}) == 3


@pytest.mark.rule("provider-terms")
@pytest.mark.says("The message has the address of the terms")
def test_terms_fail_the_task_at_once(here: SandboxServer) -> None:
    outcome = direct.run(task(**EPISODES, retries=3), StateStore())
    assert outcome.ended == ("failed", 1)
    assert "https://service.example/app/data-providers/episode-index" in str(outcome.error)
    assert "(WD-029)" in str(outcome.error)
    here.control.accept_terms("episode-index")
    assert direct.run(task(**EPISODES)).value["data"][0]["title"] == "The river in flood"


@pytest.mark.rule("provider-terms")
def test_terms_are_not_accepted(here: SandboxServer) -> None:
    accept = {"provider": "firecrawl", "capability": "terms/accept", "options": {"provider": "episode-index"}}
    outcome = direct.run(task(**accept))
    assert "a task cannot accept terms" in str(outcome.error)
    assert here.control.requests() == []


@pytest.mark.rule("provider-price")
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({**HISTORY, "credit_limit": 4}, "may cost up to 5 credits: 5 for market-prices/prices/history"),
        ({**SEARCH, "credit_limit": 9}, "may cost up to 10 credits: 1 for each of 10 records"),
        ({**SEARCH, "options": {"limit": "{{ 22 / 2 }}"}, "credit_limit": 10}, "1 for each of 11 records"),
        ({**LIVE, "credit_limit": 100}, "only its response states the price"),
        ({"calls": [HISTORY, LIVE], "credit_limit": 100}, "market-prices/prices/live: only its response"),
        ({**HISTORY, "capability": "prices/none", "credit_limit": 5}, "its price is in its contract"),
        ({**HISTORY, "extra_body": {"timeout": 1}, "credit_limit": 5}, "extra_body is sent unchecked"),
    ],
)
def test_a_limit_is_held_before_the_calls(here: SandboxServer, arguments: Any, words: str) -> None:
    outcome = direct.run(task(**arguments, retries=2), StateStore())
    assert outcome.ended == ("failed", 1)
    assert words in str(outcome.error)
    assert "(WD-034)" in str(outcome.error)
    assert executions(here) == []


def test_what_has_no_listed_price_runs_without_a_limit(here: SandboxServer) -> None:
    outcome = direct.run(task(**LIVE))
    assert outcome.value["data"] == [{"symbol": "URM", "price": 41.5}]
    assert outcome.xcom["credits"]["used"] == 3


def test_records_are_compared_and_validated(here: SandboxServer, tmp_path: Path) -> None:
    schema = {"type": "object", "properties": {"employees": {"type": "integer"}}}
    arguments = {
        **SEARCH,
        "options": {"query": "river harbour"},
        "changes": str(tmp_path / "seen"),
        "record_key": "number",
        "result_schema": schema,
    }
    nights = [datetime(2026, 1, day, tzinfo=timezone.utc) for day in (1, 2, 3)]
    first = direct.run(task(**arguments), day=nights[0]).value
    assert first["changes"]["new"] == 3
    assert first["validation"]["invalid"] == 1
    assert first["data"][2]["validationErrors"] == ['employees: breaks "type": "integer"']
    direct.run(task(**{**arguments, "options": {"query": "river"}}), day=nights[1])
    third = direct.run(task(**arguments), day=nights[2]).value
    assert (third["changes"]["same"], third["data"]) == (3, [])


@pytest.mark.parametrize(
    "arguments",
    [{}, {**HISTORY, "calls": [HISTORY]}, {**HISTORY, "max_error_ratio": 2}],
)
def test_arguments_that_cannot_work(arguments: Any) -> None:
    with pytest.raises(ArgumentError):
        task(**arguments)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"provider": "market-prices"}, "capability"),
        ({"calls": [HISTORY] * 11}, "calls"),
        ({**HISTORY, "provider": "{{ none }}"}, "rendered to None"),
    ],
)
def test_bad_input_fails_before_any_request(here: SandboxServer, arguments: Any, words: str) -> None:
    with pytest.raises((AirflowFailException, ArgumentError), match=words):
        direct.execute(task(**arguments), context_of(TaskInstance()))
    assert here.control.requests() == []


def test_rendered_options_have_the_types_of_the_contract(here: SandboxServer) -> None:
    options = {"symbol": "{{ 'URM' }}", "days": "{{ 1 + 1 }}"}
    assert len(direct.run(task(**{**HISTORY, "options": options})).value["data"]) == 2
    limited = {"query": "river", "limit": "{{ 1 }}"}
    assert direct.run(task(**{**SEARCH, "options": limited}, credit_limit=1)).value["creditsUsed"] == 1


def test_calls_as_json_text(here: SandboxServer) -> None:
    outcome = direct.run(task(calls="{{ '" + json.dumps([HISTORY]) + "' }}"))
    assert [item["call"] for item in outcome.value["data"]] == [0] * 5


@pytest.mark.rule("search-tools", "search-sources")
def test_a_search_returns_tools(here: SandboxServer, tmp_path: Path) -> None:
    path = tmp_path / "tools.csv"
    arguments: dict[str, Any] = {"query": "podcasts", "sources": ["alexandria"], "credit_limit": 0}
    found = direct.run(WebDataSearchOperator(task_id="t", **arguments, tool_detail="full", returns="tools"))
    assert [tool["id"] for tool in found.value] == ["episode-index/episodes/search"]
    direct.run(WebDataSearchOperator(task_id="t", **arguments, returns="tools", save_to=str(path)))
    batch = {"queries": ["podcasts"], "sources": ["alexandria"]}
    direct.run(WebDataBatchSearchOperator(task_id="t", **batch, save_to=str(tmp_path / "batch.csv")))
    for name in ("tools.csv", "batch.csv"):
        with (tmp_path / name).open() as file:
            (row,) = csv.DictReader(file)
        assert (row["provider"], row["credits_cost"]) == ("episode-index", "15.0")


@pytest.mark.rule("provider-request-id")
def test_an_execution_in_flight_is_waited_for_without_a_worker(connect: Callable[..., None]) -> None:
    """The task is rescheduled, and sends the same request under the same id."""
    odd = [{"a": 1}, {"name": ["symbol"], "type": "integer"}, {"name": "symbol", "type": [{"a": 1}]}]
    tool = {"id": "p/c", "creditsCost": 1, "options": odd, "response": {"fields": [{"name": "a"}]}}
    lookup = {"success": True, "data": {"alexandria": [{"data": {"items": [tool]}}], "creditsCost": 0}}
    busy = {"success": False, "error": "Still executing", "code": "request_in_flight"}
    result = {"provider": "p", "capability": "c", "data": {"a": 1}, "creditsCost": 1}
    good = {"success": True, "scrape_id": "s", "data": {"alexandria": [result], "creditsCost": 1}}
    steps = [answer(body=json.dumps(lookup)), answer(409, body=json.dumps(busy))]
    steps += [answer(body=json.dumps(lookup)), answer(body=json.dumps(good))]
    with closing(FaultServer(steps)) as server:
        server.api_key = SANDBOX_KEY  # type: ignore[attr-defined]
        connect(server, is_service=True, retry_budget=0)
        outcome = direct.run(task(provider="p", capability="c", credit_limit=1), StateStore())
        sent = [request.headers.get("x-request-id") for request in server.requests]
    assert (outcome.ended, outcome.reschedules) == (("success", 1), 1)
    assert outcome.value["data"] == [{"a": 1}]
    assert sent[1] == sent[3] is not None


@pytest.mark.parametrize(
    "listed",
    [
        "text",
        ["text"],
        [{"name": ["a"], "type": "number"}, {"name": "a", "type": ["number"]}],
        [{"name": 10**400}],
    ],
)
def test_an_odd_contract_costs_no_call(connect: Callable[..., None], listed: Any) -> None:
    tool = {"id": "p/c", "creditsCost": 10**400, "options": listed, "response": {"fields": "text"}}
    lookup = {"success": True, "data": {"alexandria": [{"data": {"items": [tool], "next": "text"}}]}}
    result = {"provider": "p", "capability": "c", "data": {"a": 1}, "creditsCost": 1}
    good = {"success": True, "scrape_id": "s", "data": {"alexandria": [result], "creditsCost": 1}}
    steps = [answer(body=json.dumps(body)) for body in (lookup, good)]
    with closing(FaultServer(steps)) as server:
        server.api_key = SANDBOX_KEY  # type: ignore[attr-defined]
        connect(server)
        outcome = direct.run(task(provider="p", capability="c", options={"a": "1e999"}))
        sent = [json.loads(request.body)["alexandria"][0] for request in server.requests]
    assert outcome.value["data"] == [{"a": 1}]
    assert sent[1]["options"] == {"a": "1e999"}
