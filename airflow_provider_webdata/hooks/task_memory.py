# SPDX-License-Identifier: Apache-2.0
"""The memory of a task: its record in Airflow's task state store, shared by all that an attempt does."""

from __future__ import annotations

import threading
from collections import Counter
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from airflow.sdk.exceptions import AirflowFailException
from msgspec.structs import replace

from airflow_provider_webdata.common.attempt import Attempt
from airflow_provider_webdata.common.coded_errors import CodedError, brief
from airflow_provider_webdata.common.logs import logger
from airflow_provider_webdata.states.task_record import KEY, TaskRecord, begun, read_stored, stored_form

if TYPE_CHECKING:
    from collections.abc import Mapping

log = logger(__name__)

RETENTION = timedelta(days=30)
"""Time for which Airflow keeps a record, beside the task's longest wait."""

_DEFAULT_WAIT = timedelta(days=7)


class DamagedRecordError(CodedError, AirflowFailException):
    """The record of earlier attempts cannot be read."""

    help_code = "WD-072"


class TaskMemory:
    """The reader and writer of a task's record. Without a store (Airflow 3.2), the record ends with the attempt.

    :param context: the task's context; empty outside a task.
    :ivar former: the record before the task was cleared, if any.
    :ivar ledgers: number of ledgers by name, see `hooks.ledger.ledger_of_process`.
    :ivar lock: held while the record changes, and while the task reports to Airflow: `airflow dags test` does not
        support concurrent reports.
    :raises DamagedRecordError: the stored record is damaged.
    """

    def __init__(self, context: Mapping[str, Any] | None) -> None:
        self.attempt = attempt = Attempt(context)
        self.lock = threading.RLock()
        self.ledgers: Counter[str] = Counter()
        self._retention = RETENTION + _wait_timeout(attempt.context.get("task"))
        self.begin()

    def begin(self) -> None:
        """Continue from the stored record.

        :raises DamagedRecordError: it is damaged.
        """
        attempt = self.attempt
        self.former: TaskRecord | None = None
        self._stored = self._read()
        self._record = begun(self._stored, attempt.max_tries, attempt.retries, attempt.number)
        if self._stored is not None and self._record.round != self._stored.round:
            self.former = self._stored

    def carried(self) -> Any:
        """Return the record for the deferral of an attempt without a store."""
        return stored_form(self._record)

    def carry(self, value: Any) -> None:
        """Continue from the record of the attempt before its deferral.

        :param value: of `carried`.
        """
        attempt = self.attempt
        self._record = begun(read_stored(value), attempt.max_tries, attempt.retries, attempt.number)

    @property
    def record(self) -> TaskRecord:
        """The record, with what was staged."""
        return self._record

    @property
    def is_lasting(self) -> bool:
        """Whether later attempts can read the record."""
        return self.attempt.store is not None

    def stage(self, **fields: Any) -> None:
        """Change fields; the next write stores them."""
        with self.lock:
            self._record = replace(self._record, **fields)

    def write(self, **fields: Any) -> None:
        """Change fields, and store the record if it differs. If that fails, these fields are unchanged."""
        with self.lock:
            before = self._record
            self.stage(**fields)
            try:
                self._write()
            except BaseException:
                self._record = before
                raise

    def note(self, **fields: Any) -> None:
        """Change fields, and store the record if possible: what it says has happened anyway."""
        with self.lock:
            self.stage(**fields)
            try:
                self._write()
            except Exception as error:  # noqa: BLE001 - Airflow's errors have no common base
                log.warning("Failed to store the task's record; the next write repeats it: %s", brief(error))

    def end(self, *, published: bool) -> None:
        """Record that Airflow will not retry the attempt, unless there is nothing to remember.

        :param published: whether the results were published.
        """
        if self._stored is None and self._record == TaskRecord(
            max_tries=self._record.max_tries, attempt=self._record.attempt
        ):
            return
        phase = "published" if published and self._record.phase == "ended" else self._record.phase
        self.note(phase=phase, is_final=True)

    def _write(self) -> None:
        record = replace(self._record, attempt=self.attempt.number)
        if self.attempt.store is None or record == self._stored:
            return
        self.attempt.store.set(KEY, stored_form(record), retention=self._retention)
        self._record = self._stored = record

    def _read(self) -> TaskRecord | None:
        value = None if self.attempt.store is None else self.attempt.store.get(KEY)
        if value is None:
            return None
        try:
            return read_stored(value)
        except ValueError as damage:
            raise DamagedRecordError(
                f"The record of earlier attempts is damaged ({damage}). If the service has a job, check, or session of "
                "this task, stop it or save its result, because another could be billed as well; then delete the key "
                f"{KEY} from the task's state store, and clear the task"
            ) from None


def _wait_timeout(task: Any) -> timedelta:
    given = getattr(task, "wait_timeout", None)
    if isinstance(given, (int, float)):
        return timedelta(seconds=given)
    return given if isinstance(given, timedelta) else _DEFAULT_WAIT


_latest: TaskMemory | None = None
"""The memory of the attempt that this process runs."""

_latest_lock = threading.Lock()


def memory_of(context: Mapping[str, Any] | None) -> TaskMemory:
    """Return the memory of an attempt, the same for all who ask in this process; outside a task, a new one.

    :raises DamagedRecordError: the stored record is damaged.
    """
    global _latest
    attempt = Attempt(context)
    if attempt.ti is None:
        return TaskMemory(context)
    with _latest_lock:
        known = _latest and _latest.attempt
        if _latest is None or not known or known.ti is not attempt.ti or known.store is not attempt.store:
            _latest = TaskMemory(context)
        return _latest
