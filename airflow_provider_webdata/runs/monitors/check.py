# SPDX-License-Identifier: Apache-2.0
"""Base of the runs that can wait for a monitor check, and the check's XCom form."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

from airflow.sdk.exceptions import AirflowSkipException
from msgspec.structs import replace

from airflow_provider_webdata.api.errors import NotFoundError, WebDataError
from airflow_provider_webdata.common.arguments import seconds
from airflow_provider_webdata.common.numbers import credits_text, known_credits
from airflow_provider_webdata.options import REPLICA_WAIT_SECONDS
from airflow_provider_webdata.runs.failures import CheckFailedError
from airflow_provider_webdata.runs.money.task_ledger import Cost
from airflow_provider_webdata.runs.replica import until_found
from airflow_provider_webdata.runs.wait_run import WaitRun
from airflow_provider_webdata.states.check_arguments import checked_pages
from airflow_provider_webdata.states.check_queue import CheckQueue
from airflow_provider_webdata.states.checks import CHANGED_STATUSES, is_change, is_over
from airflow_provider_webdata.states.jobs import first_few
from airflow_provider_webdata.states.outcomes import CheckOutcome
from airflow_provider_webdata.triggers.monitor import WebDataMonitorCheckTrigger
from airflow_provider_webdata.waiting.check_target import CheckTarget
from airflow_provider_webdata.waiting.policy import CHECK_POLL_INTERVAL, poll_seconds

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import timedelta

    from airflow_provider_webdata.hooks.webdata import WebDataHook
    from airflow_provider_webdata.operators.monitor.create import WebDataCreateMonitorOperator
    from airflow_provider_webdata.operators.monitor.run import WebDataRunMonitorOperator
    from airflow_provider_webdata.runs.run import Run
    from airflow_provider_webdata.states.checks import PagesWanted

CHECK_WAIT_SECONDS = 7 * 86400.0

_UNBILLED = frozenset({"not_applicable", "released"})


class CheckWaitRun(WaitRun[CheckOutcome]):
    """One attempt of a task that waits for a check, and reports its credits."""

    outcome_class = CheckOutcome

    def judge(self, outcome: CheckOutcome) -> None:
        """Return if the check is accepted; otherwise report its credits, and end the task."""
        try:
            super().judge(outcome)
        except (AirflowSkipException, CheckFailedError):
            self._report_unread(outcome.monitor_id, outcome.check_id)
            raise

    def _report_unread(self, monitor_id: str, check_id: str) -> None:
        try:
            with self.hook:
                check = self.hook.get_monitor_check(monitor_id, check_id, limit=1).to_wire()
        except WebDataError as error:
            self.log.warning("The cost of check %s is unknown: %s", check_id, error)
            check = {}
        report_credits(self, check_id, check)


class CheckRun(CheckWaitRun):
    """One attempt of a task that can start a check and wait for it."""

    task: WebDataRunMonitorOperator | WebDataCreateMonitorOperator

    def wait_for_check(self, monitor_id: str, check_id: str | None) -> Any:
        """Wait for a check, in the triggerer or here, and return it.

        :param check_id: the check's UUID; None: the next one that finishes.
        """
        after, deadline, resumed = self._span()
        poll_interval = poll_seconds(self.task.poll_interval, CHECK_POLL_INTERVAL)
        if self.task.deferrable:
            trigger_kwargs = {
                "webdata_conn_id": self.task.webdata_conn_id,
                "monitor_id": monitor_id,
                "check_id": check_id,
                "after": after.isoformat(),
                "poll_interval": poll_interval,
                "criteria": self.task._criteria().serialize(),
            }
            self.defer_until(deadline, WebDataMonitorCheckTrigger, trigger_kwargs, resumed=resumed)
        queue = CheckQueue(self.task._criteria(), after, check_id)
        target = CheckTarget(monitor_id, queue, poll_interval, self.log)
        outcome = self.wait_here(target, deadline, resumed=resumed)
        if outcome.status == "timeout":
            outcome = replace(outcome, message=f"{outcome.message} ({self._limit:g} s)")
        self.judge(outcome)
        return self.result_of(outcome)

    def result_of(self, outcome: CheckOutcome) -> Any:
        """Return the check, with wire names, and the requested pages."""
        return check_with_pages(self, outcome, self.task.include_pages, self.task.replica_wait)

    @property
    def _limit(self) -> float:
        given = self.task.wait_timeout
        return CHECK_WAIT_SECONDS if given is None else seconds("wait_timeout", given)

    def _span(self) -> tuple[datetime, float, bool]:
        """Return the start of the wait, its end (seconds since the epoch), and whether it is resumed."""
        record = self.memory.record
        if record.wait_since is not None and record.wait_until is not None:
            return record.wait_since, record.wait_until, True
        now = datetime.now(timezone.utc)
        deadline = now.timestamp() + self._limit
        self.memory.note(wait_since=now, wait_until=deadline)
        return now, deadline, False


def report_credits(run: Run, check_id: str, check: Mapping[str, Any]) -> None:
    """Report the credits of a finished check, once for all attempts. See sandbox/docs/service.md#check-credits.

    :param check: the check, with wire names; empty if it could not be read.
    """
    used = known_credits(check.get("actualCredits"))
    if used is None and check.get("billingStatus") in _UNBILLED:
        used = 0
    run.ledger.settle(Cost(used), "monitor", call=check_id, is_stored=False)


def check_with_pages(
    run: Run,
    outcome: CheckOutcome,
    include_pages: bool | str | Sequence[str],
    replica_wait: float | timedelta = REPLICA_WAIT_SECONDS,
) -> dict[str, Any]:
    """Report the credits of a finished check; return it with wire names, and on request its pages with diffs and
    judgments.

    All result pages are fetched. Header values are replaced by `***`.

    :param outcome: the outcome of the wait.
    :param include_pages: selects the pages under `pages`; False omits the key.
    :param replica_wait: maximum seconds, or a timedelta, until the service shows the check as finished.
    """
    hook, pages = run.hook, checked_pages(include_pages)
    monitor_id, check_id = outcome.monitor_id, outcome.check_id
    seen: list[Mapping[str, Any]] = []
    missing: list[NotFoundError] = []

    def read() -> bool:
        try:
            check = hook.get_monitor_check(monitor_id, check_id, limit=1)
        except NotFoundError as error:
            missing.append(error)
            return False
        seen.append(check.to_wire(mask_headers=True))
        return is_over(check)

    # The replica that serves this read may be behind.
    until_found(read, replica_wait)
    if not seen:
        raise missing[-1]
    found = {name: value for name, value in seen[-1].items() if name not in {"pages", "next"}}
    report_credits(run, check_id, found)
    if isinstance(counts := found.get("summary"), dict):
        run.lacks("pages_failed", counts.get("error") or 0, counts.get("totalPages"))
    if pages is not False:
        found["pages"] = _pages(hook, monitor_id, check_id, pages)
    run.log.info(
        "Check %s of monitor %s %s (reported by %s)%s",
        check_id,
        monitor_id,
        found.get("status") or outcome.check_status,
        outcome.via,
        _outcome(found, found.get("pages", seen[-1].get("pages")) or ()),
    )
    return found


def _outcome(check: Mapping[str, Any], pages: Sequence[Mapping[str, Any]]) -> str:
    """Return what a check found, for the log."""
    summary = check.get("summary") or {}
    text = ""
    if summary.get("totalPages") is not None:
        counts = [f"{summary[name]} {name}" for name in CHANGED_STATUSES if summary.get(name)]
        failed = [f"{summary['error']} failed"] if summary.get("error") else []
        text = f": of {summary['totalPages']} pages, {', '.join(counts + failed) or 'none changed'}"
    changed = [
        str(page["url"]) for page in pages if page.get("status") in CHANGED_STATUSES and page.get("url")
    ]
    if changed:
        text += f" ({first_few(changed, 3)})"
    used = known_credits(check.get("actualCredits"))
    return text + ("" if used is None else f"; {credits_text(used)} credits")


def _pages(hook: WebDataHook, monitor_id: str, check_id: str, pages: PagesWanted) -> list[dict[str, Any]]:
    statuses: Sequence[str | None] = CHANGED_STATUSES if pages == "changed" else (None,)
    if isinstance(pages, tuple):
        statuses = pages
    return [
        page.to_wire(mask_headers=True)
        for status in statuses
        for page in hook.iter_monitor_check_pages(monitor_id, check_id, status=status)
        if pages != "changed" or is_change(page)
    ]
