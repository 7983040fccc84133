"""A record of a task for its later attempts, in Airflow's task state store (3.3)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, TypeVar

import msgspec

from airflow_provider_webdata.common.attempt import Attempt
from airflow_provider_webdata.common.stored_record import place_of
from airflow_provider_webdata.runs.failures import UncertainStartError

if TYPE_CHECKING:
    from airflow.sdk import Context

StateT = TypeVar("StateT", bound=msgspec.Struct)


class TaskState(Generic[StateT]):
    """A record that is valid until the task is cleared. Airflow 3.2 has no store: the record ends with the attempt.

    :param key: the record's key in the task state store.
    :param empty: the record before anything is recorded.
    :ivar record: the record, of this attempt or an earlier one.
    :ivar exists: True if something is recorded.
    :raises UncertainStartError: the stored record is damaged.
    """

    def __init__(self, context: Context, key: str, empty: StateT) -> None:
        self._key = key
        self._empty = empty
        self.attempt = Attempt(context)
        stored = self.attempt.read(key, type(empty))
        if stored.damage:
            raise UncertainStartError(
                f"the record {key} of an earlier attempt is damaged ({stored.damage}). If the service has a job, "
                "check, or session of this task, stop it or save its result, because another could be billed as well; "
                f"then {place_of(key)}"
            )
        self.exists = stored.record is not None
        self.record: StateT = stored.record or empty

    @property
    def is_lasting(self) -> bool:
        """True if later attempts can read the record."""
        return self.attempt.store is not None

    @property
    def began(self) -> bool:
        """True if an earlier attempt may have recorded something."""
        return self.exists or (not self.is_lasting and self.attempt.may_follow_another)

    def write(self, record: StateT) -> None:
        """Replace the record, if it differs."""
        if self.exists and record == self.record:
            return
        self.record, self.exists = record, True
        self.attempt.write(self._key, record)

    def set(self, **fields: Any) -> None:
        """Record new values of fields."""
        self.write(msgspec.structs.replace(self.record, **fields))

    def forget(self) -> None:
        """Delete the record."""
        self.record, self.exists = self._empty, False
        self.attempt.delete(self._key)
