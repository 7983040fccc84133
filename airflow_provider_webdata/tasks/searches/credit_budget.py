"""How many credits a batch of searches may still spend."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_provider_webdata.api.prices import price_bound

if TYPE_CHECKING:
    from airflow_provider_webdata.api.models import SearchRequest


class CreditBudget:
    """What was spent, and what is reserved for the searches in flight.

    What a search costs is known afterwards only. Until then the most that it may cost is reserved, by the documented
    prices, or that of the dearest search so far, should the service bill more than it documents.

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
        return max(price_bound("search", request.to_wire()).credits, self._dearest)
