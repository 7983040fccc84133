"""Faults on demand: answers that go wrong in a chosen way, for chosen calls, a chosen number of times."""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass, field
from typing import Any

KINDS = {
    "status": "answer with `status`, `body` and `headers` before any work is done",
    "delay": "wait `seconds` of real time, then go on as usual",
    "drop": "close the connection before any work is done",
    "drop_after_work": "do the work, then close the connection without an answer",
    "truncate": "do the work, announce the whole answer, send half of it and close the connection",
    "garbage": "do the work, answer 200 with text that is not JSON",
    "html": "answer 502 with a proxy's HTML page before any work is done",
    "rate_limit": "answer 429 that asks for `seconds`, before any work is done",
    "fail_check": "let a monitor's check end as failed (matches no call)",
    "fail_extract": "let an extract job fail at its next step (matches no call)",
    "fail_agent": "let an agent run fail at its next step (matches no call)",
    "fail_crawl": "let a crawl fail as a whole at its next step (matches no call)",
    "fail_batch_scrape": "let a batch scrape fail as a whole at its next step (matches no call)",
    "fail_provider": "let a call of a data provider fail as unavailable; `path` is its `provider/capability`",
    "lose_delivery": "never send a webhook delivery",
    "late_delivery": "send a webhook delivery `seconds` of the sandbox's time later, and so out of order",
    "lose_answer": "send a webhook delivery and do not hear the answer: it is repeated by the schedule",
}
OF_CHECKS = frozenset({"fail_check"})
OF_JOBS = frozenset({"fail_extract", "fail_agent", "fail_crawl", "fail_batch_scrape"})
OF_PROVIDERS = frozenset({"fail_provider"})
OF_DELIVERIES = frozenset({"lose_delivery", "late_delivery", "lose_answer"})
ALIASES = {"drop_before_work": "drop"}


@dataclass
class Fault:
    """One fault. ``path`` is a regular expression from the start of the path, so a plain prefix works too.

    ``times``: how often it still shows; None: always. ``seconds``: real seconds. For faults of deliveries, ``path``
    is that of the webhook's address, and ``event`` the one event they are about.
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
            raise ValueError(f"unknown kind of fault {self.kind!r}; known are {', '.join(KINDS)}")
        try:
            re.compile(self.path or "")
        except re.error as error:
            raise ValueError(f"path is not a regular expression: {error}") from None

    def matches(self, method: str, path: str) -> bool:
        """Return whether the fault is due for this call."""
        if self.kind in OF_CHECKS | OF_JOBS | OF_PROVIDERS | OF_DELIVERIES:
            return False
        if self.method is not None and self.method.upper() != method:
            return False
        return self._is_left_for(path)

    def matches_delivery(self, event: str, path: str) -> bool:
        """Return whether the fault is due for this delivery."""
        if self.kind not in OF_DELIVERIES or self.event not in (None, event):
            return False
        return self._is_left_for(path)

    def matches_provider(self, tool: str) -> bool:
        """Return whether the fault is due for this call of a data provider."""
        return self.kind in OF_PROVIDERS and self._is_left_for(tool)

    def _is_left_for(self, path: str) -> bool:
        return self.times != 0 and (self.path is None or re.match(self.path, path) is not None)


class Faults:
    """All added faults, oldest first."""

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

    def take(self, method: str, path: str) -> list[Fault]:
        """Return the faults due for a call: any delays, and at most one other. Each counts as shown once."""
        due: list[Fault] = []
        for fault in self._faults:
            if fault.matches(method, path) and (fault.kind == "delay" or all(f.kind == "delay" for f in due)):
                due.append(fault)
        for fault in due:
            _use(fault)
        return due

    def take_delivery(self, kinds: frozenset[str], event: str, path: str) -> Fault | None:
        """Return the first fault of these kinds that is due for a delivery; it counts as shown once."""
        for fault in self._faults:
            if fault.kind in kinds and fault.matches_delivery(event, path):
                _use(fault)
                return fault
        return None

    def take_check_failure(self) -> bool:
        """Return whether the check that ends now must fail; the fault counts as shown once."""
        return self._take_failure("fail_check")

    def take_job_failure(self, kind: str) -> bool:
        """Return whether the job of that kind (``extract``, ``crawl``, ...) must fail at the step that starts now."""
        return self._take_failure(f"fail_{kind}")

    def take_provider_failure(self, tool: str) -> bool:
        """Return whether the call of a data provider (``provider/capability``) must fail; the fault counts as shown."""
        fault = next((fault for fault in self._faults if fault.matches_provider(tool)), None)
        if fault is not None:
            _use(fault)
        return fault is not None

    def _take_failure(self, kind: str) -> bool:
        for fault in self._faults:
            if fault.kind == kind and fault.times != 0:
                _use(fault)
                return True
        return False


def _use(fault: Fault) -> None:
    fault.hits += 1
    if fault.times is not None:
        fault.times -= 1
