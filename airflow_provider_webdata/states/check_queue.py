# SPDX-License-Identifier: Apache-2.0
"""Queue of the checks that a wait has not yet decided on."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from airflow_provider_webdata.states.checks import finished_at, is_over

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from airflow_provider_webdata.api.models import MonitorCheck
    from airflow_provider_webdata.states.checks import CheckCriteria, Decision

LATE_CHECKS = timedelta(minutes=10)
"""A check that appears late still counts if it finished within this time before a decided check."""


class CheckQueue:
    """Queue of a monitor's finished checks, oldest first; each is decided once.

    It contains the checks that finished after `after`, by the service's clock. With `check_id`, that check is the
    first, regardless of when it finished, followed by those that finished after it.

    :param criteria: criteria for the decisions.
    :param after: only checks that finished after this time; None: all.
    :param check_id: the first check.
    :raises ValueError: `after` has no time zone.
    """

    __slots__ = ("_checks", "_criteria", "_decided", "after", "check_id")

    def __init__(self, criteria: CheckCriteria, after: datetime | None, check_id: str | None = None) -> None:
        if after is not None and after.tzinfo is None:
            raise ValueError(f"after must have a time zone (given: {after.isoformat()})")
        self._criteria = criteria
        self._checks: list[MonitorCheck] = []
        self._decided: dict[str, datetime] = {}
        self.after = after
        self.check_id = check_id

    @property
    def head(self) -> MonitorCheck | None:
        """The next check to decide on."""
        return self._checks[0] if self._checks else None

    @property
    def needs_pages(self) -> bool:
        """Whether a decision on the head requires its pages."""
        return self.head is not None and self._criteria.needs_pages(self.head)

    def add(self, checks: Iterable[MonitorCheck]) -> None:
        """Add the undecided checks that count; replace queued checks with their latest version.

        :param checks: current checks of the monitor, in any order, finished or not.
        """
        latest = {check.id: check for check in (*self._checks, *checks) if is_over(check)}
        named = latest.pop(self.check_id, None) if self.check_id is not None else None
        if self.check_id is not None and named is None:
            return
        after = finished_at(named) if named is not None else self.after
        later = [
            (end, check)
            for check in latest.values()
            if (end := finished_at(check)) is not None
            and (after is None or end > after)
            and check.id not in self._decided
        ]
        later.sort(key=lambda pair: pair[0])
        self._checks = [*([named] if named is not None else []), *(check for _, check in later)]

    def decide(self, *, meaningful: bool | None = None) -> Decision:
        """Remove the head from the queue, and return the decision on it.

        :param meaningful: whether a page was judged meaningful; required if `needs_pages`.
        """
        check = self._checks.pop(0)
        end = finished_at(check)
        if end is not None:
            late = end - LATE_CHECKS
            if self.check_id is not None:
                self.after = end
            else:
                self.after = late if self.after is None else max(self.after, late)
            self._decided[check.id] = end
            self._decided = {key: when for key, when in self._decided.items() if when >= late}
        self.check_id = None
        return self._criteria.decide(check, meaningful=meaningful)

    def was_decided(self, check_id: str) -> bool:
        """Return whether a check was recently decided."""
        return check_id in self._decided
