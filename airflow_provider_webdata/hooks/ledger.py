"""The ledger of a task's credits: an entry is reserved before a billed call, and settled after it."""

from __future__ import annotations

import logging
import threading
from collections import Counter
from typing import TYPE_CHECKING, Any

from typing_extensions import NotRequired, TypedDict

from airflow_provider_webdata.api.errors import CallRefusedError
from airflow_provider_webdata.common.attempt import Attempt, attempt_of_process
from airflow_provider_webdata.common.coded_errors import CodedError
from airflow_provider_webdata.common.job_kinds import ALL_JOB_KINDS
from airflow_provider_webdata.common.numbers import credits_text, known_credits
from airflow_provider_webdata.common.storable import storable
from airflow_provider_webdata.common.stored_record import Count, Credits, damage_of, place_of
from airflow_provider_webdata.common.xcom_keys import CREDITS
from airflow_provider_webdata.hooks.task_metrics import count

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

log = logging.getLogger(__name__)

_KEY = "webdata_credits"
_SHARED = (*ALL_JOB_KINDS, "monitor")
"""Operations whose results several tasks may read and report: jobs, and checks of monitors."""

_PARTS = ("by_operation", "by_format", "by_connection")


class _Entry(TypedDict):
    """The credits of a call, or of all calls without a name.

    :param round: name of the attempt's round. A limit includes only the entries of the current one.
    :param limit: name of the limit that includes the entry; absent: the task's own.
    :param reserved: credits that calls of unknown cost may have cost.
    :param unknown: number of these calls.
    """

    round: str
    limit: NotRequired[str]
    reserved: Credits
    unknown: Count
    saved: Credits
    by_operation: dict[str, Credits]
    by_format: dict[str, Credits]
    by_connection: dict[str, Credits]


class _Record:
    """The entries of a task instance, shared by the ledgers of an attempt.

    :ivar open: keys of this attempt's entries that are reserved.
    :ivar numbers: number of ledgers by name, see `ledger_of_process`.
    """

    def __init__(self, attempt: Attempt) -> None:
        self.attempt = attempt
        # Unlike other records, this one includes the time before the task was cleared.
        stored: Any = None if attempt.store is None else attempt.store.get(_KEY)
        self.damage = None if stored is None else damage_of(stored, dict[str, _Entry])
        self.entries: dict[str, dict[str, Any]] = {} if stored is None or self.damage else stored
        self.open: set[str] = set()
        self.numbers: Counter[str] = Counter()
        self.lock = threading.RLock()
        if self.damage:
            # A limit fails before the call. A billed call must not fail because of this record.
            log.warning("The record %s of earlier attempts' credits is damaged (%s)", _KEY, self.damage)

    def save(self) -> None:
        if self.attempt.store is not None:
            self.attempt.store.set(_KEY, storable(self.entries))

    def save_billed(self) -> None:
        """Store the entries after a billed call, which must not fail because of them; the next entry stores them."""
        try:
            self.save()
        except Exception as error:  # noqa: BLE001 - Airflow's errors have no common base
            log.warning("Failed to record the credits of a call: %s", error)


