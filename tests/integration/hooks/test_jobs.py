# SPDX-License-Identifier: Apache-2.0
"""Jobs through both hooks, over HTTP: starts, states, cancellations, and results read part by part."""

from __future__ import annotations

import inspect
import json
import sys
from typing import Any

import pytest

from airflow_provider_webdata.api import errors, models
from airflow_provider_webdata.api.endpoints import JOBS
from airflow_provider_webdata.api.servers import HOSTED
from airflow_provider_webdata.common.job_kinds import ALL_JOB_KINDS
from airflow_provider_webdata.hooks.operations.jobs import DocumentPart
from tests.integration.hooks.conftest import one_hook
from tests.support.fault_server import FaultServer, answer, hang_up
from tests.support.waiting import settled

JOB = "7f3c1a52-9d0e-4b7a-8f65-0123456789ab"
OTHER = "11111111-9d0e-4b7a-8f65-0123456789ab"
PATHS = {"crawl": f"/v2/crawl/{JOB}", "batch_scrape": f"/v2/batch/scrape/{JOB}"}


async def first(parts: Any) -> DocumentPart:
    return await anext(parts) if inspect.isasyncgen(parts) else next(parts)


def part(*urls: str, status: str = "completed", **fields: Any) -> dict[str, Any]:
    data = [{"markdown": f"# {url}", "metadata": {"sourceURL": url, "og:odd": ["x"]}} for url in urls]
    return {
        "success": True,
        "status": status,
        "total": 9,
        "completed": 8,
        "creditsUsed": 8,
        "data": data,
        **fields,
    }


def calls_of(server: FaultServer) -> list[tuple[str, str]]:
    return [(request.method, request.target) for request in server.requests]


def urls(parts: list[DocumentPart]) -> list[list[str]]:
    return [[document["metadata"]["sourceURL"] for document in one.documents] for one in parts]


async def test_each_start(serve: Any) -> None:
    started = {"success": True, "id": JOB, "url": f"https://x/v2/crawl/{JOB}", "invalidURLs": ["x"]}
    server, hook = serve(started)
    crawl = await settled(
        hook.start_crawl(url="https://a.example", limit=5, extra_body={"new": 1}, idempotency_key=JOB)
    )
    assert (crawl.id, crawl.invalid_urls) == (JOB, ["x"])
    batch = models.BatchScrapeRequest(urls=["https://a.example"], ignore_invalid_urls=True)
    assert (await settled(hook.start_batch_scrape(batch, extra_body={"new": 2}))).id == JOB
    assert (await settled(hook.start_agent(prompt="p", extra_body={"new": 3}))).id == JOB
    assert calls_of(server) == [("POST", f"/v2/{path}") for path in ("crawl", "batch/scrape", "agent")]
    assert [json.loads(request.body) for request in server.requests] == [
        {"url": "https://a.example", "limit": 5, "new": 1},
        {"urls": ["https://a.example"], "ignoreInvalidURLs": True, "new": 2},
        {"prompt": "p", "new": 3},
    ]
    assert [request.headers.get("x-idempotency-key") for request in server.requests] == [
        JOB,
        None,
        None,
    ]
    await settled(hook.close())


@pytest.mark.rule("idempotency-key-used")
async def test_a_used_key_is_a_separate_error(serve: Any) -> None:
    server, hook = serve(hang_up, answer(409, '{"success": false, "error": "Idempotency key already used"}'))
    crawl = {"url": "https://a.example", "limit": 5}
    with pytest.raises(errors.TransportError, match="may have processed"):
        await settled(hook.start_crawl(crawl, idempotency_key=JOB))
    with pytest.raises(errors.IdempotencyKeyUsedError):
        await settled(hook.start_crawl(crawl, idempotency_key=JOB))
    assert len(server.requests) == 2
    await settled(hook.close())


