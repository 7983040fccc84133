"""Records are saved while searches continue, whatever storage does."""

from __future__ import annotations

import asyncio
import threading
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


async def test_records_that_wait_for_room_when_the_attempt_ends_are_saved() -> None:
    saved: list[Any] = []
    may_save = threading.Event()

    def save(records: list[Any]) -> None:
        may_save.wait(30)
        saved.extend(records)

    writer = RecordWriter(save, 1)
    writing = asyncio.create_task(writer.run())
    putting = [asyncio.create_task(writer.put({"key": str(number)})) for number in range(3)]
    # One is being saved, one waits in the queue, and one for room.
    while sum(task.done() for task in putting) != 2:
        await asyncio.sleep(0)
    for task in putting:
        task.cancel()
    await asyncio.wait(putting)
    may_save.set()
    writer.finish()
    await writing
    assert {record["key"] for record in saved} == {"0", "1", "2"}
