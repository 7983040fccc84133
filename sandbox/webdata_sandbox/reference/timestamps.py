# SPDX-License-Identifier: Apache-2.0
"""The service's time format."""

from __future__ import annotations

from datetime import datetime, timezone


def iso(moment: datetime) -> str:
    """Format a time as the service does: UTC, milliseconds, ``Z``."""
    return moment.astimezone(timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def from_iso(text: str) -> datetime:
    """Parse an ISO 8601 date or date-time; UTC if it has no time zone."""
    moment = datetime.fromisoformat(text.replace("Z", "+00:00"))
    return moment if moment.tzinfo else moment.replace(tzinfo=timezone.utc)
