"""A task instance's account: credits spent, by operation, format, and connection, and credits saved."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from typing_extensions import NotRequired, TypedDict

from airflow_provider_webdata.common.attempt import Attempt
from airflow_provider_webdata.common.job_kinds import ALL_JOB_KINDS
from airflow_provider_webdata.common.numbers import known_credits
from airflow_provider_webdata.common.stored_record import Count, Credits, damage_of, place_of
from airflow_provider_webdata.runs.failures import CreditLimitError
from airflow_provider_webdata.runs.metrics import count

if TYPE_CHECKING:
    from collections.abc import Mapping
    from logging import Logger

    from airflow.sdk import Context
    from airflow.sdk.types import Logger as TaskLogger

log = logging.getLogger(__name__)

_KEY = "webdata_credits"
_PARTS = ("byOperation", "byFormat", "byConnection")


class _Entry(TypedDict):
    maxTries: int
    clearedAfter: NotRequired[Count]
    saved: Credits
    unknown: Count
    byOperation: dict[str, Credits]
    byFormat: dict[str, Credits]
    byConnection: NotRequired[dict[str, Credits]]


class CreditAccount:
    """The credits of a task instance, including its earlier attempts.

    Airflow 3.3 keeps them in its task state store, even when the task is cleared. Airflow 3.2 has no such store: the
    account covers one attempt.
    """

    def __init__(self, context: Context) -> None:
        self.attempt = Attempt(context)
        # Unlike other records, this one includes credits spent before the task was cleared.
        self._store = self.attempt.store
        self.is_complete = self._store is not None or self.attempt.number == 1
        """True if the account includes all earlier attempts."""
        stored: Any = self._store.get(_KEY) if self._store is not None else None
        self._damage = None if stored is None else damage_of(stored, dict[str, _Entry])
        self._entries: dict[str, dict[str, Any]] = {} if stored is None or self._damage else stored
        if self._damage:
            # A damaged record must not fail a billed call. A credit limit fails earlier, before the call.
            log.warning(
                "The record %s of earlier attempts' credits is damaged (%s). The account starts at zero",
                _KEY,
                self._damage,
            )

    @property
    def is_empty(self) -> bool:
        """True if no call is recorded."""
        return not self._entries

    @property
    def since_cleared(self) -> float:
        """Credits spent by the attempts since the task was cleared, if ever.

        :raises CreditLimitError: the record of earlier attempts is damaged.
        """
        if self._damage:
            raise CreditLimitError(
                f"the credits of earlier attempts are unknown, because the record {_KEY} is damaged ({self._damage}): "
                f"{place_of(_KEY)}"
            )
        return sum(
            _used(entry)
            for entry in self._entries.values()
            if (entry["maxTries"], entry.get("clearedAfter", 0))
            == (self.attempt.max_tries, self.attempt.after)
        )

    def enter(
        self,
        call: str | None,
        by_operation: Mapping[str, float],
        by_format: Mapping[str, float],
        *,
        conn_id: str,
        saved: float = 0,
        is_known: bool = True,
    ) -> float:
        """Record a call's cost (idempotent) and return the account's increase.

        :param call: name of the call; None adds it to the other unnamed calls.
        :param by_operation: credits by operation.
        :param by_format: credits of pages, by format; `page` is the base price.
        :param conn_id: connection of the call.
        :param saved: credits that were not spent.
        :param is_known: True if the service reported the cost.
        """
        key = call or f"unnamed/{self.attempt.round}"
        before = self._entries.get(key)
        entry: dict[str, Any] = {
            "maxTries": self.attempt.max_tries,
            "saved": saved + (before["saved"] if before else 0),
            "unknown": int(not is_known),
            "byOperation": dict(by_operation),
            "byFormat": dict(by_format),
            "byConnection": {conn_id: total} if (total := sum(by_operation.values())) else {},
        }
        if self.attempt.after:
            entry["clearedAfter"] = self.attempt.after
        if before is not None:
            if call is None:
                entry["unknown"] += before["unknown"]
                for part in _PARTS:
                    entry[part] = _added(before.get(part, {}), entry[part])
            else:
                entry["maxTries"] = before["maxTries"]
                entry.pop("clearedAfter", None)
                if "clearedAfter" in before:
                    entry["clearedAfter"] = before["clearedAfter"]
        self._entries[key] = entry
        if self._store is not None:
            self._store.set(_KEY, self._entries)
        return _used(entry) - (_used(before) if before else 0)

    def to_wire(self) -> dict[str, Any]:
        """Return the XCom `credits`: `used`, `saved`, `unknown` (calls of unknown cost), and the breakdowns.

        `jobs`, if any, has the cost of each job by kind and id: several tasks may read the result of one job.
        """
        credits: dict[str, Any] = {"used": 0, "saved": 0, "unknown": 0, **{part: {} for part in _PARTS}}
        jobs = {}
        for name, entry in self._entries.items():
            used = _used(entry)
            credits["used"] += used
            credits["saved"] += entry["saved"]
            credits["unknown"] += entry["unknown"]
            for part in _PARTS:
                credits[part] = _added(credits[part], entry.get(part, {}))
            if used and name.partition("/")[0] in ALL_JOB_KINDS:
                jobs[name] = used
        return {**credits, **({"jobs": jobs} if jobs else {})}


def enter_call(
    account: CreditAccount,
    log: Logger | TaskLogger,
    used: Any,
    operation: str,
    conn_id: str,
    *,
    call: str | None = None,
    formats: Mapping[str, float] | None = None,
    scraping: float = 0,
    saved: float = 0,
    is_earlier: bool = False,
) -> dict[str, Any]:
    """Record a call's cost in an account, log the account, and count the call in the metrics.

    :param used: credits that the service reports; None, or less than 0, if it reports none.
    :param conn_id: connection of the call.
    :param call: name of the call, which is counted once for all attempts; None: it has no name.
    :param formats: the part of the cost of each format.
    :param scraping: the part of the cost for scraping search results.
    :param saved: credits that were not spent.
    :param is_earlier: an earlier attempt made the call and counted it in the metrics.
    :return: the account in its XCom form.
    """
    used = known_credits(used)
    parts = {operation: 0 if used is None else used - scraping, **({"scrape": scraping} if scraping else {})}
    added = account.enter(
        f"{operation}/{call}" if call else None,
        {name: part for name, part in parts.items() if part},
        formats or {},
        conn_id=conn_id,
        saved=saved,
        is_known=used is not None,
    )
    credits = account.to_wire()
    missing = "" if account.is_complete else " (without earlier attempts, which Airflow 3.2 does not record)"
    log.info("Credits of this task: %s%s", in_words(credits), missing)
    if added > 0 and not is_earlier:
        count("webdata.credits_used", added, account.attempt.context, operation=operation)
    return credits


def in_words(credits: Mapping[str, Any]) -> str:
    """Return an account for the log."""
    parts = ", ".join(f"{name} {used:g}" for name, used in credits["byOperation"].items())
    formats = ", ".join(f"{name} {used:g}" for name, used in credits["byFormat"].items())
    text = f"{credits['used']:g} used" + (
        f" ({parts}{f'; by format: {formats}' if formats else ''})" if parts else ""
    )
    if credits["unknown"]:
        text += f", plus {credits['unknown']} calls of unknown cost"
    return f"{text}; {credits['saved']:g} saved"


def by_format(used: float, pages: int, extras: Mapping[str, int]) -> dict[str, float]:
    """Split the credits of pages by format, at the documented prices.

    :param used: credits for the pages that the service reports.
    :param pages: number of pages.
    :param extras: credits that each format adds to a page.
    """
    left = max(used - pages, 0)
    found: dict[str, float] = {}
    for name, price in extras.items():
        if part := min(price * pages, left):
            found[name] = part
            left -= part
    rest = used - sum(found.values())
    return {"page": rest, **found} if used else {}


def _used(entry: Mapping[str, Any]) -> float:
    used: float = sum(entry["byOperation"].values())
    return used


def _added(one: Mapping[str, float], other: Mapping[str, float]) -> dict[str, float]:
    return {**one, **{name: one.get(name, 0) + credits for name, credits in other.items()}}
