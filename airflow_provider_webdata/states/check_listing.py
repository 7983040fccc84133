"""The paging of a monitor's checks, back to a moment."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from airflow_provider_webdata.states.checks import finished_at, is_over

if TYPE_CHECKING:
    from datetime import datetime

    from airflow_provider_webdata.api.models import MonitorCheck

FIRST_LIMIT = 25
"""Checks of the first page: mostly enough, and cheap for what is asked every minute."""

NEXT_LIMIT = 100
"""Checks of each further page: the most that the service gives."""


class PageQuery(NamedTuple):
    """Which part of the list to ask for."""

    limit: int
    offset: int


class CheckListing:
    """Reads checks, newest first, until every check that finished after a moment was seen.

    The service sorts checks by their start and gives no link to the next page. Checks of one monitor follow upon each
    other, so that all before one that finished at or before the moment finished earlier still; only a check that was
    skipped because another one ran says nothing of that one. The listing ends with a page that holds such a check,
    with a short page, or with one that brings nothing new. It has no other bound: a wait decides on the oldest check
    first, and must not lose any. Without a moment one page is enough.

    Send the `query`, `take` the page, and go on until the `query` is None.

    :param after: the moment.
    """

    def __init__(self, after: datetime | None) -> None:
        self.query: PageQuery | None = PageQuery(FIRST_LIMIT, 0)
        self._after = after
        self._checks: dict[str, MonitorCheck] = {}

    @property
    def checks(self) -> list[MonitorCheck]:
        """All checks of the pages, each once."""
        return list(self._checks.values())

    def take(self, page: list[MonitorCheck]) -> None:
        """Take the page that answers `query`, and move on."""
        if self.query is None:
            return
        known = len(self._checks)
        self._checks.update((check.id, check) for check in page)
        is_last = len(page) < self.query.limit or len(self._checks) == known or self._is_far_enough(page)
        self.query = None if is_last else PageQuery(NEXT_LIMIT, self.query.offset + len(page))

    def _is_far_enough(self, page: list[MonitorCheck]) -> bool:
        after = self._after
        return after is None or any(
            is_over(check)
            and check.status != "skipped_overlap"
            and (end := finished_at(check)) is not None
            and end <= after
            for check in page
        )
