# SPDX-License-Identifier: Apache-2.0
"""The acceptance run: its cases, its limits, its pages, and what an interruption leaves."""

from __future__ import annotations

import io
import json
import signal
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from types import SimpleNamespace
from typing import Any
from urllib.request import urlopen

import pytest

from airflow_provider_webdata.api.servers import HOSTED, SELF_HOSTED, Server
from airflow_provider_webdata.hooks.webdata import WebDataHook
from tests.support.other_servers import NodeByte, each_of
from tools.acceptance import hook_cases, operator_cases
from tools.acceptance.__main__ import Settings, UnusableError, kind_of, main, pages_for
from tools.acceptance.report import Report, Result
from tools.acceptance.run import Case, NotRunError, Run, clean_up, results, stoppable
from tools.acceptance.shape import Differences
from tools.acceptance.site import PUBLIC, Site, local_site
from tools.acceptance.watch import Watch
from webdata_sandbox.server import SandboxServer

PAGES = Site("https://river.example/", "https://river.example/", "News of the valley and its river")


@pytest.fixture
def sandbox(monkeypatch: pytest.MonkeyPatch) -> Iterator[SandboxServer]:
    # Jobs do not begin, so they can be canceled.
    with SandboxServer(queue_seconds=3600) as server:
        connection = {"conn_type": "webdata", "host": server.url, "password": server.api_key}
        connection["extra"] = {"server": "hosted"}  # type: ignore[assignment]
        monkeypatch.setenv("AIRFLOW_CONN_WEBDATA_DEFAULT", json.dumps(connection))
        yield server


@pytest.fixture
def begin(sandbox: SandboxServer, tmp_path: Path) -> Iterator[Callable[..., Run]]:
    """Return a function that returns a run, whose calls are watched until the next one begins."""
    with ExitStack() as parts:

        def make(limit: float = 50, server: Server = HOSTED, *, unbounded: bool = False) -> Run:
            parts.close()
            watch = Watch(server, limit, unbounded=unbounded)
            parts.enter_context(watch.watching())
            return Run(watch, PAGES, tmp_path, hook=parts.enter_context(WebDataHook()))

        yield make


def cases(*names: str) -> list[Case]:
    known = {case.operation: case for case in hook_cases.cases()}
    return [known[f"hook.{name}"] for name in names]


def monitors(sandbox: SandboxServer) -> list[str]:
    found = sandbox.control.state()["monitors"]
    return [monitor["id"] for monitor in found if monitor["status"] != "deleted"]


def test_each_operation_has_a_case_or_a_stated_reason() -> None:
    for module, existing in (
        (hook_cases, {hook_cases.PREFIX + name for name in hook_cases.methods()}),
        (operator_cases, set(operator_cases.operators())),
    ):
        tried = {case.operation for case in module.cases()}  # type: ignore[attr-defined]
        stated = set(module.reasons())  # type: ignore[attr-defined]
        assert tried | stated == existing
        assert not tried & stated
    assert {"WebDataSearchOperator", "WebDataJobSensor", "WebDataListMonitorsOperator"} <= set(
        operator_cases.operators()
    )


def test_a_call_that_may_exceed_the_credits_is_not_sent(
    begin: Callable[..., Run], sandbox: SandboxServer
) -> None:
    run = begin(limit=2)
    found = {result.operation: result for result in results(run, cases("scrape", "start_crawl", "map"), {})}

    assert found["hook.scrape"].cells()[1:4:2] == ("ok", "1")
    crawl = found["hook.start_crawl"]
    assert (crawl.outcome, crawl.reason) == (
        "not run",
        "start crawl: may cost 2 credits, of which 1 are left",
    )
    assert found["hook.map"].outcome == "ok"
    assert [request["path"] for request in sandbox.control.requests()] == ["/v2/scrape", "/v2/map"]


def test_a_call_without_a_documented_price_is_sent_on_request_only(
    begin: Callable[..., Run], sandbox: SandboxServer
) -> None:
    names = ("search_papers", "get_paper")
    *_, result = results(begin(), cases(*names), {})
    assert result.outcome == "not run"
    assert "no documented bound" in result.reason
    assert [request["path"] for request in sandbox.control.requests()] == ["/v2/search/research/papers"]
    *_, result = results(begin(unbounded=True), cases(*names), {})
    assert result.outcome == "ok"


def test_the_calls_of_a_server_that_does_not_bill_are_all_sent(begin: Callable[..., Run]) -> None:
    found = results(begin(0, SELF_HOSTED), cases("scrape", "search_papers"), {})
    assert [(result.outcome, result.credits, result.at_most) for result in found] == [("ok", 0, 0)] * 2


