# SPDX-License-Identifier: Apache-2.0
"""What tasks measure reaches Airflow's metrics backend."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk.observability.stats import Stats

from airflow_provider_webdata.hooks.task_metrics import count, gauge
from tests.support.metrics import Recorder, recording


@pytest.fixture
def backend() -> Iterator[Recorder]:
    with recording(Stats) as recorder:
        yield recorder


def test_count(backend: Recorder) -> None:
    """With the task's tags, and those of the operation; nothing is a number, too."""
    context: Any = {"ti": SimpleNamespace(dag_id="d", task_id="t")}
    nothing: Any = {}
    count("webdata.search.results", 3, context, source="web")
    count("webdata.credits_used", 0, nothing, operation="search")
    count("webdata.credits_used", 1.6, nothing, operation="search")
    gauge("webdata.credits_remaining", 7, context)
    assert backend.calls == [
        ("count", "webdata.search.results", 3, {"dag_id": "d", "task_id": "t", "source": "web"}),
        ("count", "webdata.credits_used", 0, {"operation": "search"}),
        ("count", "webdata.credits_used", 2, {"operation": "search"}),
        ("gauge", "webdata.credits_remaining", 7, {"dag_id": "d", "task_id": "t"}),
    ]


def test_a_tag_adds_no_metric(backend: Recorder) -> None:
    nothing: Any = {}
    count("webdata.search.results", 3, nothing, source="web:1|c\nairflow.forged:1|c" + "x" * 200)
    ((_, _, _, tags),) = backend.calls
    assert tags["source"].startswith("web_1_c_airflow.forged_1_cxxx")
    assert len(tags["source"]) == 100
