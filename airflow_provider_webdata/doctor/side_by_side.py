"""Checks that run concurrently, each in a thread that is abandoned when the time is over."""

from __future__ import annotations

import contextvars
import logging
import time
from dataclasses import dataclass
from threading import Thread
from typing import TYPE_CHECKING, TypeVar

from airflow_provider_webdata.common.coded_errors import CodedError

from .finding import Finding

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

log = logging.getLogger(__name__)

_T = TypeVar("_T")


class TimeLimit:
    """A moment by which all must be over, some seconds from now."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._end = time.monotonic() + seconds

    def left(self) -> float:
        """Return the seconds until then, 0 once it has passed."""
        return max(0.0, self._end - time.monotonic())


@dataclass(frozen=True)
class CheckGroup:
    """Checks that are made together, from one answer; without `conn_id`, of what all connections share."""

    names: tuple[str, ...]
    run: Callable[[], list[Finding]]
    conn_id: str | None = None

    def unknown(self, error: Exception) -> list[Finding]:
        """Return the findings to report if the checks returned none."""
        # The text of any other error may hold a statement with its values.
        is_safe = isinstance(error, (CodedError, TimeoutError))
        seen = str(error) if is_safe else f"the check itself failed ({type(error).__name__})"
        return [Finding(name, "unknown", seen, conn_id=self.conn_id) for name in self.names]


def findings_of(groups: Sequence[CheckGroup], limit: TimeLimit) -> list[Finding]:
    """Make all checks at once; one that fails, or is not over in time, leaves the others alone.

    :return: their findings, in the order of the groups.
    """
    findings: list[Finding] = []
    for group, result in zip(groups, results_of([group.run for group in groups], limit), strict=True):
        findings += group.unknown(result) if isinstance(result, Exception) else result
    return findings


def results_of(calls: Sequence[Callable[[], _T]], limit: TimeLimit) -> list[_T | Exception]:
    """Call all at once, and return what each returned or raised, `TimeoutError` for one that is not over in time."""
    results: list[_T | Exception] = [TimeoutError(f"no answer within {limit.seconds:g} s") for _ in calls]

    def run(index: int, call: Callable[[], _T]) -> None:
        try:
            results[index] = call()
        except Exception as error:
            log.debug("A check failed", exc_info=True)
            results[index] = error

    threads = [
        # A daemon: a name server or a database that does not answer must not keep the process from ending.
        Thread(target=contextvars.copy_context().run, args=(run, index, call), daemon=True)
        for index, call in enumerate(calls)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(limit.left())
    return [*results]
