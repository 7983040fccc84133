# SPDX-License-Identifier: Apache-2.0
"""A monitor's check that does not end until a task waits for it, however long that takes."""

from __future__ import annotations

import contextlib
import threading
from typing import TYPE_CHECKING

from tests.support.waiting import PATIENCE, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from webdata_sandbox.control import SandboxControl


def is_waited_for(sandbox: SandboxControl) -> bool:
    """Return whether the checks of the last-run monitor have been requested since its run."""
    asked = [
        (request["method"], request["path"])
        for request in sandbox.requests("/v2/monitor/[^/]+/(run$|checks)")
    ]
    runs = [number for number, (method, _) in enumerate(asked) if method == "POST"]
    if not runs:
        return False
    checks = asked[runs[-1]][1].removesuffix("run") + "checks"
    return any(path.startswith(checks) for _, path in asked[runs[-1] :])


@contextlib.contextmanager
def standing_check(sandbox: SandboxControl) -> Iterator[None]:
    """The check that is started within the block ends, and is reported, once it is waited for."""
    seconds = 2 * PATIENCE
    sandbox.clear_requests()
    sandbox.configure(check_seconds=seconds)
    over = threading.Event()

    def end() -> None:
        wait_until(lambda: over.is_set() or is_waited_for(sandbox))
        sandbox.advance(seconds)

    thread = threading.Thread(target=end)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
        sandbox.configure(check_seconds=0)
