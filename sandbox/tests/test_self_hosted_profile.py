# SPDX-License-Identifier: Apache-2.0
"""The profile of a self-hosted server, compared with the recorded behavior of a real one.

`data/self_hosted_exchanges.json` has 172 requests to a self-hosted server of 2026-08-21 without database
authentication, model, search engine, and browser, each with the facts of its response: status, keys, code, and the code
and path of each issue. In a body, "<51 items>" stands for as many copies of the item before it, "<501 characters>" for
a text of that length.
"""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.tables import each_row
from tests.support.waiting import PATIENCE
from webdata_sandbox.cli import main
from webdata_sandbox.config import SandboxConfig
from webdata_sandbox.control import ControlError
from webdata_sandbox.server import SandboxServer

DATA = Path(__file__).parent / "data"
EXCHANGES: list[dict[str, Any]] = json.loads((DATA / "self_hosted_exchanges.json").read_text())
LIFE_CYCLES: list[dict[str, Any]] = json.loads((DATA / "self_hosted_life_cycles.json").read_text())
SITE = "http://site.example.com:8085"
SCHEMA = {"type": "object", "properties": {"title": {"type": "string"}}, "required": ["title"]}
SLOW = {"map timeout 500": 501}
"""Latency in milliseconds, where the recorded server was slower than its timeout."""

EXCEPTIONS: dict[str, str] = {}
"""Requests whose response differs from the recorded one, with the reason."""


@pytest.fixture(scope="module")
def server() -> Iterator[SandboxServer]:
    with SandboxServer(profile="self-hosted") as running:
        yield running


@pytest.fixture
def sandbox(server: SandboxServer) -> SandboxServer:
    server.control.reset()
    for number in range(1, 4):
        link = f'<a href="{SITE}/page/{number + 1}">next</a>'
        server.control.set_page(
            f"{SITE}/page/{number}", f"<h1>Page {number}</h1>{link}", title=f"Page {number}"
        )
    return server


@pytest.fixture
def http(server: SandboxServer) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=server.url, timeout=PATIENCE, trust_env=False) as client:
        yield client


def expanded(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: expanded(item) for name, item in value.items()}
    if isinstance(value, list) and (count := re.fullmatch(r"<(\d+) items>", str(value[-1:] and value[-1]))):
        return [value[0]] * int(count[1])
    if isinstance(value, str) and (count := re.fullmatch(r"<(\d+) characters>", value)):
        return "x" * int(count[1])
    return value


def send(http: httpx.Client, exchange: dict[str, Any]) -> httpx.Response:
    headers = {"Authorization": "Bearer any", **exchange.get("headers", {})}
    headers = {name: value for name, value in headers.items() if value is not None}
    content = exchange.get("text")
    if "body" in exchange:
        content = json.dumps(expanded(exchange["body"]))
    if content is not None:
        headers.setdefault("Content-Type", "application/json")
    return http.request(exchange["method"], exchange["path"], headers=headers, content=content)


def facts(response: httpx.Response) -> dict[str, Any]:
    """Return the facts of a response in the form of an exchange."""
    found: dict[str, Any] = {"status": response.status_code}
    if response.headers["content-type"].startswith("text/html"):
        assert response.text.startswith("<!DOCTYPE html>")
        return {**found, "html": True}
    body = response.json()
    found["keys"] = sorted(body)
    if "code" in body:
        found["code"] = body["code"]
    if "details" in body:
        found["codes"] = sorted({issue["code"] for issue in body["details"]})
        found["paths"] = sorted({str(issue["path"]) for issue in body["details"]})
    if engines := re.search(r"Engines tried: (\[.*?\])", body.get("error", "")):
        found["engines"] = engines[1]
    return found


def recorded(exchange: dict[str, Any]) -> dict[str, Any]:
    found = {name: exchange[name] for name in ("status", "html", "code", "engines") if name in exchange}
    if "keys" in exchange:
        found["keys"] = sorted(exchange["keys"])
    if "details" in exchange:
        found["codes"] = sorted({issue["code"] for issue in exchange["details"]})
        if all("path" in issue for issue in exchange["details"]):  # else a long response was recorded in part
            found["paths"] = sorted({str(issue["path"]) for issue in exchange["details"]})
    return found


