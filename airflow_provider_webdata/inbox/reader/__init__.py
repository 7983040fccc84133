# SPDX-License-Identifier: Apache-2.0
"""HTTP clients that read deliveries in Airflow's processes: feed, search, and single deliveries, sync and async.

They need no access to the inbox's database, and do not interpret deliveries for tasks.
"""

from airflow_provider_webdata.inbox.wire import MAX_VALUES

from .client import AsyncInboxReader, InboxReader
from .delivery import Delivery, DeliveryPage
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
    "MAX_VALUES",
    "AsyncInboxReader",
    "CursorAheadError",
    "Delivery",
    "DeliveryGoneError",
    "DeliveryPage",
    "InboxAddress",
    "InboxAnswerError",
    "InboxError",
    "InboxMissingError",
    "InboxReader",
    "InboxRefusedError",
    "InboxUnreachableError",
]
