"""Records are saved while searches go on, whatever storage does."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest

from airflow_provider_webdata.runs.searches.record_writer import RecordWriter

RECORDS: list[dict[str, Any]] = [{"key": str(number)} for number in range(20)]


async def write(writer: RecordWriter) -> None:
    writing = asyncio.create_task(writer.run())
    for record in RECORDS:
        await writer.put(record)
    writer.finish()
    await writing


def test_all_are_saved_in_order_many_at_a_time_where_storage_is_slow() -> None:
    calls: list[list[dict[str, Any]]] = []

    def save(records: list[dict[str, Any]]) -> None:
        time.sleep(0.02)
        calls.append(list(records))

    writer = RecordWriter(save, 5)
    asyncio.run(write(writer))
    assert [record for call in calls for record in call] == RECORDS
    assert len(calls) < len(RECORDS)
    assert max(map(len, calls)) <= 6
    writer.check()
    assert not writer.failed


def test_after_a_failure_all_are_saved_at_the_end_and_the_failure_is_raised() -> None:
    calls: list[list[dict[str, Any]]] = []

    def save(records: list[dict[str, Any]]) -> None:
        calls.append(list(records))
        if len(calls) == 1:
            raise OSError("disk full")

    writer = RecordWriter(save, 5)
    asyncio.run(write(writer))
    assert len(calls) == 2
    assert calls[1] == RECORDS
    assert writer.failed
    with pytest.raises(OSError, match="disk full"):
        writer.check()


def test_what_waits_is_saved_when_it_is_cancelled() -> None:
    saved: list[dict[str, Any]] = []

    async def cancelled() -> None:
        writer = RecordWriter(saved.extend, 50)
        for record in RECORDS:
            await writer.put(record)
        writing = asyncio.create_task(writer.run())
        await asyncio.sleep(0)
        writing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await writing

    asyncio.run(cancelled())
    assert [record["key"] for record in saved][: len(RECORDS)] == [record["key"] for record in RECORDS]
