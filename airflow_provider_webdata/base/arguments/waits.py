# SPDX-License-Identifier: Apache-2.0
"""Arguments that say how long to wait, and how often to poll."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_provider_webdata.common.arguments import seconds

if TYPE_CHECKING:
    from datetime import timedelta


def check_wait(poll_interval: float | timedelta | None, wait_timeout: float | timedelta | None) -> None:
    """Check these arguments of an operator that waits; None is their default.

    :raises ArgumentError: an argument is no time span, or is out of range.
    """
    if poll_interval is not None:
        seconds("poll_interval", poll_interval, least=1)
    if wait_timeout is not None:
        seconds("wait_timeout", wait_timeout)
