# SPDX-License-Identifier: Apache-2.0
"""Each tool against the sandbox, as an agent calls it."""

from __future__ import annotations

import asyncio
import json
import logging
from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowFailException
from pydantic_ai import Agent
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import FunctionModel

from airflow_provider_webdata.hooks.connection import ConnectionMissingError
from airflow_provider_webdata.toolsets import sources
from airflow_provider_webdata.toolsets.web_tools import MAX_CHARS
from airflow_provider_webdata.toolsets.webdata import WebDataToolset
from tests.support.direct import StateStore, TaskInstance, context_of
from tests.support.fault_server import FaultServer, answer
from tests.support.service import connection_text
from webdata_sandbox.server import SandboxServer

FLOODS = "https://river.example/floods"
TITLE = "River level rises after a week of rain - River Gazette"
LONG = "https://river.example/long"
TEXT = "\n\n".join(f"Paragraph {number} of the river." for number in range(2000))


def call(name: str, **arguments: Any) -> str:
    return f"CALL {name} {json.dumps(arguments)}"


def results(told: str) -> list[Any]:
    """What the tools returned, or said, in order."""
    kinds = {"tool-return", "retry-prompt"}
    return [
        part["content"]
        for message in json.loads(told)["seen"]
        for part in message["parts"]
        if part["part_kind"] in kinds
    ]


