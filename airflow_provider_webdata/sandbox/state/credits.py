"""What things cost, and the team's balance (reference: credit charges; supplement 13.14 and 17.6)."""

from __future__ import annotations

import math
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any

from airflow_provider_webdata.sandbox.reference.rules import format_names
from airflow_provider_webdata.sandbox.reference.wire import Json, ServiceError

from .clock import Clock, iso

if TYPE_CHECKING:
    from collections.abc import Iterable

    from .quirks import Quirks
    from .store import Store

SEARCH_PER_TEN = 2
ENTERPRISE_PER_TEN = {"anon": 2, "zdr": 10}
UNLIMITED_CRAWL = 10_000
JSON_TRACKING = 4
EXTRA_FORMAT, EXTRA_FORMATS = 4, frozenset({"json", "question", "highlights", "audio", "video"})
NO_CREDITS = "Insufficient credits to perform this request. For more credits, you can upgrade your plan."


def search_cost(results: int, enterprise: Iterable[str] = ()) -> int:
    """Credits of a search without scraping: per ten results, rounded up."""
    rate = max((ENTERPRISE_PER_TEN.get(name, 0) for name in enterprise), default=0) or SEARCH_PER_TEN
    return rate * math.ceil(results / 10)


def page_cost(options: Json, *, pdf_pages: int = 0, enhanced_free: bool = False) -> int:
    """Credits of one scraped page."""
    cost = 1
    if options.get("lockdown") or (options.get("proxy") in ("enhanced", "stealth") and not enhanced_free):
        cost = 5
    if pdf_pages > 1 and options.get("parsers") != []:
        cost += pdf_pages - 1
    if any(_is_json_tracking(item) for item in options.get("formats", [])):
        cost += JSON_TRACKING
    return cost + EXTRA_FORMAT * sum(name in EXTRA_FORMATS for name in format_names(options))


def _is_json_tracking(item: Any) -> bool:
    return isinstance(item, dict) and item.get("type") == "changeTracking" and "json" in item.get("modes", [])


def is_judging(monitor: Json) -> bool:
    """Whether a monitor's changes are judged: it needs a goal to judge against."""
    return bool(monitor["judgeEnabled"] and monitor["goal"])


def check_estimate(monitor: Json) -> int:
    """Upper bound of the credits of one check."""
    total, judging = 0, is_judging(monitor)
    for target in monitor["targets"]:
        if target["type"] == "search":
            wanted = target["maxResults"]
            total += len(target["queries"]) * search_cost(wanted) + (wanted if judging else 0)
            continue
        if target["type"] == "scrape":
            pages = len(target["urls"])
        else:
            limit = target.get("crawlOptions", {}).get("limit")
            pages = limit if isinstance(limit, int) else UNLIMITED_CRAWL
        total += pages * (page_cost(target.get("scrapeOptions", {})) + (1 if judging else 0))
    return total


class Credits:
    """The balance of the team.

    :param plan: credits of the plan, and the balance at the start.
    """

    def __init__(self, store: Store, clock: Clock, quirks: Quirks, plan: int) -> None:
        self._store, self._clock, self._quirks = store, clock, quirks
        self._plan = plan
        if store.get("meta", "credits") is None:
            self.reset()

    def reset(self) -> None:
        """Fill the balance up again."""
        self._save({"remaining": self._plan, "start": self._clock.iso(), "spent": []})

    @property
    def remaining(self) -> int:
        """The balance."""
        return int(self._load()["remaining"])

    @property
    def used(self) -> int:
        """All that was ever spent."""
        return int(self._load().get("used", 0))

    def set(self, remaining: int) -> None:
        """Set the balance."""
        self._save({**self._load(), "remaining": remaining})

    def require(self, amount: int = 1) -> None:
        """Refuse the call unless the balance holds ``amount``.

        :raises ServiceError: 402.
        """
        if self.remaining < amount:
            raise ServiceError(402, NO_CREDITS)

    def spend(self, amount: int) -> None:
        """Take credits off; the balance never falls under 0. A negative amount gives credits back."""
        if amount:
            state = self._load()
            now = self._clock.now()
            recent = [item for item in state["spent"] if item[0] > now - 3600]
            state.update(remaining=max(0, state["remaining"] - amount), spent=[*recent, [now, amount]])
            state["used"] = state.get("used", 0) + amount
            self._save(state)

    def usage(self) -> Json:
        """Return ``data`` of the team's credit usage (supplement 14)."""
        state = self._load()
        remaining = state["remaining"]
        if self._quirks.on("credits-lag"):
            cutoff = self._clock.now() - 3600
            remaining += sum(amount for moment, amount in state["spent"] if moment > cutoff)
        start = datetime.fromisoformat(state["start"].replace("Z", "+00:00")).astimezone(timezone.utc)
        return {
            "remainingCredits": remaining,
            "planCredits": self._plan,
            "billingPeriodStart": state["start"],
            "billingPeriodEnd": iso(start + timedelta(days=30)),
        }

    def _load(self) -> Json:
        return self._store.get("meta", "credits") or {}

    def _save(self, state: Json) -> None:
        self._store.put("meta", "credits", state)
