# SPDX-License-Identifier: Apache-2.0
"""Signals that reach an operator in the middle of its work, as soon as a condition holds."""

from __future__ import annotations

import contextlib
import io
import logging
import os
import signal
import threading
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

from airflow.sdk.exceptions import AirflowTaskTimeout

from airflow_provider_webdata.common.logs import task_logger
from tests.support.waiting import PATIENCE, wait_until


@contextlib.contextmanager
def _signalled(
    number: signal.Signals, act: Callable[[], None], condition: Callable[[], Any]
) -> Iterator[None]:
    came: list[bool] = []

    def handle(_: int, frame: FrameType | None) -> None:
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
    """Send the signal that ends a task. Airflow's handler calls `on_kill` and lets the task continue."""
    return _signalled(signal.SIGTERM, operator.on_kill, condition)


class KillingLog(io.StringIO):
    """A log whose first line with a word sends the signal that ends a task, while the log's lock is held.

    :param word: in the line.
    """

    def __init__(self, word: str) -> None:
        super().__init__()
        self._word: str | None = word

    def write(self, text: str) -> int:
        if self._word is not None and self._word in text:
            self._word = None
            os.kill(os.getpid(), signal.SIGTERM)
        return super().write(text)


@contextlib.contextmanager
def killed_in_a_log_call(operator: Any, word: str) -> Iterator[KillingLog]:
    """Send the signal that ends a task in the middle of a line of its log, and yield the log."""
    log = KillingLog(word)
    handler = logging.StreamHandler(log)
    named = logging.getLogger(task_logger(operator).name)
    named.addHandler(handler)

    def give_up(*_: Any) -> None:
        raise AssertionError("the process waits for itself")

    before = signal.signal(signal.SIGTERM, lambda *_: operator.on_kill())
    alarm = signal.signal(signal.SIGALRM, give_up)
    signal.setitimer(signal.ITIMER_REAL, PATIENCE)
    try:
        yield log
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGTERM, before)
        signal.signal(signal.SIGALRM, alarm)
        named.removeHandler(handler)


def timed_out(condition: Callable[[], Any]) -> contextlib.AbstractContextManager[None]:
    """Airflow's `execution_timeout`: it raises wherever the main thread is."""

    def raise_timeout() -> None:
        raise AirflowTaskTimeout("time is over")

    return _signalled(signal.SIGALRM, raise_timeout, condition)
