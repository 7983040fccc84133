"""The events that one watcher of a shared stream makes of its items."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from airflow_provider_webdata.triggers.base.stream_trigger import StreamTrigger
from airflow_provider_webdata.waiting.streams.stream import Joined, StreamItem


def payloads(trigger: StreamTrigger, cursor: Any, *values: Any) -> list[Any]:
    """Return the payloads of the events that a trigger makes of the values after a cursor."""

    async def stream() -> AsyncIterator[Any]:
        yield Joined(None, cursor, reset=True)
        for value in values:
            yield StreamItem(value, cursor={})

    async def watch() -> list[Any]:
        return [event.payload async for event in trigger.filter_shared_stream(stream())]

    return asyncio.run(watch())
