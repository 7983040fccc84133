"""Errors of reading the inbox. Waits retry all of them; the messages are for the person who has to fix the cause."""

from __future__ import annotations

from airflow_provider_webdata.api.errors import WebDataError


class InboxError(WebDataError):
    """Base of all errors of reading the inbox."""


class InboxUnreachableError(InboxError):
    """No answer came, or one that says that the server or its database cannot answer now.

    :param retry_after: seconds the server asks to wait, where it does.
    """

    help_code = "WD-040"
    verdict = "later"

    def __init__(self, reason: str, *, retry_after: float | None = None) -> None:
        super().__init__(reason)
        self.retry_after = retry_after


class InboxRefusedError(InboxError):
    """401: the server knows another secret for this connection, or does not know the connection."""

    help_code = "WD-041"


class InboxMissingError(InboxError):
    """There is no inbox at this address: the plugin is not loaded there, or the address leads elsewhere."""

    help_code = "WD-042"


class InboxAnswerError(InboxError):
    """The inbox answered what its interface does not have: a mistake here or there, or another version."""

    help_code = "WD-043"


class DeliveryGoneError(InboxError):
    """404: the inbox has no such delivery; it was pruned, or belongs to another connection."""

    help_code = "WD-044"
    verdict = "never"


class CursorAheadError(InboxError):
    """410: the cursor is beyond all that the inbox ever stored, so its database was reset.

    :param cursor: the current end of the feed.
    """

    help_code = "WD-045"

    def __init__(self, reason: str, *, cursor: str) -> None:
        super().__init__(reason)
        self.cursor = cursor
