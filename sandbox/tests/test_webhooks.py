# SPDX-License-Identifier: Apache-2.0
"""Webhook deliveries, against a real receiver."""

from __future__ import annotations

import hashlib
import hmac
import json
import queue
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from tests.support.service import NEVER
from tests.support.tables import each_row
from tests.support.waiting import PATIENCE
from webdata_sandbox.server import SandboxServer

from .conftest import reset_sandbox

SECRET = "hush-hush"
LEVELS = "https://weather.example/levels"


class Receiver:
    """An HTTP server that keeps what it gets and gives the answers it was given (200 when there are none)."""

    def __init__(self) -> None:
        self.received: queue.Queue[tuple[dict[str, str], bytes]] = queue.Queue()
        self.answers: queue.Queue[int] = queue.Queue()
        self.release = threading.Event()
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                receiver.received.put(({name.lower(): value for name, value in self.headers.items()}, body))
                status = 200 if receiver.answers.empty() else receiver.answers.get()
                if status == 0:  # hold the answer back
                    receiver.release.wait(30)
                    return
                self.send_response(status)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/hook"
        threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()

    def all(self) -> list[tuple[dict[str, str], dict[str, Any]]]:
        """Return what was received so far: headers and body."""
        found = []
        while not self.received.empty():
            headers, body = self.received.get()
            found.append((headers, json.loads(body)))
        return found

    def close(self) -> None:
        self.release.set()
        self.server.shutdown()
        self.server.server_close()


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    server = Receiver()
    yield server
    server.close()


@pytest.mark.rule("envelope-id", "envelope-data", "event-monitor-page", "event-check-completed")
@pytest.mark.rule("event-monitor-page-data", "event-check-completed-data")
def test_events_of_a_check(sandbox, api, receiver) -> None:
    hook = {"url": receiver.url, "headers": {"X-Key": "k"}, "metadata": {"run": "r1"}}
    monitor = api.create(webhook=hook, goal="level of the bridge")["id"]
    api.run(monitor)
    receiver.all()
    sandbox.control.set_page(LEVELS, "<p>Bridge: 455 cm</p>")
    check = api.run(monitor)
    (page_headers, page), (headers, completed) = sorted(
        receiver.all(), key=lambda item: item[1]["type"], reverse=True
    )
    assert page_headers["content-type"] == headers["content-type"] == "application/json"
    assert headers["x-key"] == "k"
    assert "x-firecrawl-signature" not in headers
    assert completed.pop("webhookId") != page.pop("webhookId")
    assert completed == {
        "success": True,
        "type": "monitor.check.completed",
        "id": check["id"],
        "metadata": {"run": "r1"},
        "data": [
            {
                "monitorId": monitor,
                "checkId": check["id"],
                "status": "completed",
                "summary": check["summary"],
            },
        ],
    }
    (data,) = page.pop("data")
    assert page == {"success": True, "type": "monitor.page", "id": check["id"], "metadata": {"run": "r1"}}
    stored = check["pages"][0]
    assert data == {
        "monitorId": monitor,
        "checkId": check["id"],
        "isMeaningful": True,
        **{
            name: stored[name]
            for name in ("url", "status", "error", "judgment", "diff", "previousScrapeId", "currentScrapeId")
        },
    }


@pytest.mark.rule("webhook-events-monitor")
@each_row(
    "events, types",
    [
        (None, {"monitor.page", "monitor.check.completed"}),
        (["monitor.page"], {"monitor.page"}),
        (["monitor.check.completed"], {"monitor.check.completed"}),
        ([], {"monitor.page", "monitor.check.completed"}),
    ],
    before=reset_sandbox,
)
def test_only_the_events_asked_for(api, receiver, events: list[str] | None, types: set[str]) -> None:
    hook = {"url": receiver.url, **({} if events is None else {"events": events})}
    api.run(api.create(webhook=hook)["id"])
    assert {body["type"] for _, body in receiver.all()} == types


