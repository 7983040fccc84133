"""How many credits a batch of searches may still spend."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from airflow_provider_webdata.api.models import SearchRequest


def estimated_credits(request: SearchRequest) -> float:
    """Return about what a search costs, by the documented prices."""
    results = (request.limit or 10) * len(request.sources or "w")
    enterprise = request.enterprise or ()
    per_ten = 10 if "zdr" in enterprise else 2
    scraped = results if request.scrape_options is not None and request.scrape_options.formats else 0
    return per_ten * math.ceil(results / 10) + scraped


class CreditBudget:
    """What was spent, and what is reserved for the searches in flight.

    What a search costs is known afterwards only. Until then its estimated price is reserved, or that of the dearest
    search so far: scraping may cost far more than the estimate.

    :param most: credits that may be spent; None: without limit.
    """

    def __init__(self, most: float | None) -> None:
        self._most = most
        self._spent = 0.0
        self._dearest = 0.0
        self._reserved: dict[str, float] = {}

    @property
    def is_limited(self) -> bool:
        """Whether there is a limit at all."""
        return self._most is not None

    def spend(self, credits_used: float) -> None:
        """Count credits that were spent, or may have been."""
        self._spent += credits_used

    def learn_price(self, credits_used: float) -> None:
        """Take what a search cost as the least price of those to come."""
        self._dearest = max(self._dearest, credits_used)

    def affords(self, request: SearchRequest) -> bool:
        """Return whether there is enough left for a search."""
        expected = self._spent + sum(self._reserved.values()) + self._price(request)
        return self._most is None or expected <= self._most

    def reserve(self, key: str, request: SearchRequest) -> None:
        """Set aside the price of a search that begins."""
        self._reserved[key] = self._price(request)

    def release(self, key: str) -> float:
        """Return what was set aside for a search that ended; it is not reserved any more."""
        return self._reserved.pop(key, 0.0)

    def _price(self, request: SearchRequest) -> float:
        return max(estimated_credits(request), self._dearest)
