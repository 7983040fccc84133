# SPDX-License-Identifier: Apache-2.0
"""The tasks that consume a run's file, and whether they have it."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any, NamedTuple

from airflow_provider_webdata.results.changes.snapshots import Emitter

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from airflow.sdk import Context

_NOT_STARTED = frozenset({None, "none", "scheduled", "queued", "up_for_retry"})
_CONSUMED = frozenset({"success", "removed"})
_SUCCESS = "success"


class Consumer(NamedTuple):
    """A task downstream.

    :param is_of_index: whether only its instance with the map index of the emitting task consumes the file.
    :param is_load: whether it loads the file into a table, so that it has not consumed what it skipped.
    """

    task_id: str
    is_of_index: bool = False
    is_load: bool = False


def may_consume(states: Collection[str | None]) -> bool:
    """Return whether a task will read a file that is complete now.

    :param states: states of its instances; none before Airflow has created them.
    """
    return all(state in _NOT_STARTED for state in states)


def has_consumed(states: Collection[str | None], *, is_load: bool) -> bool:
    """Return whether a task has consumed the file of a run.

    :param states: states of its instances, at least one.
    :param is_load: see `Consumer`.
    """
    enough = _CONSUMED if is_load else _CONSUMED | {"skipped"}
    return all(state in enough for state in states)


def token_of(run_id: str, map_index: int) -> str:
    """Return the token of a run in snapshots."""
    identity = json.dumps([run_id, map_index])
    return hashlib.blake2b(identity.encode(), digest_size=8).hexdigest()


class Consumers:
    """The tasks downstream of a task in its DAG run.

    :param loads: ids of the tasks downstream that load the task's file into a table.
    :ivar token: token of this run in snapshots.
    """

    def __init__(self, context: Context, loads: Collection[str] = ()) -> None:
        self._ti: Any = context["ti"]
        self._index: int = -1 if self._ti.map_index is None else self._ti.map_index
        self._tasks = [*_downstream(self._ti.task, loads)]
        self.token = token_of(self._ti.run_id, self._index)

    def emitter(self) -> Emitter | None:
        """Return this run with the tasks that will read its file; None if no task will.

        Call it once the file is complete.
        """
        if not self._tasks:
            tasks = [self._ti.task_id]
        else:
            waiting = [task for task in self._tasks if may_consume(self._states(self._ti.run_id, task))]
            if not waiting:
                return None
            tasks = [task.task_id for task in waiting]
        return Emitter(self._ti.run_id, self._index, tasks)

    def consumed(self, emitters: Mapping[str, Emitter]) -> set[str]:
        """Return the tokens of the runs whose files were consumed.

        :param emitters: runs by their token.
        """
        return {token for token, one in emitters.items() if self._has_consumed(one)}

    def _has_consumed(self, emitter: Emitter) -> bool:
        known = {task.task_id: task for task in self._tasks}
        tasks = [known.get(task_id, Consumer(task_id)) for task_id in emitter.tasks]
        found = [(task, self._states(emitter.run_id, task, emitter.map_index)) for task in tasks]
        if not any(states for _, states in found):
            # Airflow has deleted the task instances. A run that it has deleted, too, may have failed.
            success = self._ti.get_dr_count(self._ti.dag_id, run_ids=[emitter.run_id], states=[_SUCCESS])
            return bool(success)
        # A task that its author has removed from the DAG has no instances where Airflow has not created any.
        return all(has_consumed(states, is_load=task.is_load) for task, states in found if states)

    def _states(self, run_id: str, task: Consumer, map_index: int | None = None) -> Collection[str | None]:
        index = self._index if map_index is None else map_index
        found = self._ti.get_task_states(
            dag_id=self._ti.dag_id,
            task_ids=[task.task_id],
            run_ids=[run_id],
            **({"map_index": index} if task.is_of_index else {}),
        )
        return [*found.get(run_id, {}).values()]


def _downstream(task: Any, loads: Collection[str]) -> Iterable[Consumer]:
    group = task.get_closest_mapped_task_group()
    for one in task.get_flat_relatives():
        if one.is_teardown:
            continue
        its = one.get_closest_mapped_task_group()
        is_of_index = group is not None and its is not None and its.group_id == group.group_id
        yield Consumer(one.task_id, is_of_index=is_of_index, is_load=one.task_id in loads)
