# SPDX-License-Identifier: Apache-2.0
"""The examples, as Airflow stores them."""

from __future__ import annotations

import importlib.util
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from airflow_provider_webdata.assets.monitor import monitor_asset
from tests.support.airflow_features import HAS_LOOPS

EXAMPLES = Path(__file__).parents[3] / "example_dags"


def load(name: str) -> Any:
    path = EXAMPLES / f"{name}.py"
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return getattr(module, path.stem)


def test_the_examples_survive_serialization():
    from airflow.serialization.serialized_objects import DagSerialization

    for path in EXAMPLES.rglob("webdata_*.py"):
        if path.parent.name in {"agents", "vectors"} and not find_spec("pydantic_ai"):
            continue
        if path.parent.name == "loops" and not HAS_LOOPS:
            continue
        module = load(path.relative_to(EXAMPLES).with_suffix("").as_posix())
        made = module() if callable(module) else module
        restored = DagSerialization.deserialize_dag(DagSerialization.serialize_dag(made))
        assert set(restored.task_dict) == set(made.task_dict), path
        assert restored.task_dict, path


def test_the_asset_of_the_monitor_that_another_example_declares():
    """The API server that receives a delivery registers its event, without a watcher."""
    (asset,) = load("webdata_on_check")().timetable.asset_condition.objects
    declared = load("webdata_wait")().get_task("keep_monitor").name
    assert (asset.uri, asset.watchers) == (monitor_asset(declared).uri, [])
