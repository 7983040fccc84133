# SPDX-License-Identifier: Apache-2.0
"""Check that no other task instance or run replaces the file of a task, before anything is billed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from airflow_provider_webdata.common.attempt import Attempt
from airflow_provider_webdata.results.errors import OutputError
from airflow_provider_webdata.results.files import paths

if TYPE_CHECKING:
    from airflow.sdk import Context


def check_own_file(task: Any, context: Context, *, emits_changes: bool) -> None:
    """Check `save_to` by the text that the DAG file has. One with `*`, or whose value may differ, is accepted.

    :param task: the executed operator.
    :param emits_changes: the file has only what is new or changed, so the next run must not replace it.
    :raises OutputError: the path is the same for all instances of a mapped task, or for all runs.
    """
    if "*" in str(task.save_to) or (dag := task.get_dag()) is None:
        return
    # The executed task is a copy with rendered fields.
    written = dag.task_dict.get(task.task_id)
    partial = getattr(written, "partial_kwargs", None)
    if partial is None:
        text = getattr(written, "save_to", None)
    else:
        default = None if _may_map(written, "save_to") else dag.default_args.get("save_to")
        text = partial.get("save_to", default)
    if not isinstance(text, str):
        return
    parse = dag.get_template_env().parse
    in_instances = paths.SAME_IN_INSTANCES - ({"params"} if _may_map(written, "params") else set())
    if Attempt(context).is_mapped and paths.is_same(text, parse, in_instances):
        raise OutputError(paths.shared_file(text))
    if emits_changes and paths.is_same(text, parse, paths.SAME_IN_RUNS):
        raise OutputError(paths.replaced_changes(text))


def _may_map(task: Any, argument: str) -> bool:
    """Return whether each instance of a task may have a separate value for an argument."""
    mapped = getattr(getattr(task, "expand_input", None), "value", ())
    if isinstance(mapped, (list, tuple)):
        return any(not isinstance(one, Mapping) or argument in one for one in mapped)
    # The result of another task is known only to Airflow.
    return not isinstance(mapped, Mapping) or argument in mapped
