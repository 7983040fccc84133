"""The log of the last steps of an agent run that did not complete."""

from __future__ import annotations

import logging
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import pytest

from airflow_provider_webdata.runs.failed_run import log_last_steps

READ = "text of the page"
STEPS: list[tuple[dict[str, Any], str]] = [
    (
        {"type": "tool_call.started", "toolName": "scrape", "parameters": {"url": "https://a.example"}},
        "tool_call.started scrape {'url': 'https://a.example'}",
    ),
    (
        {"type": "tool_call.finished", "toolName": "scrape", "result": {"text": READ}},
        "tool_call.finished scrape",
    ),
    ({"type": "message", "message": READ, "text": READ}, "message"),
    (
        {"type": "run.finished", "outcome": "failed", "error": {"code": "internal"}},
        "run.finished failed {'code': 'internal'}",
    ),
]


def test_a_step_tells_nothing_that_was_read(caplog: pytest.LogCaptureFixture) -> None:
    steps = [SimpleNamespace(to_wire=lambda event=event: event) for event, _ in STEPS]
    own = SimpleNamespace(agent_trace=lambda _: SimpleNamespace(events=steps))
    hook: Any = SimpleNamespace(optional=lambda: nullcontext(own))
    with caplog.at_level(logging.INFO):
        log_last_steps(hook, "job-1", logging.getLogger("task"))
    [message] = caplog.messages
    first, *lines = message.splitlines()
    assert first.startswith("The last 4 of 4 steps of agent run job-1")
    assert [line.strip() for line in lines] == [expected for _, expected in STEPS]
    assert READ not in message
