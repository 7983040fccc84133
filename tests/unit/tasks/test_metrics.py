"""Counters reach Airflow's metrics backend."""

from __future__ import annotations

import inspect
from types import SimpleNamespace

import pytest
from airflow.sdk.observability.stats import Stats

from airflow_provider_webdata.tasks.metrics import count


class Recorder:
    """A metrics backend that records its calls."""

    def __init__(self):
        self.counted = []

    def incr(self, stat, count=1, rate=1, *, tags=None):
        self.counted.append((stat, count, tags))


@pytest.fixture
def backend():
    from airflow.sdk._shared.observability.metrics.base_stats_logger import NoStatsLogger

    def use(factory):
        more = (
            {"export_legacy_names": True}
            if "export_legacy_names" in inspect.signature(Stats.initialize).parameters
            else {}
        )
        Stats.initialize(factory=factory, **more)

    recorder = Recorder()
    use(lambda: recorder)
    yield recorder
    use(NoStatsLogger)


def test_count(backend):
    """With the task's tags, and those of the operation; nothing is a number, too."""
    context = {"ti": SimpleNamespace(dag_id="d", task_id="t")}
    count("webdata.search.results", 3, context, source="web")
    count("webdata.credits_used", 0, {}, operation="search")
    count("webdata.credits_used", 1.6, {}, operation="search")
    assert backend.counted == [
        ("webdata.search.results", 3, {"dag_id": "d", "task_id": "t", "source": "web"}),
        ("webdata.credits_used", 0, {"operation": "search"}),
        ("webdata.credits_used", 2, {"operation": "search"}),
    ]
