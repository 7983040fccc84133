# SPDX-License-Identifier: Apache-2.0
"""Stored deliveries in the form that readers receive."""

from __future__ import annotations

from typing import Any

import msgspec

from airflow_provider_webdata.inbox.envelope import parse_body


class Delivery(msgspec.Struct, frozen=True, gc=False):
    """A stored delivery. Fields that were unreadable on arrival are None.

    `position` orders the feed (None until it is published), and `id` never changes. `event` is the unchanged `type`.
    `job_id` is the envelope's `id`: for monitors, the check's. `received_at` is ISO 8601, and `size` the body's bytes.
    `body` is the verbatim JSON, or unset if it is too large for lists.
    """

    id: int
    size: int
    received_at: str
    position: int | None = None
    key: str | None = None
    event: str | None = None
    job_id: str | None = None
    monitor_id: str | None = None
    success: bool | None = None
    body: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET

    @property
    def has_body(self) -> bool:
        """True if the delivery includes the body."""
        return not isinstance(self.body, msgspec.UnsetType)

    def payload(self) -> Any:
        """Parse and return the body; None if it is not included."""
        return None if isinstance(self.body, msgspec.UnsetType) else parse_body(bytes(self.body))


class DeliveryPage(msgspec.Struct, frozen=True):
    """Deliveries in feed order, the cursor after them, and whether more are available."""

    deliveries: list[Delivery]
    cursor: str
    more: bool = False
