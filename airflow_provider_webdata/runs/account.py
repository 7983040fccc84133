"""The team's account: calls, credits by billing period, and monitor checks."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any

from airflow_provider_webdata.common.dates import moment
from airflow_provider_webdata.common.run_span import run_span, time_zone_of
from airflow_provider_webdata.runs.publishing.step import Results
from airflow_provider_webdata.runs.run import Run
from airflow_provider_webdata.states.check_listing import CheckListing
from airflow_provider_webdata.states.checks import finished_at, is_over

if TYPE_CHECKING:
    from collections.abc import Iterator

    from airflow_provider_webdata.api.models import MonitorCheck
    from airflow_provider_webdata.operators.account import WebDataAccountOperator

_ACTIVITY_KEPT = timedelta(hours=24)
_EVER = datetime.min.replace(tzinfo=timezone.utc)
_KINDS = {"activity": "activity", "credits": "credit_period", "checks": "monitor_check"}


class AccountRun(Run):
    """Reads and publishes the account's records in the run's data interval."""

    task: WebDataAccountOperator

    start: datetime | None = None
    """Start of the interval, inclusive; None if the run has no interval, such as with a plain `@hourly`."""

    end: datetime | None = None
    """End of the interval, exclusive."""

    def call(self) -> Any:
        """Read and publish the results."""
        start, end = run_span(self.context["dag_run"], time_zone_of(self.context.get("dag")))
        if start < end:
            self.start, self.end = start, end
        what = self.task.what
        summary = {
            "what": what,
            "since": self.start and self.start.isoformat(),
            "until": self.end and self.end.isoformat(),
        }
        items = {"activity": self._activity, "credits": self._credits, "checks": self._checks}[what]()
        return self.publish(Results(items, _KINDS[what], summary))

    def _activity(self) -> Iterator[dict[str, Any]]:
        oldest = datetime.now(timezone.utc) - _ACTIVITY_KEPT
        if self.start is not None and self.start < oldest:
            self.log.warning(
                "The service lists calls for 24 hours. Calls from %s to %s are missing. Run the DAG more often",
                self.start.isoformat(timespec="seconds"),
                min(oldest, self.end or oldest).isoformat(timespec="seconds"),
            )
        for item in self.hook.iter_activity():
            if self._contains(moment(item.created_at)):
                yield item.to_wire()

    def _credits(self) -> Iterator[dict[str, Any]]:
        for period in self.hook.credit_history().periods:
            begin, end = moment(period.start_date), moment(period.end_date)
            ended = self.start is not None and end is not None and end <= self.start
            if not ended and (self.end is None or begin is None or begin < self.end):
                yield period.to_wire()

    def _checks(self) -> Iterator[dict[str, Any]]:
        for monitor in self.hook.iter_monitors():
            for check in self._checks_of(monitor.id):
                if is_over(check) and self._contains(finished_at(check)):
                    yield {"monitorName": monitor.name, **check.to_wire(mask_headers=True)}

    def _checks_of(self, monitor_id: str) -> list[MonitorCheck]:
        """Return a monitor's checks, newest first, back to the first that ended before the interval."""
        listing = CheckListing(self.start or _EVER)
        while listing.query is not None:
            limit, offset = listing.query
            listing.add_page(self.hook.list_monitor_checks(monitor_id, limit=limit, offset=offset))
        return listing.checks

    def _contains(self, time: datetime | None) -> bool:
        """Return whether the interval includes a time. Without an interval, every time counts, even a missing one."""
        if self.start is None or self.end is None:
            return True
        return time is not None and self.start <= time < self.end
