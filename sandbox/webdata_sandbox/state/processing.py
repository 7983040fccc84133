# SPDX-License-Identifier: Apache-2.0
"""Large documents: after a request's timeout (408), the service continues to process them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from webdata_sandbox.reference.errors import ServiceError

if TYPE_CHECKING:
    from .clock import Clock
    from .store import Store

LONGEST_HINT = 600
WINDOW = 1200.0
"""Seconds within which, according to the service, repeating the request returns the result."""

TIMED_OUT = "The scrape timed out before the page could be processed. Increase the timeout and try again."
CONTINUES = "The document is still being processed. Repeat the same request to get its result."


class Processing:
    """Stores the time at which each pending document will be processed."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store, self._clock = store, clock

    def require_done(self, key: str, seconds: float, timeout: int, pages: int | None) -> None:
        """Return if the result is ready within the request's timeout, and raise otherwise. This method never waits.

        :param key: identifies repetitions of the same request.
        :param seconds: duration of the processing, in sandbox time.
        :param timeout: timeout of the request, in milliseconds.
        :param pages: number of pages of the document; None: its processing ends with the request.
        :raises ServiceError: 408: the result is not ready.
        """
        known = self._store.get("processing", key)
        now = self._clock.now()
        ready = known["ready"] if known else now + seconds
        if ready - now <= timeout / 1000:
            self._store.delete("processing", key)
            return
        if pages is None:
            raise ServiceError(408, TIMED_OUT, code="SCRAPE_TIMEOUT")
        self._store.put("processing", key, {"ready": ready})
        # Counted from this request's timeout.
        left = ready - now - timeout / 1000
        hint = min(LONGEST_HINT, math.ceil(left))
        details = {
            "state": "processing_continues",
            "documentPages": pages,
            "jobStatus": "running",
            "estimatedRemainingSeconds": math.ceil(left),
            "retryAfterSeconds": hint,
            "mayExceedProcessingWindow": left > WINDOW,
        }
        raise ServiceError(
            408, CONTINUES, code="SCRAPE_TIMEOUT", details=details, headers={"Retry-After": str(hint)}
        )
