# SPDX-License-Identifier: Apache-2.0
"""Arguments of tasks that concern monitors: the pages of a check, and the events of a webhook."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_provider_webdata.common.arguments import as_list
from airflow_provider_webdata.common.coded_errors import ArgumentError
from airflow_provider_webdata.states.checks import CHECK_COMPLETED

if TYPE_CHECKING:
    from collections.abc import Sequence

    from airflow_provider_webdata.states.checks import PagesWanted

PAGE_STATUSES = ("same", "new", "changed", "removed", "error")
WEBHOOK_EVENTS = ("monitor.page", CHECK_COMPLETED)


def checked_pages(given: bool | str | Sequence[str]) -> PagesWanted:
    """Validate the argument `include_pages`.

    :param given: False, True, `changed` (changed, new, and removed pages), or a list of statuses.
    :raises ArgumentError: the value is invalid.
    """
    if isinstance(given, bool) or given == "changed":
        return given  # type: ignore[return-value]
    statuses = tuple(as_list("include_pages", given))
    if not statuses or any(status not in PAGE_STATUSES for status in statuses):
        raise ArgumentError(
            "include_pages must be False, True, 'changed', or a list with some of "
            f"{', '.join(PAGE_STATUSES)} (given: {given!r})"
        )
    return statuses


def checked_events(given: Sequence[str]) -> tuple[str, ...]:
    """Validate the events that a monitor must report.

    :param given: some of `WEBHOOK_EVENTS`.
    :raises ArgumentError: the list is empty or contains unknown events.
    """
    events = tuple(as_list("webhook_events", given))
    unknown = [event for event in events if event not in WEBHOOK_EVENTS]
    if not events or unknown:
        raise ArgumentError(
            f"webhook_events must name some of {', '.join(WEBHOOK_EVENTS)} (given: {given!r})"
        )
    return events
