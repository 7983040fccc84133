# SPDX-License-Identifier: Apache-2.0
"""Results that lack pages, parts of them, or requested formats: what fails, and what `incomplete` reports."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_webdata.operators.batch_scrape import WebDataBatchScrapeOperator
from airflow_provider_webdata.operators.batch_search import WebDataBatchSearchOperator
from airflow_provider_webdata.operators.crawl import WebDataCrawlOperator
from airflow_provider_webdata.operators.incremental_crawl import WebDataIncrementalCrawlOperator
from airflow_provider_webdata.operators.parse import WebDataParseOperator
from airflow_provider_webdata.operators.scrape import WebDataScrapeOperator
from airflow_provider_webdata.operators.search import WebDataSearchOperator
from airflow_provider_webdata.options import Changes, Quality
from airflow_provider_webdata.sensors.job import WebDataJobSensor
from tests.support import direct
from tests.support.direct import TaskInstance, context_of
from tests.support.fault_server import FaultServer, answer
from tests.support.job_service import JobService
from tests.support.pdf import pdf as pdf_of
from tests.support.service import UNFETCHED, connection_text
from webdata_sandbox.server import SandboxServer

URL = "https://example.com/"
A, B, C = (f"{URL}{name}" for name in "abc")


@pytest.fixture
def service(connect: Callable[..., None]) -> Iterator[JobService]:
    made = JobService()
    made.ends_after = 0
    connect(made, retry_budget=0)
    yield made
    made.stop()


def day(number: int) -> datetime:
    return datetime(2026, 1, number, tzinfo=timezone.utc)


def page(url: str, **more: Any) -> dict[str, Any]:
    return {"markdown": url, "metadata": {"sourceURL": url, "statusCode": 200}, **more}


def job(kind: str, **more: Any) -> Any:
    if kind == "sensor":
        more.pop("changes", None)
        return WebDataJobSensor(task_id="t", kind="crawl", job_id="j", poke_interval=1, retries=2, **more)
    waits = {"poll_interval": 1, "deferrable": False, "retries": 2}
    if kind == "crawl":
        return WebDataCrawlOperator(task_id="t", url=URL, **{**waits, **more})
    return WebDataBatchScrapeOperator(task_id="t", **{"urls": [A, B], **waits, **more})


def ends(service: JobService, data: list[Any], errors: Any = (), robots: Any = (), **more: Any) -> None:
    service.ends_as = {
        "status": "completed",
        "total": 0,
        "completed": 0,
        "creditsUsed": 1,
        **more,
        "data": data,
    }
    service.errors = {"errors": [*errors], "robotsBlocked": [*robots]}
    service.set("crawl", "j", **service.ends_as)


DNS = {"id": "1", "url": A, "error": "DNS resolution failed", "code": "SCRAPE_DNS_RESOLUTION_ERROR"}
LATE = {"id": "2", "url": f"{B}?token=hush", "error": "timed out", "code": "SCRAPE_TIMEOUT"}
NOT_FOUND = {"markdown": "?", "metadata": {"sourceURL": A, "statusCode": 404}}


@pytest.mark.rule("job-all-failed", "job-errors")
@pytest.mark.parametrize(
    ("data", "errors", "robots", "ratio", "state"),
    [
        ([], [DNS, LATE], [], None, "failed"),
        ([], [DNS, LATE], [], "{{ 0.99 }}", "failed"),
        ([], [DNS, LATE], [], 1, "success"),
        ([NOT_FOUND], [LATE], [], None, "failed"),
        ([UNFETCHED], [LATE], [], None, "failed"),
        ([page(A)], [LATE], [], None, "success"),
        ([], [], [A, B], None, "success"),
    ],
    ids=["listed", "ratio", "accepted", "status", "not fetched", "one read", "robots"],
)
@pytest.mark.parametrize("kind", ["crawl", "batch", "deferred", "sensor"])
@pytest.mark.says(
    "The message and XCom `failure` (`reasons`) have the first failures",
    "The error and XCom `failure` name the first pages with status, code, and reason",
)
def test_a_job_that_read_no_page_fails_with_the_first_reasons(
    service: JobService, log: Any, kind: str, data: Any, errors: Any, robots: Any, ratio: Any, state: str
) -> None:
    ends(service, data, errors, robots)
    more = {} if ratio is None else {"max_error_ratio": ratio}
    if kind == "deferred":
        kind, more = "batch", {**more, "deferrable": True}
    done = direct.run(job(kind, **more))
    assert done.ended == (state, 1), done.error
    failed = len(errors) + sum(one in (NOT_FOUND, UNFETCHED) for one in data)
    counts = [lack["number"] for lack in done.xcom.get("incomplete", []) if lack["kind"] == "pages_failed"]
    assert counts == ([failed] if failed else [])
    if state == "success":
        return
    assert "(WD-033)" in str(done.error)
    assert f"{B}?token=*** (SCRAPE_TIMEOUT: timed out)" in str(done.error)
    assert "SCRAPE_TIMEOUT: timed out" in log()
    assert "hush" not in str(done.xcom["failure"])
    first, *_ = reasons = done.xcom["failure"]["reasons"]
    late = {"url": f"{B}?token=***", "status": None, "code": "SCRAPE_TIMEOUT", "error": "timed out"}
    assert late in reasons
    if NOT_FOUND in data:
        site = "the site responded with status 404"
        assert {"url": A, "status": 404, "code": "404", "error": site} in reasons
    assert first["url"]
    assert done.xcom["return_value"]["errors"]["count"] == failed


def test_a_crawl_that_found_no_page_succeeds(service: JobService) -> None:
    ends(service, [])
    done = direct.run(job("crawl"))
    assert (done.state, done.value["data"], done.xcom.get("incomplete")) == ("success", [], None)


@pytest.mark.parametrize("kind", ["crawl", "batch"])
def test_a_site_that_does_not_resolve_fails_the_task(here: SandboxServer, tmp_path: Path, kind: str) -> None:
    path = f"{tmp_path}/pages.jsonl"
    host = "https://nohost.invalid/"
    more: dict[str, Any] = {"url": host, "limit": 5} if kind == "crawl" else {"urls": [host, f"{host}a"]}
    operator = WebDataCrawlOperator if kind == "crawl" else WebDataBatchScrapeOperator
    done = direct.run(operator(task_id="t", save_to=path, retries=2, poll_interval=1, **more))
    assert done.ended == ("failed", 1)
    assert "SCRAPE_DNS_RESOLUTION_ERROR" in str(done.error)
    assert done.xcom["failure"]["reasons"][0]["code"] == "SCRAPE_DNS_RESOLUTION_ERROR"
    assert Path(path).read_text() == ""


@pytest.mark.parametrize(("more", "failed"), [({}, 9), ({"max_error_ratio": 0.5}, 9)])
def test_the_first_reasons_are_few_and_short(service: JobService, more: dict[str, Any], failed: int) -> None:
    listed = [
        {"id": "1", "url": f"{URL}{'x' * 900}{n}", "error": "y" * 900, "code": "C"} for n in range(failed)
    ]
    ends(service, [], listed)
    report = direct.run(job("crawl", **more)).xcom["failure"]
    assert len(report["reasons"]) == 5
    # Without the argument, only a job without any page fails.
    assert report.get("accepted_with") == ({"max_error_ratio": 1} if more else None)
    assert len(json.dumps(report)) < 5_000


def test_a_failed_condition_names_the_failed_pages(service: JobService) -> None:
    ends(service, [page(A)], [LATE])
    done = direct.run(job("crawl", quality=Quality(min_items=2)))
    assert done.ended == ("failed", 1)
    assert "(WD-064)" in str(done.error)
    assert "SCRAPE_TIMEOUT: timed out" in str(done.error)
    assert [reason["code"] for reason in done.xcom["failure"]["reasons"]] == ["SCRAPE_TIMEOUT"]


def test_one_dead_url_does_not_fail_every_quiet_night(here: SandboxServer, tmp_path: Path) -> None:
    """The pages that are not requested count as read; a first night without any of them does not."""
    home = "https://quiet.example/"
    here.control.set_page(home, "<main>Home</main>")
    here.control.set_page(f"{home}a", "<main>A</main>")
    here.control.set_page(f"{home}dead", "<main>Dead</main>", error="SCRAPE_TIMEOUT")
    here.control.set_site("quiet.example", sitemap=[home, f"{home}a", f"{home}dead"])

    days = (day(number) for number in range(1, 9))

    def night(folder: str, **more: Any) -> direct.Outcome:
        changes = Changes(f"{tmp_path}/{folder}")
        task = WebDataIncrementalCrawlOperator(
            task_id="t", url=home, changes=changes, refresh_after=10**7, max_age=0, poll_interval=1, **more
        )
        return direct.run(task, day=next(days))

    first = night("seen")
    assert (first.state, first.xcom["changes"]["new"]) == ("success", 2)
    for more, state in (
        ({}, "success"),
        ({"max_error_ratio": 0.4}, "success"),
        ({"max_error_ratio": 0.3}, "failed"),
    ):
        quiet = night("seen", **more)
        assert (quiet.state, quiet.xcom["plan"]["listed"]) == (state, 2), quiet.error
        assert quiet.xcom["incomplete"] == [{"kind": "pages_failed", "number": 1, "of": 1}]
    for url in (home, f"{home}a"):
        here.control.set_page(url, "<main>Down</main>", error="SCRAPE_TIMEOUT")
    down = night("other")
    assert (down.state, "(WD-033)" in str(down.error)) == ("failed", True)


BATCHES: dict[str, tuple[list[Any], dict[str, Any], int, int]] = {
    "all": ([page(A), page(B), page(C)], {}, 0, 0),
    "one dropped": ([page(A), page(B)], {"completed": 3}, 1, 0),
    "listed, returned, and another dropped": (
        [page(A), page(B, statusCode=404)], {"errors": [{"id": "1", "url": B, "error": "not found"}]}, 1, 0,
    ),
    "two URLs of one page": ([page(A), page(B), page(A)], {"completed": 3}, 0, 1),
    "another url": ([page(A), page(B), page(f"{C}/index.html")], {}, 0, 1),
    "after a redirect": (
        [page(A), page(B), {"markdown": "c", "metadata": {"sourceURL": f"{C}/", "url": C}}], {}, 0, 1,
    ),
    "no metadata": ([{"markdown": one, "url": one} for one in (A, B, C)], {}, 0, 0),
    "listed": ([page(A), page(B)], {"errors": [{"id": "1", "url": C, "error": "timed out"}]}, 0, 1),
    "forbidden": ([page(A), page(B)], {"robots": [C]}, 0, 1),
    "an odd entry": ([page(A), page(B), None], {}, 0, 1),
}  # fmt: skip
"""What a batch returns and lists, and how many of its three pages are missing, and are removed by age."""


@pytest.mark.rule("batch-missing")
@pytest.mark.parametrize("changes", [False, True])
@pytest.mark.parametrize("name", BATCHES)
def test_requested_pages_that_are_neither_returned_nor_listed_are_reported(
    service: JobService, tmp_path: Path, log: Any, name: str, changes: bool
) -> None:
    """A run that lacks such a page removes none."""
    data, more, missing, removed = BATCHES[name]
    arguments: dict[str, Any] = {"urls": [A, B, f"{C}?utm_source=x"]}
    if changes:
        arguments["changes"] = Changes(f"{tmp_path}/seen", removed_after=timedelta(days=1))
        ends(service, [page(A), page(B), page(C)])
        assert direct.run(job("batch", **arguments), day=day(1)).state == "success"
    ends(service, data, **more)
    done = direct.run(job("batch", **arguments), day=day(2))
    assert done.state == "success", done.error
    lacks = {lack["kind"]: (lack["number"], lack["of"]) for lack in done.xcom.get("incomplete", [])}
    assert lacks.get("pages_missing") == ((missing, 3) if missing else None)
    assert done.value.get("missing_pages") == (missing or None)
    logged = log()
    assert ("neither returned 1 of 3 requested pages nor" in logged) is bool(missing)
    assert (f"They are these: {C}" in logged) is bool(missing)
    if changes:
        later = direct.run(job("batch", **arguments), day=day(3))
        assert [run.xcom["changes"]["removed"] for run in (done, later)] == [0, removed]


@pytest.mark.says("XCom `incomplete`, a list of objects with `kind`, `number`, and `of`")
def test_a_batch_of_which_no_page_came_back_fails(service: JobService) -> None:
    """A server that drops failed pages, and lists no error."""
    ends(service, [], completed=2, total=2)
    done = direct.run(job("batch"))
    assert done.ended == ("failed", 1)
    assert "(WD-033)" in str(done.error)
    assert [reason["url"] for reason in done.xcom["failure"]["reasons"]] == [A, B]
    assert done.xcom["incomplete"] == [{"kind": "pages_missing", "number": 2, "of": 2}]
    assert direct.run(job("batch", max_error_ratio=1)).state == "success"


# Formats.

HTML = ["html", {"type": "links"}]


def one_answer(monkeypatch: pytest.MonkeyPatch, **body: Any) -> FaultServer:
    server = FaultServer([answer(body=json.dumps({"success": True, **body}))])
    monkeypatch.setenv("AIRFLOW_CONN_WEBDATA_DEFAULT", connection_text(server.url))
    return server


def check_formats(done: direct.Outcome, has: list[str], log: str, *, is_job: bool = True) -> None:
    if is_job and not has:
        assert done.ended == ("failed", 1), done.error
        text = " ".join(str(done.error).split())
        assert "(WD-016)" in text
        assert "returns pages without html, links" in text
        assert "http://127.0.0.1:" in text
        assert done.xcom["return_value"]
        return
    assert done.state == "success", done.error
    lacks = [lack for lack in done.xcom.get("incomplete", []) if lack["kind"] == "formats_missing"]
    if len(has) == 2:
        assert lacks == []
        return
    lacking = [name for name in ("html", "links") if name not in has]
    assert lacks == [{"kind": "formats_missing", "number": len(lacking), "of": 2}]
    assert f"No page has the requested formats {', '.join(lacking)}" in log


@pytest.mark.rule("formats-not-on-each-page")
@pytest.mark.parametrize("has", [[], ["html"], ["html", "links"]], ids=str)
@pytest.mark.parametrize("server", ["hosted", "self-hosted"])
@pytest.mark.parametrize("kind", ["crawl", "batch"])
def test_formats_that_no_page_of_a_job_has(
    service: JobService, connect: Any, tmp_path: Path, log: Any, server: str, kind: str, has: list[str]
) -> None:
    connect(service, retry_budget=0, server=server)
    found = [page(A, **dict.fromkeys(has, "x")), page(B)]
    ends(service, found)
    wanted = {"scrape_options": {"formats": HTML}} if kind == "crawl" else {"formats": HTML}
    task = job(kind, **wanted, changes=Changes(f"{tmp_path}/seen", on_unchanged="skip"))
    done = direct.run(task, day=day(1))
    check_formats(done, has, log())
    assert (done.value or done.xcom["return_value"])["count"] == 2
    if not has:
        # A server that returns no content is not a site that did not change.
        check_formats(direct.run(task, day=day(2)), has, log())


@pytest.mark.parametrize("has", [[], ["html"], ["html", "links"]], ids=str)
def test_formats_that_a_page_of_a_call_lacks(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, log: Any, has: list[str]
) -> None:
    found = page(A, **dict.fromkeys(has, "x"))
    (tmp_path / "a.html").write_text("<p>a</p>")
    server = one_answer(monkeypatch, data=found)
    check_formats(
        direct.run(WebDataScrapeOperator(task_id="t", url=A, formats=HTML, retries=2)),
        has,
        log(),
        is_job=False,
    )
    parse = WebDataParseOperator(task_id="t", file=f"{tmp_path}/a.html", formats=HTML, upload="form")
    check_formats(direct.run(parse), has, log(), is_job=False)
    server.close()
    # Results that were not scraped at all.
    items = [{"url": A, "title": "A", **found}] if has else [{"url": A, "title": "A"}]
    server = one_answer(monkeypatch, data={"web": items}, creditsUsed=2)
    options = {"scrape_options": {"formats": HTML}}
    check_formats(
        direct.run(WebDataSearchOperator(task_id="t", query="a", **options)), has, log(), is_job=False
    )
    web = WebDataSearchOperator(task_id="t", query="a", returns="web", **options)
    check_formats(direct.run(web), has, log(), is_job=False)
    batch = WebDataBatchSearchOperator(
        task_id="t", queries=["a", "b"], save_to=f"{tmp_path}/a.jsonl", max_concurrency=1, **options
    )
    check_formats(direct.run(batch), has, log(), is_job=False)
    server.close()


@pytest.mark.parametrize(
    "extra", [{"formats": ["new"]}, '{"formats": ["new"]}', {"scrapeOptions": {}}], ids=str
)
def test_formats_of_an_unchecked_body_are_unknown(monkeypatch: pytest.MonkeyPatch, extra: Any) -> None:
    server = one_answer(monkeypatch, data={"new": "x", "metadata": {"sourceURL": A, "statusCode": 200}})
    done = direct.run(WebDataScrapeOperator(task_id="t", url=A, extra_body=extra))
    server.close()
    assert (done.state, done.xcom.get("incomplete")) == ("success", None)


def test_a_sensor_does_not_know_the_requested_formats(service: JobService) -> None:
    ends(service, [{"html": "x", "metadata": {"sourceURL": A}}])
    done = direct.run(job("sensor"))
    assert (done.state, done.xcom.get("incomplete")) == ("success", None)


# Cut documents.


@pytest.fixture
def papers(here: SandboxServer, tmp_path: Path) -> SandboxServer:
    home, text = "https://papers.example/", "\f".join(f"page {n} about the levels" for n in range(9))
    here.control.set_page(home, f'<main>The levels <a href="{home}levels.pdf">of the river</a></main>')
    here.control.set_page(f"{home}levels.pdf", markdown=text, title="levels", content_type="application/pdf")
    (tmp_path / "levels.pdf").write_bytes(pdf_of(*[b"BT /F1 12 Tf (level) Tj ET"] * 9))
    return here


CUT: list[dict[str, Any]] = [{"type": "pdf", "maxPages": 2}]
PAPERS = "https://papers.example/"
TASKS: dict[str, tuple[Any, dict[str, Any], dict[str, Any]]] = {
    "scrape": (WebDataScrapeOperator, {"url": f"{PAPERS}levels.pdf"}, {"parsers": CUT}),
    "parse": (WebDataParseOperator, {}, {"parsers": CUT}),
    "batch": (WebDataBatchScrapeOperator, {"urls": [PAPERS, f"{PAPERS}levels.pdf"]}, {"parsers": CUT}),
    "crawl": (WebDataCrawlOperator, {"url": PAPERS, "limit": 2}, {"scrape_options": {"parsers": CUT}}),
    "crawl within a limit": (
        WebDataCrawlOperator,
        {"url": PAPERS, "limit": 2, "scrape_options": {"proxy": "basic"}},
        {"credit_limit": 9},
    ),
    "search": (
        WebDataSearchOperator,
        {"query": "levels", "scrape_options": {"formats": ["markdown"]}},
        {"scrape_options": {"formats": ["markdown"], "parsers": CUT}},
    ),
    "batch search": (
        WebDataBatchSearchOperator,
        {"queries": ["levels"], "max_concurrency": 1, "scrape_options": {"formats": ["markdown"]}},
        {"scrape_options": {"formats": ["markdown"], "parsers": CUT}},
    ),
}


@pytest.mark.rule("metadata-pdf")
@pytest.mark.parametrize("name", TASKS)
def test_a_cut_document_is_reported(papers: SandboxServer, tmp_path: Path, log: Any, name: str) -> None:
    operator, arguments, cut = TASKS[name]
    if name == "parse":
        arguments = {"file": f"{tmp_path}/levels.pdf"}
    if operator is WebDataBatchSearchOperator:
        arguments = {**arguments, "save_to": f"{tmp_path}/found.jsonl"}

    def run(**more: Any) -> direct.Outcome:
        return direct.run(operator(task_id="t", **{**arguments, **waits, **more}))

    waits = {"poll_interval": 1} if operator in (WebDataCrawlOperator, WebDataBatchScrapeOperator) else {}
    whole = run(quality=Quality(blocked=0))
    assert whole.state == "success", whole.error
    assert "incomplete" not in whole.xcom
    assert "are cut" not in log()
    found = run(**cut)
    assert found.state == "success", found.error
    (lack,) = found.xcom["incomplete"]
    assert (lack["kind"], lack["number"]) == ("documents_cut", 1)
    assert "levels.pdf (" in log()
    bad = run(**cut, quality=Quality(blocked=0))
    assert (bad.state, "(WD-064)" in str(bad.error)) == ("failed", True)
    assert bad.xcom["quality_rejected"]["blocked"] == {"cut": 1}


# Failed pages of calls.


@pytest.mark.rule("metadata-status")
@pytest.mark.parametrize("map_index", [-1, 3])
def test_a_scrape_of_an_error_page_succeeds_and_reports_it(here: SandboxServer, map_index: int) -> None:
    here.control.set_page(A, "<main>Gone</main>", status=410)
    ti = TaskInstance(map_index=map_index)
    value = WebDataScrapeOperator(task_id="t", url=A).execute(context_of(ti))
    assert value["metadata"]["statusCode"] == 410
    assert ti.xcom["incomplete"] == [{"kind": "pages_failed", "number": 1, "of": 1}]


@pytest.mark.parametrize("many", [False, True])
def test_failed_pages_of_a_search_are_reported(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, many: bool
) -> None:
    """Those that were not fetched, and those with an error status."""
    web = [
        {"url": A, "title": "A", **NOT_FOUND},
        {"url": B, "title": "B", **page(B)},
        {"url": C, "title": "C"},
    ]
    server = one_answer(monkeypatch, data={"web": web}, creditsUsed=2)
    options = {"scrape_options": {"formats": ["markdown"]}}
    task = (
        WebDataBatchSearchOperator(task_id="t", queries=["a"], save_to=f"{tmp_path}/a.jsonl", **options)
        if many
        else WebDataSearchOperator(task_id="t", query="a", **options)
    )
    done = direct.run(task)
    server.close()
    assert done.state == "success"
    assert done.xcom["incomplete"] == [{"kind": "pages_failed", "number": 1, "of": 2}]


def test_failed_pages_of_an_earlier_attempt_are_reported(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    found = {"success": True, "data": {"web": [{"url": A, "title": "A", **NOT_FOUND}]}, "creditsUsed": 2}
    whole = {"success": True, "data": {"web": [{"url": B, "title": "B", **page(B)}]}, "creditsUsed": 2}
    steps = [
        answer(body=json.dumps(found)),
        answer(500, json.dumps({"error": "no"})),
        answer(body=json.dumps(whole)),
    ]
    server = FaultServer(steps)
    monkeypatch.setenv("AIRFLOW_CONN_WEBDATA_DEFAULT", connection_text(server.url))
    task = WebDataBatchSearchOperator(
        task_id="t",
        queries=["a", "b"],
        max_concurrency=1,
        retries=1,
        scrape_options={"formats": ["markdown"]},
        save_to=f"{tmp_path}/found.jsonl",
    )
    done = direct.run(task, direct.StateStore())
    server.close()
    assert done.ended == ("success", 2), done.error
    assert done.xcom["incomplete"] == [{"kind": "pages_failed", "number": 1, "of": 2}]
