"""The state of a job, and its meaning for a wait. See docs/service.md#events."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import msgspec

from airflow_provider_webdata.common.job_kinds import JobKind  # noqa: TC001 - msgspec reads the annotations

if TYPE_CHECKING:
    from collections.abc import Sequence

JOB_COMPLETED = "completed"
"""The event that reports a completed job, behind its kind."""

TERMINAL_JOB_STATES = frozenset({"completed", "failed", "cancelled"})
"""States that a job does not leave."""

PAGED_KINDS = frozenset({"crawl", "batch_scrape"})
"""Jobs whose result is a list of pages, read apart, and which keep errors of single pages."""

PROGRESS_SECONDS = 10.0
"""Least seconds between two lines of a waiting task's log about its job."""

_EVENTS: dict[JobKind, tuple[str, ...]] = {
    "crawl": ("started", "completed", "failed"),
    "batch_scrape": ("started", "completed", "failed"),
    "extract": ("started", "completed", "failed"),
    "agent": ("started", "completed", "failed", "cancelled"),
}
_NAMES: dict[JobKind, str] = {
    "crawl": "crawl",
    "batch_scrape": "batch scrape",
    "extract": "extract job",
    "agent": "agent run",
}


def name_of(kind: JobKind) -> str:
    """Return what messages call a job of a kind."""
    return _NAMES[kind]


def events_to_ask_for(kind: JobKind) -> list[str]:
    """Return the events that the managed webhook asks for, without prefix, as requests want them.

    `started` ties the job's id to the correlation key. `failed` costs nothing where the service never sends it.
    Pages and actions are left out: they carry whole documents.
    """
    return list(_EVENTS[kind])


def last_events(kind: JobKind) -> tuple[str, ...]:
    """Return the events that say that a job is over, with prefix."""
    return tuple(f"{kind}.{name}" for name in _EVENTS[kind] if name != "started")


class JobView(msgspec.Struct, frozen=True):
    """How a job stands.

    :param state: as the service names it; the set is open.
    :param completed: pages done; None where the service does not count.
    :param total: pages attempted; it may fall.
    :param credits_used: so far; lags, None when unknown.
    :param error: why it failed, where the service says so.
    :param warning: what the service warns of.
    """

    kind: JobKind
    job_id: str
    state: str | None = None
    completed: int | None = None
    total: int | None = None
    credits_used: float | None = None
    error: str | None = None
    warning: str | None = None

    @classmethod
    def of(cls, kind: JobKind, job_id: str, status: Any) -> JobView:
        """Return how a job stands."""
        # Imported here, for DAG files import this module.
        from airflow_provider_webdata.api.errors import error_text

        used = getattr(status, "credits_used", None)
        return cls(
            kind,
            job_id,
            getattr(status, "status", None),
            getattr(status, "completed", None),
            getattr(status, "total", None),
            # -1 stands for unknown.
            used if isinstance(used, (int, float)) and used >= 0 else None,
            error_text(getattr(status, "error", None)) or None,
            getattr(status, "warning", None),
        )

    @property
    def is_over(self) -> bool:
        """Whether the job will not change any more."""
        return self.state in TERMINAL_JOB_STATES

    @property
    def is_alive(self) -> bool:
        """Whether the job runs, or has a result to take."""
        return self.state not in TERMINAL_JOB_STATES or self.state == "completed"

    def progress(self) -> str:
        """Return the job's progress as text."""
        parts = [self.state or "no state given"]
        if self.completed is not None:
            parts.append(f"{self.completed} of {'?' if self.total is None else self.total} pages done")
        if self.credits_used is not None:
            parts.append(f"{self.credits_used:g} credits used")
        return ", ".join(parts)

    def event(self, via: str) -> dict[str, Any]:
        """Return the event of the trigger for a job that is over.

        :param via: how it was learned: `webhook` or `polling`.
        """
        event = {
            "status": "done" if self.state == "completed" else "failed",
            "kind": self.kind,
            "job_id": self.job_id,
            "job_status": self.state,
            "via": via,
        }
        if self.state == "failed":
            event["error"] = (
                f"{name_of(self.kind)} {self.job_id} failed: {self.error or 'the service gives no reason'}"
            )
        elif self.state != "completed":
            event["error"] = f"{name_of(self.kind)} {self.job_id} was {self.state}"
        return event


class ProgressLog:
    """Logs how far a job is: only what is new, and not too often.

    :param every: least seconds between two lines.
    """

    __slots__ = ("_every", "_last", "_log", "_logged_at")

    def __init__(self, log: Any, every: float = PROGRESS_SECONDS) -> None:
        self._log = log
        self._every = every
        self._logged_at = float("-inf")
        self._last = ""

    def update(self, view: JobView) -> None:
        """Log how the job stands now."""
        text = view.progress()
        if text == self._last or (not view.is_over and time.monotonic() - self._logged_at < self._every):
            return
        self._last, self._logged_at = text, time.monotonic()
        self._log.info("%s %s: %s", name_of(view.kind).capitalize(), view.job_id, text)


def first_few(items: Sequence[str], most: int = 10) -> str:
    """Format a list as text, cut if it is long."""
    rest = len(items) - most
    return ", ".join(items[:most]) + (f" and {rest} more" if rest > 0 else "")