@pytest.mark.rule("event-monitor-page", "event-check-completed")
@each_row(
    "setup, status, page_success",
    [
        (lambda c: c.set_page(LEVELS, "<p>x</p>", error="SCRAPE_SITE_ERROR"), "partial", [False]),
        (lambda c: c.add_fault("fail_check"), "failed", []),
    ],
    before=reset_sandbox,
)
def test_events_of_a_check_that_goes_wrong(
    sandbox, api, receiver, setup, status: str, page_success: list[bool]
) -> None:
    monitor = api.create(webhook={"url": receiver.url})["id"]
    setup(sandbox.control)
    api.run(monitor)
    bodies = [body for _, body in receiver.all()]
    completed = next(body for body in bodies if body["type"] == "monitor.check.completed")
    pages = [body for body in bodies if body["type"] == "monitor.page"]
    assert (completed["success"], completed["data"][0]["status"]) == (False, status)
    assert [page["success"] for page in pages] == page_success
    assert all(page["error"] for page in pages)
    assert ("error" in completed) is (status == "failed")


@pytest.mark.rule("event-none-for-skipped", "event-monitor-page-data")
def test_removed_pages_and_skipped_checks_send_nothing(sandbox, api, receiver) -> None:
    sandbox.control.set_page("https://t.example", '<a href="/a">a</a>')
    sandbox.control.set_page("https://t.example/a", "<p>a</p>")
    target = {"type": "crawl", "url": "https://t.example", "crawlOptions": {"limit": 5}}
    monitor = api.create(targets=[target], webhook={"url": receiver.url, "events": ["monitor.page"]})["id"]
    api.run(monitor)
    assert len(receiver.all()) == 2
    sandbox.control.delete_page("https://t.example/a")
    assert api.run(monitor)["summary"]["removed"] == 1
    assert [body["data"][0]["url"] for _, body in receiver.all()] == ["https://t.example/"]
    sandbox.control.configure(credits=0)
    sandbox.control.advance(12 * 3600)
    assert api.checks(monitor)[0]["status"] == "skipped_no_credits"
    assert receiver.all() == []


def completed_hook(receiver: Receiver) -> dict[str, Any]:
    return {"url": receiver.url, "events": ["monitor.check.completed"]}


@pytest.mark.rule("delivery-answer", "delivery-retries")
@each_row(
    "answers, attempts, status",
    [
        ([200], 1, "delivered"),
        ([204], 1, "delivered"),
        ([500, 200], 2, "delivered"),
        ([404, 301, 503, 202], 4, "delivered"),
        ([500, 500, 500, 500], 4, "failed"),
    ],
    before=reset_sandbox,
)
def test_retries(sandbox, api, receiver, answers: list[int], attempts: int, status: str) -> None:
    for answer in answers:
        receiver.answers.put(answer)
    monitor = api.create(schedule=NEVER, webhook=completed_hook(receiver))["id"]
    api.run(monitor)
    # one minute, five minutes, fifteen minutes: each retry is there after its wait and not before
    for number, wait in enumerate((60, 300, 900), 1):
        before = min(number, attempts)
        assert len(sandbox.control.deliveries()[0]["attempts"]) == before
        sandbox.control.advance(wait - 5)
        assert len(sandbox.control.deliveries()[0]["attempts"]) == before
        sandbox.control.advance(5)
        assert len(sandbox.control.deliveries()[0]["attempts"]) == min(number + 1, attempts)
    sandbox.control.advance(86_400)
    (delivery,) = sandbox.control.deliveries()
    assert [attempt["statusCode"] for attempt in delivery["attempts"]] == answers
    assert delivery["status"] == status
    assert len({body["webhookId"] for _, body in receiver.all()}) == 1


@pytest.mark.rule("delivery-retries")
def test_a_receiver_that_is_not_there(sandbox, api) -> None:
    api.run(api.create(schedule=NEVER, webhook={"url": "http://127.0.0.1:9/x"})["id"])
    sandbox.control.advance(1300)
    for delivery in sandbox.control.deliveries():
        assert delivery["status"] == "failed"
        assert [(a["statusCode"], bool(a["error"])) for a in delivery["attempts"]] == [(None, True)] * 4


