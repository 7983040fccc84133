# SPDX-License-Identifier: Apache-2.0
"""Every quirk shows while it is on, and only then."""

from __future__ import annotations

import json
from collections.abc import Callable
from email.utils import parsedate_to_datetime
from typing import Any

import httpx
import pytest

from airflow_provider_webdata.common.links import SITE
from webdata_sandbox.cli import main
from webdata_sandbox.control import ControlError
from webdata_sandbox.reference.timestamps import from_iso
from webdata_sandbox.state.quirks import QUIRKS

LEVELS = "https://weather.example/levels"
HOOK = "http://127.0.0.1:9/nobody-listens"
SEEN: dict[str, Callable[[Any, Any], bool]] = {}


def shows(name: str) -> Callable[[Callable[[Any, Any], bool]], Callable[[Any, Any], bool]]:
    """Register a function that returns whether the quirk shows."""

    def register(function: Callable[[Any, Any], bool]) -> Callable[[Any, Any], bool]:
        assert name not in SEEN
        SEEN[name] = function
        return function

    return register


def changed_page(sandbox: Any, api: Any, **fields: Any) -> dict[str, Any]:
    monitor = api.create(**fields)["id"]
    api.run(monitor)
    sandbox.control.set_page(LEVELS, "<p>Another level.</p>")
    return api.run(monitor)["pages"][0]


def events(sandbox: Any, name: str) -> list[dict[str, Any]]:
    return [json.loads(item["body"]) for item in sandbox.control.deliveries() if item["event"] == name]


def limited(sandbox: Any, api: Any) -> httpx.Response:
    sandbox.control.configure(rate_limits={"search": 0})
    response = api.search()
    assert response.status_code == 429
    return response


@shows("late-replica")
def _(sandbox, api) -> bool:
    created = api.create(name="old")["id"]
    path = f"/v2/monitor/{created}"
    after_create = [api.http.get(path).status_code for _ in range(3)]
    api.patch(created, name="new")
    after_update = [api.get(created)["name"] for _ in range(3)]
    listed = api.http.get("/v2/monitor").json()["data"]
    check = api.http.post(f"{path}/run").json()["id"]
    sandbox.control.settle()
    after_run = [api.http.get(f"{path}/checks/{check}").status_code for _ in range(3)]
    late = [404, 404, 200]
    assert listed
    return (after_create, after_update, after_run) == (late, ["old", "old", "new"], late)


@shows("no-success")
def _(sandbox, api) -> bool:
    answers = [api.search().json(), api.http.get("/v2/monitor").json()]
    assert "success" in api.search(limit=0).json()
    return not any("success" in answer for answer in answers)


@shows("deprecation")
def _(sandbox, api) -> bool:
    response = api.search()
    headers = response.headers
    named = headers.get("deprecation") == "true" and "successor-version" in headers["link"]
    return named and headers["warning"].startswith("299") and bool(response.json()["warnings"])


@shows("keyless-limit")
def _(sandbox, api) -> bool:
    def call() -> httpx.Response:
        return httpx.post(f"{sandbox.url}/v2/search", json={"query": "x"}, trust_env=False, verify=False)

    statuses = [call().status_code for _ in range(3)]
    assert httpx.get(f"{sandbox.url}/v2/monitor", trust_env=False, verify=False).status_code == 401
    return statuses == [200, 200, 429] and call().json()["retry_after_seconds"] > 0


def _check_pages(sandbox: Any, api: Any) -> list[dict[str, Any]]:
    urls = [f"https://many.example/{number}" for number in range(3)]
    for url in urls:
        sandbox.control.set_page(url, "<p>x</p>")
    monitor = api.create(targets=[{"type": "scrape", "urls": urls}])["id"]
    path = f"/v2/monitor/{monitor}/checks/{api.run(monitor)['id']}"
    return [api.http.get(f"{path}?limit=2&skip={skip}").json() for skip in (0, 2)]


