"""The inbox as a message queue: `MessageQueueTrigger` of common-messaging is stored as our own trigger."""

from __future__ import annotations

from typing import Any

import pytest
from airflow.providers_manager import ProvidersManager
from airflow.sdk import DAG, Asset, AssetWatcher
from airflow.serialization.serialized_objects import DagSerialization

from airflow_provider_webdata.get_provider_info import get_provider_info
from airflow_provider_webdata.triggers.events import WebDataWebhookEventTrigger

ARGUMENTS: list[dict[str, Any]] = [
    {"webdata_conn_id": "webdata_default"},
    {"webdata_conn_id": "eu", "events": ["crawl.completed"], "key": "k", "start": "2026-01-31T10:00:00Z"},
    {"webdata_conn_id": "eu", "monitor_id": "m", "job_id": "j"},
]


@pytest.mark.parametrize("arguments", ARGUMENTS)
def test_it_is_stored_as_our_trigger(arguments: dict[str, Any]) -> None:
    """So that Airflow treats both as one trigger with one cursor."""
    from airflow.providers.common.messaging.triggers.msg_queue import MessageQueueTrigger

    queue = MessageQueueTrigger(scheme="webdata", **arguments)
    ours = WebDataWebhookEventTrigger(**arguments)
    assert queue.serialize() == ours.serialize()

    def stored(trigger: Any) -> str:
        asset = Asset("deliveries", watchers=[AssetWatcher(name="w", trigger=trigger)])
        with DAG("d", schedule=[asset]) as dag:
            pass
        return str(DagSerialization.serialize_dag(dag))

    assert stored(queue) == stored(ours)


def test_airflow_knows_the_scheme() -> None:
    assert {*get_provider_info()["queues"]} <= {*ProvidersManager().queue_class_names}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"scheme": "webdata"}, "webdata_conn_id"),
        ({"scheme": "webdata", "webdata_conn_id": "c", "start": "soon"}, "start must be"),
        ({"scheme": "webdata", "webdata_conn_id": "c", "monitor": "m"}, "monitor"),
        ({"queue": "webdata://c"}, "not recognized"),
    ],
)
@pytest.mark.filterwarnings("ignore:The `queue` parameter is deprecated")
def test_what_cannot_work_is_refused(arguments: dict[str, Any], words: str) -> None:
    from airflow.providers.common.messaging.triggers.msg_queue import MessageQueueTrigger

    with pytest.raises((TypeError, ValueError), match=words):
        MessageQueueTrigger(**arguments).serialize()
