"""The examples, as Airflow stores them."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest

EXAMPLES = Path(__file__).parents[3] / "example_dags"


def load(name: str) -> Any:
    path = EXAMPLES / f"{name}.py"
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return getattr(module, path.stem)


@pytest.mark.parametrize(
    ("name", "tasks"),
    [
        (
            "webdata_wait",
            {
                *("search", "pages_to_watch", "keep_monitor", "run_check", "wait_for_check"),
                *("what_changed", "report_changes", "report_nothing"),
            },
        ),
        ("webdata_on_check", {"report"}),
        ("webdata_site_to_table", {"find_pages", "batches", "scrape", "report"}),
        ("webdata_incremental_search", {"search", "report"}),
        ("vectors/webdata_pgvector", {"make_table", "crawl", "load", "embed", "report"}),
        ("vectors/webdata_embeddings", {"crawl", "load", "to_embed", "embed", "store"}),
        (
            "webdata_operations",
            {
                *("enough_credits", "scrape", "crawl", "extract", "agent", "interact"),
                *("write_document", "parse", "report"),
            },
        ),
    ],
)
def test_example_survives_serialization(name, tasks):
    from airflow.serialization.serialized_objects import DagSerialization

    module = load(name)
    made = module() if callable(module) else module
    restored = DagSerialization.deserialize_dag(DagSerialization.serialize_dag(made))
    assert set(restored.task_dict) == tasks


def test_watcher_of_all_checks():
    """Not one monitor's: every check that completes makes one event."""
    from airflow.serialization.encoders import encode_trigger

    (asset,) = load("webdata_on_check")().timetable.asset_condition.objects
    (watcher,) = asset.watchers
    encoded = encode_trigger(watcher.trigger)
    assert encoded["classpath"] == "airflow_provider_webdata.triggers.events.WebDataWebhookEventTrigger"
    assert "monitor.check.completed" in str(encoded["kwargs"])
