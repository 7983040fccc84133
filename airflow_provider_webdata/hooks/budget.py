"""Credits that calls may cost: reserved before a call, settled after it."""

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
    """The credits that a task instance may spend on some of its calls.

    Airflow 3.3 keeps the record in its task state store. What an attempt reserved and never settled, because it was
    killed, counts as spent in the attempts after it, until one of them settles it. Clearing the task begins a new
    record. Without a store (Airflow 3.2, or outside a task) the record ends with this object.

    :param limit: most credits. None: no limit, and nothing is recorded.
    :param context: the task's; None outside a task.
    :param name: names the budget among those of the task.
    :param counted: credits that count against the limit and are recorded elsewhere; settled credits exclude them.
    :param keeps_peak: record only the highest reservation, and no settled amounts: for many calls that are each
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
        # Calls of several threads share a budget.
        self._lock = threading.RLock()

    @property
    def spent(self) -> float:
        """Credits that were spent, or may have been."""
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
        """Return what this attempt has set aside for a call."""
        return self._reserved.get(name, 0.0)

    def reserve(self, name: str, credits: float) -> bool:
        """Set credits aside for a call that is about to be sent; return False where fewer are left.

        What an earlier attempt reserved by this name stays spent: its call was another one.
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
                # The call is not sent.
                del self._reserved[name]
                raise
        return True

    def amend(self, name: str, credits: float) -> None:
        """Correct what is set aside for a call whose cost is known, and which is not settled yet."""
        with self._lock:
            if name in self._reserved:
                self._reserved[name] = credits

    def settle(self, name: str, cost: float | None) -> None:
        """Count what a call cost in place of what was reserved for it by this attempt or an earlier one.

        :param cost: credits; None: not known, so that all that was reserved counts.
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
        """Record what is still reserved: what was settled since is recorded elsewhere."""
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
                f"nothing was sent, because what earlier attempts spent is not known: the record {self._key} is "
                f"damaged ({stored.damage}): {place_of(self._key)}"
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
"""The attempt that this process runs, and how many budgets of each name it has."""

_attempt_lock = threading.Lock()


def attempt_budget(limit: float | None, name: str) -> Budget:
    """Return a budget of the task that this process runs; outside a task, one that is not recorded.

    The n-th budget of a name is, in a later attempt, the n-th of that name again.
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
