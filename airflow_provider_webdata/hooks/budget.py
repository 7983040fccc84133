"""Credit budgets: credits are reserved before a call and settled after it."""

from __future__ import annotations

import hashlib
import threading
from collections import Counter
from typing import TYPE_CHECKING, Any

from typing_extensions import TypedDict

from airflow_provider_webdata.api.errors import CallRefusedError
from airflow_provider_webdata.common.attempt import Attempt, attempt_of_process
from airflow_provider_webdata.common.stored_record import Credits, place_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_KEY = "webdata_budget"


class _Record(TypedDict):
    spent: Credits
    reserved: dict[str, Credits]


class Budget:
    """A credit budget for some calls of a task instance.

    Airflow 3.3 stores the record in its task state store. A reservation that a killed attempt never settled counts as
    spent in later attempts until one of them settles it. Clearing the task starts a new record. Without a store
    (Airflow 3.2, or outside a task) the record lives only as long as this object.

    :param limit: maximum credits. None: no limit and no record.
    :param context: the task's context; None outside a task.
    :param name: name of the budget, unique within the task.
    :param counted: returns credits that count against the limit but are recorded elsewhere; settled credits exclude
        them.
    :param keeps_peak: record only the highest reservation and no settled amounts: for many calls that are each
        recorded separately.
    """

    def __init__(
        self,
        limit: float | None,
        context: Mapping[str, Any] | None = None,
        name: str = "",
        *,
        counted: Callable[[], float] = lambda: 0.0,
        keeps_peak: bool = False,
    ) -> None:
        self.limit = limit
        self._attempt = Attempt(context)
        self._key = f"{_KEY}_{hashlib.sha256(name.encode()).hexdigest()[:16]}" if name else _KEY
        self._counted = counted
        self._keeps_peak = keeps_peak
        self._is_read = limit is None
        self._spent = 0.0
        self._lost = 0.0
        self._peak = 0.0
        self._earlier: dict[str, float] = {}
        self._reserved: dict[str, float] = {}
        # Several threads may share a budget.
        self._lock = threading.RLock()

    @property
    def spent(self) -> float:
        """Credits that were or may have been spent."""
        with self._lock:
            self._read()
            return self._counted() + self._spent + sum(self._earlier.values())

    @property
    def left(self) -> float:
        """Credits that may still be reserved."""
        with self._lock:
            return (
                float("inf") if self.limit is None else self.limit - self.spent - sum(self._reserved.values())
            )

    def is_unsettled(self, name: str) -> bool:
        """Return whether credits are reserved for a call, by this attempt or an earlier one."""
        with self._lock:
            self._read()
            return name in self._reserved or name in self._earlier

    def reserved(self, name: str) -> float:
        """Return the credits that this attempt has reserved for a call."""
        return self._reserved.get(name, 0.0)

    def reserve(self, name: str, credits: float) -> bool:
        """Reserve credits for a call before it is sent; return False if too few are left.

        An earlier attempt's reservation of the same name counts as spent, because it was for a different call.
        """
        with self._lock:
            self._read()
            self._reserved.pop(name, None)
            if credits > self.left:
                return False
            self._spent += self._earlier.pop(name, 0.0)
            self._reserved[name] = credits
            try:
                self._write()
            except BaseException:
                # The caller does not send the call.
                del self._reserved[name]
                raise
        return True

    def amend(self, name: str, credits: float) -> None:
        """Correct the reservation for an unsettled call whose cost is now known."""
        with self._lock:
            if name in self._reserved:
                self._reserved[name] = credits

    def settle(self, name: str, cost: float | None) -> None:
        """Replace the reservation for a call, from this attempt or an earlier one, by its cost.

        :param cost: credits. None: unknown, so the entire reservation counts as spent.
        """
        with self._lock:
            self._read()
            held = self._reserved if name in self._reserved else self._earlier
            if name in held:
                reserved = held.pop(name)
                self._spent += reserved if cost is None else cost
                if not self._keeps_peak:
                    self._write()

    def spend(self, credits: float) -> None:
        """Count credits that a separate record reports as spent."""
        with self._lock:
            self._read()
            self._spent += credits

    def close(self) -> None:
        """Record the open reservations; settled credits are recorded elsewhere."""
        with self._lock:
            if self._peak:
                self._peak = sum(self._reserved.values())
                self._save(self._lost, {"": self._peak} if self._peak else {})

    def _read(self) -> None:
        if self._is_read:
            return
        stored = self._attempt.read(self._key, _Record)
        if stored.damage:
            raise CallRefusedError(
                f"no request was sent, because the credits spent by earlier attempts are unknown. The record "
                f"{self._key} is damaged ({stored.damage}). To discard it, {place_of(self._key)}"
            )
        self._is_read = True
        if not stored.values:
            return
        self._spent += stored.values["spent"]
        self._earlier = dict(stored.values["reserved"])
        if self._keeps_peak:
            self._spent += sum(self._earlier.values())
            self._earlier = {}
        self._lost = self._spent

    def _write(self) -> None:
        if not self._keeps_peak:
            self._save(self._spent, {**self._earlier, **self._reserved})
        elif (total := sum(self._reserved.values())) > self._peak:
            self._peak = total
            self._save(self._lost, {"": total})

    def _save(self, spent: float, reserved: dict[str, float]) -> None:
        if self.limit is not None:
            self._attempt.write(self._key, {"spent": spent, "reserved": reserved})


_attempt: tuple[object, Counter[str]] | None = None
"""The attempt that this process runs, and its number of budgets by name."""

_attempt_lock = threading.Lock()


def attempt_budget(limit: float | None, name: str) -> Budget:
    """Return a budget of the task that this process runs; outside a task, an unrecorded one.

    The n-th budget with a given name continues as the n-th budget with that name in later attempts.
    """
    global _attempt
    attempt = attempt_of_process()
    if attempt is None:
        return Budget(limit)
    with _attempt_lock:
        if _attempt is None or _attempt[0] != attempt.key:
            _attempt = (attempt.key, Counter())
        number = _attempt[1][name]
        _attempt[1][name] += 1
    return Budget(limit, attempt.context, f"{name}/{number}")
