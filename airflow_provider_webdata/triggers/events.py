# SPDX-License-Identifier: Apache-2.0
"""Triggers for asset watchers: one asset event for each delivery or finished check."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Literal

from pydantic_core import to_json

from airflow_provider_webdata.common.arguments import as_list
from airflow_provider_webdata.common.coded_errors import ArgumentError, brief
from airflow_provider_webdata.common.dates import moment
from airflow_provider_webdata.common.logs import logger
from airflow_provider_webdata.common.page_urls import delivery_page, monitor_page, page_url
from airflow_provider_webdata.inbox.envelope import parse_body
from airflow_provider_webdata.inbox.wire import INLINE_BODY_BYTES
from airflow_provider_webdata.states.checks import CheckCriteria
from airflow_provider_webdata.triggers.base.stream_trigger import StreamTrigger
from airflow_provider_webdata.waiting.delivery_target import fields_of
from airflow_provider_webdata.waiting.hub import Hub
from airflow_provider_webdata.waiting.mailbox import WaitFailedError
from airflow_provider_webdata.waiting.policy import CHECK_POLL_INTERVAL, poll_seconds
from airflow_provider_webdata.waiting.streams.check_stream import CheckStream
from airflow_provider_webdata.waiting.streams.webhook_stream import WebhookStream
from airflow_provider_webdata.waiting.subscriptions import Subscription

if TYPE_CHECKING:
    from collections.abc import Sequence

    from airflow_provider_webdata.inbox.reader import Delivery
    from airflow_provider_webdata.waiting.check_target import FoundCheck
    from airflow_provider_webdata.waiting.streams.stream import Stream

log = logger(__name__)


class WebDataWebhookEventTrigger(StreamTrigger):
    """Emits one asset event for every delivery that matches all filters given.

    The event's `extra["payload"]` contains `conn_id`, `delivery_id`, `event`, `key`, `job_id`, `monitor_id`, `success`,
    `received_at`, `size`, `page_url` (the delivery in the inbox's page), and the delivery's body in `payload`. If the
    body is larger than 16 KiB, `payload` is missing; read it with
    `WebDataHook(conn_id).inbox().fetch(delivery_id)`.

    On Airflow 3.3, all watchers of a connection in a triggerer share one reader. Each watcher stores its cursor in the
    asset state store after Airflow has stored its events, so a restart loses no events. It can repeat an event only if
    the triggerer is killed in the one to two seconds between storing the event and storing the cursor; a repeated
    event has the same `delivery_id`. Airflow 3.2 stores no cursors: every start of a triggerer begins at `start`.

    :param webdata_conn_id: id of a connection of type `webdata`.
    :param events: names of events, with or without the operation's prefix; None: all.
    :param key: correlation key, the last part of the URL that receives the deliveries.
    :param monitor_id: the monitor's UUID.
    :param job_id: id of the job; for monitors, of the check.
    :param start: where to start without a cursor: `now`, or an ISO 8601 time after which deliveries count.
    :param queue: the trigger queue whose triggerers (`airflow triggerer --queues`) run the trigger. Requires Airflow
        3.4.
    :raises ArgumentError: an argument is invalid.
    """

    def __init__(
        self,
        webdata_conn_id: str,
        events: Sequence[str] | str | None = None,
        key: str | None = None,
        monitor_id: str | None = None,
        job_id: str | None = None,
        start: str = "now",
        *,
        queue: str | None = None,
    ) -> None:
        super().__init__(webdata_conn_id, start, queue)
        self.events = None if events is None else as_list("events", events)
        self.key = key
        self.monitor_id = monitor_id
        self.job_id = job_id
        self._subscription = Subscription(
            key=key,
            job_id=job_id,
            monitor_id=monitor_id,
            events=tuple(events or ()),
            since=None if start == "now" else moment(start),
        )

    def _stream(self, start: str | None) -> Stream:
        return WebhookStream(self.webdata_conn_id, start)

    async def _payload(self, delivery: Delivery) -> dict[str, Any] | None:
        fits = self._subscription.fits(delivery, moment(delivery.received_at))
        return payload_of(self.webdata_conn_id, delivery) if fits else None


class WebDataMonitorCheckEventTrigger(StreamTrigger):
    """Emits one asset event for every finished check of a monitor, reported by webhook or found by polling.

    The event's `extra["payload"]` contains `conn_id`, `monitor_id`, `check_id`, `check_status`, `finished_at`, `via`,
    `summary`, `page_url` (the check's page in Airflow), and the check itself in `check`, unless it is larger than
    16 KiB. The trigger reads each check from the service: if a delivery is lost, the next poll finds the check, and a
    check that is both delivered and polled emits one event.

    All watchers of a monitor in a triggerer share their polls. The delivery guarantees after a restart are those of
    `WebDataWebhookEventTrigger`; a repeated event has the same `check_id`. On Airflow 3.2, a start at `now` repeats the
    events of the last minute.

    :param webdata_conn_id: id of a connection of type `webdata`.
    :param monitor_id: the monitor's UUID or its name.
    :param poll_interval: seconds between polls if no delivery is expected, at least 1. If the monitor reports to this
        Airflow, it is polled every 1500 s, or 60 s with a self-hosted server, in case a delivery is lost.
    :param on_failed: `accept`: emit an event for a failed check; `wait`: ignore it.
    :param on_partial: the same for checks with page errors.
    :param on_skipped: the same for skipped checks.
    :param only_if_changed: emit events only for checks with changed, new, or removed pages.
    :param only_if_meaningful: emit events only for checks with a page whose change was judged meaningful.
    :param start: where to start without a cursor: an ISO 8601 time after which checks count, or `now`. `now` is the
        trigger's estimate of when the DAG was unpaused: 30 s plus Airflow's `min_file_process_interval` before the
        trigger starts.
    :param queue: the trigger queue whose triggerers (`airflow triggerer --queues`) run the trigger. Requires Airflow
        3.4.
    :raises ArgumentError: an argument is invalid.
    """

    def __init__(
        self,
        webdata_conn_id: str,
        monitor_id: str,
        poll_interval: float = CHECK_POLL_INTERVAL,
        on_failed: Literal["accept", "wait"] = "accept",
        on_partial: Literal["accept", "wait"] = "accept",
        on_skipped: Literal["accept", "wait"] = "wait",
        only_if_changed: bool = False,
        only_if_meaningful: bool = False,
        start: str = "now",
        *,
        queue: str | None = None,
    ) -> None:
        super().__init__(webdata_conn_id, start, queue)
        self._criteria = CheckCriteria(
            on_failed=on_failed,
            on_partial=on_partial,
            on_skipped=on_skipped,
            only_if_changed=only_if_changed,
            only_if_meaningful=only_if_meaningful,
        )
        if "fail" in (on_failed, on_partial, on_skipped):
            raise ArgumentError(
                "on_failed, on_partial and on_skipped must be accept or wait: an asset event cannot fail"
            )
        self.monitor_id = monitor_id
        self.poll_interval = poll_seconds(poll_interval, CHECK_POLL_INTERVAL)
        self.on_failed = on_failed
        self.on_partial = on_partial
        self.on_skipped = on_skipped
        self.only_if_changed = only_if_changed
        self.only_if_meaningful = only_if_meaningful

    def _stream(self, start: str | None) -> Stream:
        return CheckStream(self.webdata_conn_id, self.monitor_id, self.poll_interval, start)

    async def _payload(self, value: tuple[str, FoundCheck]) -> dict[str, Any] | None:
        monitor_id, (check, _, via) = value
        meaningful = (
            await self._meaningful(monitor_id, check.id) if self._criteria.needs_pages(check) else None
        )
        decision = self._criteria.decide(check, meaningful=meaningful)
        if decision.outcome != "done":
            log.info("Check %s emits no event: %s.", check.id, decision.reason)
            return None
        # Also values that a database rejects are stored.
        written = to_json(check.to_wire(mask_headers=True), inf_nan_mode="null")
        wire = parse_body(written)
        payload = {
            "conn_id": self.webdata_conn_id,
            "monitor_id": monitor_id,
            "check_id": check.id,
            "check_status": check.status,
            "finished_at": check.finished_at,
            "via": via,
            "summary": wire.get("summary"),
            "page_url": page_url(monitor_page(self.webdata_conn_id, monitor_id, check.id)),
        }
        if len(written) <= INLINE_BODY_BYTES:
            payload["check"] = wire
        return payload

    async def _meaningful(self, monitor_id: str, check_id: str) -> bool:
        try:
            return await asyncio.shield(Hub.of(self.webdata_conn_id).polls.judge(monitor_id, check_id))
        except WaitFailedError as error:
            log.warning(
                "Could not read whether check %s is meaningful; treating it as meaningful: %s",
                check_id,
                brief(error),
            )
            return True


def payload_of(conn_id: str, delivery: Delivery) -> dict[str, Any]:
    """Return the asset event payload for a delivery, without the body if it is large."""
    payload = {
        "conn_id": conn_id,
        **fields_of(delivery),
        "page_url": page_url(delivery_page(delivery.id)),
    }
    if delivery.has_body and delivery.size <= INLINE_BODY_BYTES:
        payload["payload"] = delivery.payload()
    return payload