@pytest.mark.rule("error-issues", "error-patterns", "ids", "request-unknown-keys")
@pytest.mark.rule("self-hosted-open", "self-hosted-answers", "self-hosted-team", "self-hosted-monitors")
@pytest.mark.rule("self-hosted-sessions", "self-hosted-interact", "self-hosted-missing")
@pytest.mark.rule("self-hosted-options", "self-hosted-prompts", "self-hosted-cache", "self-hosted-search")
@pytest.mark.rule("self-hosted-accepts", "self-hosted-refuses", "caller-integration", "server-lacks")
def test_responds_to_each_recorded_request_like_the_server(
    sandbox: SandboxServer, http: httpx.Client
) -> None:
    different = {}
    for exchange in EXCHANGES:
        label = exchange["label"]
        if label in SLOW:
            sandbox.control.configure(latency_ms=SLOW[label])
        found, expected = facts(send(http, exchange)), recorded(exchange)
        if label in SLOW:
            sandbox.control.configure(latency_ms=0)
        if "paths" not in expected:
            found.pop("paths", None)
        if found != expected:
            different[label] = (found, expected)
    assert len(EXCHANGES) == 171
    assert {label: pair for label, pair in different.items() if label not in EXCEPTIONS} == {}
    assert different.keys() == EXCEPTIONS.keys()


