# SPDX-License-Identifier: Apache-2.0
"""Target for the end of one job."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from airflow_provider_webdata.hooks.webhooks import can_receive
from airflow_provider_webdata.inbox.reader import Delivery
from airflow_provider_webdata.states.jobs import JobView, ProgressLog, last_events, name_of
from airflow_provider_webdata.states.outcomes import JobOutcome
from airflow_provider_webdata.waiting.policy import JOB_SAFETY_POLL, safety_poll
from airflow_provider_webdata.waiting.subjects import JobSubject
from airflow_provider_webdata.waiting.subscriptions import Subscription
from airflow_provider_webdata.waiting.target import Look, Target, by_webhook, polls

if TYPE_CHECKING:
    from airflow_provider_webdata.common.job_kinds import JobKind
    from airflow_provider_webdata.hooks.connection import ConnectionSettings
    from airflow_provider_webdata.states.outcomes import Status
    from airflow_provider_webdata.waiting.mailbox import WaitFailedError


class JobTarget(Target[JobOutcome]):
    """The end of one job.

    The service sends no delivery if an entire crawl or batch scrape fails; polling detects this.

    :param poll_interval: seconds between polls if no delivery is expected.
    :param reports: whether the job reports to this connection's inbox; None: unknown.
    :param credit_limit: credits beyond which a running job also ends the wait; None: no limit.
    """

    __slots__ = (
        "_credit_limit",
        "_interval",
        "_is_delivered",
        "_job_id",
        "_kind",
        "_most_completed",
        "_most_total",
        "_poll_interval",
        "_progress",
        "_reports",
        "_view",
    )

    subject_class = JobSubject
    outcome_class = JobOutcome

    def __init__(
        self,
        kind: JobKind,
        job_id: str,
        poll_interval: float,
        log: Any,
        *,
        reports: bool | None = None,
        credit_limit: float | None = None,
    ) -> None:
        super().__init__(log)
        self._kind: JobKind = kind
        self._job_id = job_id
        self._reports = reports
        self._credit_limit = credit_limit
        self._interval = self._poll_interval = poll_interval
        self._progress = ProgressLog(log)
        self._is_delivered = False
        self._view: JobView | None = None
        # A server that loses pages of a job also forgets that it counted them.
        self._most_completed = self._most_total = 0

    def __str__(self) -> str:
        return f"{name_of(self._kind)} {self._job_id}"

    @property
    def key(self) -> tuple[str, str]:
        """The key of the polled subject."""
        return self._kind, self._job_id

    def interval(self, _: JobSubject, *, inbox_answers: bool) -> float:
        """Return the seconds between polls."""
        return self._interval if inbox_answers else self._poll_interval

    def begin(self, settings: ConnectionSettings, *, listens: bool) -> tuple[str, tuple[Subscription, ...]]:
        """Return how the end is detected, and the deliveries to subscribe to."""
        if not listens or self._reports is False or not can_receive(settings):
            return polls(self._interval), ()
        subscription = Subscription(job_id=self._job_id, events=last_events(self._kind))
        if self._reports:
            self._interval = safety_poll(self._poll_interval, JOB_SAFETY_POLL, settings.client.server)
            return by_webhook(self._interval), (subscription,)
        return f"by webhook if the job reports to this Airflow, and {polls(self._interval)}", (subscription,)

    def receive(self, item: Any) -> Look | None:
        """Process a delivery, which is a hint, or the state of the job."""
        if isinstance(item, JobView):
            self._view = item
            self._most_completed = max(self._most_completed, item.completed or 0)
            self._most_total = max(self._most_total, item.total or 0)
            self._progress.update(item)
        elif isinstance(item, Delivery) and not self._is_delivered:
            self._is_delivered = True
            self.log.info("Delivery %s reports %s; polling the service.", item.id, item.event)
            return Look(self._job_id)
        return None

    def decide(self) -> JobView | None:
        """Return the job if it has ended or exceeded its credit limit."""
        view, limit = self._view, self._credit_limit
        if view is None:
            return None
        exceeds = limit is not None and (view.credits_used or 0) > limit
        return view if view.is_over or exceeds else None

    def outcome(self, found: JobView) -> JobOutcome:
        """Return the outcome for a job that has ended or exceeded its credit limit."""
        if found.is_over:
            return self._with_counts(found.outcome("webhook" if self._is_delivered else "polling"))
        outcome = JobOutcome(
            status="done",
            kind=self._kind,
            job_id=self._job_id,
            job_status=found.state,
            over_limit=found.credits_used,
        )
        return self._with_counts(outcome)

    def unfinished(self, status: Status, message: str, failure: WaitFailedError | None = None) -> JobOutcome:
        """Return the outcome of a wait that ends before the job."""
        outcome = super().unfinished(status, message, failure)
        return self._with_counts(replace(outcome, kind=self._kind, job_id=self._job_id))

    def _with_counts(self, outcome: JobOutcome) -> JobOutcome:
        return replace(outcome, most_completed=self._most_completed, most_total=self._most_total)
