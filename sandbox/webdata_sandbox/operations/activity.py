# SPDX-License-Identifier: Apache-2.0
"""The recent activity of the team."""

from __future__ import annotations

import base64
import binascii
import uuid
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from webdata_sandbox.config import ACTIVITIES
from webdata_sandbox.reference.errors import ServiceError
from webdata_sandbox.reference.timestamps import from_iso
from webdata_sandbox.reference.wire import whole_number

from .call import Reply
from .endpoint import Endpoint

if TYPE_CHECKING:
    from webdata_sandbox.state.clock import Clock
    from webdata_sandbox.state.store import Store

    from .call import Call

RETENTION = timedelta(hours=24)


class Activity:
    """Records started work, and handles ``GET /v2/team/activity``."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store, self._clock = store, clock

    def endpoints(self) -> list[Endpoint]:
        """Return the endpoints of this operation."""
        return [Endpoint("GET", "/v2/team/activity", self.recent, "account")]

    def record(self, endpoint: Endpoint, call: Call, reply: Reply) -> None:
        """Record a successful call if the activity lists its endpoint."""
        answer = reply.body
        if endpoint.activity is None or reply.status != 200 or not answer or answer.get("success") is False:
            return
        target: Any = call.body.get(endpoint.target) if endpoint.target else None
        if isinstance(target, list):
            target = target[0] if target else None
        data = answer.get("data")
        metadata = data.get("metadata", {}) if isinstance(data, dict) else {}
        item = {
            "id": answer.get("id")
            or answer.get("scrape_id")
            or metadata.get("scrapeId")
            or str(uuid.uuid4()),
            "endpoint": endpoint.activity,
            "api_version": "v2",
            "created_at": self._clock.iso(),
            "target": target,
        }
        self._store.put("activity", str(item["id"]), item)

    async def recent(self, call: Call) -> Reply:
        """List the work started in the last 24 hours, newest first."""
        query = call.query
        endpoint = query.get("endpoint")
        if endpoint is not None and endpoint not in ACTIVITIES:
            raise ServiceError(400, f"Invalid endpoint filter: {endpoint!r}")
        limit = whole_number(query.get("limit", "50"))
        if limit is None or not 1 <= limit <= 100:
            raise ServiceError(400, "Invalid limit: it must be between 1 and 100")
        skip = _decode_cursor(query.get("cursor"))
        oldest = self._clock.datetime() - RETENTION
        found = [
            item
            for item in reversed(self._store.list("activity"))
            if from_iso(item["created_at"]) > oldest and endpoint in (None, item["endpoint"])
        ]
        # A cursor counts from the oldest entry, so new entries do not move it.
        end = len(found) if skip is None else min(skip, len(found))
        shown = found[len(found) - end :][:limit]
        left = end - len(shown)
        cursor = base64.urlsafe_b64encode(str(left).encode()).decode() if left else None
        return Reply(200, {"success": True, "data": shown, "cursor": cursor, "has_more": left > 0})


def _decode_cursor(cursor: str | None) -> int | None:
    if cursor is None:
        return None
    try:
        count = whole_number(base64.urlsafe_b64decode(cursor.encode()).decode())
    except (ValueError, binascii.Error):
        count = None
    if count is None:
        raise ServiceError(400, "Invalid cursor")
    return count
