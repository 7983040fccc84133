"""Readers of deliveries for Airflow's processes: feed, search, and single deliveries, blocking and asynchronous.

It talks HTTP to the server that serves the inbox and needs no access to its database. What a delivery means for a
task is not known here.
"""

from airflow_provider_webdata.inbox.wire import MOST_VALUES

from .client import AsyncInboxReader, InboxReader
from .delivery import Delivery, Page
from .errors import (
    CursorAheadError,
    DeliveryGoneError,
    InboxAnswerError,
    InboxError,
    InboxMissingError,
    InboxRefusedError,
    InboxUnreachableError,
)
from .protocol import END, InboxAddress

__all__ = [
    "END",
    "MOST_VALUES",
    "AsyncInboxReader",
    "CursorAheadError",
    "Delivery",
    "DeliveryGoneError",
    "InboxAddress",
    "InboxAnswerError",
    "InboxError",
    "InboxMissingError",
    "InboxReader",
    "InboxRefusedError",
    "InboxUnreachableError",
    "Page",
]
