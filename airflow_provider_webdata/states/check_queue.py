"""The checks that a wait still has to decide on, in order, each once."""

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
"""For so long a check still counts that shows up after one that finished later."""


class CheckQueue:
    """The checks of one monitor that are over, the oldest first, until each is decided on.

    These are the checks that finished later than `after`, by the service's clock. With `check_id` that check comes
    first, whenever it finished, and then those that finished after it.

    :param criteria: what checks mean.
    :param after: only checks that finished later; None: all.
    :param check_id: the check to begin with.
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
        """The check to decide on now."""
        return self._checks[0] if self._checks else None

    @property
    def needs_pages(self) -> bool:
        """Whether the pages of the head must be read to decide on it."""
        return self.head is not None and self._criteria.needs_pages(self.head)

    def add(self, checks: Iterable[MonitorCheck]) -> None:
        """Queue the checks that count and were not decided on; of one that is queued already, the latest version.

        :param checks: current checks of the monitor, in any order, over or not.
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
        """Return what the head means, and move on.

        :param meaningful: whether one of its pages was judged meaningful, where `needs_pages`.
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
        """Return whether a check was decided on lately."""
        return check_id in self._decided
