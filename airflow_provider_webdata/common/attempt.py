"""A task attempt: its number, its round, and records that are shared between attempts."""

from __future__ import annotations

import json
import logging
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import msgspec

from airflow_provider_webdata.common.storable import storable
from airflow_provider_webdata.common.stored_record import Count, damage_of, read_record

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime
    from uuid import UUID

RecordT = TypeVar("RecordT", bound=msgspec.Struct)

log = logging.getLogger(__name__)

_CLEARED = "maxTries"
_AFTER = "clearedAfter"
_WRITER = "writer"
_ENDED = "webdata_ended"
_MAX_ENDED = 50


class _Ended(msgspec.Struct):
    attempts: list[Count]


@dataclass(frozen=True)
class StoredRecord(Generic[RecordT]):
    """A record of earlier attempts.

    :param record: None if it is damaged, or missing since the task was cleared.
    :param damage: description of the damage, if any.
    """

    record: RecordT | None = None
    damage: str | None = None


class Attempt:
    """One attempt of a task instance.

    The task state store of Airflow 3.3 survives retries and crashes, but also clearing the task. A record therefore
    contains the attempt's round; records of another round are ignored. Airflow 3.2 has no store, so it records
    nothing.

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
    def run_start(self) -> datetime | None:
        """Start time of the DAG run."""
        return getattr(self.context.get("dag_run"), "start_date", None)

    @property
    def first_start(self) -> datetime | None:
        """Time of the attempt's first start. A deferral keeps it, a reschedule starts the attempt anew."""
        return self.first_reschedule or getattr(self.ti, "start_date", None)

    @property
    def reschedules(self) -> int:
        """Number of reschedules of the attempt."""
        return int(self.context.get("task_reschedule_count") or 0)

    @property
    def first_reschedule(self) -> datetime | None:
        """Time of the attempt's first reschedule."""
        first: datetime | None = None if self.ti is None else self.ti.get_first_reschedule_date(self.context)
        return first

    @property
    def first(self) -> int:
        """Number of the round's first attempt, or 1 if a change of the task's `retries` hides it."""
        retries = getattr(getattr(self.ti, "task", None), "retries", None)
        first = 1 if retries is None else self.max_tries - retries + 1
        return first if 1 <= first <= self.number else 1

    @cached_property
    def after(self) -> int:
        """Number of the last attempt of an earlier round with the same `max_tries`, or 0.

        Clearing a task sets `max_tries` to its attempts so far plus its `retries`, which is the old value if `retries`
        was lowered in between. Such a round is new if an attempt before it has ended. If the attempt was killed, it may
        be a retry, and the round is the old one. Airflow 3.2 stores no ends, so `retries` alone decides.
        """
        first = self.first
        if first == 1:
            return 0
        if self.store is None:
            return first - 1
        return max((number for number in self._ended() if number < first), default=0)

    @property
    def round(self) -> str:
        """Name of the round: the attempts since the task was last cleared."""
        return f"{self.max_tries}/{self.after}" if self.after else f"{self.max_tries}"

    def end(self) -> None:
        """Record that Airflow will not retry the attempt."""
        # The next round of a last attempt has another `max_tries`, regardless of the task's `retries`.
        if self.store is None or self.is_last:
            return
        try:
            earlier = self._ended() if self.number > 1 else []
            self.store.set(_ENDED, {"attempts": [*earlier, self.number][-_MAX_ENDED:]})
        except Exception as error:  # noqa: BLE001 - the work is done
            log.warning("Failed to record the end of the attempt: %s", error)

    def _ended(self) -> list[int]:
        record = self.store.get(_ENDED)
        try:
            return [] if record is None else read_record(record, _Ended).attempts
        except ValueError:
            return []

    @property
    def may_follow_another(self) -> bool:
        """Whether another attempt, or this one before it was rescheduled, may have run since the task was cleared."""
        if self.ti is None:
            return False
        retries = getattr(getattr(self.ti, "task", None), "retries", 0) or 0
        return self.reschedules > 0 or self.number > self.max_tries - retries + 1

    @cached_property
    def key(self) -> tuple[object, ...]:
        """Unique key of the attempt."""
        return (getattr(self.ti, "id", None), *self.instance, getattr(self.ti, "try_number", None))

    def read(self, key: str, kind: type[RecordT]) -> StoredRecord[RecordT]:
        """Return a record, unless it is older than the last clearing of the task.

        :param kind: type of the record.
        """
        stored = None if self.store is None else self.store.get(key)
        if stored is None:
            return StoredRecord()
        if damage := damage_of(stored, dict[str, Any]):
            return StoredRecord(damage=damage)
        if type(stored.get(_CLEARED)) is not int:
            return StoredRecord(damage=f"{_CLEARED} is not a number")
        if (stored[_CLEARED], stored.get(_AFTER, 0)) != (self.max_tries, self.after):
            return StoredRecord()
        try:
            record = read_record(stored, kind)
        except ValueError as error:
            return StoredRecord(damage=str(error))
        if type(stored.get(_WRITER)) is int and stored[_WRITER] < self.first:
            log.warning(
                "Attempt %s was killed, and retries was lowered since. This counts as a retry, and continues its work",
                stored[_WRITER],
            )
        return StoredRecord(record)

    def write(self, key: str, record: msgspec.Struct) -> None:
        """Store a record, if Airflow has a store."""
        if self.store is not None:
            after = {_AFTER: self.after} if self.after else {}
            # Airflow's store rejects tuples.
            values = storable(json.loads(json.dumps(msgspec.to_builtins(record))))
            self.store.set(key, {**values, _CLEARED: self.max_tries, _WRITER: self.number, **after})

    def delete(self, key: str) -> None:
        """Delete a record, if Airflow has a store."""
        if self.store is not None:
            self.store.delete(key)


def attempt_of_process() -> Attempt | None:
    """Return the current attempt, or None outside a task."""
    from airflow.sdk import get_current_context

    try:
        return Attempt(get_current_context())
    except RuntimeError:
        return None
