# SPDX-License-Identifier: Apache-2.0
"""The index finds the same subscriptions as a search; deliveries arrive once and in order."""

from __future__ import annotations

import asyncio
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_webdata.common.dates import moment
from airflow_provider_webdata.inbox.reader import Delivery
from airflow_provider_webdata.waiting.mailbox import Mailbox
from airflow_provider_webdata.waiting.subscriptions import Subscription, SubscriptionIndex

NAMES = st.sampled_from(["a", "b", "c"])
EVENTS = st.sampled_from(["crawl.completed", "completed", "monitor.page", "page"])


def received(minute: int) -> str:
    return f"2026-01-01T00:{minute:02}:00+00:00"


SUBSCRIPTIONS = st.builds(
    lambda key, job_id, monitor_id, events, since: Subscription(
        key=key,
        job_id=job_id,
        monitor_id=monitor_id,
        events=tuple(events),
        since=None if since is None else moment(received(since)),
    ),
    st.none() | NAMES,
    st.none() | NAMES,
    st.none() | NAMES,
    st.lists(EVENTS, max_size=2),
    st.none() | st.integers(0, 9),
)
DELIVERIES = st.builds(
    lambda position, key, job_id, monitor_id, event, minute: Delivery(
        id=position,
        position=position,
        size=1,
        received_at=received(minute),
        key=key,
        job_id=job_id,
        monitor_id=monitor_id,
        event=event,
    ),
    st.integers(1, 1000),
    st.none() | NAMES,
    st.none() | NAMES,
    st.none() | NAMES,
    st.none() | EVENTS,
    st.integers(0, 9),
)


@given(st.lists(SUBSCRIPTIONS, max_size=15), DELIVERIES, st.data())
def test_the_index_finds_whom_a_search_would(
    subscriptions: list[Subscription], delivery: Delivery, data: Any
) -> None:
    index = SubscriptionIndex(subscriptions)
    ended = data.draw(st.sets(st.sampled_from(subscriptions))) if subscriptions else set()
    for subscription in ended:
        index.remove(subscription)
        index.remove(subscription)
    left = [subscription for subscription in subscriptions if subscription not in ended]
    assert bool(index) == bool(left)
    assert sorted(map(id, index)) == sorted(map(id, left))
    found = index.of(delivery)
    assert len(found) == len(set(found))
    when = moment(delivery.received_at)
    assert set(found) == {subscription for subscription in left if subscription.fits(delivery, when)}


@given(
    positions=st.lists(st.integers(1, 60), unique=True).map(sorted),
    split=st.integers(0, 60),
    overlap=st.integers(0, 20),
)
def test_history_and_live_feed_make_one_stream(positions: list[int], split: int, overlap: int) -> None:
    def delivery(position: int) -> Delivery:
        return Delivery(id=position, position=position, size=1, received_at=received(0))

    subscription = Subscription()
    subscription.mailbox = mailbox = Mailbox()
    # The live feed begins before the history ends, so that both have what lies between.
    live = [position for position in positions if position > split]
    early = [position for position in live if position <= split + overlap]
    past = [position for position in positions if position <= split + overlap]
    for position in early:
        subscription.live(delivery(position))
    for position in past:
        subscription.past(delivery(position))
    subscription.caught_up()
    for position in live[len(early) :]:
        subscription.live(delivery(position))

    async def drain() -> tuple[list[int], Any]:
        found = [(await mailbox.get()).position for _ in positions]
        mailbox.post("the end")
        return found, await mailbox.get()

    assert asyncio.run(drain()) == (positions, "the end")
