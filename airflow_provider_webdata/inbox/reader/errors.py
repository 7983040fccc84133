# SPDX-License-Identifier: Apache-2.0
"""Errors of reading the inbox. Waits retry all of them; the messages address the person who fixes the cause."""

from __future__ import annotations

from airflow_provider_webdata.api.errors import WebDataError


class InboxError(WebDataError):
    """Base of all errors of reading the inbox."""


class InboxUnreachableError(InboxError):
    """The inbox did not respond, or reports that it or its database is unavailable.

    :param retry_after: seconds that the server asks to wait, or None.
    """

    help_code = "WD-040"
    verdict = "later"

    def __init__(self, reason: str, *, retry_after: float | None = None) -> None:
        super().__init__(reason)
        self.retry_after = retry_after


class InboxRefusedError(InboxError):
    """401: the inbox has another secret for this connection, or does not know the connection."""

    help_code = "WD-041"


class InboxMissingError(InboxError):
    """The address has no inbox: the option is off, the plugin is not loaded, or the address is wrong."""

    help_code = "WD-042"


class InboxAnswerError(InboxError):
    """The response does not match the inbox's API: a bug, or another version."""

    help_code = "WD-043"


class DeliveryGoneError(InboxError):
    """404: the delivery does not exist. It was pruned, or belongs to another connection."""

    help_code = "WD-044"
    verdict = "never"


class CursorAheadError(InboxError):
    """410: the cursor is beyond the end of the feed, so the inbox's database was reset.

    :param cursor: the current end of the feed.
    """

    help_code = "WD-045"

    def __init__(self, reason: str, *, cursor: str) -> None:
        super().__init__(reason)
        self.cursor = cursor