class Ledger:
    """The credits of a task instance, and a limit for some of its calls.

    Airflow 3.3 stores the entries in its task state store. An entry that a killed attempt reserved counts in full until
    an attempt settles it. The limit applies until the task is cleared; the entries remain. Without a store (Airflow
    3.2, or outside a task), the ledger covers one attempt.

    :param context: the task's context; None outside a task.
    :param conn_id: connection of the calls.
    :param limit: maximum credits; None: no limit.
    :param name: name of the limit, unique within the task. Empty: the limit of the task itself.
    :param bills: returns whether the server bills calls. If not, every cost is 0, and nothing exceeds the limit.
    :param error: the error for a limit that cannot be checked.
    :param push: pushes XComs by name. Default: pushes them unless the task has `do_xcom_push=False`.
    """

    def __init__(
        self,
        context: Mapping[str, Any] | None = None,
        conn_id: str = "",
        limit: float | None = None,
        name: str = "",
        *,
        bills: Callable[[], bool] = lambda: True,
        error: Callable[[str], Exception] = CallRefusedError,
        push: Callable[..., None] | None = None,
        log: Any = log,
    ) -> None:
        self._record = _record_of(Attempt(context))
        self.lock = self._record.lock
        """Held while the task reports to Airflow: `airflow dags test` does not support concurrent reports."""
        self._conn_id = conn_id
        self._limit = limit
        self._name = name
        self._bills = bills
        self._error = error
        self._push = push
        self._log = log

    @property
    def limit(self) -> float | None:
        """Maximum credits; None: no limit, or the server does not bill."""
        return self._limit if self._limit is not None and self._bills() else None

    @property
    def is_complete(self) -> bool:
        """Whether the ledger includes all earlier attempts."""
        attempt = self._record.attempt
        return attempt.store is not None or attempt.number == 1

    @property
    def is_empty(self) -> bool:
        """Whether the task has no entry."""
        return not self._record.entries

    @property
    def spent_before_cleared(self) -> float:
        """Credits of the time before the task was cleared, if no call was made since."""
        record = self._record
        made = [entry for key, entry in record.entries.items() if key not in record.open]
        if any(entry["round"] == record.attempt.round for entry in made):
            return 0
        return sum(_used(entry) for entry in made)

    @property
    def spent(self) -> float:
        """Credits that count against the limit: those that were spent, and those that are or may have been.

        :raises CallRefusedError: the record of earlier attempts is damaged.
        """
        record = self._record
        with record.lock:
            if record.damage:
                raise self._error(
                    f"no request was sent, because the credits of earlier attempts are unknown. The record {_KEY} is "
                    f"damaged ({record.damage}). To discard it, {place_of(_KEY)}"
                )
            return sum(
                _used(entry) + float(entry["reserved"])
                for entry in record.entries.values()
                if (entry["round"], entry.get("limit", "")) == (record.attempt.round, self._name)
            )

    @property
    def left(self) -> float:
        """Credits that may still be reserved."""
        limit = self.limit
        return float("inf") if limit is None else limit - self.spent

    def cost(self, used: Any) -> float | None:
        """Return the credits of a call; None if they are unknown.

        :param used: credits that the service reports. They count only if the server bills.
        """
        return 0 if used == 0 or not self._bills() else known_credits(used)

    def is_reserved(self, name: str) -> bool:
        """Return whether an attempt reserved credits for a call and did not settle them."""
        return self._open_key(name) in self._record.entries

    def reserve(self, name: str, credits: float) -> bool:
        """Reserve credits for a call before it is sent; return False if too few are left.

        An entry that this attempt reserved under the name is replaced. One that an earlier attempt reserved counts as a
        call of unknown cost.

        :param name: name of the call, unique among the calls in flight.
        """
        record, key, limit = self._record, self._open_key(name), self.limit
        with record.lock:
            if key in record.open:
                del record.entries[key]
            if limit is not None and credits > self.left:
                record.open.discard(key)
                return False
            before = {**record.entries}
            if lost := record.entries.pop(key, None):
                self._add(None, lost)
            record.open.add(key)
            record.entries[key] = self._entry(reserved=0 if limit is None else credits, unknown=1)
            if limit is not None:
                try:
                    record.save()
                except BaseException:
                    # The caller does not send the call.
                    record.entries = before
                    record.open.discard(key)
                    raise
        return True

    def settle(
        self,
        name: str,
        used: Any,
        operation: str = "",
        *,
        call: str | None = None,
        formats: Mapping[str, float] | None = None,
        scraping: float = 0,
        saved: float = 0,
        unknown: int = 1,
        reserved: float | None = None,
        is_repeatable: bool = False,
    ) -> None:
        """Replace the reserved entry of a call, from this attempt or an earlier one, by its cost.

        :param name: as in `reserve`; without a reserved entry, the cost is only added.
        :param used: credits that the service reports. If unknown, the reserved credits count against the limit.
        :param operation: name of the operation in reports.
        :param call: name of the call, which counts once for all attempts; None: it has no name.
        :param formats: the part of the cost of each format; `page` is the base price.
        :param scraping: the part of the cost for scraping search results.
        :param saved: credits that were not spent.
        :param unknown: number of calls of unknown cost.
        :param reserved: credits that count if the cost is unknown. Default: the reserved ones.
        :param is_repeatable: the call may be sent again without being billed again. If its cost is unknown, the entry
            stays reserved.
        """
        record, key = self._record, self._open_key(name)
        cost = self.cost(used)
        with record.lock:
            record.open.discard(key)
            if cost is None and is_repeatable and key in record.entries:
                record.save_billed()
                return
            held = record.entries.pop(key, None)
            entry = self._entry(saved=saved if saved and self._bills() else 0)
            if cost is None:
                entry["unknown"] = unknown
                entry["reserved"] = (held["reserved"] if held else 0) if reserved is None else reserved
            elif cost:
                parts = {operation: cost - scraping, "scrape": scraping} if scraping else {operation: cost}
                entry["by_operation"] = {part: credits for part, credits in parts.items() if credits}
                entry["by_format"] = dict(formats or {})
                entry["by_connection"] = {self._conn_id: cost}
            if cost == 0 and not entry["saved"] and call is None:
                if held:
                    # Another call may have stored the reservation.
                    record.save_billed()
                return
            added = self._add(call and f"{operation}/{call}", entry)
            record.save_billed()
        # Without a store, the earlier attempt has counted a saved call.
        if added > 0 and not (saved and record.attempt.store is None):
            count("webdata.credits_used", added, record.attempt.context, operation=operation)

    def settle_failed(
        self,
        name: str,
        error: BaseException,
        cost: float | None,
        operation: str,
        *,
        is_repeatable: bool = False,
    ) -> None:
        """Settle a failed call. If it was or may have been billed, report it, also in the error's message.

        :param cost: credits that the call cost; None: unknown.
        :param is_repeatable: as in `settle`.
        """
        record, key = self._record, self._open_key(name)
        if cost == 0 and is_repeatable and key in record.entries and key not in record.open:
            # Only this repetition is free: the call that it repeats may have been billed.
            cost = None
        cost = self.cost(cost)
        self.settle(name, cost, operation, is_repeatable=is_repeatable)
        if cost == 0:
            return
        if isinstance(error, CodedError) and not error.billed:
            credits = "credit" if cost == 1 else "credits"
            error.billed = (
                "The call may have been billed"
                if cost is None
                else f"The call is billed {credits_text(cost)} {credits}"
            )
        try:
            self.report()
        except Exception as failure:  # noqa: BLE001 - the caller raises the call's own error
            self._log.warning("Failed to report the credits: %s", failure)

    def resume(self) -> None:
        """Include what the attempt reported before it was deferred, if Airflow has no store for it."""
        record, attempt = self._record, self._record.attempt
        if attempt.store is not None or attempt.ti is None or record.entries:
            return
        reported = attempt.ti.xcom_pull(key=CREDITS, map_indexes=attempt.map_index)
        if not reported:
            return
        entry = self._entry(unknown=reported["unknown"], saved=reported["saved"])
        entry |= {part: dict(reported[part]) for part in _PARTS}
        for key, used in reported.get("jobs", {}).items():
            operation = key.partition("/")[0]
            entry["by_operation"][operation] -= used
            record.entries[key] = {**self._entry(), "by_operation": {operation: used}}
        self._add(None, entry)

    def to_wire(self) -> dict[str, Any]:
        """Return the XCom `credits`: `used`, `saved`, `unknown` (calls of unknown cost), and the breakdowns.

        `jobs`, if any, has the cost of each job and check by kind and id: several tasks may read the result of one.
        """
        credits: dict[str, Any] = {"used": 0, "saved": 0, "unknown": 0, **{part: {} for part in _PARTS}}
        jobs = {}
        with self._record.lock:
            for key, entry in self._record.entries.items():
                if key in self._record.open:
                    continue
                used = _used(entry)
                credits["used"] += used
                credits["saved"] += entry["saved"]
                credits["unknown"] += entry["unknown"]
                for part in _PARTS:
                    credits[part] = _added(credits[part], entry[part])
                if used and key.partition("/")[0] in _SHARED:
                    jobs[key] = used
        return {**credits, **({"jobs": jobs} if jobs else {})}

    def report(self) -> None:
        """Log the task's credits, and push them to the XCom `credits`."""
        credits = self.to_wire()
        missing = "" if self.is_complete else " (without earlier attempts, which Airflow 3.2 does not record)"
        self._log.info("Credits of this task: %s%s", in_words(credits), missing)
        if self._push is not None:
            self._push(**{CREDITS: credits})
            return
        attempt = self._record.attempt
        if attempt.ti is not None and getattr(attempt.context.get("task"), "do_xcom_push", True):
            with self.lock:
                attempt.ti.xcom_push(CREDITS, storable(credits))

    def _open_key(self, name: str) -> str:
        return f"open/{self._record.attempt.round}/{self._name}/{name}"

    def _entry(self, reserved: float = 0, unknown: int = 0, saved: float = 0) -> dict[str, Any]:
        limit = {"limit": self._name} if self._name else {}
        numbers = {"reserved": reserved, "unknown": unknown, "saved": saved}
        parts: dict[str, dict[str, float]] = {part: {} for part in _PARTS}
        parts["by_connection"][self._conn_id] = 0
        return {"round": self._record.attempt.round, **limit, **numbers, **parts}

    def _add(self, key: str | None, entry: dict[str, Any]) -> float:
        """Record an entry, and return the increase of the credits.

        :param key: name of the call, whose entry is replaced; None: the entry is added to that of unnamed calls.
        """
        entries = self._record.entries
        key = key or f"unnamed/{entry['round']}/{self._name}"
        before = entries.get(key)
        if before is not None:
            entry["saved"] += before["saved"]
            if key.startswith("unnamed/"):
                for name in ("reserved", "unknown"):
                    entry[name] += before[name]
                for part in _PARTS:
                    entry[part] = _added(before[part], entry[part])
            else:
                entry["round"] = before["round"]
                if entry["unknown"]:
                    entry["reserved"] = entry["reserved"] or before["reserved"]
        entries[key] = entry
        return _used(entry) - (_used(before) if before else 0)


