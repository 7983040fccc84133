# SPDX-License-Identifier: Apache-2.0
"""Cleanup in `on_kill`, which Airflow calls in a signal handler."""

from __future__ import annotations

import atexit
import contextvars
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

SECONDS = 3.0
"""Maximum wait of the handler. Airflow sends SIGKILL 5 seconds after the signal."""


def run_outside_handler(work: Callable[[], object]) -> None:
    """Run a function in a thread, and wait for it for at most `SECONDS`.

    The signal may interrupt a log call or a request to Airflow, whose lock is held until the handler returns, so the
    handler must not wait for either. Call the service first, and log last.
    """
    thread = threading.Thread(target=contextvars.copy_context().run, args=(work,), daemon=True)
    thread.start()
    thread.join(SECONDS)
    if thread.is_alive():
        # After a timeout, which is not a signal of Airflow's supervisor, the process ends by itself.
        atexit.register(thread.join)
