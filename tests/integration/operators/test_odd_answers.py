# SPDX-License-Identifier: Apache-2.0
"""Billed answers with odd values beside the results, through each operator that bills, into what the task returns."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_webdata.operators.batch_search import WebDataBatchSearchOperator
from airflow_provider_webdata.operators.crawl import WebDataCrawlOperator
from airflow_provider_webdata.operators.interact import WebDataInteractOperator
from airflow_provider_webdata.operators.map import WebDataMapOperator
from airflow_provider_webdata.operators.provider import WebDataProviderOperator
from airflow_provider_webdata.operators.scrape import WebDataScrapeOperator
from airflow_provider_webdata.operators.search import WebDataSearchOperator
from airflow_provider_webdata.options import Changes, Quality
from tests.support import direct
from tests.support.direct import StateStore
from tests.support.fault_server import FaultServer, answer
from tests.support.job_service import JobService
from tests.support.service import connection_text

URL = "https://a.example/"
HUGE = 10**400
PAGE = {"url": URL, "markdown": "# a", "metadata": "none", "warning": ["w"]}
WEB = {"data": {"web": [None, PAGE, "x"], "news": [5]}, "creditsUsed": HUGE, "id": {}, "warning": {"a": 1}}
FACTS = {
    "creditsUsed": HUGE,
    "statusCode": "odd",
    "scrapeId": 5,
    "cacheState": "hit",
    "cachedAt": 5,
    "numPages": [1],
}
FAILED = {
    "data": {"creditsCost": "2", "alexandria": [{"provider": "p", "data": [{"a": 1}], "records": "x"}, None]}
}
TOOL = {
    "id": "p/c",
    "creditsCost": 1,
    "options": [{"name": "a"}, None],
    "response": {"fields": []},
    "name": {},
}
CATALOG = {"data": {"alexandria": [{"provider": "p", "capability": "c", "data": {"items": [TOOL]}}]}}
LOST = {
    "call": 1,
    "tool": "None/None",
    "error": {"message": "the response has no result of this call, but None"},
}

CALLS: dict[str, tuple[Any, dict[str, Any], dict[str, Any], Any]] = {
    "search": (
        WebDataSearchOperator,
        {"query": "q", "scrape_options": {"formats": ["markdown"]}},
        WEB,
        {"id": None, "creditsUsed": None, "warning": '{"a":1}', "web": [PAGE], "news": [], "skipped_entries": 3},
    ),
    "batch search": (
        WebDataBatchSearchOperator,
        {"queries": ["q"], "save_to": "FOLDER/a.jsonl"},
        WEB,
        {"done": 1, "count": 1, "credits_used": 0},
    ),
    "scrape": (
        WebDataScrapeOperator,
        {"url": URL, "formats": ["markdown"]},
        {"data": PAGE, "success": {}, "warning": [None]},
        PAGE,
    ),
    "scrape with odd facts": (
        WebDataScrapeOperator,
        {"url": URL},
        {"data": {**PAGE, "metadata": FACTS}},
        # Airflow cannot store an integer of this size.
        {**PAGE, "metadata": {**FACTS, "creditsUsed": None}},
    ),
    "map": (
        WebDataMapOperator,
        {"url": URL},
        {"links": [None, {"url": URL, "title": 5}, {"title": "t"}], "creditsUsed": "abc", "id": 5},
        {"links": [{"url": URL, "title": 5}], "skipped_entries": 2, "id": None},
    ),
    "providers": (
        WebDataProviderOperator,
        {"calls": [{"provider": "p", "capability": "c"}] * 2, "max_error_ratio": 1},
        FAILED,
        {"failed": 1, "creditsUsed": 2, "data": [{"call": 0, "tool": "p/None", "a": 1}, LOST]},
    ),
}  # fmt: skip


def in_folder(arguments: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Return arguments with a path in place of `FOLDER`."""
    return {
        name: value.replace("FOLDER", str(folder)) if isinstance(value, str) else value
        for name, value in arguments.items()
    }