@pytest.mark.rule("batch-status", "job-status", "parts-query")
async def test_the_state_of_each_kind(serve: Any) -> None:
    running = {"success": True, "status": "processing", "data": []}
    cases: list[tuple[Any, dict[str, Any], type[Any], str]] = [
        ("crawl", part("a"), models.JobStatus, f"/v2/crawl/{JOB}?limit=1&skip=2"),
        ("batch_scrape", part("a"), models.JobStatus, f"/v2/batch/scrape/{JOB}?limit=1&skip=2"),
        # Its result is one object without parts.
        ("agent", running, models.AgentStatus, f"/v2/agent/{JOB}"),
    ]
    server, hook = serve(*(body for _, body, _, _ in cases))
    for kind, body, model, _ in cases:
        status = await settled(hook.job_status(kind, JOB, limit=1, skip=2))
        assert type(status) is model
        assert status.status == body["status"]
    assert calls_of(server) == [("GET", target) for _, _, _, target in cases]
    await settled(hook.close())


@pytest.mark.rule("ok-but-failed-job", "job-failed")
async def test_a_failed_job_is_a_state_and_no_error(serve: Any) -> None:
    _, hook = serve({"success": False, "status": "failed", "error": "queue full", "data": []})
    for kind in ("crawl", "batch_scrape"):
        status = await settled(hook.job_status(kind, JOB))
        assert (status.status, status.error) == ("failed", "queue full"), kind
    await settled(hook.close())


@pytest.mark.rule("job-cancel", "job-cancel-ended", "agent-cancel", "agent-cancel-ended")
async def test_cancel(serve: Any) -> None:
    over = answer(409, '{"error": "already finished"}')
    unknown = answer(404, '{"error": "Job not found"}')
    kinds: dict[Any, str] = {**PATHS, "agent": f"/v2/agent/{JOB}"}
    server, hook = serve(*[{"status": "cancelled"}, over, unknown, unknown] * len(kinds))
    for kind in kinds:
        assert await settled(hook.cancel_job(kind, JOB)) is True
        assert await settled(hook.cancel_job(kind, JOB)) is False
        with pytest.raises(errors.NotFoundError):
            await settled(hook.cancel_job(kind, JOB))
    # An unknown job has not ended, as far as the service shows.
    methods = ("DELETE", "DELETE", "DELETE", "GET")
    assert [(method, target.partition("?")[0]) for method, target in calls_of(server)] == [
        (method, target) for target in kinds.values() for method in methods
    ]
    await settled(hook.close())


@pytest.mark.parametrize("refusal", [(400, "Invalid request: already finished"), (404, "No such job")])
async def test_a_job_that_has_ended_needs_no_cancel(serve: Any, refusal: tuple[int, str]) -> None:
    """Servers refuse with several statuses, also for other reasons: the state of the job decides."""
    refused = answer(refusal[0], json.dumps({"success": False, "error": refusal[1]}))
    error = errors.BadRequestError if refusal[0] == 400 else errors.NotFoundError
    running, unknown = {"success": True, "status": "processing"}, answer(404, '{"error": "No such job"}')
    for kind in (*PATHS, "agent"):
        server, hook = serve(refused, {"success": True, "status": "completed"})
        assert await settled(hook.cancel_job(kind, JOB)) is False
        assert [method for method, _ in calls_of(server)] == ["DELETE", "GET"]
        await settled(hook.close())
        for state in (running, unknown):
            _, hook = serve(refused, state)
            with pytest.raises(error, match=refusal[1]):
                await settled(hook.cancel_job(kind, JOB))
            await settled(hook.close())


async def test_what_a_kind_cannot_do_is_not_sent(serve: Any) -> None:
    server, hook = serve({})
    with pytest.raises(ValueError, match="no list of failed pages"):
        await settled(hook.job_errors("agent", JOB))
    with pytest.raises(ValueError, match="no documents"):
        await settled(hook.iter_job_documents("agent", JOB))
    with pytest.raises(ValueError, match="kind must be one of crawl, batch_scrape, agent"):
        await settled(hook.job_status("scrape", JOB))
    with pytest.raises(errors.InvalidRequestError, match="job_id"):
        await settled(hook.job_status("crawl", " "))
    assert server.requests == []


