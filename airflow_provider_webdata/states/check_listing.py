# SPDX-License-Identifier: Apache-2.0
"""Pagination of a monitor's checks, back to a given time."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from airflow_provider_webdata.states.checks import finished_at, is_over

if TYPE_CHECKING:
    from datetime import datetime

    from airflow_provider_webdata.api.models import MonitorCheck

FIRST_LIMIT = 25
"""Checks on the first page: usually sufficient, and cheap enough for a poll every minute."""

NEXT_LIMIT = 100
"""Checks on each further page: the service's maximum."""


class PageQuery(NamedTuple):
    """Limit and offset of a page."""

    limit: int
    offset: int


class CheckListing:
    """Lists checks, newest first, until it has every check that finished after a given time.

    The service sorts checks by their start and returns no link to the next page. Checks of a monitor run one after the
    other, so all checks before one that finished at or before that time also finished before it. A check that was
    skipped because another one was running is no evidence of this. The listing ends with a page that contains a check
    that finished at or before the time, with a short page, or with a page without new checks. It has no other limit: a
    wait decides on the oldest check first, and must not miss any. Without a time, it reads one page.

    Send the `query`, pass the page to `add_page`, and repeat until `query` is None.

    :param after: the time.
    """

    def __init__(self, after: datetime | None) -> None:
        self.query: PageQuery | None = PageQuery(FIRST_LIMIT, 0)
        self._after = after
        self._checks: dict[str, MonitorCheck] = {}

    @property
    def checks(self) -> list[MonitorCheck]:
        """All checks of the pages, without duplicates."""
        return list(self._checks.values())

    def add_page(self, page: list[MonitorCheck]) -> None:
        """Add the page for the current `query`, and advance to the next."""
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
