"""Stored deliveries as a reader gets them."""

from __future__ import annotations

from typing import Any

import msgspec

from airflow_provider_webdata.inbox.envelope import parse_body


class Delivery(msgspec.Struct, frozen=True, gc=False):
    """A stored delivery. Fields that could not be read on arrival are None.

    `position` orders the feed (None until it is published), `id` never changes. `event` is the `type`, unchanged,
    `job_id` the envelope's `id`: for monitors that of the check. `received_at` is ISO 8601, `size` the body's bytes.
    `body` is the verbatim JSON, or unset if it is too large to be listed.
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
        """Whether the body came along."""
        return not isinstance(self.body, msgspec.UnsetType)

    def payload(self) -> Any:
        """Return the body, parsed now; None where it did not come along."""
        return None if isinstance(self.body, msgspec.UnsetType) else parse_body(bytes(self.body))


class Page(msgspec.Struct, frozen=True):
    """Deliveries in the order of the feed, the cursor behind them, and whether there are more already."""

    deliveries: list[Delivery]
    cursor: str
    more: bool = False
