"""Asset events of a task's outlets, through which downstream DAGs find a written file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow_provider_webdata.common.page_urls import page_url, task_page
from airflow_provider_webdata.common.storable import storable
from airflow_provider_webdata.results.errors import OutputError
from airflow_provider_webdata.results.files.partitions import NO_VALUE, partition_files

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

# Every partition's event has the same extra, so listing files in it needs quadratic space.
_MAX_FILES_IN_EXTRA = 100


def annotate_outlets(context: Mapping[str, Any], summary: Mapping[str, Any]) -> int:
    """Add a summary to the extra of each outlet's event, and return the number of outlets.

    Values set by the DAG's author take precedence.

    :param summary: JSON values by name; None is omitted.
    """
    known = {name: value for name, value in summary.items() if value is not None}
    outlets = [*_outlets(context, aliases=True)]
    for outlet in outlets:
        extra = context["outlet_events"][outlet].extra
        extra.update({name: storable(value) for name, value in known.items() if name not in extra})
    return len(outlets)


def link_outlets(context: Mapping[str, Any], page: str) -> None:
    """Link the event of each outlet to a page of the provider in Airflow's UI.

    :param page: path of the page.
    """
    annotate_outlets(context, {"page_url": page_url(page)})


def check_partition_outlets(context: Mapping[str, Any]) -> None:
    """Fail if partition events cannot be emitted.

    :raises OutputError: the task has no asset among its outlets.
    """
    if not [*_outlets(context)]:
        raise OutputError(
            "Output(emit_partitions=) emits asset events, but the task has no asset among its outlets; "
            "set outlets=[Asset(...)], or use partition_by"
        )


def emit_partitions(context: Mapping[str, Any], summary: Mapping[str, Any]) -> None:
    """Emit one event per partition of a written output, for each asset among the outlets.

    The extra has `task_url`, the task's page in Airflow's UI, and `files` if there are at most 100. With more files,
    `partition_file` reads the list.

    :param summary: of the output: `path` of the list, and `files`.
    """
    files = summary["files"]
    few = {} if len(files) > _MAX_FILES_IN_EXTRA else {"files": files}
    ti = context["ti"]
    url = page_url(task_page(ti.dag_id, ti.run_id, ti.task_id, ti.map_index))
    annotate_outlets(
        context, {**{name: summary[name] for name in summary if name != "files"}, **few, "task_url": url}
    )
    for outlet in _outlets(context):
        context["outlet_events"][outlet].add_partitions([partition_key(entry) for entry in files])


def partition_key(entry: Mapping[str, Any]) -> str:
    """Return the partition key of an entry in a list of files."""
    [value] = entry["partition"].values()
    return NO_VALUE if value is None else str(value)


def partition_file(context: Mapping[str, Any]) -> str:
    """Return the file path of the run's partition; in templates `macros.webdata.partition_file()`.

    :param context: context of a task in a DAG whose schedule is a `PartitionedAssetTimetable` on assets that are
        outlets of a task with `Output(emit_partitions=)`.
    :raises OutputError: the run has no such partition, or its events name different files.
    """
    found = partition_paths(context)
    if len(found) != 1:
        key = context["dag_run"].partition_key
        raise OutputError(
            f"The run's partition {key!r} has {len(found)} files: "
            + (
                "use macros.webdata.partition_paths(), which returns all paths"
                if found
                else "no event of a task with Output(emit_partitions=) started this run"
            )
        )
    return found[0]


def partition_paths(context: Mapping[str, Any]) -> list[str]:
    """Return the paths of all files of the run's partition, oldest event first.

    A partition has several files if several of its events started the run: from mapped tasks, repeated runs, or several
    assets.
    """
    key = context["dag_run"].partition_key
    paths: dict[str, None] = {}
    events = [event for of_asset in context["triggering_asset_events"].values() for event in of_asset]
    for event in sorted(events, key=lambda event: event.timestamp):
        extra = event.extra or {}
        files = extra.get("files")
        if files is None and extra.get("path"):
            files = partition_files(extra["path"])
        for entry in files or ():
            if partition_key(entry) == key:
                paths[entry["path"]] = None
    return [*paths]


def _outlets(context: Mapping[str, Any], *, aliases: bool = False) -> Iterator[Any]:
    task = context.get("task")
    if context.get("outlet_events") is None or task is None:
        return
    from airflow.sdk.definitions.asset import Asset, AssetAlias, AssetRef

    kinds = (Asset, AssetRef, AssetAlias) if aliases else (Asset, AssetRef)
    yield from (outlet for outlet in task.outlets or () if isinstance(outlet, kinds))
