# SPDX-License-Identifier: Apache-2.0
"""Fault injection: calls, jobs, checks, and deliveries that fail in a chosen way, a chosen number of times."""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

KINDS = {
    "status": "respond with `status`, `body`, and `headers` before doing any work",
    "delay": "wait `seconds` of real time, then continue as usual",
    "drop": "close the connection before doing any work",
    "drop_after_work": "do the work, then close the connection without a response",
    "truncate": "do the work, announce the full response length, send half of the response, and close the connection",
    "garbage": "do the work, then respond 200 with text that is not JSON",
    "html": "respond 502 with a proxy's HTML page before doing any work",
    "rate_limit": "respond 429 with a wait of `seconds` before doing any work",
    "fail_check": "fail a monitor's check (matches no call)",
    "fail_extract": "fail an extract job at its next step (matches no call)",
    "fail_agent": "fail an agent run at its next step (matches no call)",
    "fail_crawl": "fail a whole crawl at its next step (matches no call)",
    "fail_batch_scrape": "fail a whole batch scrape at its next step (matches no call)",
    "fail_provider": "fail a call of a data provider as unavailable; `path` is its `provider/capability`",
    "hang": "accept the call and never respond",
    "lose_page": "lose a page of a job without a trace; `path` is a regular expression of its URL",
    "lose_delivery": "never send a webhook delivery",
    "late_delivery": "send a webhook delivery `seconds` of sandbox time later, and so out of order",
    "lose_answer": "send a webhook delivery but ignore the response, so that it is retried",
}
JOB_FAULT = "The job failed because of an injected fault."
CHECK_FAULTS = frozenset({"fail_check"})
JOB_FAULTS = frozenset({"fail_extract", "fail_agent", "fail_crawl", "fail_batch_scrape"})
PROVIDER_FAULTS = frozenset({"fail_provider"})
PAGE_FAULTS = frozenset({"lose_page"})
DELIVERY_FAULTS = frozenset({"lose_delivery", "late_delivery", "lose_answer"})
ALIASES = {"drop_before_work": "drop"}


@dataclass
class Fault:
    """One fault.

    :param path: a regular expression that matches from the start of the path, so a prefix works too. A delivery fault
        matches the path of the webhook's URL.
    :param times: remaining number of occurrences; None: no limit.
    :param seconds: real seconds, or sandbox seconds for ``late_delivery``.
    :param event: a delivery fault applies only to this event; None: to all.
    :raises ValueError: the kind is unknown, or ``path`` is not a regular expression.
    """

    kind: str
    method: str | None = None
    path: str | None = None
    times: int | None = 1
    status: int = 500
    body: Any = None
    headers: dict[str, str] = field(default_factory=dict)
    seconds: float = 0.0
    event: str | None = None
    id: int = 0
    hits: int = 0

    def __post_init__(self) -> None:
        self.kind = ALIASES.get(self.kind, self.kind)
        if self.kind not in KINDS:
            raise ValueError(f"unknown kind of fault {self.kind!r}. Kinds: {', '.join(KINDS)}")
        try:
            re.compile(self.path or "")
        except re.error as error:
            raise ValueError(f"path is not a regular expression: {error}") from None

    def matches(self, method: str, path: str) -> bool:
        """Return whether the fault applies to this call."""
        if self.kind in CHECK_FAULTS | JOB_FAULTS | PROVIDER_FAULTS | PAGE_FAULTS | DELIVERY_FAULTS:
            return False
        if self.method is not None and self.method.upper() != method:
            return False
        return self._is_pending(path)

    def matches_delivery(self, event: str, path: str) -> bool:
        """Return whether the fault applies to this delivery."""
        if self.kind not in DELIVERY_FAULTS or self.event not in (None, event):
            return False
        return self._is_pending(path)

    def matches_provider(self, tool: str) -> bool:
        """Return whether the fault applies to this call of a data provider."""
        return self.kind in PROVIDER_FAULTS and self._is_pending(tool)

    def matches_page(self, url: str) -> bool:
        """Return whether the fault applies to this page of a job."""
        return self.kind in PAGE_FAULTS and self._is_pending(url)

    def _is_pending(self, path: str) -> bool:
        return self.times != 0 and (self.path is None or re.match(self.path, path) is not None)


class Faults:
    """The injected faults, oldest first."""

    def __init__(self) -> None:
        self._faults: list[Fault] = []
        self._ids = itertools.count(1)

    def add(self, fault: Fault) -> int:
        """Add a fault and return its id."""
        fault.id = next(self._ids)
        self._faults.append(fault)
        return fault.id

    def clear(self) -> None:
        """Remove all faults."""
        self._faults.clear()

    def all(self) -> list[Fault]:
        """Return all faults, including used-up ones."""
        return list(self._faults)

    def consume(self, method: str, path: str) -> list[Fault]:
        """Use up and return the faults for a call: all delays, and at most one fault of another kind."""
        due: list[Fault] = []
        for fault in self._faults:
            if fault.matches(method, path) and (fault.kind == "delay" or all(f.kind == "delay" for f in due)):
                due.append(fault)
        for fault in due:
            _use(fault)
        return due

    def consume_delivery(self, kinds: frozenset[str], event: str, path: str) -> Fault | None:
        """Use up and return the first fault of these kinds for a delivery."""
        for fault in self._faults:
            if fault.kind in kinds and fault.matches_delivery(event, path):
                _use(fault)
                return fault
        return None

    def consume_check_failure(self) -> bool:
        """Return whether the check that ends now must fail, and use the fault up."""
        return self._consume_failure("fail_check") is not None

    def consume_job_failure(self, kind: str) -> str | None:
        """Return the error with which a job (``extract``, ``crawl``, ...) must fail at its current step, or None.

        It uses the fault up.
        """
        fault = self._consume_failure(f"fail_{kind}")
        return None if fault is None else str(fault.body or JOB_FAULT)

    def consume_provider_failure(self, tool: str) -> bool:
        """Return whether a call of a data provider (``provider/capability``) must fail, and use the fault up."""
        return _used(fault for fault in self._faults if fault.matches_provider(tool))

    def consume_page_loss(self, url: str) -> bool:
        """Return whether a page of a job must be lost, and use the fault up."""
        return _used(fault for fault in self._faults if fault.matches_page(url))

    def _consume_failure(self, kind: str) -> Fault | None:
        for fault in self._faults:
            if fault.kind == kind and fault.times != 0:
                _use(fault)
                return fault
        return None


def _used(faults: Iterable[Fault]) -> bool:
    fault = next(iter(faults), None)
    if fault is not None:
        _use(fault)
    return fault is not None


def _use(fault: Fault) -> None:
    fault.hits += 1
    if fault.times is not None:
        fault.times -= 1
