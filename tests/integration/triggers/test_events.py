# SPDX-License-Identifier: Apache-2.0
"""Asset events of deliveries and checks, over restarts, with Airflow's shared streams where it has them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
from airflow.triggers.base import BaseEventTrigger

from airflow_provider_webdata.triggers.events import (
    WebDataMonitorCheckEventTrigger,
    WebDataWebhookEventTrigger,
)
from airflow_provider_webdata.waiting import check_target
from airflow_provider_webdata.waiting.streams import check_stream, checkpoint, stream
from airflow_provider_webdata.waiting.streams.stream import StreamItem

try:
    from airflow.triggers.shared_stream import DEFAULT_SUBSCRIBER_QUEUE_MAX, SharedStreamManager
except ImportError:
    SharedStreamManager, DEFAULT_SUBSCRIBER_QUEUE_MAX = None, 0

needs_shared_streams = pytest.mark.skipif(
    SharedStreamManager is None, reason="this Airflow has no shared streams"
)


class Store:
    """An asset state store, like that of the triggerer's supervisor."""

    def __init__(self) -> None:
        self.values: dict[str, Any] = {}
        self._by_name = {"asset": self}

    async def aget(self, key: str, default: Any = None) -> Any:
        return self.values.get(key, default)

    async def aset(self, key: str, value: Any) -> None:
        self.values[key] = json.loads(json.dumps(value))


class Triggerer:
    """Runs event triggers as Airflow's triggerer does.

    :param queue: the length of Airflow's queue for a watcher.
    :param ack_timeout: seconds after which Airflow gives up a watcher that has not processed an item.
    :ivar storing: whether events are stored.
    """

    def __init__(
        self,
        *triggers: BaseEventTrigger,
        store: Store | None = None,
        shared: bool = True,
        queue: int = DEFAULT_SUBSCRIBER_QUEUE_MAX,
        ack_timeout: float = 60.0,
    ) -> None:
        self.events: list[list[dict[str, Any]]] = [[] for _ in triggers]
        self.unstored: list[int] = []
        self.storing = True
        self._manager = (
            SharedStreamManager(ack_timeout=ack_timeout, max_subscriber_queue=queue) if shared else None
        )
        self.joined = 0
        for trigger in triggers:
            trigger.asset_state_store = store
            trigger._watch = self._noting(trigger._watch)
        self.tasks = [
            asyncio.create_task(self._run(number, trigger)) for number, trigger in enumerate(triggers)
        ]

    def _noting(self, watch: Any) -> Any:
        """Count the watchers whose stream has its first cursor."""

        async def noted(raw: Any) -> Any:
            async for item in raw:
                yield item
                self.joined += isinstance(item, StreamItem) and item.value is None

        return lambda raw: watch(noted(raw))

    async def _run(self, number: int, trigger: Any) -> None:
        if self._manager is None:
            async for event in trigger.run():
                self.events[number].append(event.payload)
            return
        key = trigger.shared_stream_key()
        raw = self._manager.subscribe(trigger_id=number, trigger=trigger, key=key)
        try:
            async for event in trigger.filter_shared_stream(raw):
                self.events[number].append(event.payload)
                seq = self._manager.bind_pending_event(trigger_id=number, key=key)
                assert seq is not None, "the event is not bound to its item"
                if self.storing:
                    self._manager.confirm_persisted([seq])
        finally:
            await self._manager.unsubscribe(number, key)

    async def kill(self) -> None:
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)


@asynccontextmanager
async def running(*triggers: Any, tools: Any, **how: Any) -> AsyncIterator[Triggerer]:
    triggerer = Triggerer(*triggers, **how)
    try:
        await tools.until(lambda: triggerer.joined >= len(triggers))
        yield triggerer
    finally:
        await triggerer.kill()


def delivery(number: int, **more: Any) -> dict[str, Any]:
    return {"success": True, "type": "crawl.page", "id": "j", "webhookId": f"w{number}", "data": [], **more}


def for_deliveries(**given: Any) -> WebDataWebhookEventTrigger:
    return WebDataWebhookEventTrigger("webdata_default", **given)


def numbers(events: list[dict[str, Any]]) -> list[int]:
    return [int(event["payload"]["webhookId"][1:]) for event in events]


async def deliver(world: Any, *which: int, key: str = "k") -> None:
    for number in which:
        response = await asyncio.to_thread(world.inbox.deliver, delivery(number), key)
        assert response.json() == {"status": "stored"}


