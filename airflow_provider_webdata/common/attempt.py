# SPDX-License-Identifier: Apache-2.0
"""The identity of a task attempt."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping
    from uuid import UUID


class Attempt:
    """One attempt of a task instance.

    :param context: the task's context; empty or None outside a task.
    :ivar number: number of the attempt, from 1, including attempts before the task was cleared.
    :ivar max_tries: Airflow's `max_tries`: clearing the task increases it, a retry does not.
    :ivar retries: the task's `retries`.
    """

    def __init__(self, context: Mapping[str, Any] | None) -> None:
        self.context: Any = context or {}
        self.ti: Any = self.context.get("ti")
        self.store: Any = self.context.get("task_state_store")
        self.number = int(getattr(self.ti, "try_number", 1) or 1)
        self.max_tries = int(getattr(self.ti, "max_tries", 0) or 0)
        retries = getattr(getattr(self.ti, "task", None), "retries", None)
        self.retries: int = self.max_tries if retries is None else retries

    @property
    def map_index(self) -> int | None:
        """Index of a mapped task; -1 or None if it is not mapped."""
        index: int | None = getattr(self.ti, "map_index", None)
        return index

    @property
    def instance(self) -> tuple[str | int | None, ...]:
        """Identity of the task instance, storable as JSON.

        Iterations of a loop (Airflow 3.4) differ only in the region. Other tasks have the region 0 there, which is left
        out, so that an upgrade of Airflow keeps their identity.
        """
        names = ("dag_id", "run_id", "task_id", "map_index")
        identity = tuple(getattr(self.ti, name, None) for name in names)
        region: UUID | None = getattr(self.ti, "region_id", None)
        return (
            (*identity, str(region), self.ti.region_index) if region is not None and region.int else identity
        )

    @property
    def is_mapped(self) -> bool:
        """Whether the run has several instances of the task: mapped ones, or iterations of a loop."""
        return (self.map_index is not None and self.map_index >= 0) or len(self.instance) > 4

    @property
    def is_last(self) -> bool:
        """Whether Airflow will not retry the task."""
        return self.ti is None or self.number > self.max_tries

    @property
    def reschedules(self) -> int:
        """Number of reschedules of the attempt."""
        return int(self.context.get("task_reschedule_count") or 0)


def attempt_of_process() -> Attempt | None:
    """Return the current attempt, or None outside a task."""
    from airflow.sdk import get_current_context

    try:
        return Attempt(get_current_context())
    except RuntimeError:
        return None
