"""Documents that take longer than a request may wait: the service goes on with them, and says so with a 408."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from airflow_provider_webdata.sandbox.reference.errors import ServiceError

if TYPE_CHECKING:
    from .clock import Clock
    from .store import Store

LONGEST_HINT = 600
WINDOW = 1200.0
"""Seconds within which repeating the request is said to lead to the result."""

TIMED_OUT = "The scrape timed out before the page could be processed. Increase the timeout and try again."
CONTINUES = "The document is still being processed. Repeat the same request to get its result."


class Processing:
    """Remembers what goes on being processed, and until when."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store, self._clock = store, clock

    def require_done(self, key: str, seconds: float, timeout: int, pages: int | None) -> None:
        """Return when the result is there within the request's time; the caller is not made to wait for either.

        :param key: what makes a repetition the same request.
        :param seconds: how long the work takes, in the sandbox's time.
        :param timeout: how long the request may take, in milliseconds.
        :param pages: pages of the document, or None when it is no document that goes on being processed.
        :raises ServiceError: 408.
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
        # Counted from the moment at which this request would have been given up.
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
