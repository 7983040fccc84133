# SPDX-License-Identifier: Apache-2.0
"""The events that a watcher makes of the items of its stream."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from airflow_provider_webdata.triggers.base.stream_trigger import StreamTrigger
from airflow_provider_webdata.waiting.streams.stream import StreamItem


def payloads(trigger: StreamTrigger, *values: Any) -> list[Any]:
    """Return the payloads of the events that a trigger makes of a stream's values."""

    async def stream() -> AsyncIterator[Any]:
        for value in values:
            yield StreamItem(value, cursor={})

    async def watch() -> list[Any]:
        return [event.payload async for event in trigger.filter_shared_stream(stream())]

    return asyncio.run(watch())
