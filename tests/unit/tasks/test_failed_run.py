"""What the log says of the steps of an agent run."""

from __future__ import annotations

from typing import Any

import pytest

from airflow_provider_webdata.tasks.jobs.failed_run import _line

READ = "what the page says"


@pytest.mark.parametrize(
    ("event", "expected"),
    [
        (
            {"type": "tool_call.started", "toolName": "scrape", "parameters": {"url": "https://a.example"}},
            "tool_call.started scrape {'url': 'https://a.example'}",
        ),
        ({"type": "tool_call.finished", "toolName": "scrape", "result": {"text": READ}}, "tool_call.finished scrape"),
        ({"type": "message", "message": READ, "text": READ}, "message"),
        (
            {"type": "run.finished", "outcome": "failed", "error": {"code": "internal"}},
            "run.finished failed {'code': 'internal'}",
        ),
    ],
)  # fmt: skip
def test_a_step_tells_nothing_that_was_read(event: dict[str, Any], expected: str) -> None:
    assert _line(event) == expected