@shows("next-wrong-host")
def _(sandbox, api) -> bool:
    first, _ = _check_pages(sandbox, api)
    assert "/checks/" in first["next"]
    return not first["next"].startswith(sandbox.url)


@shows("next-null")
def _(sandbox, api) -> bool:
    _, last = _check_pages(sandbox, api)
    return last.get("next", "absent") is None and last["data"].get("next", "absent") is None


@shows("repeated-pages")
def _(sandbox, api) -> bool:
    first, second = _check_pages(sandbox, api)
    return second["data"]["pages"][0]["id"] == first["data"]["pages"][-1]["id"]


@shows("metadata-arrays")
def _(sandbox, api) -> bool:
    item = api.search("inurl:levels", scrapeOptions={"formats": ["markdown"]}).json()["data"]["web"][0]
    return all(
        isinstance(item["metadata"].get(name), list)
        for name in ("title", "description", "language", "keywords")
    )


@shows("diff-string")
def _(sandbox, api) -> bool:
    return isinstance(changed_page(sandbox, api)["diff"], str)


@shows("search-position")
def _(sandbox, api) -> bool:
    data = api.search(sources=["web", "news"]).json()["data"]
    return [item.get("position") for item in data["web"][:2]] == [1, 2] and "category" in data["news"][0]


@shows("markdown-highlights")
def _(sandbox, api) -> bool:
    return "**river**" in api.search("river").json()["data"]["web"][0]["description"].lower()


@shows("research-moved")
def _(sandbox, api) -> bool:
    data = api.search(categories=["research", "pdf"]).json()["data"]
    moved = {"research"} & {item["category"] for item in data["web"]} == set()
    return moved and data["research"][0]["primaryId"].startswith("doi:")


@shows("category-removed")
def _(sandbox, api) -> bool:
    answers = [api.search(categories=[name]).json() for name in ("github", "codehost")]
    assert api.search(categories=["pdf"]).status_code == 200
    assert answers[0]["code"] == "CATEGORY_REMOVED"
    return answers[1].get("code") == "CATEGORY_REMOVED"


@shows("codehost-unknown")
def _(sandbox, api) -> bool:
    statuses = [api.search(categories=[name]).status_code for name in ("codehost", "github")]
    return statuses == [400, 200]


@shows("origin-refused")
def _(sandbox, api) -> bool:
    response = api.patch(api.create()["id"], name="x", origin="api")
    return response.status_code == 400 and "Unrecognized key" in response.json()["error"]


@shows("schedule-spread")
def _(sandbox, api) -> bool:
    crons = {api.create(schedule={"text": "every 30 minutes"})["schedule"]["cron"] for _ in range(20)}
    daily = {api.create(schedule={"text": "daily"})["schedule"]["cron"] for _ in range(20)}
    assert api.create(schedule={"cron": "*/30 * * * *"})["schedule"]["cron"] == "*/30 * * * *"
    return len(crons) > 1 and len(daily) > 1


@shows("cron-or")
def _(sandbox, api) -> bool:
    both = api.create(schedule={"cron": "0 0 13 * 5"})["estimatedCreditsPerMonth"]
    return both > 2


@shows("patch-keeps-judge")
def _(sandbox, api) -> bool:
    return api.patch(api.create()["id"], goal="floods").json()["data"]["judgeEnabled"] is False


@shows("resume-keeps-next-run")
def _(sandbox, api) -> bool:
    monitor = api.create()
    api.patch(monitor["id"], status="paused")
    sandbox.control.advance(13 * 3600)
    resumed = api.patch(monitor["id"], status="active").json()["data"]
    sandbox.control.settle()
    due_at_once = len(api.checks(monitor["id"])) == 1
    return resumed["nextRunAt"] == monitor["nextRunAt"] and due_at_once


@shows("skipped-event")
def _(sandbox, api) -> bool:
    monitor = api.create(webhook={"url": HOOK})["id"]
    sandbox.control.configure(credits=0)
    sandbox.control.advance(12 * 3600)
    assert api.checks(monitor)[0]["status"] == "skipped_no_credits"
    found = events(sandbox, "monitor.check.completed")
    return [event["data"][0]["status"] for event in found] == ["skipped_no_credits"]


