# SPDX-License-Identifier: Apache-2.0
"""Check of the loads that read a task's file, before the task's call is billed.

It finds what the DAG alone shows: a column or a key that the file will not have, and a connection that does not exist.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from airflow.sdk import XComArg

from airflow_provider_webdata.common.arguments import as_list
from airflow_provider_webdata.common.coded_errors import ArgumentError, CodedError
from airflow_provider_webdata.common.literals import is_literal, is_template
from airflow_provider_webdata.options import Changes
from airflow_provider_webdata.results.columns import CHANGES, columns_of, kind_of_source
from airflow_provider_webdata.results.files.formats import format_of
from airflow_provider_webdata.results.pages.retrieval import KIND as DOCUMENTS
from airflow_provider_webdata.results.result_schema import ResultSchema
from airflow_provider_webdata.runs.publishing.requested_content import schema_columns

if TYPE_CHECKING:
    from collections.abc import Iterator

    from airflow_provider_webdata.results.columns import Column
    from airflow_provider_webdata.transfers.webdata_to_table import WebDataToTableOperator

_LOAD = "airflow_provider_webdata.runs.load:LoadRun"
"""What a `WebDataToTableOperator` runs."""

_PAGES = "document"
_KINDS = {
    "WebDataScrapeOperator": _PAGES,
    "WebDataParseOperator": _PAGES,
    "WebDataCrawlOperator": _PAGES,
    "WebDataBatchScrapeOperator": _PAGES,
    "WebDataIncrementalCrawlOperator": _PAGES,
    "WebDataMapOperator": "link",
    "WebDataSearchOperator": "search",
}
"""The kinds of the results that an operator always has."""


def check_downstream_loads(task: Any, path: str) -> None:
    """Check the loads directly downstream whose `path` is the file of a task.

    :param task: the executed operator.
    :param path: the file, after rendering.
    :raises ArgumentError: a load would refuse the file with any content; the message has the load's error.
    """
    for load in loads_of(task, path):
        _check(load, task, path)


def description_of(load: WebDataToTableOperator) -> dict[str, Any]:
    """Return what decides into which columns of which table a load writes, as the DAG file has it."""
    names = ("conn_id", "table", "kind", "key", "columns", "mode")
    return {**{name: getattr(load, name) for name in names}, "schema": schema_columns(load.result_schema)}


def _check(load: WebDataToTableOperator, task: Any, path: str) -> None:
    try:
        _check_changes(load, task)
        # Other workers may have other connections, and providers of databases.
        if _worker_of(load) == _worker_of(task) and is_literal(load.conn_id):
            _check_connection(load.conn_id)
        kind = _kind_of(task)
        if kind is not None and is_literal([load.key, load.columns]):
            _check_layout(load, task, path, kind)
    except CodedError as error:
        raise ArgumentError(
            f"Task {load.task_id!r} would refuse the file of this task: {error.text()}"
        ) from error


def _check_changes(load: WebDataToTableOperator, task: Any) -> None:
    changes = Changes.of(getattr(task, "changes", None))
    if load.mode == "replace" and changes is not None and changes.emit == "changed":
        raise ArgumentError(
            "mode='replace' would delete the rows of unchanged pages. Use mode='upsert', or set Changes(emit='all') in "
            "this task"
        )
    if (
        changes is not None
        and changes.on_unchanged == "skip"
        and load.trigger_rule == "all_success"
        and hasattr(_written(task), "expand_input")
    ):
        raise ArgumentError(
            "on_unchanged='skip' would skip the load if one of the instances of this task has nothing new. Use "
            "on_unchanged='empty', or set trigger_rule='none_failed_min_one_success' in the load"
        )


def _worker_of(task: Any) -> tuple[Any, ...]:
    return task.queue, task.executor, task.executor_config


def loads_of(task: Any, path: str) -> Iterator[WebDataToTableOperator]:
    """Yield the loads directly downstream whose `path` is the file of a task.

    :param task: the executed operator.
    :param path: the file, after rendering.
    """
    dag, written = task.get_dag(), _written(task)
    for task_id in sorted(getattr(written, "downstream_task_ids", ())):
        load = _unmapped(dag.task_dict.get(task_id))
        if getattr(load, "_run_path", "") != _LOAD:
            continue
        if _reads(load.path, written, path):
            yield load


def _reads(given: Any, written: Any, path: str) -> bool:
    """Return whether the `path` of a load, as the DAG file has it, is the file of a task."""
    task_id = written.task_id
    if any(operator.task_id == task_id for operator, _ in XComArg.iter_xcom_references(given)):
        return True
    texts = [given] if isinstance(given, str) else [one for one in given if isinstance(one, str)]
    pulls = [text for text in texts if "xcom_pull" in text]
    return any(text in (path, getattr(written, "save_to", None)) for text in texts) or any(
        f"{quote}{task_id}{quote}" in text for text in pulls for quote in "'\""
    )


def _written(task: Any) -> Any:
    """Return a task as the DAG file has it: the executed one is a copy with rendered fields."""
    dag = task.get_dag()
    return None if dag is None else dag.task_dict.get(task.task_id)


def _unmapped(task: Any) -> Any:
    """Return an instance of a load that is mapped over paths alone, and another task unchanged."""
    mapped = getattr(getattr(task, "expand_input", None), "value", None)
    if isinstance(mapped, Mapping) and [*mapped] == ["path"]:
        return task.unmap(mapped)
    return task


def _kind_of(task: Any) -> str | None:
    """Return the kind of a task's results; None if only the response shows it."""
    found = next((_KINDS[cls.__name__] for cls in type(task).__mro__ if cls.__name__ in _KINDS), None)
    if found is None or getattr(task, "documents", False):
        return found and DOCUMENTS
    returns = getattr(task, "returns", None)
    return kind_of_source(returns) if found == "search" and returns else found


def _check_connection(conn_id: str) -> None:
    from airflow_provider_webdata.results.tables.load import hook_of
    from airflow_provider_webdata.runs.load import connection_of

    hook_of(connection_of(conn_id))


def _check_layout(load: WebDataToTableOperator, task: Any, path: str, kind: str) -> None:
    from airflow_provider_webdata.results.tables.layout import STAMPS, TableName, layout, table_name

    columns = _columns(load, task, path, kind)
    known = {column.name for column in columns}
    key = None if load.key is None else as_list("key", load.key)
    chosen = as_list("columns", load.columns) if isinstance(load.columns, str) else load.columns
    wanted = [*(key or ()), *(chosen or ())]
    if format_of(path).columns is None and load.kind == "generic" and chosen is not None:
        # Any field of an item may be a column.
        return
    if any(
        name not in known and (name.startswith("json_") or name == "validation_errors") for name in wanted
    ):
        # The schema of the request may have it.
        return
    layout(
        TableName(None, "table") if is_template(load.table) else table_name(load.table),
        columns,
        key,
        chosen,
        replace=load.mode == "replace",
        stamps=STAMPS if load.mode == "append" else (),
    )


def _columns(load: WebDataToTableOperator, task: Any, path: str, kind: str) -> tuple[Column, ...]:
    """Return the columns that a load will find in the file of a task."""
    if format_of(path).columns is None:
        schema, kind = load.result_schema, load.kind or ("search" if kind.startswith("search") else kind)
    else:
        schema = getattr(task, "result_schema", None)
    columns = (
        columns_of(kind) if schema is None or kind == DOCUMENTS else ResultSchema.of(schema).columns(kind)
    )
    return (*columns, *(CHANGES if getattr(task, "changes", None) else ()))