@pytest.mark.rule("job-errors")
async def test_failed_pages(serve: Any) -> None:
    body = {
        "errors": [{"id": "p", "url": "u", "error": "no", "code": "EXTERNAL_LINK"}],
        "robotsBlocked": ["r"],
    }
    server, hook = serve(body)
    kinds: dict[Any, str] = dict(PATHS)
    for kind in kinds:
        assert (await settled(hook.job_errors(kind, JOB))).to_wire() == body
    assert calls_of(server) == [("GET", f"{path}/errors") for path in kinds.values()]
    await settled(hook.close())


@pytest.mark.rule("crawl-active", "crawl-preview")
async def test_running_crawls_and_a_preview(serve: Any) -> None:
    server, hook = serve(
        {"success": True, "crawls": [{"id": JOB, "created_at": "now"}]},
        {"success": True, "data": {"limit": 5, "maxDepth": 2}, "warning": "w"},
    )
    (crawl,) = (await settled(hook.active_crawls())).crawls
    assert (crawl.id, crawl.created_at) == (JOB, "now")
    params = await settled(hook.crawl_params(url="https://a.example", prompt="the blog"))
    assert (params.data.limit, params.data.max_depth, params.warning) == (5, 2, "w")
    assert calls_of(server) == [("GET", "/v2/crawl/active"), ("POST", "/v2/crawl/params-preview")]
    await settled(hook.close())


@pytest.mark.rule("parts-next")
@pytest.mark.parametrize(
    ("kind", "host"),
    [
        ("crawl", "https://evil.example"),
        ("batch_scrape", "http://10.0.0.1:3002"),
        ("crawl", "https://proxy.example/prefix"),
        ("crawl", ""),
    ],
    ids=["other", "private", "prefix", "none"],
)
async def test_documents_part_by_part(serve: Any, kind: Any, host: str) -> None:
    """`next` may name any host; the requests go to the connection's host."""
    path = PATHS[kind]
    server, hook = serve(
        part("a", "b", next=f"{host}{path}?skip=2"),
        part("c", next=f"{host}{path}?skip=3&limit=5"),
        part("d", next=None),
    )
    parts = await settled(hook.iter_job_documents(kind, JOB))
    assert urls(parts) == [["a", "b"], ["c"], ["d"]]
    assert [one.next_cursor for one in parts] == [f"{path}?skip=2", f"{path}?skip=3&limit=5", None]
    assert {(one.status, one.completed, one.total, one.credits_used) for one in parts} == {
        ("completed", 8, 9, 8)
    }
    assert parts[0].documents[0] == {"markdown": "# a", "metadata": {"sourceURL": "a", "og:odd": ["x"]}}
    assert calls_of(server) == [
        ("GET", path),
        ("GET", f"{path}?skip=2"),
        ("GET", f"{path}?skip=3&limit=5"),
    ]
    await settled(hook.close())


@pytest.mark.rule("parts-next")
async def test_reading_is_lazy_and_can_continue_elsewhere(serve: Any, kind_of_hook: Any) -> None:
    path = PATHS["crawl"]
    server, hook = serve(
        part("a", next=f"https://x{path}?skip=1"), part("b", next=f"https://x{path}?skip=2"), part("c")
    )
    reading = hook.iter_job_documents("crawl", JOB)
    assert server.requests == []
    one = await first(reading)
    assert len(server.requests) == 1
    await settled(hook.close())

    other = kind_of_hook()
    rest = await settled(other.iter_job_documents("crawl", JOB, start=one.next_cursor))
    assert urls(rest) == [["b"], ["c"]]
    assert calls_of(server) == [("GET", path), ("GET", f"{path}?skip=1"), ("GET", f"{path}?skip=2")]
    await settled(other.close())