def test_an_interruption_removes_only_what_the_run_made(
    begin: Callable[..., Run], sandbox: SandboxServer
) -> None:
    with WebDataHook() as other:
        kept = other.create_monitor(
            {
                "name": "Of another program",
                "schedule": {"cron": "0 3 * * 0"},
                "targets": [{"type": "scrape", "urls": [PAGES.page]}],
            }
        ).id
        session = other.open_session({"ttl": 600}).id
        job = other.start_crawl({"url": PAGES.root, "limit": 1}).id
    run = begin()

    def interrupt(_: Run) -> None:
        signal.raise_signal(signal.SIGINT)

    started = cases("scrape", "start_crawl", "start_batch_scrape", "open_session", "create_monitor")
    with stoppable(run.watch):
        found = [*results(run, [*started, Case("stop", interrupt), *cases("map")], {})]
    left = clean_up(run)

    assert [result.outcome for result in found] == ["ok"] * 5 + ["not run"] * 2
    assert left == []
    assert monitors(sandbox) == [kept]
    assert {item["status"] for item in sandbox.control.jobs("batch_scrape")} == {"cancelled"}
    crawls = {item["id"]: item["status"] for item in sandbox.control.jobs("crawl")}
    assert crawls.pop(job) != "cancelled"
    assert [*crawls.values()] == ["cancelled"]
    active = [item for item in sandbox.control.sessions() if item["status"] == "active"]
    assert [item["id"] for item in active] == [session]


def test_a_monitor_whose_creation_was_not_answered_is_removed(
    begin: Callable[..., Run], sandbox: SandboxServer
) -> None:
    sandbox.control.add_fault("drop_after_work", method="POST", path="/v2/monitor")
    run = begin()
    (result,) = results(run, cases("create_monitor"), {})
    assert result.outcome == "failed"
    assert len(monitors(sandbox)) == 1
    assert clean_up(run) == []
    assert monitors(sandbox) == []


def test_what_cannot_be_removed_is_listed(begin: Callable[..., Run], sandbox: SandboxServer) -> None:
    run = begin()
    assert [result.outcome for result in results(run, cases("open_session"), {})] == ["ok"]
    sandbox.control.add_fault("status", method="DELETE", status=403, times=None)
    (left,) = clean_up(run)
    assert left.startswith("open_session ")
    report = Report({"server": "x"}, [Result("hook.open_session", "ok")], [left])
    assert not report.succeeded
    assert f"not removed: {left}" in report.markdown()


@pytest.mark.parametrize(
    "page",
    [
        pytest.param({"html": "<h1>Service Unavailable</h1>", "status": 503}, id="down"),
        pytest.param({"html": "<p>Please accept our cookies.</p>"}, id="another page"),
        pytest.param({"html": ""}, id="empty"),
    ],
)
def test_a_result_without_the_text_of_the_page_is_a_failure(
    begin: Callable[..., Run], sandbox: SandboxServer, page: dict[str, Any]
) -> None:
    sandbox.control.configure(queue_seconds=0, settle=True)
    reading = ("scrape", "get_scrape", "start_crawl", "job_status", "iter_job_documents")
    reading += ("open_session", "execute", "interact_with_scrape")
    expected = {f"hook.{name}": "ok" for name in reading}

    def outcomes() -> dict[str, str]:
        return {
            result.operation: result.outcome
            for result in results(begin(500, unbounded=True), cases(*reading), {})
        }

    assert outcomes() == expected
    sandbox.control.set_page(PAGES.page, **page)
    failing = ("scrape", "get_scrape", "iter_job_documents", "execute", "interact_with_scrape")
    assert outcomes() == {**expected, **{f"hook.{name}": "failed" for name in failing}}


def test_a_search_without_results_is_remarked(begin: Callable[..., Run], sandbox: SandboxServer) -> None:
    for page in sandbox.control.pages():
        sandbox.control.delete_page(page["url"])
    (result,) = results(begin(), cases("search"), {})
    assert (result.outcome, result.reason) == ("ok", "no results")


def test_a_map_must_list_the_site(begin: Callable[..., Run], sandbox: SandboxServer) -> None:
    for page in sandbox.control.pages():
        sandbox.control.delete_page(page["url"])
    (result,) = results(begin(), cases("map"), {})
    assert result.outcome == "failed"
    assert "the map lists none of the pages https://river.example/" in result.reason
    (result,) = results(begin(server=SELF_HOSTED), cases("map"), {})
    assert (result.outcome, "sitemap" in result.reason) == ("not run", True)


def test_an_error_that_names_nothing_is_a_failure(begin: Callable[..., Run], sandbox: SandboxServer) -> None:
    """On a hosted server, nothing may be missing."""
    sandbox.control.add_fault("status", path="/v2/scrape", status=501, times=2)
    (result,) = results(begin(), cases("scrape"), {})
    assert (result.outcome, "WD-016" in result.reason) == ("failed", True)
    (result,) = results(begin(server=SELF_HOSTED), cases("scrape"), {})
    assert (result.outcome, result.reason) == (
        "lacks",
        "it does not implement this operation. Use another one, or another server",
    )

    def nameless(run: Run) -> None:
        try:
            run.hook.get_scrape(str(uuid.uuid4()))
        except Exception:
            raise RuntimeError("something failed") from None

    sandbox.control.add_fault("status", path="/v2/scrape/", status=501)
    (result,) = results(begin(server=SELF_HOSTED), [Case("nameless", nameless)], {})
    assert result.reason == "the error does not name what the server lacks: something failed"


