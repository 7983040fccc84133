"""Work of `on_kill`, which Airflow calls in a signal handler."""

from __future__ import annotations

import atexit
import contextvars
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

SECONDS = 3.0
"""How long the handler waits. Airflow sends SIGKILL 5 seconds after the signal."""


def run_outside_handler(work: Callable[[], object]) -> None:
    """Run work in a thread, and wait for its end or for `SECONDS`.

    The signal may have come in the middle of a log call or a request to Airflow, whose lock is held until the handler
    returns: the handler itself must not wait for either. Do first what the service must do, and log last.
    """
    thread = threading.Thread(target=contextvars.copy_context().run, args=(work,), daemon=True)
    thread.start()
    thread.join(SECONDS)
    if thread.is_alive():
        # After a timeout, which is no signal of Airflow's supervisor, the process ends by itself.
        atexit.register(thread.join)
