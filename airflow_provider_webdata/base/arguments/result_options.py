# SPDX-License-Identifier: Apache-2.0
"""Checks of the arguments that say where results go, and what they must be."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from airflow_provider_webdata.common.arguments import number
from airflow_provider_webdata.common.coded_errors import ArgumentError
from airflow_provider_webdata.common.literals import is_literal
from airflow_provider_webdata.options import Changes, Quality, one_of

if TYPE_CHECKING:
    from airflow.sdk import BaseOperator

_OF_RESULTS = ("save_to", "media_to", "changes", "result_schema", "result_rows", "quality")
_OTHERS = ("wait_for_completion", "on_invalid_result", "credit_limit")


def check_result_options(task: BaseOperator) -> None:
    """Check these arguments of a task that has some of them.

    :param task: operator or sensor. Before its arguments are rendered, only literal ones are checked.
    :raises ArgumentError: names the argument, the reason, and what to change.
    """
    given = {
        name: value for name in (*_OF_RESULTS, *_OTHERS) if (value := getattr(task, name, None)) is not None
    }
    if not given.get("wait_for_completion", True):
        asked = [name for name in _OF_RESULTS if name in given]
        if given.get("on_invalid_result") == "fail":
            asked.append("on_invalid_result")
        for name in asked:
            # The sensor does not compare with earlier runs.
            sensor = "" if name == "changes" else f", or omit {name}= and give it to WebDataJobSensor"
            raise ArgumentError(
                f"{type(task).__name__} {task.task_id!r}: {name}= has no effect with wait_for_completion=False, "
                f"because the task publishes no results; remove wait_for_completion=False{sensor}"
            )
    for name in ("save_to", "media_to"):
        if is_literal(path := given.get(name)) and not isinstance(path, (str, type(None))):
            raise ArgumentError(f"{name} must be a path or URL as text (given: {path!r})")
    _check_paths(given)
    _check_max_media(getattr(task, "max_media_mb", 1))
    _check_schema(given)
    if is_literal(limit := given.get("credit_limit")):
        number("credit_limit", limit)
    if (quality := Quality.of(given.get("quality"))) is not None:
        quality.check_task(task)


def _check_paths(given: Mapping[str, Any]) -> None:
    changes = Changes.of(given.get("changes"))
    literal = {
        name: path
        for name, path in (*given.items(), ("changes", changes and changes.folder))
        if name in ("save_to", "media_to", "changes") and isinstance(path, str) and is_literal(path)
    }
    if not literal:
        return
    from airflow_provider_webdata.results.files import paths
    from airflow_provider_webdata.results.files.formats import format_of

    for name, path in literal.items():
        paths.check_path(name, path, starred=name == "save_to")
    if "save_to" in literal:
        format_of(literal["save_to"])


def check_file_is_kept(path: Any, changes: Any, *, is_mapped: bool) -> None:
    """Check while the DAG file is parsed that no other task instance or run replaces a file.

    :param path: `save_to`, as the DAG file has it.
    :param changes: `changes`, as the DAG file has it.
    :param is_mapped: the task has several instances in a run.
    :raises ArgumentError: the path is literal, and one file for all of them.
    """
    if not isinstance(path, str) or not is_literal(path) or "*" in path:
        return
    from airflow_provider_webdata.results.files.paths import replaced_changes, shared_file

    if is_mapped:
        raise ArgumentError(shared_file(path))
    # A text is the folder, and emits changes.
    if isinstance(changes, str) or (isinstance(changes, Changes) and changes.emit == "changed"):
        raise ArgumentError(replaced_changes(path))


def _check_max_media(given: Any) -> None:
    if isinstance(given, bool) or not isinstance(given, (int, float)) or not 0 < given < float("inf"):
        raise ArgumentError(f"max_media_mb must be a number above 0 (given: {given!r})")


def _check_schema(given: Mapping[str, Any]) -> None:
    if "on_invalid_result" in given:
        one_of("on_invalid_result", given["on_invalid_result"], ("keep", "fail"))
    schema, rows = given.get("result_schema"), given.get("result_rows")
    if not (isinstance(schema, (type(None), Mapping, str)) or hasattr(schema, "model_validate_json")):
        raise ArgumentError(
            f"result_schema must be a JSON Schema, a pydantic model, or the import path of one (given: {schema!r})"
        )
    if rows is not None and not (isinstance(rows, str) and all(rows.split("."))):
        raise ArgumentError(f"result_rows must name a list in data (given: {rows!r})")
