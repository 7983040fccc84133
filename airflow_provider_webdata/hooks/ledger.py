# SPDX-License-Identifier: Apache-2.0
"""The ledger of a task's credits: an entry is reserved before a billed call, and settled after it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from airflow_provider_webdata.common.attempt import attempt_of_process
from airflow_provider_webdata.common.coded_errors import CodedError
from airflow_provider_webdata.common.logs import logger
from airflow_provider_webdata.common.numbers import credits_text, known_credits
from airflow_provider_webdata.common.storable import storable
from airflow_provider_webdata.common.xcom_keys import CREDITS
from airflow_provider_webdata.hooks.task_memory import memory_of
from airflow_provider_webdata.hooks.task_metrics import count
from airflow_provider_webdata.states import credits as entries
from airflow_provider_webdata.states.credits import Credits, Entry

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

log = logger(__name__)


class Ledger:
    """The credits of a task instance, and a limit for some of its calls.

    They are a part of the task's record. What a killed attempt reserved counts in full until an attempt settles it. The
    limit applies until the task is cleared; the credits remain. Without a store (Airflow 3.2, or outside a task), the
    ledger covers one process.

    :param context: the task's context; None outside a task.
    :param conn_id: connection of the calls.
    :param limit: maximum credits; None: no limit.
    :param name: name of the limit, unique within the task. Empty: the limit of the task itself.
    :param bills: returns whether the server bills calls. If not, every cost is 0, and nothing exceeds the limit.
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
        push: Callable[..., None] | None = None,
        log: Any = log,
    ) -> None:
        self._memory = memory_of(context)
        self.lock = self._memory.lock
        """Held while the task reports to Airflow: `airflow dags test` does not support concurrent reports."""
        self._conn_id = conn_id
        self._limit = limit
        self._name = name
        self._bills = bills
        self._push = push
        self._log = log

    @property
    def limit(self) -> float | None:
        """Maximum credits; None: no limit, or the server does not bill."""
        return self._limit if self._limit is not None and self._bills() else None

    @property
    def is_empty(self) -> bool:
        """Whether no call is recorded."""
        return self._credits == Credits()

    @property
    def _credits(self) -> Credits:
        return self._memory.record.credits

    @property
    def _round(self) -> str:
        return str(self._memory.record.round)

    @property
    def spent_before_cleared(self) -> float:
        """Credits of the time before the task was cleared, if no call was made since."""
        return entries.used_before(self._credits, self._round)

    @property
    def spent(self) -> float:
        """Credits that count against the limit: those that were spent, and those that are or may have been."""
        return entries.spent(self._credits, self._round, self._name)

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

    def reserve(self, name: str, credits: float) -> bool:
        """Reserve credits for a call before it is sent; return False if too few are left.

        What this process reserved under the name is replaced. What an earlier one reserved counts as a call of unknown
        cost. The reservation is stored before this returns, so that a call of a killed attempt counts.

        :param name: name of the call, unique among the calls in flight.
        """
        limit = self.limit
        with self.lock:
            entry = self._entry(reserved=0 if limit is None else credits, unknown=1)
            reserved = entries.reserve(self._credits, name, entry, limit)
            if reserved is None:
                return False
            if limit is None:
                self._memory.note(credits=reserved)
            else:
                # If it cannot be stored, the caller does not send the call.
                self._memory.write(credits=reserved)
        return True

    def repeats(self, name: str, operation: str) -> bool:
        """Return whether a call is counted already, and may be sent again without being billed again.

        :param name: name of the call, under which the service bills it once, however often it is sent.
        :param operation: as in `settle`.
        """
        with self.lock:
            repeated = entries.repeat(self._credits, name, self._entry(), f"{operation}/{name}")
            if repeated is not None:
                self._memory.stage(credits=repeated)
        return repeated is not None

    def lose(self, name: str) -> None:
        """Record that the response of a reserved call was lost: a later call of `settle` may know its cost."""
        with self.lock:
            self._memory.note(credits=entries.lose(self._credits, name, self._name))

    def release(self, name: str) -> bool:
        """Release what this process reserved for a call that cost nothing; return False if nothing was."""
        with self.lock:
            before = self._credits
            self._memory.note(credits=entries.release(before, name, self._name))
            return self._credits != before

    def forget(self, name: str) -> None:
        """Drop what was reserved in this round for a call that costs nothing; stored with the next change."""
        with self.lock:
            self._memory.stage(credits=entries.forget(self._credits, name, self._round, self._name))

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
        reserved: float = 0,
        is_final: bool = True,
        is_stored: bool = True,
    ) -> None:
        """Replace what was reserved for a call, in this attempt or an earlier one, by its cost.

        :param name: as in `reserve`; without a reservation, the cost is only added.
        :param used: credits that the service reports. If unknown, the reserved credits count against the limit.
        :param operation: name of the operation in reports.
        :param call: id of the call, which counts once for all attempts, with its highest cost; None: it has no id.
        :param formats: the part of the cost of each format; `page` is the base price.
        :param scraping: the part of the cost for scraping search results.
        :param saved: credits that were not spent.
        :param unknown: number of calls of unknown cost.
        :param reserved: credits that count if the cost is unknown; 0: the reserved ones.
        :param is_final: False: the call still bills, and may use up what was reserved.
        :param is_stored: False: the next change of the record stores it, because a later attempt would count the call
            again under its id.
        """
        cost = self.cost(used)
        entry = self._entry(saved=saved if saved and self._bills() else 0)
        if self.cost(None if not is_final else used) is None:
            entry = replace(entry, unknown=unknown, reserved=reserved)
        if cost:
            parts = {operation: cost - scraping, "scrape": scraping} if scraping else {operation: cost}
            entry = replace(
                entry,
                by_operation={part: credits for part, credits in parts.items() if credits},
                by_format=dict(formats or {}),
                by_connection={self._conn_id: cost},
            )
        with self.lock:
            before = entries.used(self._credits)
            self._memory.stage(
                credits=entries.settle(self._credits, name, entry, call and f"{operation}/{call}")
            )
            if is_stored:
                self._memory.note()
            added = entries.used(self._credits) - before
        if added > 0:
            count("webdata.credits_used", added, self._memory.attempt.context, operation=operation)

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
        :param is_repeatable: the call is billed once under its name, however often it is sent, see `repeats`.
        """
        cost = self.cost(cost)
        if not is_repeatable:
            self.settle(name, cost, operation)
        elif cost:
            self.settle(name, cost, operation, call=name)
        elif cost is None:
            self.lose(name)
        elif not self.release(name):
            # Only this repetition is free: the call that it repeats may have been billed.
            cost = self.cost(None)
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

    def to_wire(self) -> dict[str, Any]:
        """Return the XCom `credits`, see `states.credits.report`."""
        return entries.report(self._credits)

    def report(self) -> None:
        """Log the task's credits, and push them to the XCom `credits`."""
        credits = self.to_wire()
        self._log.info("Credits of this task: %s", in_words(credits))
        if self._push is not None:
            self._push(**{CREDITS: credits})
            return
        attempt = self._memory.attempt
        if attempt.ti is not None and getattr(attempt.context.get("task"), "do_xcom_push", True):
            with self.lock:
                attempt.ti.xcom_push(CREDITS, storable(credits))

    def _entry(self, *, reserved: float = 0, unknown: int = 0, saved: float = 0) -> Entry:
        return Entry(
            round=self._round,
            limit=self._name,
            reserved=reserved,
            unknown=unknown,
            saved=saved,
            by_connection={self._conn_id: 0},
        )


def ledger_of_process(conn_id: str, limit: float | None, name: str, bills: Callable[[], bool]) -> Ledger:
    """Return a ledger of the task that this process runs; outside a task, an unrecorded one.

    The n-th ledger with a given name continues as the n-th ledger with that name in later attempts.
    """
    attempt = attempt_of_process()
    if attempt is None:
        return Ledger(None, conn_id, limit, bills=bills)
    memory = memory_of(attempt.context)
    with memory.lock:
        number = memory.ledgers[name]
        memory.ledgers[name] += 1
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
