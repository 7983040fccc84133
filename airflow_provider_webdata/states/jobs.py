# SPDX-License-Identifier: Apache-2.0
"""Job states and their outcomes for a wait. See sandbox/docs/service.md#events."""

from __future__ import annotations

import time
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import msgspec

from airflow_provider_webdata.common.job_kinds import JobKind  # noqa: TC001 - msgspec reads the annotations
from airflow_provider_webdata.common.numbers import credits_text, known_count, known_credits
from airflow_provider_webdata.states.outcomes import JobOutcome

if TYPE_CHECKING:
    from collections.abc import Sequence

    from airflow_provider_webdata.states.outcomes import Via

JOB_COMPLETED = "completed"
"""The event that reports a completed job, without the prefix."""

TERMINAL_JOB_STATES = frozenset({"completed", "failed", "cancelled"})
"""Terminal states of a job."""

RESULT_LIFE = timedelta(hours=24)
"""Time for which the service keeps the result of a job after its end."""

LOST = "lost it, as after a restart without its database"
"""What a server did with a job that it no longer knows, before the result can have expired."""

PROGRESS_SECONDS = 10.0
"""Minimum number of seconds between two progress messages in the log of a waiting task."""

_EVENTS: dict[JobKind, tuple[str, ...]] = {
    "crawl": ("started", "completed", "failed"),
    "batch_scrape": ("started", "completed", "failed"),
    "agent": ("started", "completed", "failed", "cancelled"),
}
_NAMES: dict[JobKind, str] = {
    "crawl": "crawl",
    "batch_scrape": "batch scrape",
    "agent": "agent run",
}


def name_of(kind: JobKind) -> str:
    """Return the name of a kind of job in messages."""
    return _NAMES[kind]


def events_to_ask_for(kind: JobKind) -> list[str]:
    """Return the events of the managed webhook, without prefix, as in a request.

    `started` links the job's id to the correlation key. `failed` does no harm if the service never sends it. Events for
    pages and actions are omitted because they contain whole documents.
    """
    return list(_EVENTS[kind])


def last_events(kind: JobKind) -> tuple[str, ...]:
    """Return the events that report the end of a job, with prefix."""
    return tuple(f"{kind}.{name}" for name in _EVENTS[kind] if name != "started")


class JobView(msgspec.Struct, frozen=True):
    """The status of a job.

    :param state: state as the service reports it; the set is open.
    :param completed: number of completed pages; None if the service does not count them.
    :param total: number of attempted pages; it may decrease.
    :param credits_used: credits used so far, updated with a delay; None if unknown.
    :param error: reason for the failure, if the service reports one.
    :param warning: warning of the service.
    :param created_at: start, as the service writes it.
    :param completed_at: end, as the service writes it.
    """

    kind: JobKind
    job_id: str
    state: str | None = None
    completed: int | None = None
    total: int | None = None
    credits_used: float | None = None
    error: str | None = None
    warning: str | None = None
    created_at: str | None = None
    completed_at: str | None = None

    @classmethod
    def of(cls, kind: JobKind, job_id: str, status: Any) -> JobView:
        """Create a view from a status response."""
        # Imported here because DAG files import this module.
        from airflow_provider_webdata.api.errors import error_text

        return cls(
            kind,
            job_id,
            error_text(getattr(status, "status", None)) or None,
            # A kind that does not document these may have any values.
            known_count(getattr(status, "completed", None)),
            known_count(getattr(status, "total", None)),
            known_credits(getattr(status, "credits_used", None)),
            error_text(getattr(status, "error", None)) or None,
            error_text(getattr(status, "warning", None)) or None,
            *(getattr(status, name, None) for name in ("created_at", "completed_at")),
        )

    @property
    def is_over(self) -> bool:
        """Whether the job has ended."""
        return self.state in TERMINAL_JOB_STATES

    @property
    def is_alive(self) -> bool:
        """Whether the job is running or completed."""
        return self.state not in TERMINAL_JOB_STATES or self.state == "completed"

    def progress(self) -> str:
        """Return the job's progress as text."""
        parts = [self.state or "no state given"]
        if self.completed is not None:
            parts.append(f"{self.completed} of {'?' if self.total is None else self.total} pages done")
        if self.credits_used is not None:
            parts.append(f"{credits_text(self.credits_used)} credits used")
        return ", ".join(parts)

    def outcome(self, via: Via) -> JobOutcome:
        """Return the outcome of a wait for this job, which has ended.

        :param via: source of the state.
        """
        message = ""
        if self.state == "failed":
            message = (
                f"{name_of(self.kind)} {self.job_id} failed: {self.error or 'the service gives no reason'}"
            )
        elif self.state != "completed":
            ended = "canceled" if self.state == "cancelled" else self.state
            message = f"{name_of(self.kind)} {self.job_id} was {ended}"
        return JobOutcome(
            status="done" if self.state == "completed" else "failed",
            message=message,
            via=via,
            kind=self.kind,
            job_id=self.job_id,
            job_status=self.state,
        )


class ProgressLog:
    """Logs the progress of a job if it has changed, at a limited rate.

    :param every: minimum number of seconds between two messages.
    """

    __slots__ = ("_every", "_last", "_log", "_logged_at")

    def __init__(self, log: Any, every: float = PROGRESS_SECONDS) -> None:
        self._log = log
        self._every = every
        self._logged_at = float("-inf")
        self._last = ""

    def update(self, view: JobView) -> None:
        """Log the current progress."""
        text = view.progress()
        if text == self._last or (not view.is_over and time.monotonic() - self._logged_at < self._every):
            return
        self._last, self._logged_at = text, time.monotonic()
        self._log.info("%s %s: %s", name_of(view.kind).capitalize(), view.job_id, text)


def first_few(items: Sequence[str], most: int = 10) -> str:
    """Format a list as text; truncate it if it is long."""
    rest = len(items) - most
    return ", ".join(items[:most]) + (f" and {rest} more" if rest > 0 else "")
