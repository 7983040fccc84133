# SPDX-License-Identifier: Apache-2.0
"""Dates and times in arguments of commands."""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime, timezone

from airflow_provider_webdata.common.dates import moment


def moment_of(flag: str, text: str) -> datetime:
    """Return a date or time in UTC; without a zone it is UTC.

    :raises SystemExit: the text is neither.
    """
    with suppress(OverflowError):
        if (found := moment(text)) is not None:
            return found.astimezone(timezone.utc)
    raise SystemExit(
        f"{flag} must be a date or time such as 2026-01-31 or 2026-01-31T06:00+01:00 (given: {text!r})"
    )
