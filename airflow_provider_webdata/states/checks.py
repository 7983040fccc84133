# SPDX-License-Identifier: Apache-2.0
"""Criteria and decisions of a wait for a monitor's checks."""

from __future__ import annotations

from datetime import MINYEAR
from typing import TYPE_CHECKING, Literal, NamedTuple

from airflow_provider_webdata.common.coded_errors import ArgumentError
from airflow_provider_webdata.common.dates import moment
from airflow_provider_webdata.common.item_urls import was_fetched
from airflow_provider_webdata.states.outcomes import CheckOutcome
from airflow_provider_webdata.states.stored import Stored

if TYPE_CHECKING:
    from datetime import datetime

    from airflow_provider_webdata.api.models import MonitorCheck, MonitorCheckPage
    from airflow_provider_webdata.states.outcomes import Via

Choice = Literal["fail", "accept", "wait"]
"""Effect of a failed, partial, or skipped check: the wait fails, accepts it, or continues with the next one."""

Otherwise = Literal["wait", "skip"]
"""Effect of a successful check without changes: continue with the next one, or skip the downstream tasks."""

Outcome = Literal["done", "failed", "skip", "wait"]

PagesWanted = bool | Literal["changed"] | tuple[str, ...]
"""Pages of a check to return: all or none, those that differ from the previous check, or those with some statuses."""

CHECK_COMPLETED = "monitor.check.completed"
"""The event that reports a finished check."""

TERMINAL_CHECK_STATES = frozenset({"completed", "partial", "failed", "skipped_overlap", "skipped_no_credits"})
"""Terminal states of a check. The set is open: any check with `finishedAt` has ended."""

MEANINGFUL_STATUSES = ("changed", "new")
"""Page statuses that can be judged meaningful."""

CHANGED_STATUSES = (*MEANINGFUL_STATUSES, "removed")
"""Page statuses that indicate a difference from the previous check."""


class Decision(NamedTuple):
    """The decision on a check.

    :param outcome: `done`: the wait ends with this check. `failed`: it ends with this check and fails. `skip`: it ends
        with this check, and downstream tasks are skipped. `wait`: ignore this check and continue.
    :param reason: log message; empty if the outcome is self-explanatory.
    """

    outcome: Outcome
    reason: str = ""


class CheckCriteria(Stored, frozen=True):
    """Criteria for the checks of a wait.

    :param on_failed: decision for a failed check, and for one in an unknown state that has an `error`.
    :param on_partial: decision for a check with some page errors.
    :param on_skipped: decision for a skipped check: the previous one was still running, or credits were insufficient.
    :param only_if_changed: require changed, new, or removed pages.
    :param only_if_meaningful: require a page whose change was judged meaningful.
    :param otherwise: decision for a check that does not meet these two requirements.
    :raises ArgumentError: a choice is unknown.
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
        """Return whether a decision requires the check's pages, which contain the judgments."""
        if not self.only_if_meaningful or self._by_state(check) is not None:
            return False
        summary = check.summary
        return summary is None or summary.changed is None or bool(summary.changed) or bool(summary.new)

    def decide(self, check: MonitorCheck, *, meaningful: bool | None = None) -> Decision:
        """Return the decision on a finished check.

        :param meaningful: whether a page was judged meaningful; required if `needs_pages`.
        """
        by_state = self._by_state(check)
        if by_state is not None:
            return by_state
        if self.only_if_changed and not has_changes(check):
            return Decision(self.otherwise, "no page is changed, new, or removed")
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
            # A skipped or failed check has no data on changes. The changes of a partial check are evaluated as usual.
            return None if state == "partial" else Decision("done", reason)
        # Imported here because DAG files import this module.
        from airflow_provider_webdata.api.errors import error_text

        why = f"{reason}: {error_text(check.error)}" if check.error else reason
        return Decision("failed" if choice == "fail" else "wait", why)


def is_over(check: MonitorCheck) -> bool:
    """Return whether a check has ended."""
    return check.status in TERMINAL_CHECK_STATES or check.finished_at is not None


def finished_at(check: MonitorCheck) -> datetime | None:
    """Return the end time of a finished check, or the closest known time."""
    for text in (check.finished_at, check.updated_at, check.created_at):
        # Some servers write an unknown time as the year 1.
        if (found := moment(text)) is not None and found.year > MINYEAR:
            return found
    return None


def has_changes(check: MonitorCheck) -> bool:
    """Return whether a check found changed, new, or removed pages."""
    summary = check.summary
    return summary is not None and bool((summary.changed or 0) + (summary.new or 0) + (summary.removed or 0))


def is_meaningful_change(page: MonitorCheckPage) -> bool:
    """Return whether the change of a page was judged meaningful.

    :param page: page of a check, with a status in `MEANINGFUL_STATUSES`.
    """
    return page.judgment is not None and page.judgment.meaningful is True and is_change(page)


def is_change(page: MonitorCheckPage) -> bool:
    """Return whether a page of a check differs from the previous check: one that was not fetched has failed.

    :param page: page of a check, with a status in `CHANGED_STATUSES`.
    """
    return page.status == "removed" or was_fetched({"statusCode": page.status_code, "error": page.error})


def outcome_of(check: MonitorCheck, decision: Decision, *, monitor_id: str, via: Via) -> CheckOutcome:
    """Return the outcome of a wait that a check ends.

    :param decision: the decision on the check; never `wait`.
    """
    if decision.outcome == "wait":
        raise AssertionError(f"unreachable: check {check.id} ends no wait")
    monitor_id = check.monitor_id or monitor_id
    failed = f"check {check.id} of monitor {monitor_id}: " if decision.outcome == "failed" else ""
    return CheckOutcome(
        status=decision.outcome,
        message=f"{failed}{decision.reason}",
        via=via,
        check_id=check.id,
        monitor_id=monitor_id,
        check_status=check.status,
    )
