"""The state of a trigger's task: distinguishes a user's kill from a change of triggerers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from asgiref.sync import sync_to_async

if TYPE_CHECKING:
    from airflow.triggers.base import BaseTrigger

_DEFERRED = "deferred"


async def still_waits(trigger: BaseTrigger) -> bool:
    """Return whether the task of a trigger is deferred, as Airflow's database has it now.

    Airflow (3.3.2) calls `on_kill` also for triggers that another triggerer has taken over, because this one's
    heartbeat was late: their tasks are deferred as before. A task that a user has ended is not.

    :param trigger: run by a triggerer, or by itself, without a task.
    :return: False for a trigger without a task.
    :raises Exception: Airflow could not be asked.
    """
    from airflow.sdk.execution_time.task_runner import RuntimeTaskInstance

    ti: Any = trigger.task_instance
    if ti is None:
        return False
    found = await sync_to_async(RuntimeTaskInstance.get_task_states)(
        dag_id=ti.dag_id, task_ids=[ti.task_id], run_ids=[ti.run_id], map_index=ti.map_index
    )
    # The one task goes by its name, or, where it is mapped, by its name and index.
    states = [state for tasks in found.values() for state in tasks.values()]
    return any(state == _DEFERRED for state in states)