async def test_only_one_part_is_held(serve: Any) -> None:
    """While the next part is requested, nothing but the caller refers to the documents of the former ones."""
    path = PATHS["crawl"]
    held: list[Any] = []
    references: list[list[int]] = []

    def noting(fields: dict[str, Any]) -> Any:
        send = answer(body=json.dumps(fields))

        def respond(connection: Any) -> None:
            # References of the list, of the loop, and of the call itself do not count.
            [alone] = [sys.getrefcount(one) for one in [[]]]
            references.append([sys.getrefcount(documents) - alone for documents in held])
            send(connection)

        return respond

    parts = (part("a", next=f"{path}?skip=1"), part("b", next=f"{path}?skip=2"), part("c"))
    _, hook = serve(*map(noting, parts))
    reading = hook.iter_job_documents("crawl", JOB)
    for _ in parts:
        one = await first(reading)
        held.append(one.documents)
        del one
    assert references == [[], [0], [0, 0]]
    await settled(hook.close())


@pytest.mark.rule("parts-while-running")
@one_hook
async def test_a_running_job_is_not_read(serve: Any) -> None:
    """While it runs, the same link can lead to an empty part again and again."""
    states = ("scraping", "brand-new")
    server, hook = serve(
        *(part("a", status=state, next=f"https://x{PATHS['crawl']}?skip=1") for state in states)
    )
    for state in states:
        with pytest.raises(errors.UnfinishedJobError, match=f"{JOB} is {state}") as caught:
            await settled(hook.iter_job_documents("crawl", JOB))
        assert caught.value.verdict == "later"
    assert len(server.requests) == len(states)
    await settled(hook.close())


@pytest.mark.rule("job-cancelled", "parts-next")
@pytest.mark.parametrize(
    ("body", "found"),
    [
        (part("a", status="cancelled"), [["a"]]),
        (part(status="failed", success=False, error="queue full"), [[]]),
        (part("a", status="brand-new", completedAt="2026-08-21T10:00:00Z"), [["a"]]),
        ({"status": "completed"}, [[]]),
        ({"status": "completed", "data": None, "next": ""}, [[]]),
    ],
    ids=["cancelled", "failed", "unknown state", "no data", "null"],
)
@one_hook
async def test_jobs_that_are_over_are_read_to_the_end(serve: Any, body: Any, found: Any) -> None:
    _, hook = serve(body)
    assert urls(await settled(hook.iter_job_documents("crawl", JOB))) == found
    await settled(hook.close())


@pytest.mark.rule("parts-end")
@pytest.mark.parametrize(
    ("kind", "status", "fields"),
    [
        ("crawl", "cancelled", {"total": 20, "completed": 1, "creditsUsed": -1}),
        ("batch_scrape", "failed", {"success": False, "error": "queue full"}),
        ("crawl", "completed", {"total": 1, "completed": 1}),
    ],
    ids=["cancelled", "failed", "older server with failed pages"],
)
async def test_next_that_stays_after_the_end(serve: Any, kind: Any, status: str, fields: Any) -> None:
    """The last part has no documents and names itself, as a self-hosted server answers after a cancel."""
    path = PATHS[kind]
    last = f"https://x{path}?skip=1"
    server, hook = serve(
        part("a", status=status, next=last, **fields), part(status=status, next=last, **fields)
    )
    parts = await settled(hook.iter_job_documents(kind, JOB))
    assert (urls(parts), [one.next_cursor for one in parts]) == ([["a"], []], [f"{path}?skip=1", None])
    assert calls_of(server) == [("GET", path), ("GET", f"{path}?skip=1")]
    await settled(hook.close())


@pytest.mark.rule("parts-end")
@pytest.mark.parametrize(
    ("found", "parts"),
    [
        ([["a"], ["b"]], [("a", "1"), ("b", "1")]),
        ([["a"], []], [("a", "1"), ("", "2"), ("c", "")]),
        ([[]], [("", "0"), ("c", "")]),
    ],
    ids=["documents and its own cursor", "no documents", "nothing at all"],
)
@one_hook
async def test_the_last_part_whatever_its_next(serve: Any, found: Any, parts: Any) -> None:
    path = PATHS["crawl"]
    server, hook = serve(
        *(part(*url, status="cancelled", next=skip and f"https://x{path}?skip={skip}") for url, skip in parts)
    )
    assert urls(await settled(hook.iter_job_documents("crawl", JOB))) == found
    assert len(server.requests) == len(found)
    await settled(hook.close())


