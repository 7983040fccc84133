# SPDX-License-Identifier: Apache-2.0
"""The life that crawl and batch scrape share: states, pages of results, cancel, errors, expiry, events, restarts."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.examples import examples
from tests.support.tables import each_row
from tests.support.waiting import PATIENCE
from webdata_sandbox.control import SandboxControl
from webdata_sandbox.reference.timestamps import from_iso
from webdata_sandbox.server import SandboxServer

from .conftest import reset_sandbox
from .page_job_calls import NOBODY, PATHS, batch, crawl, site, start
from .test_state import opened
from .test_webhooks import Receiver, receiver  # noqa: F401 - a fixture

of_each_kind = each_row("kind", PATHS, before=reset_sandbox)
DAY = 86_400
NOT_FOUND = {"crawl": "Job not found", "batch_scrape": "Batch scrape job not found."}


def received(api: Any, job: Any) -> list[dict[str, Any]]:
    """Return what was sent about a job, in the order of the events."""
    bodies = [json.loads(item["body"]) for item in api.sandbox.control.deliveries()]
    return [body for body in bodies if body["id"] == job.id]


@pytest.mark.rule("job-scraping", "job-completed", "job-counts", "job-times")
@of_each_kind
def test_from_start_to_end(sandbox, api, kind: str) -> None:
    urls = site(api, 4)
    sandbox.control.configure(page_seconds=1000, queue_seconds=500)
    job = start(api, kind, urls)
    assert job.answer["success"] is True
    assert job.answer["url"] == sandbox.url + job.path
    first = job.poll()
    assert (first["success"], first["status"], first["completed"], first["data"]) == (True, "scraping", 0, [])
    assert "completedAt" not in first
    seen = []
    for _ in range(3):
        sandbox.control.advance(1000)
        seen.append(job.poll())
    assert [polled["status"] for polled in seen] == ["scraping"] * 3
    assert [polled["completed"] for polled in seen] == [len(polled["data"]) for polled in seen]
    assert seen[0]["completed"] < seen[1]["completed"] < seen[2]["completed"] < 5
    sandbox.control.advance(6000)
    last = job.poll()
    assert (last["status"], last["total"], last["completed"], last["creditsUsed"]) == ("completed", 5, 5, 5)
    assert [document["metadata"]["sourceURL"] for document in last["data"]] == urls
    assert "next" not in last
    assert api.balance() == 100_000 - 5
    created, completed = from_iso(last["createdAt"]), from_iso(last["completedAt"])
    assert last["duration"] == pytest.approx((completed - created).total_seconds(), abs=0.01)
    assert 5500 <= last["duration"] <= 6000
    assert (from_iso(last["expiresAt"]) - completed).total_seconds() == DAY


@pytest.mark.rule("batch-max-concurrency")
@of_each_kind
def test_how_many_pages_at_a_time(sandbox, api, kind: str) -> None:
    """The job's own bound and the team's hold together; the lower one counts."""
    urls = site(api, 20, fanout=20)
    sandbox.control.configure(page_seconds=1000, concurrency=4)
    for asked, width in ((None, 4), (3, 3), (9, 4)):
        job = start(api, kind, urls, **({"maxConcurrency": asked} if asked else {}))
        sandbox.control.settle()
        sandbox.control.advance(1500)  # a crawl knows one page only, at first
        before = job.poll()["completed"]
        sandbox.control.advance(1000)
        assert job.poll()["completed"] - before == width
        job.cancel()


class TestPagesOfResults:
    @pytest.mark.rule("parts-next")
    def test_a_hundred_each(self, api) -> None:
        urls = site(api, 249, fanout=249)
        job = crawl(api, limit=250)
        api.sandbox.control.settle()
        sizes, path = [], job.path
        while path:
            body = api.http.get(path).json()
            sizes.append(len(body["data"]))
            path = body.get("next")
            assert body["completed"] == 250  # the counts are those of the job, on every page
            if path:
                assert path.startswith(f"{api.sandbox.url}{job.path}?skip={sum(sizes)}")
        assert sizes == [100, 100, 50]
        assert job.urls() == urls

    @pytest.mark.rule("parts-query")
    @examples(0.4)
    @given(st.integers(1, 40), st.integers(1, 50))
    def test_every_limit_gives_all_once(self, api, pages: int, limit: int) -> None:
        job = batch(api, site(api, pages))
        api.sandbox.control.settle()
        path: str | None = f"{job.path}?limit={limit}"
        found, calls = [], 0
        while path:
            body = api.http.get(path).json()
            assert len(body["data"]) <= limit
            found.extend(document["metadata"]["sourceURL"] for document in body["data"])
            path, calls = body.get("next"), calls + 1
        assert found == site(api, pages)
        assert calls == math.ceil((pages + 1) / limit)

    @pytest.mark.rule("parts-next")
    def test_ten_megabytes_each(self, api) -> None:
        """A page of results is cut before it exceeds 10 MB, and one document always comes through."""
        urls = site(api, 3, size=4_000_000)
        job = batch(api, [*urls[1:], site(api, 1, host="huge.example", size=11_000_000)[1]])
        api.sandbox.control.settle()
        sizes, path = [], job.path
        while path:
            response = api.http.get(path)
            sizes.append(len(response.json()["data"]))
            assert len(response.content) < 10 * 1024 * 1024 or sizes[-1] == 1
            path = response.json().get("next")
        assert sizes == [2, 1, 1]

    @pytest.mark.rule("parts-while-running")
    def test_while_it_runs(self, sandbox, api) -> None:
        """``next`` is there although all that is done was shown, and repeats an empty page until there is more."""
        urls = site(api, 9)
        sandbox.control.configure(page_seconds=1000)
        job = start(api, "crawl", urls)
        sandbox.control.advance(2500)
        body = job.poll()
        assert 0 < len(body["data"]) < 10
        again = api.http.get(body["next"]).json()
        assert (again["data"], again["next"]) == ([], body["next"])
        sandbox.control.advance(20_000)
        rest = api.http.get(body["next"]).json()
        assert len(body["data"]) + len(rest["data"]) == 10
        assert "next" not in rest

    @pytest.mark.rule("parts-query")
    def test_pagination_parameters(self, api) -> None:
        site(api, 1)
        job = crawl(api)
        api.sandbox.control.settle()
        for query, count in (("limit=1", 1), ("limit=1000", 2), ("skip=0", 2), ("skip=1", 1)):
            assert len(api.http.get(f"{job.path}?{query}").json()["data"]) == count, query
        beyond = api.http.get(f"{job.path}?skip=100000").json()
        assert beyond["data"] == []
        assert "next" not in beyond
        for query in ("limit=0", "limit=1001", "limit=-1", "limit=x", "limit=", "skip=-1", "skip=1.5"):
            response = api.http.get(f"{job.path}?{query}")
            found = (response.status_code, response.json())
            assert found == (400, {"success": False, "error": "Invalid pagination"}), query


class TestCancel:
    @pytest.mark.rule("job-cancelled", "job-cancel")
    @of_each_kind
    def test_keeps_what_there_is(self, sandbox, api, kind: str) -> None:
        urls = site(api, 9)
        sandbox.control.configure(page_seconds=1000)
        job = start(api, kind, urls)
        sandbox.control.advance(2500)
        done = job.poll()["completed"]
        answer = job.cancel()
        assert (answer.status_code, answer.json()) == (200, {"status": "cancelled"})
        sandbox.control.advance(DAY / 2)
        body = job.poll()
        assert (body["status"], body["completed"], len(body["data"])) == ("cancelled", done, done)
        assert body["completedAt"]
        last = api.http.get(body["next"]).json()
        assert (last["data"], last["next"]) == ([], body["next"])
        assert api.balance() == 100_000 - done
        assert [job.cancel().status_code for _ in range(2)] == [200, 200]

    @pytest.mark.rule("job-cancel-ended")
    @of_each_kind
    def test_of_a_finished_one(self, api, kind: str) -> None:
        job = start(api, kind, site(api, 1))
        assert job.settled()["status"] == "completed"
        answer = job.cancel()
        assert (answer.status_code, answer.json()) == (409, {"error": "Crawl is already completed"})
        assert job.poll()["status"] == "completed"

    @pytest.mark.rule("job-cancel")
    @of_each_kind
    def test_of_none(self, api, kind: str) -> None:
        answer = api.http.delete(f"{PATHS[kind]}/{NOBODY}")
        assert (answer.status_code, answer.json()) == (404, {"error": NOT_FOUND[kind]})

    def test_before_it_began(self, sandbox, api) -> None:
        sandbox.control.configure(queue_seconds=100)
        job = start(api, "crawl", site(api, 3), webhook="http://127.0.0.1:9/x")
        job.cancel()
        sandbox.control.advance(200)
        assert (job.poll()["status"], job.poll()["total"], received(api, job)) == ("cancelled", 0, [])


class TestErrors:
    @pytest.mark.rule("job-errors")
    @of_each_kind
    def test_pages_that_fail(self, sandbox, api, kind: str) -> None:
        """A job completes whatever fails; failures are in the errors, 4xx and 5xx pages among the documents."""
        urls = [f"https://mixed.example/{name}" for name in ("", "bad", "gone", "good")]
        links = "".join(f'<a href="{url}">x</a>' for url in [*urls, "https://mixed.example/never"])
        sandbox.control.set_page(urls[0], f"<p>start</p>{links}")
        sandbox.control.set_page(urls[1], "<p>x</p>", error="SCRAPE_SSL_ERROR")
        sandbox.control.set_page(urls[2], "<p>oops</p>", status=503)
        sandbox.control.set_page(urls[3], "<p>good</p>")
        job = start(api, kind, [*urls, "https://mixed.example/never"], webhook="http://127.0.0.1:9/x")
        body = job.settled()
        codes = {d["metadata"]["sourceURL"]: d["metadata"]["statusCode"] for d in body["data"]}
        assert codes == {urls[0]: 200, urls[2]: 503, urls[3]: 200, "https://mixed.example/never": 404}
        assert (body["status"], body["total"], body["completed"], body["creditsUsed"]) == (
            "completed",
            4,
            4,
            4,
        )
        errors = job.errors()
        assert set(errors) == {"errors", "robotsBlocked"}
        (error,) = errors["errors"]
        assert (error["url"], error["code"]) == (urls[1], "SCRAPE_SSL_ERROR")
        assert error["error"]
        assert error["id"]
        assert from_iso(error["timestamp"])
        pages = [event for event in received(api, job) if event["type"] == f"{kind}.page"]
        assert len(pages) == 5
        (failed,) = [event for event in pages if not event["success"]]
        assert failed["error"] == error["error"]
        assert failed["data"][0]["metadata"]["sourceURL"] == urls[1]

    def test_every_nth_page(self, api) -> None:
        job = start(api, "crawl", site(api, 100, fail_every=7))
        assert job.settled()["completed"] == 101 - 14
        assert {e["url"] for e in job.errors()["errors"]} == {
            f"https://many.example/p/{n}" for n in range(7, 101, 7)
        }

    @of_each_kind
    def test_a_host_that_does_not_exist(self, api, kind: str) -> None:
        job = start(api, kind, ["https://nowhere.example/"])
        body = job.settled()
        assert (body["status"], body["completed"], body["creditsUsed"]) == ("completed", 0, 1)
        assert job.errors()["errors"][0]["code"] == "SCRAPE_DNS_RESOLUTION_ERROR"


@pytest.mark.rule("ok-but-failed-job", "job-failed")
@each_row("kind, after_pages", [("crawl", 2), ("batch_scrape", 0)], before=reset_sandbox)
def test_a_job_that_dies(sandbox, api, kind: str, after_pages: int) -> None:
    """HTTP 200, ``success: false``, no totals, no documents, and no event but those sent before."""
    sandbox.control.configure(page_seconds=1000)
    job = start(api, kind, site(api, 9), webhook="http://127.0.0.1:9/x")
    sandbox.control.settle()
    sandbox.control.advance(1000 * after_pages + 500)
    sandbox.control.add_fault(f"fail_{kind}")
    sandbox.control.advance(10_000)
    body = job.poll()
    assert (body["success"], body["status"], body["total"], body["completed"]) == (False, "failed", 0, 0)
    assert body["data"] == []
    assert body["error"]
    assert [event["type"].split(".")[-1] for event in received(api, job)] == [
        "started",
        *["page"] * after_pages,
    ]
    assert job.cancel().status_code == 409
    assert start(api, kind, site(api, 1)).settled()["status"] == "scraping"  # once only
    sandbox.control.advance(10_000)


@pytest.mark.rule("job-expiry")
@of_each_kind
def test_results_expire(sandbox, api, kind: str) -> None:
    job = start(api, kind, site(api, 2))
    assert job.settled()["completed"] == 3
    sandbox.control.advance(DAY - 60)
    assert len(job.poll()["data"]) == 3
    assert api.http.get(f"{job.path}/errors").status_code == 200
    sandbox.control.advance(120)
    for path in (job.path, f"{job.path}/errors"):
        answer = api.http.get(path)
        assert (answer.status_code, answer.json()) == (404, {"success": False, "error": "Job expired"})
    assert job.cancel().status_code == 404


def test_a_running_job_does_not_expire(sandbox, api) -> None:
    sandbox.control.configure(page_seconds=DAY)
    job = start(api, "crawl", site(api, 3, fanout=1))
    sandbox.control.advance(3 * DAY)
    assert job.poll()["status"] == "scraping"


@pytest.mark.rule("ids")
@each_row("kind, path", [(kind, path) for kind in PATHS for path in ("", "/errors")])
def test_ids(api, kind: str, path: str) -> None:
    answer = api.http.get(f"{PATHS[kind]}/{NOBODY}{path}")
    assert (answer.status_code, answer.json()) == (404, {"success": False, "error": NOT_FOUND[kind]})
    answer = api.http.get(f"{PATHS[kind]}/no-id{path}")
    if (kind, path) == ("batch_scrape", "/errors"):
        assert answer.status_code == 404
    else:
        assert answer.status_code == 400
        assert "valid UUID" in answer.json()["error"]


@of_each_kind
def test_a_job_of_the_other_kind_is_none(api, kind: str) -> None:
    job = start(api, kind, site(api, 1))
    (other,) = set(PATHS) - {kind}
    assert api.http.get(f"{PATHS[other]}/{job.id}").status_code == 404


class TestEvents:
    @pytest.mark.rule("envelope-success", "envelope-type", "envelope-id", "event-job-started")
    @pytest.mark.rule("event-job-page", "event-job-completed")
    @of_each_kind
    def test_what_is_sent(self, sandbox, api, receiver, kind: str) -> None:  # noqa: F811
        hook = {"url": receiver.url, "headers": {"X-Key": "k"}, "metadata": {"run": "r1"}}
        urls = site(api, 2, fail_every=2)
        job = start(api, kind, urls, webhook=hook)
        body = job.settled()
        got = receiver.all()
        assert {headers["x-key"] for headers, _ in got} == {"k"}
        events = [event for _, event in got]
        assert len({event["webhookId"] for event in events}) == 5
        assert all(event["id"] == job.id and event["metadata"] == {"run": "r1"} for event in events)
        by_type: dict[str, list[dict[str, Any]]] = {}
        for event in events:
            by_type.setdefault(event["type"], []).append(event)
        assert set(by_type) == {f"{kind}.started", f"{kind}.page", f"{kind}.completed"}
        for name in ("started", "completed"):
            (event,) = by_type[f"{kind}.{name}"]
            assert (event["success"], event["data"]) == (True, [])
        good = [event["data"] for event in by_type[f"{kind}.page"] if event["success"]]
        assert sorted(map(json.dumps, good)) == sorted(json.dumps([document]) for document in body["data"])
        (bad,) = [event for event in by_type[f"{kind}.page"] if not event["success"]]
        assert bad["error"]

    @pytest.mark.rule("webhook-events")
    @each_row(
        "kind, asked, sent",
        [
            ("crawl", [], ["started", "page", "page", "completed"]),
            ("crawl", ["completed"], ["completed"]),
            ("batch_scrape", ["page", "started"], ["started", "page", "page"]),
            ("batch_scrape", ["failed"], []),
        ],
        before=reset_sandbox,
    )
    def test_only_the_requested_events(self, api, kind: str, asked: list[str], sent: list[str]) -> None:
        hook = {"url": "http://127.0.0.1:9/x", "events": asked}
        job = start(api, kind, site(api, 1), webhook=hook)
        job.settled()
        assert [event["type"] for event in received(api, job)] == [f"{kind}.{name}" for name in sent]

    @pytest.mark.rule("webhook-short-form")
    def test_short_form(self, api, receiver) -> None:  # noqa: F811
        start(api, "crawl", site(api, 1), webhook=receiver.url).settled()
        assert len(receiver.all()) == 4

    def test_many_events_reach_a_receiver_at_the_first_attempt(self, sandbox, api, receiver) -> None:  # noqa: F811
        batch(api, site(api, 150), webhook=receiver.url).settled()
        assert len(receiver.all()) == 153
        assert {len(delivery["attempts"]) for delivery in sandbox.control.deliveries()} == {1}

    @pytest.mark.rule("delivery-retries")
    def test_tried_four_times(self, sandbox, api, receiver) -> None:  # noqa: F811
        for _ in range(3):
            receiver.answers.put(500)
        hook = {"url": receiver.url, "events": ["completed"]}
        job = start(api, "crawl", site(api, 1), webhook=hook)
        job.settled()
        counts = []
        for wait in (60, 300, 900):
            counts.append(len(receiver.all()))
            sandbox.control.advance(wait)
        assert counts == [1, 1, 1]
        (last,) = receiver.all()
        assert last[1]["id"] == job.id
        (delivery,) = sandbox.control.deliveries()
        assert (delivery["status"], len(delivery["attempts"])) == ("delivered", 4)


class TestRestart:
    @pytest.mark.parametrize("kind", PATHS)
    def test_goes_on(self, tmp_path: Path, kind: str) -> None:
        state = str(tmp_path / "state.sqlite")
        with SandboxServer(state=state, page_seconds=1000) as server, opened(server) as api:
            urls = site(api, 9, fail_every=4)
            job = start(api, kind, urls, webhook="http://127.0.0.1:9/x")
            server.control.settle()
            server.control.advance(3500)
            done = job.poll()["completed"]
            assert 0 < done < 8
        with SandboxServer(state=state, page_seconds=1000) as server, opened(server) as api:
            job.api = api
            assert job.poll()["status"] == "scraping"
            assert job.poll()["completed"] == done
            server.control.advance(20_000)
            body = job.poll()
            assert (body["status"], body["completed"], body["creditsUsed"]) == ("completed", 8, 8)
            found = [document["metadata"]["sourceURL"] for document in body["data"]]
            assert found == [url for url in urls if url not in (urls[4], urls[8])]
            assert [event["type"] for event in received(api, job)].count(f"{kind}.started") == 1
            assert [event["type"] for event in received(api, job)].count(f"{kind}.page") == 10
            assert api.balance() == 100_000 - 8

    def test_a_finished_one_stays(self, tmp_path: Path) -> None:
        state = str(tmp_path / "state.sqlite")
        with SandboxServer(state=state) as server, opened(server) as api:
            job = crawl(api, "https://river.example/")
            before = job.settled()
        with SandboxServer(state=state) as server, opened(server) as api:
            job.api = api
            assert job.poll() == before


def test_thousands_of_pages(api) -> None:
    """A generated site costs neither memory nor a stored text."""
    urls = site(api, 2_999, fanout=100)
    job = crawl(api, sitemap="skip", limit=3_000)
    SandboxControl(api.sandbox.url, timeout=PATIENCE).settle()
    body = job.poll()
    assert (body["status"], body["completed"], body["creditsUsed"]) == ("completed", 3_000, 3_000)
    last = job.poll(skip=2_990, limit=1000)
    assert len(last["data"]) == 10
    assert set(urls) >= {document["metadata"]["sourceURL"] for document in last["data"]}
    assert last["data"][0]["markdown"].startswith("# Station ")
    assert api.sandbox.control.jobs("crawl")[0]["found"] == 3_000
