"""The polling policy of a wait: webhook or polling, and the intervals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from msgspec.structs import replace

from airflow_provider_webdata.common.arguments import seconds
from airflow_provider_webdata.common.coded_errors import ArgumentError
from airflow_provider_webdata.states.stored import Stored

if TYPE_CHECKING:
    from datetime import timedelta

    from airflow_provider_webdata.api.servers import Server

WaitBy = Literal["auto", "webhook", "polling"]
"""How to detect the end of a check or job."""

CHECK_POLL_INTERVAL = 60.0
CHECK_SAFETY_POLL = 1500.0
"""Seconds; longer than the 21 minutes for which the hosted service retries a delivery."""

JOB_POLL_INTERVAL = 30.0
JOB_SAFETY_POLL = 300.0
"""Seconds; the service sends no delivery if an entire crawl or batch scrape fails, so only polling detects this."""

SINGLE_DELIVERY_SAFETY_POLL = 60.0
"""Seconds; maximum default if the server sends each delivery once: a lost one never comes."""

TIMEOUT_MARGIN_SECONDS = 60.0
"""Seconds between the wait's own deadline, whose event reports the last observed state, and Airflow's timeout."""

_WAIT_BY = ("auto", "webhook", "polling")


class PollingPolicy(Stored, frozen=True):
    """Settings for detecting the end of a check or a job.

    :param wait_by: `webhook`: deliveries, and a poll every `safety_poll`. `polling`: a poll every `poll_interval`.
        `auto`: like `webhook` if the connection can receive deliveries and the monitor or job reports to it, otherwise
        like `polling`. While the inbox does not answer, all are like `polling`.
    :param poll_interval: seconds between polls if no delivery is expected, at least 1.
    :param safety_poll: seconds between polls if deliveries are expected, at least 1, in case a delivery is lost.
    :param keeps_safety_poll: whether `safety_poll` also applies to a server that sends each delivery once. False: it is
        a default.
    :raises ArgumentError: `wait_by` or an interval is invalid.
    """

    wait_by: WaitBy
    poll_interval: float
    safety_poll: float
    keeps_safety_poll: bool = False

    def __post_init__(self) -> None:
        if self.wait_by not in _WAIT_BY:
            raise ArgumentError(f"wait_by must be one of {', '.join(_WAIT_BY)} (given: {self.wait_by!r})")
        for name in ("poll_interval", "safety_poll"):
            given = getattr(self, name)
            if (
                isinstance(given, bool)
                or not isinstance(given, (int, float))
                or not 1 <= given < float("inf")
            ):
                raise ArgumentError(f"{name} must be a number of seconds, at least 1 (given: {given!r})")

    def safety_poll_of(self, server: Server) -> float:
        """Return the seconds between polls of a server while a delivery is expected."""
        if self.keeps_safety_poll or server.retries_deliveries:
            return self.safety_poll
        return min(self.safety_poll, SINGLE_DELIVERY_SAFETY_POLL)


def job_policy(poll_interval: float | timedelta | None = None) -> PollingPolicy:
    """Return the policy of a wait for a job.

    :param poll_interval: seconds between polls if no delivery is expected, at least 1. Default: `JOB_POLL_INTERVAL`.
    """
    return PollingPolicy("auto", _interval(poll_interval, JOB_POLL_INTERVAL), JOB_SAFETY_POLL)


def check_policy(poll_interval: float | timedelta | None = None) -> PollingPolicy:
    """Return the policy of a wait for a check.

    :param poll_interval: seconds between polls if no delivery is expected, at least 1. Default: `CHECK_POLL_INTERVAL`.
    """
    return PollingPolicy("auto", _interval(poll_interval, CHECK_POLL_INTERVAL), CHECK_SAFETY_POLL)


def in_worker(policy: PollingPolicy) -> PollingPolicy:
    """Return the policy of a wait in a worker, which polls."""
    return replace(policy, wait_by="polling")


def _interval(given: float | timedelta | None, default: float) -> float:
    return default if given is None else seconds("poll_interval", given, least=1)