@pytest.mark.rule("delivery-answer")
def test_a_receiver_that_is_too_slow(receiver) -> None:
    receiver.answers.put(0)
    with SandboxServer(webhook_timeout=2) as server:
        from .conftest import Api

        api = Api(server)
        with api.http:
            api.run(api.create(schedule=NEVER, webhook=completed_hook(receiver))["id"])
            (delivery,) = server.control.deliveries()
            assert delivery["status"] == "pending"
            assert "no response within" in delivery["attempts"][0]["error"]
            server.control.advance(WHOLE_SCHEDULE)
            assert server.control.deliveries()[0]["status"] == "delivered"


@pytest.mark.rule("delivery-signature")
def test_signature(receiver) -> None:
    with SandboxServer(webhook_secret=SECRET) as server:
        from .conftest import Api

        api = Api(server)
        with api.http:
            api.run(api.create(webhook=completed_hook(receiver))["id"])
    headers, raw = receiver.received.get(timeout=PATIENCE)
    expected = hmac.new(SECRET.encode(), raw, hashlib.sha256).hexdigest()
    assert headers["x-firecrawl-signature"] == f"sha256={expected}"


PAGE, COMPLETED = "monitor.page", "monitor.check.completed"
WHOLE_SCHEDULE = 1300


@each_row(
    "fault, at_once, after, statuses",
    [
        # fault, events that arrive at once, events that arrive in the 21 minutes after, states in the end
        ({"kind": "lose_delivery"}, [COMPLETED], [], ["lost", "delivered"]),
        ({"kind": "lose_delivery", "event": COMPLETED}, [PAGE], [], ["delivered", "lost"]),
        ({"kind": "lose_delivery", "times": None}, [], [], ["lost", "lost"]),
        ({"kind": "lose_delivery", "path": "/elsewhere"}, [PAGE, COMPLETED], [], ["delivered"] * 2),
        ({"kind": "lose_answer", "event": PAGE}, [PAGE, COMPLETED], [PAGE], ["delivered"] * 2),
        (
            {"kind": "lose_answer", "event": PAGE, "times": 4},
            [PAGE, COMPLETED],
            [PAGE] * 3,
            ["failed", "delivered"],
        ),
        ({"kind": "late_delivery", "event": PAGE, "seconds": 30}, [COMPLETED], [PAGE], ["delivered"] * 2),
        ({"kind": "late_delivery", "path": "/ho", "seconds": 30}, [COMPLETED], [PAGE], ["delivered"] * 2),
    ],
    before=reset_sandbox,
)
def test_deliveries_that_go_wrong_on_the_way(
    sandbox, api, receiver, fault: dict[str, Any], at_once: list[str], after: list[str], statuses: list[str]
) -> None:
    monitor = api.create(schedule=NEVER, webhook={"url": receiver.url})["id"]
    sandbox.control.add_fault(**fault)
    api.run(monitor)
    first = [body for _, body in receiver.all()]
    assert sorted(body["type"] for body in first) == sorted(at_once)
    sandbox.control.advance(WHOLE_SCHEDULE)
    later = [body for _, body in receiver.all()]
    assert [body["type"] for body in later] == after
    deliveries = sorted(sandbox.control.deliveries(), key=lambda delivery: delivery["event"], reverse=True)
    assert [delivery["status"] for delivery in deliveries] == statuses
    # What is repeated is the same event, byte for byte.
    sent = [json.loads(delivery["body"]) for delivery in deliveries]
    assert all(body in sent for body in [*first, *later])


def test_retries_run_by_themselves_at_speed(receiver) -> None:
    receiver.answers.put(500)
    receiver.answers.put(500)
    with SandboxServer(speed=3600) as server:
        from .conftest import Api

        api = Api(server)
        with api.http:
            started = api.create(schedule=NEVER, webhook=completed_hook(receiver))["id"]
            api.http.post(f"/v2/monitor/{started}/run")
            bodies = [receiver.received.get(timeout=PATIENCE)[1] for _ in range(3)]
    assert len({json.loads(body)["webhookId"] for body in bodies}) == 1