def _envelope(sandbox: Any, api: Any) -> dict[str, Any]:
    api.run(api.create(webhook={"url": HOOK})["id"])
    return events(sandbox, "monitor.page")[0]


@shows("no-webhook-id")
def _(sandbox, api) -> bool:
    return "webhookId" not in _envelope(sandbox, api)


@shows("webhook-data-object")
def _(sandbox, api) -> bool:
    return isinstance(_envelope(sandbox, api)["data"], dict)


@shows("meaningful-on-new")
def _(sandbox, api) -> bool:
    data = _envelope(sandbox, api)["data"][0]
    return (data["status"], data["isMeaningful"]) == ("new", True)


@shows("webhook-headers")
def _(sandbox, api) -> bool:
    # The receiver is the sandbox itself: what it was sent is among its requests.
    api.run(api.create(webhook={"url": f"{sandbox.url}/v2/hook"})["id"])
    sent = sandbox.control.requests("/v2/hook")[0]
    return sent["headers"].get("x-firecrawl-webhook-id") == sent["body"]["webhookId"]


@shows("error-without-success")
def _(sandbox, api) -> bool:
    assert "success" in api.search().json()
    return "success" not in api.search(limit=0).json()


@shows("gateway-html")
def _(sandbox, api) -> bool:
    responses = [api.search() for _ in range(2)]
    found = [(response.status_code, response.headers["content-type"]) for response in responses]
    return found[0] == (502, "text/html") and found[1][0] == 200


@shows("ok-but-failed")
def _(sandbox, api) -> bool:
    responses = [api.search() for _ in range(2)]
    assert {response.status_code for response in responses} == {200}
    return [response.json()["success"] for response in responses] == [False, True]


@shows("retry-after-absent")
def _(sandbox, api) -> bool:
    response = limited(sandbox, api)
    return "retry after" in response.json()["error"] and "retry-after" not in response.headers


@shows("retry-after-date")
def _(sandbox, api) -> bool:
    response = limited(sandbox, api)
    if "retry after" in response.json()["error"]:
        return False
    return parsedate_to_datetime(response.headers["retry-after"]).tzinfo is not None


@shows("credits-lag")
def _(sandbox, api) -> bool:
    before = api.balance()
    api.search()
    late = api.balance() == before
    sandbox.control.advance(3601)
    assert api.balance() == before - 2
    return late


@shows("enhanced-free")
def _(sandbox, api) -> bool:
    options = {"formats": ["markdown"], "proxy": "enhanced"}
    return api.search("inurl:levels", limit=1, scrapeOptions=options).json()["creditsUsed"] == 3


@shows("formats-as-objects")
def _(sandbox, api) -> bool:
    assert api.search(scrapeOptions={"formats": [{"type": "markdown"}]}).status_code == 200
    return api.search(scrapeOptions={"formats": ["markdown"]}).status_code == 400


@shows("unknown-states")
def _(sandbox, api) -> bool:
    page = changed_page(sandbox, api)
    check = api.checks(api.http.get("/v2/monitor").json()["data"][0]["id"])[0]
    return page["status"] == "moved" and check["status"] == "reconciled" and bool(check["finishedAt"])


@shows("unknown-fields")
def _(sandbox, api) -> bool:
    answer = api.search().json()
    return "fieldFromTheFuture" in answer and "fieldFromTheFuture" in answer["data"]["web"][0]


@shows("unknown-code")
def _(sandbox, api) -> bool:
    return api.search(limit=0).json().get("code") == "A_CODE_FROM_THE_FUTURE"


@shows("chunked")
def _(sandbox, api) -> bool:
    response = api.search(scrapeOptions={"formats": ["rawHtml"]})
    assert response.json()["data"]["web"]
    return "content-length" not in response.headers and response.headers["transfer-encoding"] == "chunked"