_latest: _Record | None = None
"""The record of the attempt that this process runs."""

_latest_lock = threading.Lock()


def _record_of(attempt: Attempt) -> _Record:
    global _latest
    if attempt.ti is None:
        return _Record(attempt)
    with _latest_lock:
        known = _latest and _latest.attempt
        if _latest is None or not known or known.ti is not attempt.ti or known.store is not attempt.store:
            _latest = _Record(attempt)
        return _latest


def ledger_of_process(conn_id: str, limit: float | None, name: str, bills: Callable[[], bool]) -> Ledger:
    """Return a ledger of the task that this process runs; outside a task, an unrecorded one.

    The n-th ledger with a given name continues as the n-th ledger with that name in later attempts.
    """
    attempt = attempt_of_process()
    if attempt is None:
        return Ledger(None, conn_id, limit, bills=bills)
    record = _record_of(attempt)
    with record.lock:
        number = record.numbers[name]
        record.numbers[name] += 1
    return Ledger(attempt.context, conn_id, limit, f"{name}/{number}", bills=bills)


def in_words(credits: Mapping[str, Any]) -> str:
    """Return the XCom `credits` for the log."""
    parts = ", ".join(f"{name} {credits_text(used)}" for name, used in credits["by_operation"].items())
    formats = ", ".join(f"{name} {credits_text(used)}" for name, used in credits["by_format"].items())
    text = f"{credits_text(credits['used'])} used" + (
        f" ({parts}{f'; by format: {formats}' if formats else ''})" if parts else ""
    )
    if credits["unknown"]:
        text += f", plus {credits['unknown']} calls of unknown cost"
    return f"{text}; {credits_text(credits['saved'])} saved"


def _used(entry: Mapping[str, Any]) -> float:
    used: float = sum(entry["by_operation"].values())
    return used


def _added(one: Mapping[str, float], other: Mapping[str, float]) -> dict[str, float]:
    return {**one, **{name: one.get(name, 0) + credits for name, credits in other.items()}}
