# SPDX-License-Identifier: Apache-2.0
"""A separate event loop for the asynchronous part of a task."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Coroutine
    from typing import Any

_T = TypeVar("_T")


def run_aside(work: Coroutine[Any, Any, _T]) -> _T:
    """Run a coroutine in a separate thread, and wait for it here.

    An exception that a signal handler raises, such as Airflow's task timeout, then interrupts this wait. Inside an
    event loop it might be mistaken for a lost connection, and the task would continue. The interruption cancels the
    coroutine and awaits its cleanup.
    """
    # docs/contributing/upstream/timeout_in_event_loop.md
    given_up = threading.Event()
    running: list[tuple[asyncio.AbstractEventLoop, asyncio.Task[Any] | None]] = []

    async def watched() -> _T:
        running.append((asyncio.get_running_loop(), asyncio.current_task()))
        if given_up.is_set():
            work.close()
            raise asyncio.CancelledError
        return await work

    with ThreadPoolExecutor(1, thread_name_prefix="webdata") as threads:
        try:
            return threads.submit(contextvars.copy_context().run, asyncio.run, watched()).result()
        except BaseException:
            # The signal may arrive before the coroutine starts, which then checks this event, or after its loop ended.
            given_up.set()
            for loop, task in running:
                with suppress(RuntimeError):
                    loop.call_soon_threadsafe(task.cancel)  # type: ignore[union-attr]
            raise