class Job:
    """A job of the sandbox, observed like the recorded ones."""

    def __init__(self, http: httpx.Client, path: str, **body: Any) -> None:
        started = http.post(path, json=body)
        assert started.status_code == 200, started.text
        self.path = f"{path}/{started.json()['id']}"
        self._http = http

    def state(self) -> dict[str, Any]:
        body = self._http.get(self.path).json()
        link = re.search(r"[?&]skip=(\d+)", body.get("next", ""))
        return {
            **{name: body[name] for name in ("status", "completed", "total", "creditsUsed")},
            "skip": int(link[1]) if link else None,
            "ended": "completedAt" in body,
            "documents": len(body["data"]),
        }

    def errors(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self._http.get(f"{self.path}/errors").json()["errors"]
        return found


def check_life_cycle(states: list[dict[str, Any]]) -> None:
    """Check what all recorded jobs that completed have in common."""
    *running, last = states
    for state in running:
        done = state["completed"]
        assert (state["status"], state["ended"], state["creditsUsed"]) == ("scraping", False, -1)
        assert (state["skip"], state["documents"]) == (done, done)
    assert (running[0]["completed"], running[-1]["completed"]) == (0, running[-1]["total"])
    assert (last["status"], last["ended"], last["creditsUsed"]) == ("completed", True, -1)
    assert (last["skip"], last["completed"], last["documents"]) == (None, last["total"], last["total"])


def check_cancelled(state: dict[str, Any]) -> None:
    assert (state["status"], state["ended"], state["creditsUsed"]) == ("cancelled", True, -1)
    assert state["skip"] == state["completed"] == state["documents"]


def urls(*numbers: int) -> list[str]:
    return [f"{SITE}/page/{number}" for number in numbers]


def test_the_recorded_life_cycles_have_in_common_what_the_profile_is_checked_for() -> None:
    *completed, cancelled = [cycle["states"] for cycle in LIFE_CYCLES]
    for states in completed:
        check_life_cycle(states)
    check_cancelled(*cancelled)
    crawls = [states for states in completed if states is not completed[0]]
    assert {states[0]["total"] for states in crawls} == {0}
    # The end of a job comes 8 to 14 seconds after its last page.
    ends = [states[-1]["after_s"] - states[-2]["after_s"] for states in completed]
    assert [round(seconds) for seconds in ends] == [11, 14, 8]


@pytest.mark.rule("parts-next", "job-credits", "job-late-end", "job-late-start")
@pytest.mark.parametrize("kind", ["crawl", "batch/scrape"])
def test_jobs_live_like_the_recorded_ones(sandbox: SandboxServer, http: httpx.Client, kind: str) -> None:
    sandbox.control.configure(page_seconds=1)
    body = (
        {"url": urls(1)[0], "limit": 3, "crawlEntireDomain": True}
        if kind == "crawl"
        else {"urls": urls(1, 2, 3)}
    )
    job = Job(http, f"/v2/{kind}", **body)
    states = [job.state()]
    assert states[0]["total"] == (0 if kind == "crawl" else 3)
    for _ in range(15):
        sandbox.control.advance(1)
        states.append(job.state())
    assert [state["status"] for state in states] == ["scraping"] * 16
    sandbox.control.advance(1)
    check_life_cycle([*states, job.state()])
    assert max(state["completed"] for state in states[:5]) == 3  # the end comes 12 s later


def test_the_running_crawls_are_listed(sandbox: SandboxServer, http: httpx.Client) -> None:
    """Only the status is recorded."""
    sandbox.control.configure(page_seconds=1)
    Job(http, "/v2/crawl", url=urls(1)[0], limit=3)
    assert http.get("/v2/crawl/active").status_code == 200


@pytest.mark.rule("parts-end", "job-cancel", "job-paths")
def test_a_cancelled_job_keeps_its_next_link(sandbox: SandboxServer, http: httpx.Client) -> None:
    sandbox.control.configure(page_seconds=1)
    job = Job(http, "/v2/batch/scrape", urls=urls(1, 2, 3))
    sandbox.control.advance(2)
    other_path = job.path.replace("/batch/scrape/", "/crawl/")
    assert [http.delete(path).status_code for path in (other_path, job.path)] == [200, 200]
    check_cancelled(job.state())
    link = http.get(job.path).json()["next"]
    part = http.get(link).json()
    assert (part["data"], part["next"]) == ([], link)
    assert http.get(f"{other_path}/errors").json() == {"errors": [], "robotsBlocked": []}


@pytest.mark.rule("idempotency-key-unsupported")
def test_a_key_ends_the_server(sandbox: SandboxServer, http: httpx.Client) -> None:
    sandbox.control.configure(page_seconds=1)
    job = Job(http, "/v2/batch/scrape", urls=urls(1))
    start = {"json": {"url": SITE}, "headers": {"x-idempotency-key": str(uuid.uuid4())}}
    for _ in range(2):
        with pytest.raises(httpx.RemoteProtocolError):
            http.post("/v2/crawl", **start)
    sandbox.control.advance(100)
    with pytest.raises(httpx.RemoteProtocolError):
        http.get(job.path)
    assert [request["status"] for request in sandbox.control.requests()][1:] == [None] * 3
    assert sandbox.control.jobs("batch_scrape")[0]["status"] == "scraping"
    sandbox.control.reset()
    assert http.get("/v2/team/queue-status").status_code == 200


@pytest.mark.rule("event-job-page", "delivery-once", "envelope-error", "job-all-failed")
def test_pages_fail_silently_and_deliveries_are_sent_once(sandbox: SandboxServer, http: httpx.Client) -> None:
    hook = {"url": "http://127.0.0.1:9/closed"}
    job = Job(http, "/v2/batch/scrape", urls=urls(1, 2), formats=["audio"], webhook=hook)
    sandbox.control.advance(3600)
    state = job.state()
    assert (state["status"], state["completed"], state["total"]) == ("completed", 0, 0)
    assert [error["code"] for error in job.errors()] == ["SCRAPE_ALL_ENGINES_FAILED"] * 2
    sent = sandbox.control.deliveries()
    assert [delivery["event"] for delivery in sent] == ["batch_scrape.started", "batch_scrape.completed"]
    assert [(delivery["status"], len(delivery["attempts"])) for delivery in sent] == [("failed", 1)] * 2
    assert [json.loads(delivery["body"])["metadata"] for delivery in sent] == [{}, {}]


@pytest.mark.rule("error-unions")
def test_issues_in_a_union_are_nested(sandbox: SandboxServer, http: httpx.Client) -> None:
    """Each alternative has its own list of issues; the union itself has no text."""
    found = http.post("/v2/scrape", json={"url": SITE, "formats": ["markdown", "bogus"]}).json()
    assert found["error"] == "Bad Request"
    (union,) = found["details"]
    assert (union["code"], union["path"], union["message"]) == (
        "invalid_union",
        ["formats", 1],
        "Invalid input",
    )
    assert [issues[0]["values"] for issues in union["errors"][:3]] == [["markdown"], ["summary"], ["html"]]
    assert {issue["code"] for issues in union["errors"] for issue in issues} == {"invalid_value"}


@pytest.mark.rule("self-hosted-options")
@pytest.mark.parametrize(
    ("options", "status", "code"),
    [
        ({"formats": [{"type": "json", "prompt": "km"}]}, 500, "UNKNOWN_ERROR"),
        ({"formats": ["summary"]}, 500, "UNKNOWN_ERROR"),
        ({"formats": ["video"]}, 500, "SCRAPE_ALL_ENGINES_FAILED"),
        ({"actions": [{"type": "wait", "milliseconds": 1}]}, 400, "SCRAPE_ACTIONS_NOT_SUPPORTED"),
    ],
)
def test_options_that_the_server_lacks(
    sandbox: SandboxServer, http: httpx.Client, options: dict[str, Any], status: int, code: str
) -> None:
    response = http.post("/v2/scrape", json={"url": urls(1)[0], **options})
    assert (response.status_code, response.json()["code"]) == (status, code)


@pytest.mark.rule("self-hosted-warnings", "document-without-formats")
@pytest.mark.parametrize(
    ("options", "warning", "absent"),
    [
        ({"mobile": True}, "following features: mobile -- your scrape may be partial.", None),
        ({"location": {"country": "DE"}}, "following features: location -- your scrape may be partial.", None),
        ({"formats": [{"type": "json", "schema": SCHEMA}]}, "JSON extraction failed: OpenAI API key is", "json"),
        ({"formats": [{"type": "question", "question": "km?"}]}, "Query generation failed after", "answer"),
        ({"formats": [{"type": "highlights", "query": "km"}]}, "Highlights generation failed", "highlights"),
        ({"formats": ["markdown", "changeTracking"]}, "Comparing failed, please try", "changeTracking"),
    ],
)  # fmt: skip
def test_what_the_server_omits_is_a_warning(
    sandbox: SandboxServer, http: httpx.Client, options: dict[str, Any], warning: str, absent: str | None
) -> None:
    response = http.post("/v2/scrape", json={"url": urls(1)[0], **options})
    document = response.json()["data"]
    assert response.status_code == 200
    assert warning in document["warning"]
    assert document.get(absent or "html") is None


@pytest.mark.rule("self-hosted-options", "metadata-server")
def test_pages(sandbox: SandboxServer, http: httpx.Client) -> None:
    body = {"url": urls(1)[0], "formats": ["markdown", "screenshot"], "maxAge": 10**9}
    page = http.post("/v2/scrape", json=body).json()
    assert "screenshot" not in page["data"]
    assert "screenshot" in page["data"]["warning"]
    metadata = page["data"]["metadata"]
    assert {"favicon", "ogTitle", "og:title", "ogLocaleAlternate", "concurrencyLimited"} <= metadata.keys()
    assert "cacheState" not in metadata
    assert None not in metadata.values()


@pytest.mark.rule("metadata-not-fetched", "metadata-no-host")
@each_row(
    "url, status, markdown, error",
    [
        ("http://nowhere.example.net/x", 404, "Not Found", "Not Found"),
        ("http://127.0.0.1:8086/", 594, "Connection Refused", "Unknown Error"),
    ],
)
def test_pages_that_no_site_serves(
    http: httpx.Client, url: str, status: int, markdown: str, error: str
) -> None:
    """The whole document is as recorded, except for the id."""
    document = http.post("/v2/scrape", json={"url": url}).json()["data"]
    document["metadata"].pop("scrapeId")
    assert document == {
        "markdown": markdown,
        "metadata": {
            "sourceURL": url,
            "url": url,
            "statusCode": status,
            "error": error,
            "contentType": "text/plain; charset=utf-8",
            "proxyUsed": "basic",
            "creditsUsed": 1,
            "concurrencyLimited": False,
        },
    }
    secure = http.post("/v2/scrape", json={"url": url.replace("http:", "https:")})
    assert (secure.status_code, secure.json()["code"]) == (500, "SCRAPE_ALL_ENGINES_FAILED")


@pytest.mark.rule("self-hosted-sessions")
@pytest.mark.parametrize(
    ("path", "status", "error"),
    [
        ("/v2/interact/{}/replay/0", 503, "Browser feature is not configured"),
        ("/v2/interact/{}/replay/x", 400, "Invalid pageId."),
    ],
)
def test_known_paths_of_what_the_server_lacks(http: httpx.Client, path: str, status: int, error: str) -> None:
    response = http.get(path.format(uuid.uuid4()))
    assert response.status_code == status
    assert response.json()["error"].startswith(error)


HOOK = "http://127.0.0.1:9/x"


@pytest.mark.rule("self-hosted-accepts", "self-hosted-refuses", "webhook-metadata", "request-size")
@pytest.mark.parametrize(
    ("path", "body", "status", "code"),
    [
        ("/v2/crawl", {"url": SITE, "limit": 1, "webhook": "ftp://a"}, 200, None),
        ("/v2/crawl", {"url": SITE, "webhook": {"url": HOOK, "headers": {"Content-Type": "a/b"}}}, 200, None),
        ("/v2/crawl", {"url": SITE, "webhook": {"url": HOOK, "metadata": {"a": 1}}}, 400, "BAD_REQUEST"),
        ("/v2/search", {"query": "x", "tbs": "nope"}, 200, None),
        ("/v2/scrape", {"url": SITE, "timeout": 10**10}, 408, "SCRAPE_TIMEOUT"),
        ("/v2/scrape", "{bad", 400, "BAD_REQUEST_INVALID_JSON"),
    ],
)
def test_bounds(
    sandbox: SandboxServer, http: httpx.Client, path: str, body: Any, status: int, code: str | None
) -> None:
    response = http.post(path, json=body)
    assert (response.status_code, response.json().get("code")) == (status, code)
    # Nor does a delivery that cannot be sent end a job.
    sandbox.control.advance(60)
    assert http.get("/v2/team/queue-status").json()["jobsInQueue"] == 0


def test_feedback_is_refused(http: httpx.Client) -> None:
    job, rating = str(uuid.uuid4()), {"rating": "bad", "querySuggestions": "x"}
    for path, body in (
        (f"/v2/search/{job}/feedback", rating),
        ("/v2/feedback", {"endpoint": "scrape", "jobId": job, **rating}),
    ):
        response = http.post(path, json=body)
        assert (response.status_code, response.json()["feedbackErrorCode"]) == (503, "DB_DISABLED")
    website = {"requestedWebsite": {"url": "https://a.example", "requestedFunctionality": "t"}}
    response = http.post(
        "/v2/feedback", json={"endpoint": "alexandria", "rating": "good", "rationale": "r", **website}
    )
    assert (response.status_code, response.json()["feedbackErrorCode"]) == (400, "INVALID_BODY")


def test_an_extract_job_fails(sandbox: SandboxServer, http: httpx.Client) -> None:
    started = http.post("/v2/extract", json={"urls": urls(1), "prompt": "km"}).json()
    assert started["replacement"] == "/v2/scrape"
    sandbox.control.advance(10)
    status = http.get(f"/v2/extract/{started['id']}").json()
    assert (status["success"], status["status"], status["data"]) == (False, "failed", [])
    assert "OpenAI API key" in status["error"]


@pytest.mark.rule("page-codes-jobs", "job-all-failed")
def test_robots_forbid_the_start(sandbox: SandboxServer, http: httpx.Client) -> None:
    sandbox.control.set_site("closed.example", robots="User-agent: *\nDisallow: /")
    job = Job(http, "/v2/crawl", url="https://closed.example/")
    sandbox.control.advance(60)
    state = job.state()
    assert (state["status"], state["completed"], state["total"]) == ("completed", 0, 0)
    assert [error["code"] for error in job.errors()] == ["CRAWL_DENIAL"]


def test_a_free_server_refuses_nothing_for_its_cost(sandbox: SandboxServer, http: httpx.Client) -> None:
    sandbox.control.configure(credits=0, rate_limits={"scrape": 0, "search": 0})
    assert http.post("/v2/scrape", json={"url": urls(1)[0]}).status_code == 200
    found = http.post(
        "/v2/search", json={"query": "river", "scrapeOptions": {"formats": ["markdown"]}}
    ).json()
    assert (found["data"], found["creditsUsed"], "warning" in found) == ({}, 0, False)
    assert sandbox.control.state()["credits"] == 0


def test_the_profile_is_a_setting(sandbox: SandboxServer, http: httpx.Client, capsys: Any) -> None:
    """Quirks and faults work in either profile, and a reset restores the profile of the start."""
    assert sandbox.control.state()["profile"] == "self-hosted"
    sandbox.control.set_quirks(["next-wrong-host"])
    assert "internal.invalid" in http.get(Job(http, "/v2/crawl", url=SITE).path).json()["next"]
    sandbox.control.configure(profile="hosted")
    assert http.get("/v2/team/credit-usage").status_code == 401
    sandbox.control.reset()
    assert http.get("/v2/team/credit-usage").status_code == 500
    with pytest.raises(ControlError, match="unknown profile 'own'; use one of hosted, self-hosted"):
        sandbox.control.configure(profile="own")
    with pytest.raises(ValueError, match="unknown profile 'own'"):
        SandboxServer(profile="own")
    assert SandboxConfig().profile == "hosted"
    with pytest.raises(SystemExit):
        main(["--profile", "own"])
    assert "hosted" in capsys.readouterr().err
