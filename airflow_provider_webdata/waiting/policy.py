# SPDX-License-Identifier: Apache-2.0
"""Intervals at which a wait polls the service."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_provider_webdata.common.arguments import seconds

if TYPE_CHECKING:
    from datetime import timedelta

    from airflow_provider_webdata.api.servers import Server

CHECK_POLL_INTERVAL = 60.0
JOB_POLL_INTERVAL = 30.0

CHECK_SAFETY_POLL = 1500.0
"""Seconds between polls while a delivery is expected: more than the 21 minutes for which the service retries one."""

JOB_SAFETY_POLL = 300.0
"""Seconds; the service sends no delivery if an entire crawl or batch scrape fails, so only polling detects this."""

SINGLE_DELIVERY_SAFETY_POLL = 60.0
"""Seconds; maximum if the server sends each delivery once: a lost one never comes."""

TIMEOUT_MARGIN_SECONDS = 60.0
"""Seconds between the wait's own deadline, whose event reports the last observed state, and Airflow's timeout."""


def poll_seconds(given: float | timedelta | None, default: float) -> float:
    """Return the seconds between polls if no delivery is expected.

    :param given: the argument `poll_interval`, at least 1; None: the default.
    :raises ArgumentError: it is no time span, or too short.
    """
    return default if given is None else seconds("poll_interval", given, least=1)


def safety_poll(poll_interval: float, longest: float, server: Server) -> float:
    """Return the seconds between polls while a delivery is expected, in case it is lost.

    :param longest: `CHECK_SAFETY_POLL` or `JOB_SAFETY_POLL`.
    """
    if not server.retries_deliveries:
        longest = min(longest, SINGLE_DELIVERY_SAFETY_POLL)
    return max(poll_interval, longest)