@pytest.mark.rule("odd-values")
@pytest.mark.parametrize("name", CALLS)
def test_an_odd_answer_is_delivered(
    name: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    operator, arguments, body, wanted = CALLS[name]
    arguments = in_folder(arguments, tmp_path)
    bodies = [CATALOG, body] if name == "providers" else [body]
    server = FaultServer([answer(body=json.dumps({"success": True, **one})) for one in bodies])
    monkeypatch.setenv("AIRFLOW_CONN_WEBDATA_DEFAULT", connection_text(server.url))
    with caplog.at_level(logging.INFO):
        done = direct.run(operator(task_id="t", **arguments), StateStore())
    server.close()
    assert done.ended == ("success", 1), done.error
    assert {key: done.value.get(key) for key in wanted} == wanted
    lacks = {one["kind"]: one["number"] for one in done.xcom.get("incomplete", ())}
    counted = {"entries_skipped": wanted.get("skipped_entries"), "calls_failed": wanted.get("failed")}
    assert lacks == {kind: number for kind, number in counted.items() if number}
    warned = [line for line in caplog.messages if "undocumented form" in line]
    assert len(warned) == (name != "scrape with odd facts")


SECRETS = ("pa55word", "t0ken123")


def hostile(name: str) -> str:
    """Return text that clears a terminal, adds lines to a log, and has secrets."""
    return f"{name} \x1b[2J\n::group::forged\r\u202e https://u:{SECRETS[0]}@h.example/?token={SECRETS[1]}"


HOSTILE_PAGE = {
    "url": URL + hostile("url"),
    "markdown": hostile("text"),
    "metadata": {"sourceURL": URL + hostile("source"), "error": hostile("error"), "statusCode": 500},
    "warning": hostile("page"),
}
HOSTILE_ANSWERS: dict[str, tuple[Any, dict[str, Any], dict[str, Any]]] = {
    "search": (
        WebDataSearchOperator,
        {"query": "q", "returns": "web"},
        {"data": {hostile("kind"): [HOSTILE_PAGE]}, "id": hostile("id"), "warning": hostile("warning")},
    ),
    "batch search": (
        WebDataBatchSearchOperator,
        {"queries": ["q"], "save_to": "FOLDER/a.jsonl"},
        {"data": {"web": [HOSTILE_PAGE]}, "warning": hostile("warning")},
    ),
    "scrape": (
        WebDataScrapeOperator,
        {"url": URL, "formats": ["markdown"]},
        {"data": HOSTILE_PAGE, "warning": hostile("warning")},
    ),
    "map": (WebDataMapOperator, {"url": URL}, {"links": [HOSTILE_PAGE], "warning": hostile("warning")}),
    "provider": (
        WebDataProviderOperator,
        {"calls": [{"provider": "p", "capability": "c"}]},
        {
            "data": {
                "alexandria": [
                    {"provider": "p", "error": {"code": hostile("code"), "message": hostile("error")}}
                ]
            }
        },
    ),
    "session": (
        WebDataInteractOperator,
        {"steps": ["x"]},
        {"id": "s", "sessions": [], "exitCode": 1, "stderr": hostile("stderr"), "error": hostile("error")},
    ),
}


def show_no_forgery(text: str) -> None:
    text = text.replace("\r\n", "\n")
    assert not [sign for sign in ("\x1b[2J", "\r", "\u202e", "\n::group::", *SECRETS) if sign in text], text


@pytest.mark.parametrize("name", HOSTILE_ANSWERS)
def test_hostile_texts_do_not_forge_log_lines(
    name: str, monkeypatch: pytest.MonkeyPatch, log: Callable[[], str], tmp_path: Path
) -> None:
    operator, arguments, body = HOSTILE_ANSWERS[name]
    arguments = in_folder(arguments, tmp_path)
    server = FaultServer([answer(body=json.dumps({"success": True, **body}))])
    monkeypatch.setenv("AIRFLOW_CONN_WEBDATA_DEFAULT", connection_text(server.url))
    done = direct.run(operator(task_id="t", **arguments), StateStore())
    server.close()
    show_no_forgery(f"{done.error}\n{log()}")


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch) -> Iterator[JobService]:
    service = JobService()
    monkeypatch.setenv("AIRFLOW_CONN_WEBDATA_DEFAULT", connection_text(service.url))
    yield service
    service.stop()


