"""Signals that reach an operator in the middle of its work, as soon as it has come to where they are wanted."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Callable, Iterator
from typing import Any

from airflow.sdk.exceptions import AirflowTaskTimeout

from tests.support.waiting import wait_until


@contextlib.contextmanager
def _signalled(
    number: signal.Signals, act: Callable[[], None], condition: Callable[[], Any]
) -> Iterator[None]:
    came: list[bool] = []

    def handle(*_: object) -> None:
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
