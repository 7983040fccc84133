"""The meaning of a monitor's check for a wait: whether it has ended, and whether it counts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from airflow_provider_webdata.common.coded_errors import ArgumentError
from airflow_provider_webdata.common.dates import moment
from airflow_provider_webdata.states.stored import Stored

if TYPE_CHECKING:
    from datetime import datetime

    from airflow_provider_webdata.api.models import MonitorCheck, MonitorCheckPage

Choice = Literal["fail", "accept", "wait"]
"""Effect of a check that failed or was partial: the wait fails, accepts it, or continues with the next one."""

Otherwise = Literal["wait", "skip"]
"""Effect of a successful check without changes: continue with the next one, or skip the downstream tasks."""

Outcome = Literal["done", "failed", "skip", "wait"]

CHECK_COMPLETED = "monitor.check.completed"
"""The event that says that a check is over."""

TERMINAL_CHECK_STATES = frozenset({"completed", "partial", "failed", "skipped_overlap", "skipped_no_credits"})
"""States that a check does not leave. The set is open: any check with `finishedAt` is over."""

MEANINGFUL_STATUSES = ("changed", "new")
"""Statuses of pages that a judgment can call meaningful."""

CHANGED_STATUSES = (*MEANINGFUL_STATUSES, "removed")
"""Statuses of pages that differ from the check before."""


class Decision(NamedTuple):
    """The decision about a check.

    :param outcome: `done`: the wait ends with this check. `failed`: it ends with this check and fails. `skip`: it ends
        with this check, and downstream tasks are skipped. `wait`: not this check; continue.
    :param reason: message for a log; empty if the outcome says it all.
    """

    outcome: Outcome
    reason: str = ""


class CheckCriteria(Stored, frozen=True):
    """Criteria for the checks of a wait.

    :param on_failed: decision for a failed check, and for one in an unknown state that has an `error`.
    :param on_partial: decision for a check with some page errors.
    :param on_skipped: decision for a skipped check: the one before was still running, or credits are missing.
    :param only_if_changed: only a check that found changed, new or removed pages counts.
    :param only_if_meaningful: only a check with a page whose change was judged meaningful counts.
    :param otherwise: decision for a check that these two exclude.
    :raises ArgumentError: an unknown choice.
    """

    on_failed: Choice = "fail"
    on_partial: Choice = "accept"
    on_skipped: Choice = "wait"
    only_if_changed: bool = False
    only_if_meaningful: bool = False
    otherwise: Otherwise = "wait"

    def __post_init__(self) -> None:
        choices = dict.fromkeys(("on_failed", "on_partial", "on_skipped"), ("fail", "accept", "wait"))
        for name, known in {**choices, "otherwise": ("wait", "skip")}.items():
            if (given := getattr(self, name)) not in known:
                raise ArgumentError(f"{name} must be one of {', '.join(known)} (given: {given!r})")

    def needs_pages(self, check: MonitorCheck) -> bool:
        """Return whether the check's pages must be read to decide: only they show which changes are meaningful."""
        if not self.only_if_meaningful or self._by_state(check) is not None:
            return False
        summary = check.summary
        return summary is None or summary.changed is None or bool(summary.changed) or bool(summary.new)

    def decide(self, check: MonitorCheck, *, meaningful: bool | None = None) -> Decision:
        """Return what a check that is over means.

        :param meaningful: whether one of its pages was judged meaningful, where `needs_pages` asks for it.
        """
        by_state = self._by_state(check)
        if by_state is not None:
            return by_state
        if self.only_if_changed and not has_changes(check):
            return Decision(self.otherwise, "no page is changed, new or removed")
        if self.only_if_meaningful and not meaningful:
            return Decision(self.otherwise, "no change was judged meaningful")
        return Decision("done")

    def _by_state(self, check: MonitorCheck) -> Decision | None:
        state = check.status or ""
        if state.startswith("skipped"):
            choice, reason = self.on_skipped, f"it was skipped ({state})"
        elif state == "partial":
            choice, reason = self.on_partial, "some of its pages failed (partial)"
        elif state == "failed" or (state != "completed" and check.error):
            choice, reason = self.on_failed, "it failed"
        else:
            return None
        if choice == "accept":
            # A skipped or failed check says nothing of changes; what a partial one found is judged as usual.
            return None if state == "partial" else Decision("done", reason)
        # Imported here, for DAG files import this module.
        from airflow_provider_webdata.api.errors import error_text

        why = f"{reason}: {error_text(check.error)}" if check.error else reason
        return Decision("failed" if choice == "fail" else "wait", why)


def is_over(check: MonitorCheck) -> bool:
    """Return whether a check will not change any more."""
    return check.status in TERMINAL_CHECK_STATES or check.finished_at is not None


def finished_at(check: MonitorCheck) -> datetime | None:
    """Return when a check that is over ended, or the nearest thing to it that the service says."""
    for text in (check.finished_at, check.updated_at, check.created_at):
        if (found := moment(text)) is not None:
            return found
    return None


def has_changes(check: MonitorCheck) -> bool:
    """Return whether a check found changed, new or removed pages."""
    summary = check.summary
    return summary is not None and bool((summary.changed or 0) + (summary.new or 0) + (summary.removed or 0))


def is_meaningful_change(page: MonitorCheckPage) -> bool:
    """Return whether the change of a page was judged meaningful.

    :param page: of a check, with a status of `MEANINGFUL_STATUSES`.
    """
    return page.judgment is not None and page.judgment.meaningful is True


def event_of(check: MonitorCheck, decision: Decision, *, monitor_id: str, via: str) -> dict[str, Any]:
    """Return the event of the trigger for the check that ends a wait.

    :param decision: what it means; never `wait`.
    :param via: how it was learned: `webhook` or `polling`.
    """
    event: dict[str, Any] = {
        "status": decision.outcome,
        "check_id": check.id,
        "monitor_id": check.monitor_id or monitor_id,
        "check_status": check.status,
        "via": via,
    }
    if decision.outcome == "failed":
        event["error"] = f"check {check.id} of monitor {event['monitor_id']}: {decision.reason}"
    elif decision.reason:
        event["reason"] = decision.reason
    return event
