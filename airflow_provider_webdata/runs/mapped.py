"""Arguments with the same value in all instances of a mapped task."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jinja2 import nodes
from jinja2.filters import FILTERS

if TYPE_CHECKING:
    from airflow.sdk import Context

# Template variables and filters whose value does not depend on the instance.
_VARIABLES = frozenset(
    (
        *("conn", "dag", "dag_run", "run_id", "var"),
        *("data_interval_end", "data_interval_start", "logical_date", "partition_date", "partition_key"),
        *("ds", "ds_nodash", "ts", "ts_nodash", "ts_nodash_with_tz"),
    )
)
_FILTERS = {*FILTERS, "ds", "ds_nodash", "ts", "ts_nodash", "ts_nodash_with_tz"} - {"random"}


def is_shared(context: Context, argument: str) -> bool:
    """Return whether an instance of a mapped task with a lower index has the same value for an argument.

    An argument whose template may differ between instances is not shared.

    :param argument: name of the argument, whose value is text.
    """
    ti = context.get("ti")
    if ti is None or (getattr(ti, "map_index", None) or 0) <= 0 or (dag := ti.task.get_dag()) is None:
        return False
    # As the DAG file has it: the executed task is a copy with rendered fields.
    task = dag.task_dict.get(ti.task.task_id)
    arguments = getattr(task, "partial_kwargs", None)
    text = getattr(task, argument, None) if arguments is None else arguments.get(argument)
    if not isinstance(text, str):
        return False
    tree = dag.get_template_env().parse(text)
    filters = {found.name for found in tree.find_all(nodes.Filter)}
    # Also the DAG's own macros, which the template environment declares.
    names = {found.name for found in tree.find_all(nodes.Name)}
    return names <= _VARIABLES and filters <= _FILTERS
