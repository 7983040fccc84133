"""Operators executed right here, for what a DAG run cannot stage: signals, crashes, a service that misbehaves."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any


@dataclass
class TaskInstance:
    """The part of Airflow's task instance that operators use.

    :param first_reschedule: when the try was first rescheduled.
    """

    try_number: int = 1
    max_tries: int = 0
    dag_id: str = "d"
    run_id: str = "r"
    task_id: str = "t"
    map_index: int = -1
    first_reschedule: Any = None
    xcom: dict[str, Any] = field(default_factory=dict)
    task: Any = field(default_factory=lambda: SimpleNamespace(retries=0))

    def xcom_push(self, key: str, value: Any) -> None:
        # As Airflow stores it: what is not JSON fails here.
        self.xcom[key] = json.loads(json.dumps(value))

    def get_first_reschedule_date(self, context: Any) -> Any:
        return self.first_reschedule


class StateStore:
    """Airflow's task state store, which outlives a try."""

    def __init__(self) -> None:
        self.values: dict[str, str] = {}

    def get(self, key: str, default: Any = None) -> Any:
        return json.loads(self.values[key]) if key in self.values else default

    def set(self, key: str, value: Any) -> None:
        self.values[key] = json.dumps(value)

    def delete(self, key: str) -> None:
        self.values.pop(key, None)


def context_of(ti: TaskInstance, store: StateStore | None = None, **more: Any) -> dict[str, Any]:
    return {"ti": ti, **({"task_state_store": store} if store is not None else {}), **more}