def crawl(day: int, folder: Path) -> direct.Outcome:
    task = WebDataCrawlOperator(
        task_id="t",
        url=URL,
        poll_interval=1,
        deferrable=False,
        changes=Changes(str(folder), emit="all", removed_after=timedelta(0)),
    )
    return direct.run(task, StateStore(), day=datetime(2026, 1, day, tzinfo=timezone.utc))


def page(name: str, **more: Any) -> dict[str, Any]:
    return {"markdown": name, "metadata": {"sourceURL": f"{URL}{name}", "statusCode": 200}, **more}


ODD_JOB = {
    "creditsUsed": "abc",
    "expiresAt": 5,
    "completedAt": [],
    "total": HUGE,
    "completed": "x",
    "warning": ["w"],
}
NORMAL = {"status": "completed", "data": [page("a")]}
ERRORS = (200, {"errors": [], "robotsBlocked": []})
INCOMPLETE = {
    "lists no errors": (NORMAL, (404, {"success": False, "error": "Job not found"}), True),
    "has no errors route": (NORMAL, (501, {"error": "not implemented"}), True),
    "has a page for errors": (NORMAL, (200, "<html>"), True),
    "has odd errors": (NORMAL, (200, {"errors": [None]}), True),
    "has odd pages": ({**NORMAL, "data": [None, page("a")], **ODD_JOB}, ERRORS, False),
}


@pytest.mark.rule("odd-values", "job-errors")
@pytest.mark.parametrize("server", INCOMPLETE)
@pytest.mark.says("XCom `skipped_entries` is the number")
def test_a_job_is_delivered_whole_and_removes_nothing_at_once(
    server: str, service: JobService, tmp_path: Path, log: Callable[[], str]
) -> None:
    service.ends_after = 0
    service.ends_as = {"status": "completed", "data": [page("a"), page("b")], "creditsUsed": 2}
    assert crawl(1, tmp_path).xcom["changes"]["new"] == 2
    service.ends_as, (service.errors_status, service.errors), is_unknown = INCOMPLETE[server]
    done = crawl(2, tmp_path)
    assert done.ended == ("success", 1), done.error
    assert [found["markdown"] for found in done.value["data"]] == ["a"]
    assert done.xcom["changes"]["removed"] == 0
    assert done.value["errors"]["count"] == (None if is_unknown else 0)
    skipped = done.xcom.get("skipped_entries")
    assert skipped == done.value.get("skipped_entries") == (None if is_unknown else 1)
    kind = "failures_unknown" if server == "lists no errors" else None if is_unknown else "entries_skipped"
    lacks = [{"kind": kind, "number": 1, "of": 1}] if kind else []
    assert done.xcom.get("incomplete", []) == lacks
    assert ("The failed pages of job" in log()) == is_unknown
    service.ends_as, (service.errors_status, service.errors) = NORMAL, ERRORS
    assert crawl(3, tmp_path).xcom["changes"]["removed"] == 1


def test_hostile_pages_of_a_job_do_not_forge_log_lines(
    service: JobService, tmp_path: Path, log: Callable[[], str]
) -> None:
    service.ends_after = 0
    service.invalid_urls = [hostile("invalid")]
    service.errors = {
        "errors": [{"url": URL + hostile("failed"), "code": hostile("code")}],
        "robotsBlocked": [],
    }
    service.ends_as = {
        "status": "completed",
        "data": [HOSTILE_PAGE, page("a", screenshot=f"http://127.0.0.1:9/{hostile('media')}")],
        "warning": hostile("warning"),
    }
    task = WebDataCrawlOperator(
        task_id="t",
        url=URL,
        poll_interval=1,
        deferrable=False,
        media_to=str(tmp_path),
        quality=Quality(blocked=0, on_fail="warn"),
    )
    done = direct.run(task, StateStore())
    assert done.ended == ("success", 1), done.error
    show_no_forgery(log())
