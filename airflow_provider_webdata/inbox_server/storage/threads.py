# SPDX-License-Identifier: Apache-2.0
"""Blocking calls in daemon threads: a hanging database or secrets backend never keeps the process from exiting."""

from __future__ import annotations

import asyncio
import contextvars
import functools
import threading
from concurrent.futures import Future
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, TypeVar

import anyio

if TYPE_CHECKING:
    from collections.abc import Callable

_T = TypeVar("_T")

_calls: SimpleQueue[tuple[Future[Any], Callable[[], Any]]] = SimpleQueue()
_idle = threading.Semaphore(0)


def in_thread(work: Callable[[], _T]) -> asyncio.Future[_T]:
    """Start a blocking call, and return its result as a future. A call that has begun cannot be canceled.

    :raises RuntimeError: no thread can be started.
    """
    outcome: Future[_T] = Future()
    if not _idle.acquire(blocking=False):
        threading.Thread(target=_work, name="webdata-inbox", daemon=True).start()
    _calls.put((outcome, functools.partial(contextvars.copy_context().run, work)))
    return asyncio.wrap_future(outcome)


async def in_thread_within(seconds: float, limiter: anyio.CapacityLimiter, work: Callable[[], _T]) -> _T:
    """Return the result of a blocking call, which no longer counts toward the limit once it has timed out.

    :raises TimeoutError: the call took longer, including the time until the limit allowed it.
    """
    with anyio.fail_after(seconds):
        async with limiter:
            return await in_thread(work)


def _work() -> None:
    while True:
        _run(*_calls.get())
        _idle.release()


def _run(outcome: Future[_T], work: Callable[[], _T]) -> None:
    if not outcome.set_running_or_notify_cancel():
        return
    try:
        result = work()
    except BaseException as error:  # noqa: BLE001
        outcome.set_exception(error)
    else:
        outcome.set_result(result)
