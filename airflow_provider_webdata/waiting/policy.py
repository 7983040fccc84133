"""The policy of a wait: by webhook, by polling, and how often the service is polled."""

from __future__ import annotations

from typing import Literal

from airflow_provider_webdata.common.coded_errors import ArgumentError
from airflow_provider_webdata.states.stored import Stored

CHECK_TRIGGER = "airflow_provider_webdata.triggers.monitor.WebDataMonitorCheckTrigger"
JOB_TRIGGER = "airflow_provider_webdata.triggers.job.WebDataJobTrigger"
WEBHOOK_TRIGGER = "airflow_provider_webdata.triggers.webhook.WebDataWebhookTrigger"
"""Paths of the triggers: DAG files, which name them, are parsed faster without their import."""

WaitBy = Literal["auto", "webhook", "polling"]
"""How the end is learned."""

CHECK_POLL_INTERVAL = 60.0
CHECK_SAFETY_POLL = 1500.0
"""Seconds; longer than the 21 minutes for which the service repeats a delivery."""

JOB_POLL_INTERVAL = 30.0
JOB_SAFETY_POLL = 300.0
"""Seconds; no delivery says that a crawl or batch scrape failed as a whole, so that polling has to find it."""

TIMEOUT_MARGIN_SECONDS = 60.0
"""How much later than the wait's own deadline Airflow ends a trigger, whose event says what was and was not seen."""

_WAIT_BY = ("auto", "webhook", "polling")


class PollingPolicy(Stored, frozen=True):
    """Settings for detecting the end of a check or a job.

    :param wait_by: `webhook`: by a delivery, and by a poll every `safety_poll`. `polling`: by a poll every
        `poll_interval`. `auto`: by webhook where the connection can receive deliveries and the monitor or job
        reports to it, else by polling.
    :param poll_interval: seconds between polls where no delivery is expected, at least 1.
    :param safety_poll: seconds between polls where deliveries are expected, at least 1: one may get lost.
    :raises ArgumentError: an unknown choice or an invalid time span.
    """

    wait_by: WaitBy
    poll_interval: float
    safety_poll: float

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