@pytest.mark.rule("parts-end")
@pytest.mark.parametrize(
    ("parts", "error", "words"),
    [
        ([("a", "1"), ("b", "2"), ("c", "1")], errors.InvalidResponseError, "form a loop"),
        ([("a", "1")] * 2, errors.UnsupportedError, "a gateway on the way drops the query"),
    ],
    ids=["circle", "same part"],
)
@one_hook
async def test_links_that_lead_to_the_same_documents_again(
    serve: Any, parts: Any, error: type[Exception], words: str
) -> None:
    server, hook = serve(*(part(url, next=f"https://x{PATHS['crawl']}?skip={skip}") for url, skip in parts))
    reading = hook.iter_job_documents("crawl", JOB)
    for url, _ in parts[:-1]:
        assert urls([await first(reading)]) == [[url]]
    with pytest.raises(error, match=words):
        await first(reading)
    assert len(server.requests) == len(parts)
    await settled(hook.close())


@pytest.mark.rule("next-host")
@pytest.mark.parametrize(
    ("link", "reason"),
    [
        (f"https://x/v2/crawl/{OTHER}?skip=2", "another resource"),
        ("https://x/v2/team/credit-usage", "another resource"),
        (f"https://x/v2/monitor?id={JOB}", "another resource"),
        ("https://x/", "no path below /v2/"),
        (f"https://x/v2/crawl/../{JOB}", "no path below /v2/"),
        ("http://[", "no path below /v2/"),
    ],
    ids=["other job", "other path", "query", "root", "dots", "broken"],
)
@one_hook
async def test_an_invalid_next_link_is_an_error(serve: Any, link: str, reason: str) -> None:
    server, hook = serve(part("a", next=f"https://x{PATHS['crawl']}?skip=1"), part("b", next=link))
    reading = hook.iter_job_documents("crawl", JOB)
    assert urls([await first(reading)]) == [["a"]]
    with pytest.raises(errors.InvalidResponseError, match=reason):
        await first(reading)
    assert len(server.requests) == 2
    await settled(hook.close())


async def test_an_error_on_a_later_part_is_raised(serve: Any) -> None:
    _, hook = serve(part("a", next=f"{PATHS['crawl']}?skip=1"), answer(404, '{"error": "Job expired"}'))
    reading = hook.iter_job_documents("crawl", JOB)
    await first(reading)
    with pytest.raises(errors.NotFoundError, match="Job expired"):
        await first(reading)
    await settled(hook.close())


async def test_a_lost_part_is_requested_again(serve: Any) -> None:
    server, hook = serve(part("a", next=f"{PATHS['crawl']}?skip=1"), hang_up, part("b"))
    assert urls(await settled(hook.iter_job_documents("crawl", JOB))) == [["a"], ["b"]]
    assert len(server.requests) == 3
    await settled(hook.close())


@one_hook
async def test_a_cursor_of_another_job_is_refused(serve: Any) -> None:
    server, hook = serve(part("a"))
    for start in (f"/v2/crawl/{OTHER}?skip=1", "elsewhere", "", f"/v2/monitor?id={JOB}"):
        with pytest.raises(ValueError, match="start must be a next_cursor of crawl"):
            await settled(hook.iter_job_documents("crawl", JOB, start=start))
    assert server.requests == []


def test_the_kinds_of_jobs() -> None:
    assert {*JOBS} == {*ALL_JOB_KINDS}
    for calls in JOBS.values():
        assert calls.status.judged_by_status
        for one in (calls.documents, calls.cancel, calls.errors):
            assert one is None or one.is_repeatable(HOSTED)
