# SPDX-License-Identifier: Apache-2.0
"""Arguments of triggers, which authors of an `AssetWatcher` write by hand, and values that their events omit."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Any

import pytest

from airflow_provider_webdata.api.models import MonitorCheck
from airflow_provider_webdata.triggers.base.stream_trigger import HAS_TRIGGER_QUEUES
from airflow_provider_webdata.triggers.events import (
    WebDataMonitorCheckEventTrigger,
    WebDataWebhookEventTrigger,
)
from airflow_provider_webdata.triggers.webhook import WebDataWebhookTrigger
from tests.support.watchers import payloads

MONITOR = {"monitor_id": "m"}
REFUSED = {
    "start that is no text": (
        WebDataWebhookEventTrigger,
        {"start": datetime(2026, 1, 1, tzinfo=timezone.utc)},
        "start must be 'now' or a time in ISO 8601",
    ),
    "start in words": (WebDataWebhookEventTrigger, {"start": "yesterday"}, "start must be 'now' or a time"),
    "id by number": (WebDataWebhookEventTrigger, {"job_id": 5}, "job_id must be 1 to"),
    "empty key": (WebDataWebhookEventTrigger, {"key": ""}, "key must be 1 to"),
    "span in words": (
        WebDataMonitorCheckEventTrigger, {**MONITOR, "poll_interval": "60"}, "poll_interval must be seconds",
    ),
    "too often": (WebDataMonitorCheckEventTrigger, {**MONITOR, "poll_interval": 0.5}, "at least 1"),
}  # fmt: skip


@pytest.mark.parametrize(("trigger", "arguments", "words"), REFUSED.values(), ids=REFUSED.keys())
def test_what_cannot_work_is_said_at_once(trigger: Any, arguments: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        trigger(webdata_conn_id="c", **arguments)


EVENT_TRIGGERS = [(WebDataWebhookEventTrigger, {}), (WebDataMonitorCheckEventTrigger, MONITOR)]


@pytest.mark.skipif(not HAS_TRIGGER_QUEUES, reason="this Airflow has no queues for event triggers")
@pytest.mark.parametrize(("trigger", "arguments"), EVENT_TRIGGERS)
def test_a_queue_is_stored_by_airflow_beside_the_arguments(trigger: Any, arguments: Any) -> None:
    """The cursor of a watcher is kept under its arguments, and so outlives a change of its queue."""
    from airflow.serialization.encoders import encode_trigger

    queued = trigger("c", **arguments, queue="web")
    assert encode_trigger(queued)["queue"] == "web"
    assert queued.serialize() == trigger("c", **arguments).serialize()


@pytest.mark.skipif(HAS_TRIGGER_QUEUES, reason="this Airflow has queues for event triggers")
@pytest.mark.parametrize(("trigger", "arguments"), EVENT_TRIGGERS)
def test_a_queue_where_airflow_has_none(trigger: Any, arguments: Any) -> None:
    assert trigger("c", **arguments, queue=None).serialize() == trigger("c", **arguments).serialize()
    with pytest.raises(ValueError, match=r"queue needs Airflow 3\.4 or newer: omit it"):
        trigger("c", **arguments, queue="web")


@pytest.mark.parametrize("trigger", [WebDataWebhookEventTrigger, WebDataWebhookTrigger])
def test_one_event_may_be_given_as_text(trigger: Any) -> None:
    assert trigger("c", events="monitor.page").serialize()[1]["events"] == ["monitor.page"]


def test_header_values_of_a_check_do_not_go_into_asset_events() -> None:
    trigger = WebDataMonitorCheckEventTrigger("c", "m")
    check = MonitorCheck.model_validate(
        {
            "id": "k",
            "status": "completed",
            "finishedAt": "2026-01-02T00:00:00Z",
            "targetResults": [{"scrapeOptions": {"headers": {"X-Key": "hush"}}}],
        }
    )
    (payload,) = payloads(trigger, ("m", (check, None, "polling")))
    assert payload["check"]["targetResults"] == [{"scrapeOptions": {"headers": {"X-Key": "***"}}}]