@shows("private-refused")
def _(sandbox, api) -> bool:
    url = "http://10.0.0.7/page"
    sandbox.control.set_page(url, "<p>private</p>")
    return api.http.post("/v2/scrape", json={"url": url}).status_code == 500


@shows("session-lifetimes")
def _(sandbox, api) -> bool:
    session = api.http.post("/v2/interact", json={}).json()
    (stored,) = sandbox.control.sessions()
    life = from_iso(session["expiresAt"]) - from_iso(stored["createdAt"])
    seconds = (life.total_seconds(), stored["activityTtl"])
    assert seconds in [(600, 300), (300, None)]
    return seconds == (600, 300)


@shows("code-in-bytes")
def _(sandbox, api) -> bool:
    session = api.http.post("/v2/interact", json={}).json()["id"]
    url = f"/v2/interact/{session}/execute"
    assert api.http.post(url, json={"code": "a" * 100_000}).status_code == 200
    return api.http.post(url, json={"code": "ä" * 50_001}).status_code == 400


@shows("closed-is-gone")
def _(sandbox, api) -> bool:
    session = api.http.post("/v2/interact", json={}).json()["id"]
    assert api.http.delete(f"/v2/interact/{session}").status_code == 200
    return api.http.delete(f"/v2/interact/{session}").status_code == 410


def job(sandbox: Any, api: Any, path: str, **body: Any) -> dict[str, Any]:
    """Start a job, let it end, and return its status."""
    started = api.http.post(path, json=body)
    assert started.status_code == 200, started.text
    sandbox.control.settle()
    return api.http.get(f"{path}/{started.json()['id']}").json()


@shows("limit-refused")
def _(sandbox, api) -> bool:
    sandbox.control.configure(credits=3)
    answer = api.http.post("/v2/crawl", json={"url": "https://river.example", "limit": 5})
    if answer.status_code == 402:
        return True
    sandbox.control.settle()
    assert api.http.get(f"/v2/crawl/{answer.json()['id']}").json()["completed"] == 3
    return False


@shows("pay-as-you-go")
def _(sandbox, api) -> bool:
    sandbox.control.configure(credits=1)
    statuses = [api.search().status_code for _ in range(2)]
    crawl = api.http.post("/v2/crawl", json={"url": "https://river.example", "limit": 2}).status_code
    left = api.http.get("/v2/team/credit-usage").json()["data"]["remainingCredits"]
    assert (statuses[1], crawl, left < 0) in ((402, 402, False), (200, 200, True))
    return bool(left < 0)


@shows("completion-order")
def _(sandbox, api) -> bool:
    urls = [f"https://river.example/{name}" for name in ("floods", "bridges", "salmon")]
    found = job(sandbox, api, "/v2/batch/scrape", urls=urls)["data"]
    shown = [document["metadata"]["sourceURL"] for document in found]
    assert sorted(shown) == sorted(urls)
    return shown != urls


@shows("bare-job-errors")
def _(sandbox, api) -> bool:
    sandbox.control.set_page(LEVELS, "<p>x</p>", error="SCRAPE_SITE_ERROR")
    started = api.http.post("/v2/batch/scrape", json={"urls": [LEVELS]}).json()
    sandbox.control.settle()
    (error,) = api.http.get(f"/v2/batch/scrape/{started['id']}/errors").json()["errors"]
    assert {"id", "url", "error"} <= error.keys()
    return not {"code", "timestamp"} & error.keys()


@shows("completed-after-cancel")
def _(sandbox, api) -> bool:
    sandbox.control.configure(page_seconds=60)
    body = {"urls": [LEVELS], "webhook": {"url": HOOK, "events": ["completed"]}}
    started = api.http.post("/v2/batch/scrape", json=body).json()
    assert api.http.delete(f"/v2/batch/scrape/{started['id']}").status_code == 200
    return [event["success"] for event in events(sandbox, "batch_scrape.completed")] == [True]


