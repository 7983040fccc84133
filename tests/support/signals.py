"""Signals that reach an operator in the middle of its work, as soon as it has come to where they are wanted."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

import structlog
from airflow.sdk.exceptions import AirflowTaskTimeout

from tests.support.waiting import wait_until


@contextlib.contextmanager
def _signalled(
    number: signal.Signals, act: Callable[[], None], condition: Callable[[], Any]
) -> Iterator[None]:
    came: list[bool] = []

    def handle(_: int, frame: FrameType | None) -> None:
        if _in_a_log_call(frame):
            # It holds the lock of the log. Airflow ends a process that waits for itself with SIGKILL.
            threading.Timer(0.01, os.kill, (os.getpid(), number)).start()
            return
        came.append(True)
        act()

    def watch() -> None:
        assert wait_until(condition, pause=0.01), "it never came to that"
        os.kill(os.getpid(), number)

    before = signal.signal(number, handle)
    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield
    finally:
        thread.join()
        signal.signal(number, before)
    assert came, "no signal was sent"


def _in_a_log_call(frame: FrameType | None) -> bool:
    return frame is not None and (
        frame.f_globals.get("__name__") == structlog.WriteLogger.__module__ or _in_a_log_call(frame.f_back)
    )


def killed_like_by_airflow(
    operator: Any, condition: Callable[[], Any]
) -> contextlib.AbstractContextManager[None]:
    """Send the signal that ends a task; Airflow's handler calls `on_kill` and lets the task go on."""
    return _signalled(signal.SIGTERM, operator.on_kill, condition)


def timed_out(condition: Callable[[], Any]) -> contextlib.AbstractContextManager[None]:
    """Airflow's `execution_timeout`: it raises wherever the main thread is."""

    def raise_timeout() -> None:
        raise AirflowTaskTimeout("time is over")

    return _signalled(signal.SIGALRM, raise_timeout, condition)