def test_a_case_that_needs_a_missing_result_does_not_run(begin: Callable[..., Run]) -> None:
    found = [*results(begin(), cases("get_monitor", "inbox"), {"hook.close": "sends no request"})]
    assert [(result.outcome, result.reason) for result in found] == [
        ("not run", "needs a result of create_monitor"),
        ("not run", "needs WEBHOOK_URL, at which the server reaches this machine"),
        ("not run", "sends no request"),
    ]
    with pytest.raises(NotRunError):
        begin().known("scrape", lambda answer: answer.data.metadata.scrape_id)


def test_differences_from_the_documented_shape() -> None:
    from airflow_provider_webdata.api.models import JobDocuments, ScrapeResponse

    found = Differences()
    page = {"markdown": "x", "more": 1, "metadata": {"title": {"of": "page"}, "favicon": "y"}}
    found.add(ScrapeResponse.model_validate({"success": True, "data": page, "newField": [1]}))
    assert (
        found.summary()
        == "undeclared: `data.metadata.favicon`, `data.more`, `newField`; other type: `data.metadata.title`"
    )
    assert "data.links" in found.lists()["absent"]
    assert "data.markdown" not in found.lists()["absent"]
    documents = Differences()
    documents.add(JobDocuments.model_validate({"status": "completed", "data": [page]}))
    assert documents.lists()["undeclared"] == ["data.metadata.favicon", "data.more"]


class _Fetching(BaseHTTPRequestHandler):
    """A server that fetches the pages of scrapes, unless it is told not to."""

    reaches = True

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        text = urlopen(body["url"]).read().decode() if type(self).reaches else "another site"
        answer = json.dumps({"success": True, "data": {"markdown": text, "metadata": {}}}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.mark.parametrize("reaches", [True, False])
def test_the_pages_of_the_run_are_used_if_the_server_reads_them(
    reaches: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_Fetching, "reaches", reaches)
    with ThreadingHTTPServer(("127.0.0.1", 0), _Fetching) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        url = f"http://127.0.0.1:{server.server_port}"
        connection = {"conn_type": "webdata", "host": url, "extra": {"server": "self-hosted"}}
        monkeypatch.setenv("AIRFLOW_CONN_WEBDATA_DEFAULT", json.dumps(connection))
        try:
            with WebDataHook() as hook, pages_for(Settings(url), hook) as site:
                assert (site == PUBLIC) is not reaches
        finally:
            server.shutdown()
            thread.join()


def test_another_machine_is_not_asked_for_its_loopback_address() -> None:
    """There may be anything at that port."""
    hook: Any = SimpleNamespace(scrape=lambda _: pytest.fail("a page was scraped"))
    with pages_for(Settings("https://scraper.example"), hook) as site:
        assert site == PUBLIC
    url = "https://intranet.example/"
    with pages_for(Settings("http://127.0.0.1:1", site=url, text="Wiki"), hook) as site:
        assert site == Site(url, url, "Wiki")


def test_the_site_links_its_pages_and_lists_them() -> None:
    with local_site() as site:
        texts = [urlopen(f"{site.root}{path}").read().decode() for path in ("", "sitemap.xml", "robots.txt")]
        assert 'href="/level"' in texts[0]
        assert site.text in texts[0]
        assert site.text in urlopen(site.page).read().decode()
        with local_site() as other:
            assert other.text != site.text
        assert site.page in texts[1]
        assert f"Sitemap: {site.root}sitemap.xml" in texts[2]


def test_settings() -> None:
    settings = Settings.of({"BASE_URL": " https://own.example ", "CREDITS": "7.5", "UNBOUNDED": "yes"})
    assert (settings.base_url, settings.credits, settings.unbounded) == ("https://own.example", 7.5, True)
    assert (settings.server, Settings.of({"BASE_URL": "x", "SERVER": "hosted"}).server) == ("", "hosted")
    for environ, problem in (
        ({}, "BASE_URL= is missing"),
        ({"BASE_URL": "x", "CREDITS": "many"}, "must be numbers"),
        ({"BASE_URL": "x", "SITE": "https://intranet.example/"}, "TEXT= is missing"),
    ):
        with pytest.raises(UnusableError, match=problem):
            Settings.of(environ)


def test_other_implementations_are_recognized(
    sandbox: SandboxServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_WEBDATA_DEFAULT", "")
    with each_of(sandbox.url, sandbox.api_key) as servers:
        for server in servers:
            said = io.StringIO()
            assert kind_of(Settings(server.url, server=server.kind), said) == server.kind
            assert ("nothing shows that it has this API" in said.getvalue()) is isinstance(server, NodeByte)
            with pytest.raises(UnusableError, match="SERVER="):
                kind_of(Settings(server.url), said)
            if not isinstance(server, NodeByte):
                assert kind_of(Settings(server.url, "k"), said) is None


def test_a_run_that_cannot_begin(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.delenv("BASE_URL", raising=False)
    assert main() == 2
    assert "Usage: make acceptance BASE_URL=" in capsys.readouterr().err