@shows("dns-ok")
def _(sandbox, api) -> bool:
    answer = api.http.post("/v2/scrape", json={"url": "https://nowhere.example"})
    assert answer.json()["success"] is False
    assert answer.json()["code"] == "SCRAPE_DNS_RESOLUTION_ERROR"
    assert api.balance() == 99_999
    return answer.status_code == 200


@shows("map-strings")
def _(sandbox, api) -> bool:
    links = api.http.post("/v2/map", json={"url": "https://river.example"}).json()["links"]
    return links[0] == "https://river.example/"


@shows("history-credits-used")
def _(sandbox, api) -> bool:
    api.search(limit=10)
    (period,) = api.http.get("/v2/team/credit-usage/historical").json()["periods"]
    assert 2 in period.values()
    (tokens,) = api.http.get("/v2/team/token-usage/historical").json()["periods"]
    assert ("creditsUsed" in period) is ("tokensUsed" in tokens)
    return "creditsUsed" in period


@shows("upload-form")
def _(sandbox, api) -> bool:
    target = api.http.post("/v2/parse/upload-url", json={"filename": "a.html"}).json()["data"]
    assert ("fields" in target) is (target["method"] == "POST")
    return target["method"] == "POST"


@shows("large-uploads")
def _(sandbox, api) -> bool:
    body = {"filename": "a.html", "declaredSizeBytes": 100 * 2**20}
    answer = api.http.post("/v2/parse/upload-url", json=body)
    assert answer.status_code in (200, 400)
    return answer.status_code == 200 and answer.json()["data"]["maxSizeBytes"] == 100 * 2**20


@pytest.mark.rule("keyless-calls", "caller-labels", "success-flag", "ok-but-failed", "open-responses")
@pytest.mark.rule("late-reads", "deprecation", "transport", "error-body", "error-unknown", "status-5xx")
@pytest.mark.rule("ok-but-failed-scrape", "retry-after", "credits-enhanced-proxy", "credits-lag")
@pytest.mark.rule("format-forms", "document-change-tracking", "metadata-texts", "search-categories")
@pytest.mark.rule("search-highlights", "search-web-item", "search-research-moves", "map-links")
@pytest.mark.rule("batch-ignore-invalid-urls", "crawl-credit-check", "job-credits", "parts-next", "next-host")
@pytest.mark.rule("parts-order", "job-errors", "session-ttl", "session-close", "code-text")
@pytest.mark.rule("schedule-cron-days", "schedule-stored", "monitor-update-goal", "monitor-resume")
@pytest.mark.rule("check-pages-order", "team-credits-history", "webhook-url", "delivery-headers")
@pytest.mark.rule("credits-pay-as-you-go")
@pytest.mark.rule("envelope-webhook-id", "envelope-data", "event-job-page", "event-job-completed")
@pytest.mark.rule("event-none-for-skipped", "event-monitor-page-data", "parse-storage")
@pytest.mark.parametrize("name", QUIRKS)
def test_it_shows_only_while_it_is_on(sandbox, api, name: str) -> None:
    assert SEEN[name](sandbox, api) is False
    sandbox.control.reset()
    sandbox.control.set_quirks([name])
    assert SEEN[name](sandbox, api) is True


def test_names_are_checked(sandbox) -> None:
    for names in (["late-replica=5"], ["late-replica", "chunked"], []):
        sandbox.control.set_quirks(names)
        assert sandbox.control.state()["quirks"] == sorted(name.partition("=")[0] for name in names)
    for wrong in ("nonsense", "chunked=2", "late-replica=x", "late-replica=-1"):
        with pytest.raises(ControlError, match="quirk"):
            sandbox.control.set_quirks([wrong])


def test_number(sandbox, api) -> None:
    sandbox.control.set_quirks(["gateway-html=3"])
    assert [api.search().status_code for _ in range(4)] == [502, 502, 502, 200]


def test_the_list_names_all(capsys) -> None:
    assert main(["--quirk", "list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == list(QUIRKS)
    assert all(f"[{SITE}service.html#" in line for line in lines)