async def test_each_delivery_becomes_one_event(world: Any, tools: Any) -> None:
    await deliver(world, 0)
    async with running(for_deliveries(), tools=tools, shared=False) as triggerer:
        await deliver(world, 1, 2, 3)
        await tools.until(lambda: len(triggerer.events[0]) == 3)
    assert numbers(triggerer.events[0]) == [1, 2, 3], "older deliveries do not count"
    first = triggerer.events[0][0]
    assert (first["conn_id"], first["event"], first["key"], first["job_id"]) == (
        "webdata_default",
        "crawl.page",
        "k",
        "j",
    )


@pytest.mark.parametrize(
    "shared", [pytest.param(False, id="alone"), pytest.param(True, id="shared", marks=needs_shared_streams)]
)
async def test_starts_at_a_moment(world: Any, tools: Any, shared: bool) -> None:
    await deliver(world, 0)
    middle = datetime.now(timezone.utc).isoformat()
    await deliver(world, 1, 2)
    trigger = for_deliveries(start=middle)
    async with running(trigger, tools=tools, shared=shared, store=Store()) as triggerer:
        await deliver(world, 3)
        await tools.until(lambda: len(triggerer.events[0]) == 3)
    assert numbers(triggerer.events[0]) == [1, 2, 3]


@needs_shared_streams
async def test_watchers_share_a_reader(world: Any, tools: Any) -> None:
    watchers = [for_deliveries(key=f"k{number}") for number in range(50)]
    async with running(*watchers, for_deliveries(), tools=tools, store=Store()) as triggerer:
        await deliver(world, 1, key="k7")
        await deliver(world, 2, key="k9")
        await tools.until(lambda: len(triggerer.events[50]) == 2 and triggerer.events[9])
        assert [numbers(events) for events in triggerer.events if events] == [[1], [2], [1, 2]]
        polls = [line for line in world.inbox.reads() if "wait=" in line]
        assert len(polls) <= 4, polls


@needs_shared_streams
async def test_a_restart_loses_nothing_and_repeats_nothing(world: Any, tools: Any) -> None:
    store = Store()
    async with running(for_deliveries(), tools=tools, store=store) as first:
        await deliver(world, 1, 2)
        await tools.until(lambda: len(first.events[0]) == 2)
        await tools.until(lambda: _kept(store) > 0)
        await tools.until(lambda: _kept(store) == _newest(world))
    await deliver(world, 3, 4)
    async with running(for_deliveries(), tools=tools, store=store) as second:
        await deliver(world, 5)
        await tools.until(lambda: len(second.events[0]) == 3)
    assert numbers(first.events[0] + second.events[0]) == [1, 2, 3, 4, 5]


@needs_shared_streams
async def test_events_that_airflow_has_not_stored_are_repeated(world: Any, tools: Any) -> None:
    store = Store()
    async with running(for_deliveries(), tools=tools, store=store) as first:
        first.storing = False
        await deliver(world, 1, 2)
        await tools.until(lambda: len(first.events[0]) == 2)
    async with running(for_deliveries(), tools=tools, store=store) as second:
        await tools.until(lambda: len(second.events[0]) == 2)
    assert numbers(second.events[0]) == [1, 2]


@needs_shared_streams
async def test_watchers_continue_at_their_own_cursors(world: Any, tools: Any) -> None:
    store = Store()
    one, two = for_deliveries(), for_deliveries(events=["page"])
    for watcher, number in ((one, 1), (two, 2)):
        async with running(watcher, tools=tools, store=store) as triggerer:
            await deliver(world, number)
            await tools.until(lambda: bool(triggerer.events[0]))
            await tools.until(lambda: len(store.values) == number)  # noqa: B023
            await tools.until(lambda: _newest(world) in {int(c["after"]) for c in store.values.values()})
    async with running(
        for_deliveries(), for_deliveries(events=["page"]), tools=tools, store=store
    ) as triggerer:
        await deliver(world, 3)
        await tools.until(lambda: len(triggerer.events[0]) == 2 and len(triggerer.events[1]) == 1)
    assert numbers(triggerer.events[0]) == [2, 3]
    assert numbers(triggerer.events[1]) == [3]


@needs_shared_streams
async def test_an_inbox_that_was_reset(world: Any, tools: Any) -> None:
    """Its cursors begin again: watchers read it from its beginning, whether or not they ran meanwhile."""

    def reset() -> None:
        world.inbox.stop()
        world.inbox.reset()
        world.inbox.start()

    store = Store()
    async with running(for_deliveries(), tools=tools, store=store) as first:
        await deliver(world, 1)
        await tools.until(lambda: len(first.events[0]) == 1)
        await asyncio.to_thread(reset)
        await deliver(world, 2)
        await tools.until(lambda: len(first.events[0]) == 2)
        await tools.until(lambda: _kept(store) == _newest(world))
    await asyncio.to_thread(reset)
    async with running(for_deliveries(), tools=tools, store=store) as second:
        await deliver(world, 3)
        await tools.until(lambda: second.events[0])
    assert numbers(first.events[0] + second.events[0]) == [1, 2, 3]


