"""A span for each call where spans are recorded: what it tells, and what it keeps to itself."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from airflow_provider_webdata.api import endpoints
from airflow_provider_webdata.api.client import ClientConfig, WebDataClient
from airflow_provider_webdata.api.errors import WebDataError
from tests.support.fault_server import API_KEY, Caller, answer, hang_up

ANSWERED = {"success": True, "id": "i", "creditsUsed": 3, "data": {"web": []}}
SCRAPED = {"success": True, "data": {"markdown": "x", "metadata": {"creditsUsed": 5}}}
TELLING = "of-nobodys-business"
LIMITED = json.dumps({"error": f"slow down {TELLING}", "retry_after_seconds": 0})


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
    assert TELLING not in shown
    assert API_KEY not in shown
    assert "http:" not in shown
    return {
        **(span.attributes or {}),
        "name": span.name,
        "failed": span.status.status_code is StatusCode.ERROR,
    }


async def test_repeated(spans: InMemorySpanExporter, serve: Callable[..., Any], caller: Caller) -> None:
    """One for all attempts, with the status of the last."""
    server = serve(answer(429, LIMITED), answer(200, json.dumps(ANSWERED)))
    await caller.call(server.url, endpoints.SEARCH, extra_body={"query": TELLING})
    assert facts(spans) == {
        "name": "webdata search",
        "webdata.operation": "search",
        "http.request.method": "POST",
        "webdata.attempts": 2,
        "http.response.status_code": 200,
        "webdata.credits": 3,
        "failed": False,
    }


async def test_credits_of_a_page(
    spans: InMemorySpanExporter, serve: Callable[..., Any], caller: Caller
) -> None:
    await caller.call(
        serve(answer(200, json.dumps(SCRAPED))).url,
        endpoints.SCRAPE,
        extra_body={"url": f"https://a.example/?k={TELLING}"},
    )
    assert facts(spans)["webdata.credits"] == 5


async def test_refused(spans: InMemorySpanExporter, serve: Callable[..., Any], caller: Caller) -> None:
    server = serve(answer(401, json.dumps({"error": f"no such key {TELLING}"})))
    with pytest.raises(WebDataError):
        await caller.call(server.url, endpoints.CRAWL_STATUS, path={"job_id": "j"}, query={"limit": TELLING})
    told = facts(spans)
    assert (told["error.type"], told["http.response.status_code"]) == ("AuthenticationError", 401)
    assert (told["failed"], told["webdata.attempts"]) == (True, 1)
    assert "webdata.credits" not in told


async def test_no_answer(spans: InMemorySpanExporter, serve: Callable[..., Any], caller: Caller) -> None:
    """The status of an attempt before is not that of the last."""
    server = serve(answer(429, LIMITED), hang_up)
    with pytest.raises(WebDataError):
        await caller.call(server.url, endpoints.SEARCH, extra_body={"query": "x"})
    told = facts(spans)
    assert (told["error.type"], told["webdata.attempts"]) == ("TransportError", 2)
    assert "http.response.status_code" not in told


def test_off() -> None:
    """Where nothing records, a client has no tracer at all."""
    with WebDataClient(ClientConfig("https://service.example", API_KEY)) as client:
        assert client._tracer is None


CODE = """
import json, sys
from airflow_provider_webdata.api import spans
before = "opentelemetry.trace" in sys.modules
spans.active_tracer()
still = "opentelemetry.trace" in sys.modules
from airflow import settings
settings.initialize()
print(json.dumps([before, still, spans.active_tracer() is not None]))
"""


@pytest.mark.parametrize("on", [True, False])
def test_as_airflow_sets_it_up(tmp_path: Any, on: bool) -> None:
    """OpenTelemetry is not imported for it; where `[traces] otel_on` says so, Airflow has."""
    environ = {
        **os.environ,
        "AIRFLOW_HOME": str(tmp_path),
        "AIRFLOW__TRACES__OTEL_ON": str(on),
        "OTEL_TRACES_EXPORTER": "console",
    }
    done = subprocess.run(
        [sys.executable, "-c", CODE], env=environ, check=True, capture_output=True, text=True
    )
    assert json.loads(done.stdout.strip().splitlines()[-1]) == [False, False, on]


async def test_below_the_task(spans: InMemorySpanExporter, serve: Callable[..., Any], caller: Caller) -> None:
    """The current span, which is Airflow's of the task, is the parent."""
    with trace.get_tracer_provider().get_tracer("airflow").start_as_current_span("worker.task") as above:
        await caller.call(
            serve(answer(200, json.dumps(ANSWERED))).url, endpoints.SEARCH, extra_body={"query": "x"}
        )
    call, _ = spans.get_finished_spans()
    assert call.parent is not None
    assert call.parent.span_id == above.get_span_context().span_id
