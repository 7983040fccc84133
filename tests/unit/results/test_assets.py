"""What asset events carry."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk import Asset, AssetAlias
from airflow.sdk.execution_time.context import OutletEventAccessors

from airflow_provider_webdata.common.supported_airflow import PARTITION_EVENTS, airflow_release
from airflow_provider_webdata.results.assets import (
    annotate_outlets,
    check_partition_outlets,
    emit_partitions,
    partition_file,
    partition_paths,
)
from airflow_provider_webdata.results.columns import columns_of
from airflow_provider_webdata.results.errors import OutputError
from airflow_provider_webdata.results.files.partitions import NO_VALUE, PartitionedOutput

FACTS = {"path": "s3://b/x.jsonl", "count": 3, "creditsUsed": 2, "warning": None}


def test_each_outlet_is_told():
    pages, alias = Asset("s3://b/x.jsonl"), AssetAlias("pages")
    events = OutletEventAccessors()
    events[pages].extra["count"] = "the author's own"
    context = {"outlet_events": events, "task": SimpleNamespace(outlets=[pages, alias, "something else"])}
    assert annotate_outlets(context, FACTS) == 2
    assert events[pages].extra == {"path": "s3://b/x.jsonl", "count": "the author's own", "creditsUsed": 2}
    assert events[alias].extra == {"path": "s3://b/x.jsonl", "count": 3, "creditsUsed": 2}


def test_outside_of_a_task():
    assert annotate_outlets({}, FACTS) == 0


def event(files: list[dict[str, Any]] | None, path: str = "") -> SimpleNamespace:
    return SimpleNamespace(timestamp=len(path), extra={"path": path, "files": files})


def entry(host: str | None, path: str) -> dict[str, Any]:
    return {"path": path, "partition": {"host": host}, "count": 1, "bytes": 2}


FILES = [entry("a.example", "out/host=a.example/x.jsonl"), entry(None, "out/host=none/x.jsonl")]


def consumer(key: str | None, *events: SimpleNamespace) -> dict[str, Any]:
    return {
        "dag_run": SimpleNamespace(partition_key=key),
        "triggering_asset_events": {Asset("a"): [*events], Asset("b"): []},
    }


def test_a_run_finds_the_file_of_its_partition(tmp_path: Path) -> None:
    assert partition_file(consumer("a.example", event(FILES), event(FILES))) == FILES[0]["path"]
    assert partition_file(consumer(NO_VALUE, event(FILES))) == FILES[1]["path"]
    # An event of many files refers to their list.
    with PartitionedOutput(f"{tmp_path}/x.jsonl", columns_of("link"), "host", "2026-01-31") as output:
        output.write([{"url": "https://a.example/"}])
    assert partition_file(consumer("a.example", event(None, output.url))) == output.files[0]["path"]


def test_a_run_whose_partition_has_no_file_or_several() -> None:
    newer = event([entry("a.example", "later/host=a.example/x.jsonl")], "later")
    context = consumer("a.example", newer, event(FILES))
    assert partition_paths(context) == [FILES[0]["path"], "later/host=a.example/x.jsonl"]
    with pytest.raises(OutputError, match=r"has 2 files: use macros\.webdata\.partition_paths\(\)"):
        partition_file(context)
    with pytest.raises(OutputError, match="no event of a task with Output"):
        partition_file(consumer("b.example", event(FILES)))


@pytest.mark.skipif(
    airflow_release() < PARTITION_EVENTS, reason="tasks of this Airflow cannot emit partitions"
)
def test_each_file_is_a_partition_of_each_asset() -> None:
    pages, alias = Asset("s3://b/pages"), AssetAlias("pages")
    ti = SimpleNamespace(dag_id="d", run_id="r", task_id="t", map_index=-1)
    for files, listed in ((FILES, True), (FILES * 51, False)):
        events = OutletEventAccessors()
        context = {"outlet_events": events, "task": SimpleNamespace(outlets=[pages, alias]), "ti": ti}
        emit_partitions(context, {"path": "out/x.files.json", "count": 2, "files": files})
        assert events[pages].partition_keys == {"a.example", NO_VALUE}
        assert ("files" in events[pages].extra) is listed
        assert events[pages].extra["task_url"].endswith("/task?dag_id=d&run_id=r&task_id=t&map_index=-1")
        assert events[alias].extra == events[pages].extra


def test_a_task_without_an_asset_cannot_emit() -> None:
    context = {
        "outlet_events": OutletEventAccessors(),
        "task": SimpleNamespace(outlets=[AssetAlias("pages")]),
    }
    with pytest.raises(OutputError, match=r"set outlets=\[Asset"):
        check_partition_outlets(context)