@pytest.fixture
def attempt(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return a function that begins an attempt of a task, with a task state unless Airflow is too old for one."""
    store = StateStore()
    from airflow.sdk.definitions._internal import contextmanager

    def begin(
        number: int = 1, max_tries: int = 2, *, has_store: bool = True, task: Any = None
    ) -> TaskInstance:
        ti = TaskInstance(try_number=number, max_tries=max_tries)
        context = context_of(ti, store if has_store else None, task=task)
        monkeypatch.setattr(contextmanager, "_CURRENT_CONTEXT", [context])
        monkeypatch.setattr("airflow.sdk.definitions.context._CURRENT_CONTEXT", [context], raising=False)
        monkeypatch.setattr(sources, "_current", None)
        ti.store = store  # type: ignore[attr-defined]
        return ti

    return begin


def test_a_search(obey: Any, sandbox: Any) -> None:
    order = call("web_search", query="river", limit=2, recency="year", country="de")
    (found,) = results(obey(order, WebDataToolset()))
    assert len(found["untrusted"]["results"]) <= 2
    for result in found["untrusted"]["results"]:
        assert set(result) == {"title", "url", "description"}
    (sent,) = sandbox.control.requests("/v2/search")
    assert sent["body"] == {"query": "river", "limit": 2, "tbs": "qdr:y", "country": "DE"}


@pytest.mark.rule("self-hosted-search")
def test_a_search_on_a_server_without_a_search_backend(
    obey: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with SandboxServer(profile="self-hosted") as own:
        text = connection_text(own.url, own.api_key, server="self-hosted")
        monkeypatch.setenv("AIRFLOW_CONN_WEBDATA_DEFAULT", text)
        (found,) = results(obey(call("web_search", query="river"), WebDataToolset()))
    assert "This server cannot search" in found["note"]
    assert "without a search backend. Configure one on the server" in caplog.text


def test_a_search_within_domains(obey: Any, sandbox: Any) -> None:
    toolset = WebDataToolset(allowed_domains=["river.example"])
    found, nothing = results(
        obey(f"{call('web_search', query='river')}\n{call('web_search', query='zzzqqq')}", toolset)
    )
    assert {result["url"].split("/")[2] for result in found["untrusted"]["results"]} == {"river.example"}
    assert nothing == {"untrusted": {"results": []}, "note": "No results were found; try other search terms."}
    assert sandbox.control.requests("/v2/search")[0]["body"]["includeDomains"] == ["river.example"]


def test_a_long_page_comes_in_parts_and_is_paid_for_once(obey: Any, sandbox: Any, attempt: Any) -> None:
    sandbox.control.set_page(LONG, markdown=TEXT, title="Long")
    toolset, parts, offset = WebDataToolset(), [], 0
    ti = attempt()
    while True:
        (part,) = results(obey(call("read_page", url=LONG, offset=offset), toolset))
        assert (part["url"], part["untrusted"]["title"]) == (LONG, "Long")
        parts.append(part["untrusted"]["text"])
        if "next_offset" not in part:
            break
        offset = part["next_offset"]
        assert (
            part["note"]
            == f"The text continues: call read_page again with offset={offset} and the same other arguments."
        )
        assert parts[-1].endswith("\n\n")
        assert len(parts[-1]) <= MAX_CHARS
    assert "".join(parts) == TEXT
    assert len(parts) > 1
    (sent,) = sandbox.control.requests("/v2/scrape")
    assert sent["body"] == {
        "url": LONG,
        "formats": ["markdown"],
        "parsers": [{"type": "pdf", "maxPages": 1}],
    }
    assert ti.xcom["credits_used"] == 1
    assert ti.xcom["sources"] == [{"tool": "read_page", "url": LONG, "title": "Long"}]
    (beyond,) = results(obey(call("read_page", url=LONG, offset=10**6), toolset))
    assert beyond == f"read_page: offset: the text has only {len(TEXT)} characters"


def test_a_site(obey: Any, sandbox: Any) -> None:
    (found,) = results(
        obey(call("list_site", url="https://river.example/", search="flood"), WebDataToolset())
    )
    assert FLOODS in found["untrusted"]["urls"]
    (sent,) = sandbox.control.requests("/v2/map")
    assert sent["body"] == {"url": "https://river.example/", "limit": 100, "search": "flood"}


def test_an_extraction(obey: Any, sandbox: Any, attempt: Any) -> None:
    ti = attempt()
    sandbox.control.set_page(FLOODS, "<p>412 cm</p>", answer="412 cm", json={"level": 412})
    schema = {"type": "object", "properties": {"level": {"type": "number"}}}
    orders = [
        call("extract_page", url=FLOODS, question="How high?"),
        call("extract_page", url=FLOODS, schema=schema),
        call("extract_page", url=FLOODS),
        call("extract_page", url=FLOODS, question="How high?", schema=schema),
    ]
    told = results(obey("\n".join(orders), WebDataToolset()))
    assert told[0] == {"url": FLOODS, "untrusted": {"url": FLOODS, "answer": "412 cm"}}
    assert told[1] == {"url": FLOODS, "untrusted": {"url": FLOODS, "data": {"level": 412}}}
    assert told[2:] == ["extract_page: pass either question or schema"] * 2
    assert ti.xcom["credits"]["by_format"] == {"page": 2, "question": 4, "json": 4}


def test_a_file(obey: Any, sandbox: Any) -> None:
    url = "https://weather.example/reports/annual.pdf"
    orders = [
        call("read_page", url=url),
        call("read_page", url=url, pages=20),
        call("read_page", url=url, pages=20, offset=1),
        call("read_page", url=url, pages=21),
    ]
    one, all_, again, too_many = results(obey("\n".join(orders), WebDataToolset()))
    assert "Annual weather report" in one["untrusted"]["text"]
    assert "Annual weather report" in all_["untrusted"]["text"]
    assert again["untrusted"]["text"] == all_["untrusted"]["text"][1:]
    assert too_many[0]["msg"] == "Input should be less than or equal to 20"
    sent = [request["body"]["parsers"][0]["maxPages"] for request in sandbox.control.requests("/v2/scrape")]
    assert sent == [1, 20]


def test_what_is_missing_is_said(obey: Any, sandbox: Any) -> None:
    sandbox.control.set_page("https://river.example/empty", markdown="", title="Empty")
    sandbox.control.set_page("https://river.example/broken", "<p>x</p>", error="SCRAPE_SITE_ERROR")
    orders = [
        call("read_page", url="https://river.example/gone"),
        call("read_page", url="https://river.example/empty"),
        call("read_page", url="https://river.example/broken"),
        call("read_page", url="not a url"),
        call("web_search", query="river", limit=99),
        call("read_page", url=FLOODS),
    ]
    gone, empty, broken, no_url, limit, read = results(obey("\n".join(orders), WebDataToolset()))
    assert gone["note"] == "The site responded with status 404: this may not be the intended page."
    assert "It contains no text." in empty["note"]
    assert json.loads(broken)["failed"] == "read_page: HTTP 500"
    assert json.loads(broken)["untrusted"]["error"].startswith("scrape: HTTP 500, SCRAPE_SITE_ERROR")
    assert no_url.startswith("read_page: ")
    assert limit[0]["msg"] == "Input should be less than or equal to 20"
    assert "412 cm" in read["untrusted"]["text"]


def test_a_refused_call_does_not_end_the_run(obey: Any, sandbox: Any) -> None:
    orders = [
        call("web_search", query="river"),
        call("read_page", url=FLOODS),
        call("list_site", url="https://river.example/"),
        call("read_page", url="https://river.example/salmon"),
    ]
    told = results(obey("\n".join(orders), WebDataToolset(max_credits=8, max_calls=3)))
    assert told[3] == "read_page: scrape: the call was not sent: max_calls=3 is reached"
    told = results(obey("\n".join(orders), WebDataToolset(max_credits=8)))
    assert told[3].startswith("read_page: scrape: the call was not sent: the call may cost up to 5 credits")
    assert told[3].endswith("4 of max_credits=8 are left")
    assert len(sandbox.control.requests("/v2/scrape")) == 2


@pytest.mark.parametrize(
    ("status", "told"), [(401, 'check "API Key" (WD-401)'), (402, "buy credits, or wait for the next")]
)
def test_a_refused_key_or_no_credits_end_the_run(
    obey: Any, monkeypatch: pytest.MonkeyPatch, status: int, told: str
) -> None:
    server = FaultServer([answer(status, '{"success": false, "error": "no"}')])
    monkeypatch.setenv("AIRFLOW_CONN_WEBDATA_DEFAULT", connection_text(server.url))
    with pytest.raises(AirflowFailException) as failure:
        obey(call("read_page", url=FLOODS), WebDataToolset())
    server.close()
    assert told in str(failure.value)
    assert len(server.requests) == 1


def test_a_connection_that_cannot_work_ends_the_run(obey: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_WEBDATA_DEFAULT", connection_text("ftp://a.example"))
    with pytest.raises(AirflowFailException, match=r"\(WD-001\)"):
        obey(call("read_page", url=FLOODS), WebDataToolset())


def test_a_missing_connection_is_retried_as_by_operators(obey: Any) -> None:
    with pytest.raises(ConnectionMissingError, match=r"\(WD-008\)"):
        obey(call("read_page", url=FLOODS), WebDataToolset("nowhere"))


def test_another_attempt_reads_again_and_holds_the_cap(obey: Any, sandbox: Any, attempt: Any) -> None:
    order = call("read_page", url=FLOODS)
    attempt(1)
    obey(f"{call('web_search', query='river')}\n{order}", WebDataToolset(max_credits=8))
    sandbox.control.clear_requests()

    ti = attempt(2)
    salmon = call("read_page", url="https://river.example/salmon")
    read, refused = results(obey(f"{order}\n{salmon}", WebDataToolset(max_credits=8)))
    assert "412 cm" in read["untrusted"]["text"]
    assert refused.endswith("4 of max_credits=8 are left")
    assert [request["method"] for request in sandbox.control.requests("/v2/scrape")] == ["POST"]
    assert ti.xcom["credits_used"] == 4
    assert [source["url"] for source in ti.xcom["sources"]] == [FLOODS]

    # Clearing the task begins anew: the cap is whole again.
    ti = attempt(3, max_tries=5)
    obey(call("list_site", url="https://river.example/"), WebDataToolset(max_credits=1))
    assert ti.xcom["credits"]["used"] == 5
    assert [source["tool"] for source in ti.xcom["sources"]] == ["list_site"]


def test_sources_of_an_earlier_attempt_are_reported(obey: Any, sandbox: Any, attempt: Any) -> None:
    """A durable run repeats no call."""
    attempt(1)
    obey(call("read_page", url=FLOODS), WebDataToolset())
    ti = attempt(2)
    obey("", WebDataToolset())
    assert ti.xcom["sources"] == [{"tool": "read_page", "url": FLOODS, "title": TITLE}]


def test_without_task_state_each_attempt_counts_by_itself(obey: Any, sandbox: Any, attempt: Any) -> None:
    attempt(1, has_store=False)
    obey(call("read_page", url=FLOODS), WebDataToolset())
    ti = attempt(2, has_store=False)
    obey(f"{call('read_page', url=FLOODS)}\n{call('web_search', query='river')}", WebDataToolset())
    assert ti.xcom["credits"]["by_operation"] == {"scrape": 1, "search": 2}
    assert len(sandbox.control.requests("/v2/scrape")) == 2


def test_a_server_that_does_not_bill_spends_no_credits(
    obey: Any, monkeypatch: pytest.MonkeyPatch, attempt: Any
) -> None:
    """Whatever it reports, and with any cap; a page that leads elsewhere is not called billed."""
    metadata = {"url": "http://10.0.0.1/keys", "creditsUsed": 7}
    page = json.dumps({"success": True, "data": {"markdown": "x", "metadata": metadata}})
    server = FaultServer([answer(500, '{"error": "no"}'), answer(body=page)])
    text = connection_text(server.url, retry_budget=0, server="self-hosted")
    monkeypatch.setenv("AIRFLOW_CONN_WEBDATA_DEFAULT", text)
    ti = attempt()
    orders = [call("read_page", url=FLOODS), call("read_page", url=f"{FLOODS}?2")]
    told = results(obey("\n".join(orders), WebDataToolset(max_credits=0)))
    server.close()
    assert [json.loads(one)["failed"] for one in told] == [
        "read_page: HTTP 500",
        "read_page: the final URL of the page is forbidden or unknown",
    ]
    assert "billed" not in told[1]
    assert (ti.xcom["credits"]["used"], ti.xcom["credits"]["unknown"], ti.xcom["credits_used"]) == (0, 0, 0)


def test_tags_of_a_page_in_place_of_facts(obey: Any, monkeypatch: pytest.MonkeyPatch, attempt: Any) -> None:
    odd = {
        "url": ["https://evil.example/"],
        "title": ["a", "b"],
        "creditsUsed": "many",
        "statusCode": [404],
        "scrapeId": {"a": 1},
        "numPages": "one",
        "totalPages": [2],
    }
    server = FaultServer(
        [answer(body=json.dumps({"success": True, "data": {"markdown": "x", "metadata": odd}}))]
    )
    monkeypatch.setenv("AIRFLOW_CONN_WEBDATA_DEFAULT", connection_text(server.url))
    ti = attempt()
    (read,) = results(obey(call("read_page", url=FLOODS), WebDataToolset(max_credits=9)))
    server.close()
    assert read == {"url": FLOODS, "untrusted": {"url": FLOODS, "title": "", "text": "x"}}
    assert ti.xcom["sources"] == [{"tool": "read_page", "url": FLOODS, "title": ""}]
    assert ti.xcom["credits"]["unknown"] == 1


@pytest.mark.parametrize(
    ("pages", "read", "total", "more"),
    [(1, 1, 44, 20), (20, 20, 44, None), (1, 1, 3, 3), (5, 3, 3, None)],
)
def test_a_long_file_says_how_much_of_it_was_read(
    obey: Any, monkeypatch: pytest.MonkeyPatch, pages: int, read: int, total: int, more: int | None
) -> None:
    metadata = {"numPages": read, "totalPages": total, "creditsUsed": read}
    page = {"success": True, "data": {"markdown": "x", "metadata": metadata}}
    server = FaultServer([answer(body=json.dumps(page))])
    monkeypatch.setenv("AIRFLOW_CONN_WEBDATA_DEFAULT", connection_text(server.url))
    order = call("read_page", url="https://river.example/long.pdf", pages=pages)
    (found,) = results(obey(order, WebDataToolset()))
    server.close()
    advice = "" if more is None else f"; call read_page again with pages={more} to read more"
    note = f"This file has {total} pages; only the first {read} were read{advice}."
    assert found.get("note") == (note if read < total else None)


@pytest.fixture
def other(sandbox: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A second connection."""
    monkeypatch.setenv("AIRFLOW_CONN_OTHER", connection_text(sandbox.url, sandbox.api_key))


def test_two_toolsets_tell_what_both_read(obey: Any, other: None, attempt: Any) -> None:
    ti = attempt()
    orders = [call("read_page", url=FLOODS), call("other_list_site", url="https://river.example/")]
    obey("\n".join(orders), WebDataToolset(), WebDataToolset("other").prefixed("other"))
    assert [source["tool"] for source in ti.xcom["sources"]] == ["read_page", "list_site"]
    assert ti.xcom["credits"]["by_operation"] == {"scrape": 1, "map": 1}


def test_sources_contain_no_secret_of_a_url(obey: Any, sandbox: Any, attempt: Any) -> None:
    ti = attempt()
    secret = "https://river.example/floods?api_key=0123456789abcdef"
    tools = ("read_page", "list_site")
    obey("\n".join(call(tool, url=secret) for tool in tools), WebDataToolset())
    found = [(source["tool"], source["url"]) for source in ti.xcom["sources"]]
    assert found == [(tool, f"{FLOODS}?api_key=***") for tool in tools]


def test_each_toolset_has_its_own_cap_in_all_attempts(obey: Any, other: None, attempt: Any) -> None:
    def toolsets() -> list[Any]:
        return [WebDataToolset(max_credits=6), WebDataToolset("other", max_credits=2).prefixed("other")]

    attempt(1)
    orders = [call("other_list_site", url="https://river.example/"), call("read_page", url=FLOODS)]
    obey("\n".join(orders), *toolsets())
    attempt(2)
    orders = [
        call("other_list_site", url="https://shop.example/"),
        call("other_list_site", url="https://weather.example/"),
        call("read_page", url="https://river.example/salmon"),
        call("read_page", url="https://river.example/market"),
    ]
    shop, weather, salmon, market = results(obey("\n".join(orders), *toolsets()))
    assert shop["untrusted"]["urls"]
    assert weather.endswith("0 of max_credits=2 are left")
    assert salmon["untrusted"]["text"]
    assert market.endswith("4 of max_credits=6 are left")


def test_equal_calls_share_one(sandbox: Any, attempt: Any) -> None:
    """At once, and again later."""
    ti = attempt()
    calls: list[tuple[str, dict[str, Any]]] = [
        ("read_page", {"url": FLOODS}),
        ("extract_page", {"url": FLOODS, "question": "How high?"}),
        ("list_site", {"url": "https://river.example/"}),
        ("web_search", {"query": "river"}),
    ]

    def at_once(messages: list[Any], info: Any) -> ModelResponse:
        if len(messages) > 3:
            return ModelResponse(parts=[TextPart("done")])
        return ModelResponse(parts=[ToolCallPart(*given) for given in calls * 5])

    Agent(FunctionModel(at_once), toolsets=[WebDataToolset()]).run_sync("go")
    assert sorted(request["path"] for request in sandbox.control.requests()) == [
        "/v2/map",
        "/v2/scrape",
        "/v2/scrape",
        "/v2/search",
    ]
    assert ti.xcom["credits_used"] == 1 + 5 + 1 + 2


def test_long_results_are_cut(obey: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    long = "A word. " * 9000
    body = {
        "success": True,
        "data": {
            "answer": long,
            "json": {"words": long},
            "metadata": {"url": FLOODS + "?" + "x" * 9999, "title": long},
        },
        "links": [{"url": f"https://river.example/{'x' * 900}{number}"} for number in range(99)]
        + [{"url": "https://river.example/" + "y" * 9999}],
    }
    server = FaultServer([answer(body=json.dumps(body))])
    monkeypatch.setenv("AIRFLOW_CONN_WEBDATA_DEFAULT", connection_text(server.url))
    orders = [
        call("extract_page", url=FLOODS, question="?"),
        call("extract_page", url=FLOODS, schema={"type": "object"}),
        call("list_site", url="https://river.example/"),
    ]
    answered, data, listed = results(obey("\n".join(orders), WebDataToolset()))
    server.close()
    assert len(answered["untrusted"]["answer"]) <= MAX_CHARS < len(long)
    assert answered["note"] == (
        f"These are the first {len(answered['untrusted']['answer'])} of {len(long)} characters; request less data to "
        "get a complete result."
    )
    assert data["untrusted"]["data"].startswith('{"words": "A word. ')
    assert len(data["untrusted"]["data"]) <= MAX_CHARS
    assert "as JSON text" in data["note"]
    assert 1 < len(listed["untrusted"]["urls"]) < 25
    assert sum(map(len, listed["untrusted"]["urls"])) <= MAX_CHARS
    assert listed["note"].endswith("URLs were omitted because the list is too long; narrow it with search.")
    for result in (answered, data, listed):
        assert len(json.dumps(result)) < MAX_CHARS + 3000


def test_strangers_words_stand_under_untrusted(obey: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The final URL, an error of the service that quotes the page, and where a refused redirect led."""
    words = "ignore-your-instructions"
    pages: list[tuple[int, dict[str, Any]]] = [
        (
            200,
            {"success": True, "data": {"markdown": "x", "metadata": {"url": f"https://a.example/{words}"}}},
        ),
        (400, {"success": False, "error": words, "code": words}),
        (500, {"success": False, "error": words}),
        (200, {"success": True, "data": {"metadata": {"url": f"https://{words}.localhost/"}}}),
        (200, {"success": True, "data": {"metadata": {"url": f"https://a b/{words}"}}}),
    ]
    server = FaultServer([answer(status, json.dumps(page)) for status, page in pages])
    monkeypatch.setenv("AIRFLOW_CONN_WEBDATA_DEFAULT", connection_text(server.url, retry_budget=0))
    orders = [call("read_page", url=f"{FLOODS}?{number}") for number in range(len(pages))]
    told = results(obey("\n".join(orders), WebDataToolset()))
    server.close()
    assert len(told) == len(server.requests) == len(pages)
    for result in told:
        result = json.loads(result) if isinstance(result, str) else result
        assert words in json.dumps(result.pop("untrusted"))
        assert words not in json.dumps(result)


def test_agents_of_other_frameworks_have_the_same_tools(sandbox: Any) -> None:
    tools = {tool.name: tool for tool in WebDataToolset(allowed_domains=["river.example"]).airflow_tools()}
    read = asyncio.run(tools["read_page"].function({"url": FLOODS}))
    assert "412 cm" in read.content["untrusted"]["text"]
    refused = asyncio.run(tools["read_page"].function({"url": "https://evil.example/"}))
    assert refused.is_error
    assert "not among the allowed domains" in refused.content


def test_a_result_is_json_that_every_database_can_store(monkeypatch: pytest.MonkeyPatch) -> None:
    metadata = {"url": FLOODS}
    data = {"json": {"level": float("nan"), "text": "a\0b\ud800"}, "metadata": metadata}
    server = FaultServer([answer(body=json.dumps({"success": True, "data": data}))])
    monkeypatch.setenv("AIRFLOW_CONN_WEBDATA_DEFAULT", connection_text(server.url))
    tools = {tool.name: tool for tool in WebDataToolset().airflow_tools()}
    found = asyncio.run(tools["extract_page"].function({"url": FLOODS, "schema": {"type": "object"}}))
    server.close()
    assert found.content["untrusted"]["data"] == {"level": None, "text": "a\ufffdb\\ud800"}


def test_a_task_that_pushes_no_xcom(obey: Any, sandbox: Any, attempt: Any) -> None:
    class Task:
        do_xcom_push = False

    task = Task()
    ti = attempt(task=task)
    obey(call("read_page", url=FLOODS), WebDataToolset())
    assert ti.xcom == {}
    assert len(task.get_openlineage_facets_on_complete(None).inputs) == 1  # type: ignore[attr-defined]


def test_lineage_names_queries_and_pages(obey: Any, sandbox: Any, attempt: Any) -> None:
    class Task:
        do_xcom_push = True

    task = Task()
    attempt(task=task)
    obey(f"{call('web_search', query='river')}\n{call('read_page', url=FLOODS)}", WebDataToolset())
    lineage = task.get_openlineage_facets_on_complete(None)  # type: ignore[attr-defined]
    assert [(found.namespace, found.name) for found in lineage.inputs] == [
        ("webdata://webdata_default", "river"),
        ("https://river.example", "/floods"),
    ]


def test_each_call_is_logged(obey: Any, sandbox: Any, caplog: pytest.LogCaptureFixture) -> None:
    orders = [call("web_search", query="river"), call("read_page", url=FLOODS)]
    with caplog.at_level(logging.INFO):
        obey("\n".join(orders), WebDataToolset())
    for line in (
        "web_search 'river': ",
        f"read_page {FLOODS}: ",
        "Credits of this task: 3 used (search 2, scrape 1; by format: page 1)",
    ):
        assert line in caplog.text
