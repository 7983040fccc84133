"""The span of a call, where spans are recorded: its attributes, and no secrets."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from airflow_provider_webdata.api import endpoints
from airflow_provider_webdata.api.errors import WebDataError
from airflow_provider_webdata.api.spans import active_tracer
from tests.support.fault_server import API_KEY, Caller, answer, hang_up
from tests.support.warm import Warm, airflow_environ

ANSWERED = {"success": True, "id": "i", "creditsUsed": 3, "data": {"web": []}}
SCRAPED = {"success": True, "data": {"markdown": "x", "metadata": {"creditsUsed": 5}}}
PRIVATE = "of-nobodys-business"
LIMITED = json.dumps({"error": f"slow down {PRIVATE}", "retry_after_seconds": 0})


@pytest.fixture
def spans(monkeypatch: pytest.MonkeyPatch) -> InMemorySpanExporter:
    """Record spans."""
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(trace, "get_tracer_provider", lambda: provider)
    return exporter


def facts(spans: InMemorySpanExporter) -> dict[str, Any]:
    (span,) = spans.get_finished_spans()
    assert span.kind is SpanKind.CLIENT
    assert not span.events
    assert span.status.description is None
    shown = span.to_json()
    assert PRIVATE not in shown
    assert API_KEY not in shown
    assert "http:" not in shown
    return {
        **(span.attributes or {}),
        "name": span.name,
        "failed": span.status.status_code is StatusCode.ERROR,
    }


async def test_repeated(spans: InMemorySpanExporter, serve: Callable[..., Any], caller: Caller) -> None:
    """One span for all attempts, with the status of the last."""
    server = serve(answer(429, LIMITED), answer(200, json.dumps(ANSWERED)))
    await caller.call(server.url, endpoints.SEARCH, extra_body={"query": PRIVATE})
    assert facts(spans) == {
        "name": "webdata search",
        "webdata.operation": "search",
        "http.request.method": "POST",
        "webdata.attempts": 2,
        "http.response.status_code": 200,
        "webdata.credits": 3,
        "failed": False,
    }


async def test_credits_of_a_page(spans: InMemorySpanExporter, serve: Callable[..., Any]) -> None:
    await Caller("sync").call(
        serve(answer(200, json.dumps(SCRAPED))).url,
        endpoints.SCRAPE,
        extra_body={"url": f"https://a.example/?k={PRIVATE}"},
    )
    assert facts(spans)["webdata.credits"] == 5


async def test_refused(spans: InMemorySpanExporter, serve: Callable[..., Any], caller: Caller) -> None:
    server = serve(answer(401, json.dumps({"error": f"no such key {PRIVATE}"})))
    with pytest.raises(WebDataError):
        await caller.call(server.url, endpoints.CRAWL_STATUS, path={"job_id": "j"}, query={"limit": PRIVATE})
    found = facts(spans)
    assert (found["error.type"], found["http.response.status_code"]) == ("AuthenticationError", 401)
    assert (found["failed"], found["webdata.attempts"]) == (True, 1)
    assert "webdata.credits" not in found


async def test_no_answer(spans: InMemorySpanExporter, serve: Callable[..., Any]) -> None:
    """The status of an earlier attempt is not that of the last."""
    server = serve(answer(429, LIMITED), hang_up)
    with pytest.raises(WebDataError):
        await Caller("sync").call(server.url, endpoints.SEARCH, extra_body={"query": "x"})
    found = facts(spans)
    assert (found["error.type"], found["webdata.attempts"]) == ("TransportError", 2)
    assert "http.response.status_code" not in found


async def test_the_current_span_is_the_parent(spans: InMemorySpanExporter, serve: Callable[..., Any]) -> None:
    """Within a task, that is Airflow's span of the task."""
    with trace.get_tracer_provider().get_tracer("airflow").start_as_current_span("worker.task") as above:
        await Caller("sync").call(
            serve(answer(200, json.dumps(ANSWERED))).url, endpoints.SEARCH, extra_body={"query": "x"}
        )
    call, _ = spans.get_finished_spans()
    assert call.parent is not None
    assert call.parent.span_id == above.get_span_context().span_id


def test_there_is_no_tracer_without_a_provider() -> None:
    assert active_tracer() is None


CODE = """
from airflow import settings
settings.initialize()
from airflow_provider_webdata.api.spans import active_tracer
print(active_tracer() is not None)
"""


@pytest.mark.parametrize("on", [True, False])
def test_airflow_turns_spans_on(tmp_path: Path, warm: Warm, on: bool) -> None:
    """By `[traces] otel_on`."""
    environ = airflow_environ(tmp_path, AIRFLOW__TRACES__OTEL_ON=str(on), OTEL_TRACES_EXPORTER="console")
    done = warm.run(["-c", CODE], env=environ)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip().splitlines()[-1] == str(on)