async def test_events_of_large_deliveries_are_references(world: Any, tools: Any) -> None:
    async with running(for_deliveries(), tools=tools, shared=False) as triggerer:
        await asyncio.to_thread(world.inbox.deliver, delivery(1, error="x" * 20_000), "k")
        await tools.until(lambda: triggerer.events[0])
    (event,) = triggerer.events[0]
    assert "payload" not in event
    assert event["size"] > 20_000
    with world.hook.inbox() as reader:
        assert reader.fetch(event["delivery_id"]).payload()["error"] == "x" * 20_000


@needs_shared_streams
async def test_more_than_airflow_queues_for_a_watcher(
    world: Any, tools: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert stream.MAX_UNACKNOWLEDGED < DEFAULT_SUBSCRIBER_QUEUE_MAX
    monkeypatch.setattr(stream, "MAX_UNACKNOWLEDGED", 8)
    await deliver(world, *range(50))
    trigger = for_deliveries(start="2000-01-01T00:00:00Z")
    async with running(trigger, tools=tools, store=Store(), queue=16) as triggerer:
        await tools.until(lambda: len(triggerer.events[0]) >= 50)
    assert numbers(triggerer.events[0]) == list(range(50))


def _kept(store: Store) -> int:
    (cursor,) = store.values.values()
    return int(cursor["after"])


def _newest(world: Any) -> int:
    with world.hook.inbox() as reader:
        return reader.feed(limit=1000).deliveries[-1].position or 0


def for_checks(monitor: str, **given: Any) -> WebDataMonitorCheckEventTrigger:
    return WebDataMonitorCheckEventTrigger("webdata_default", monitor, **given)


@pytest.mark.parametrize(
    ("shared", "webhook"),
    [
        pytest.param(False, True, id="alone-webhook"),
        pytest.param(False, False, id="alone-polling"),
        pytest.param(True, True, id="shared-webhook", marks=needs_shared_streams),
    ],
)
async def test_each_check_becomes_one_event(
    world: Any, tools: Any, monkeypatch: pytest.MonkeyPatch, shared: bool, webhook: bool
) -> None:
    """A check that completed just before the watcher began is among them: the DAG may have been unpaused by then."""
    monitor = world.monitor(webhook=webhook)
    checks = [await asyncio.to_thread(world.run, monitor)]
    monkeypatch.setattr(check_target, "CHECK_SAFETY_POLL", 1.0)
    trigger = for_checks(monitor, poll_interval=1.0)
    async with running(trigger, tools=tools, shared=shared, store=Store()) as triggerer:
        checks += [await asyncio.to_thread(world.run, monitor) for _ in range(2)]
        await tools.until(lambda: len(triggerer.events[0]) >= 3)
        # Later polls show the same checks again.
        world.control.clear_requests()
        await tools.until(lambda: len(world.control.requests(f"/v2/monitor/{monitor}/checks")) >= 2)
    assert [event["check_id"] for event in triggerer.events[0]] == checks
    first = triggerer.events[0][0]
    assert first["check"]["id"] == checks[0]
    assert first["summary"] == first["check"]["summary"]


async def test_a_watcher_by_name(world: Any, tools: Any) -> None:
    monitor = world.monitor()
    async with running(for_checks("m", poll_interval=1.0), tools=tools, shared=False) as triggerer:
        check = await asyncio.to_thread(world.run, monitor)
        await tools.until(lambda: triggerer.events[0])
    [event] = triggerer.events[0]
    assert (event["monitor_id"], event["check_id"]) == (monitor, check)


@needs_shared_streams
async def test_checks_over_a_restart(world: Any, tools: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monitor = world.monitor()
    store = Store()
    monkeypatch.setattr(check_target, "CHECK_SAFETY_POLL", 1.0)
    async with running(for_checks(monitor, poll_interval=1.0), tools=tools, store=store) as first:
        one = await asyncio.to_thread(world.run, monitor)
        await tools.until(lambda: first.events[0])
        await tools.until(lambda: any(value["ids"] for value in store.values.values()))
    two = await asyncio.to_thread(world.run, monitor)
    async with running(for_checks(monitor, poll_interval=1.0), tools=tools, store=store) as second:
        three = await asyncio.to_thread(world.run, monitor)
        await tools.until(lambda: len(second.events[0]) >= 2)
    assert [event["check_id"] for event in first.events[0] + second.events[0]] == [one, two, three]


@needs_shared_streams
@pytest.mark.parametrize("ack_timeout", [60.0, 1.0], ids=["killed", "given-up-by-airflow"])
async def test_checks_that_a_watcher_has_not_decided_on_are_read_again(
    world: Any, tools: Any, monkeypatch: pytest.MonkeyPatch, ack_timeout: float
) -> None:
    """The watcher ends while it reads whether the first of two checks is meaningful."""
    monkeypatch.setattr(checkpoint, "WRITE_INTERVAL", 0.0)
    page, store = "https://news.example/", Store()
    world.control.set_page(page, html="<p>one euro</p>")
    monitor = world.monitor(page, webhook=False, goal="Tell me when the price changes.")
    await asyncio.to_thread(world.run, monitor)

    async def change(price: str) -> str:
        world.control.advance(1)
        world.control.set_page(page, html=f"<p>the price is {price} euro</p>")
        return await asyncio.to_thread(world.run, monitor)

    def watcher() -> WebDataMonitorCheckEventTrigger:
        return for_checks(monitor, poll_interval=1.0, only_if_meaningful=True, start="2020-01-01T00:00:00Z")

    async def calls(path: str, least: int = 1) -> None:
        world.control.clear_requests()
        await tools.until(lambda: len(world.control.requests(f"/v2/monitor/{monitor}/checks{path}")) >= least)

    async with running(watcher(), tools=tools, store=store, ack_timeout=ack_timeout):
        await tools.until(lambda: any(value["ids"] for value in store.values.values()))
        world.control.add_fault("status", path=f"/v2/monitor/{monitor}/checks/.+", status=500, times=None)
        two = await change("two")
        await calls("/.+")
        await asyncio.sleep(2 * min(ack_timeout, 1.0))
        three = await change("three")
        await calls("$", 2)
    world.control.clear_faults()
    async with running(watcher(), tools=tools, store=store) as second:
        await tools.until(lambda: len(second.events[0]) >= 2)
    assert [event["check_id"] for event in second.events[0]] == [two, three]


@pytest.mark.rule("check-failed", "check-page-status")
async def test_only_checks_that_count_become_events(
    world: Any, tools: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    # So that the first check completes before the watcher counts.
    monkeypatch.setattr(check_stream, "start_lag", lambda: timedelta(0))
    world.control.set_page("https://news.example/", html="<p>one</p>")
    monitor = world.monitor("https://news.example/")
    await asyncio.to_thread(world.run, monitor)
    trigger = for_checks(monitor, only_if_changed=True, on_failed="wait", poll_interval=1.0)
    async with running(trigger, tools=tools, shared=False) as triggerer:
        await asyncio.to_thread(world.run, monitor)
        world.control.add_fault("fail_check")
        await asyncio.to_thread(world.run, monitor)
        world.control.set_page("https://news.example/", html="<p>two</p>")
        changed = await asyncio.to_thread(world.run, monitor)
        await tools.until(lambda: triggerer.events[0])
    assert [event["check_id"] for event in triggerer.events[0]] == [changed]


@pytest.mark.parametrize(
    "trigger",
    [
        for_deliveries(events=["page"], key="k", monitor_id="m", job_id="j", start="2026-01-01T00:00:00Z"),
        for_checks(
            "m",
            poll_interval=5.0,
            on_failed="wait",
            on_partial="wait",
            on_skipped="accept",
            only_if_changed=True,
            only_if_meaningful=True,
            start="2026-01-01T00:00:00Z",
        ),
    ],
    ids=["deliveries", "checks"],
)
def test_arguments_survive_and_hash_alike(trigger: Any) -> None:
    path, kwargs = trigger.serialize()
    again = type(trigger)(**json.loads(json.dumps(kwargs)))
    assert again.serialize() == (path, kwargs)
    assert path == f"airflow_provider_webdata.triggers.events.{type(trigger).__name__}"
    assert BaseEventTrigger.hash(path, kwargs) == BaseEventTrigger.hash(*again.serialize())


@pytest.mark.parametrize(
    "make,word",
    [
        (lambda: for_deliveries(start="soon"), "start"),
        (lambda: for_deliveries(job_id=""), "job_id"),
        (lambda: for_checks("m", on_failed="fail"), "on_failed"),
        (lambda: for_checks("m", poll_interval=0.5), "poll_interval"),
    ],
    ids=["start", "job_id", "on_failed", "policy"],
)
def test_invalid_arguments_are_refused(make: Any, word: str) -> None:
    with pytest.raises(ValueError, match=word):
        make()


def test_a_start_in_the_past_is_valid() -> None:
    start = (datetime.now(timezone.utc) - timedelta(days=1)).isoformat()
    assert for_deliveries(start=start).serialize()[1]["start"] == start
