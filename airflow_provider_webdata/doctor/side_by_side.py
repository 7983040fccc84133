"""Concurrent checks, each in a thread that is abandoned when the time limit is reached."""

from __future__ import annotations

import contextvars
import logging
import time
from dataclasses import dataclass, replace
from threading import Thread
from typing import TYPE_CHECKING, TypeVar

from airflow_provider_webdata.common.coded_errors import CodedError, brief

from .finding import Finding

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

log = logging.getLogger(__name__)

_T = TypeVar("_T")


class TimeLimit:
    """A deadline for several checks, in seconds from now."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._end = time.monotonic() + seconds

    def left(self) -> float:
        """Return the seconds until the deadline, or 0 after it."""
        return max(0.0, self._end - time.monotonic())


@dataclass(frozen=True)
class CheckGroup:
    """Checks that share one request or lookup. Without `conn_id`, they concern all connections."""

    names: tuple[str, ...]
    run: Callable[[], Finding | Sequence[Finding]]
    conn_id: str | None = None

    def named(self, found: Finding | Sequence[Finding]) -> list[Finding]:
        """Return the findings of the checks, in the order of their names, with name and connection."""
        each = [found] if isinstance(found, Finding) else found
        return [
            replace(finding, check=name, conn_id=self.conn_id)
            for name, finding in zip(self.names, each, strict=True)
        ]

    def unknown(self, error: Exception) -> list[Finding]:
        """Return the findings of checks that raised an error."""
        # The text of other errors may contain an SQL statement with its values.
        is_safe = isinstance(error, (CodedError, TimeoutError))
        seen = brief(error) if is_safe else f"the check itself failed ({type(error).__name__})"
        return [Finding(name, "unknown", seen, conn_id=self.conn_id) for name in self.names]


def findings_of(groups: Sequence[CheckGroup], limit: TimeLimit) -> list[Finding]:
    """Run all checks concurrently. A check that fails or times out does not affect the others.

    :return: the findings, in the order of the groups.
    """
    findings: list[Finding] = []
    for group, result in zip(groups, results_of([group.run for group in groups], limit), strict=True):
        findings += group.unknown(result) if isinstance(result, Exception) else group.named(result)
    return findings


def results_of(calls: Sequence[Callable[[], _T]], limit: TimeLimit) -> list[_T | Exception]:
    """Call all concurrently, and return the result or exception of each; `TimeoutError` for calls that time out."""
    results: list[_T | Exception] = [TimeoutError(f"no response within {limit.seconds:g} s") for _ in calls]

    def run(index: int, call: Callable[[], _T]) -> None:
        try:
            results[index] = call()
        except Exception as error:
            log.debug("A check failed", exc_info=True)
            results[index] = error

    threads = [
        # Daemon threads: a name server or database that does not respond must not keep the process from exiting.
        Thread(target=contextvars.copy_context().run, args=(run, index, call), daemon=True)
        for index, call in enumerate(calls)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(limit.left())
    return [*results]
