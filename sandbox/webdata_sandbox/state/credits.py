# SPDX-License-Identifier: Apache-2.0
"""The team's credit balance."""

from __future__ import annotations

import math
from datetime import timedelta
from typing import TYPE_CHECKING

from webdata_sandbox.reference.errors import ServiceError
from webdata_sandbox.reference.timestamps import from_iso, iso

if TYPE_CHECKING:
    from webdata_sandbox.reference.wire import Json

    from .clock import Clock
    from .quirks import Quirks
    from .settings import Settings
    from .store import Store

NO_CREDITS = "Insufficient credits to perform this request. For more credits, you can upgrade your plan."


class Credits:
    """The credit balance of the team.

    :param plan: credits of the plan, which is also the initial balance.
    """

    def __init__(self, store: Store, clock: Clock, quirks: Quirks, settings: Settings, plan: int) -> None:
        self._store, self._clock, self._quirks, self._settings = store, clock, quirks, settings
        self._plan = plan
        if store.get("meta", "credits") is None:
            self.reset()

    def reset(self) -> None:
        """Reset the balance to the credits of the plan."""
        self._save({"remaining": self._plan, "start": self._clock.iso(), "spent": []})

    @property
    def remaining(self) -> int:
        """The balance."""
        return int(self._load()["remaining"])

    @property
    def used(self) -> int:
        """All spent credits, minus refunds."""
        return int(self._load().get("used", 0))

    def set(self, remaining: int) -> None:
        """Set the balance."""
        self._save({**self._load(), "remaining": remaining})

    def require(self, amount: int = 1) -> None:
        """Refuse the call if the balance is less than ``amount``.

        :raises ServiceError: 402.
        """
        free = self._quirks.on("pay-as-you-go") or not self._settings.profile.bills
        if self.remaining < amount and not free:
            raise ServiceError(402, NO_CREDITS)

    def spend(self, amount: int) -> None:
        """Subtract credits; the balance falls below 0 only with pay-as-you-go. A negative amount is a refund."""
        if amount and self._settings.profile.bills:
            least = -math.inf if self._quirks.on("pay-as-you-go") else 0
            state = self._load()
            now = self._clock.now()
            recent = [item for item in state["spent"] if item[0] > now - 3600]
            state.update(remaining=max(least, state["remaining"] - amount), spent=[*recent, [now, amount]])
            state["used"] = state.get("used", 0) + amount
            self._save(state)

    def usage(self) -> Json:
        """Return the ``data`` of the team's credit usage (sandbox/docs/service.md#team-credits)."""
        state = self._load()
        remaining = state["remaining"]
        if self._quirks.on("credits-lag"):
            cutoff = self._clock.now() - 3600
            remaining += sum(amount for moment, amount in state["spent"] if moment > cutoff)
        end = from_iso(state["start"]) + timedelta(days=30)
        return {
            "remainingCredits": remaining,
            "planCredits": self._plan,
            "billingPeriodStart": state["start"],
            "billingPeriodEnd": iso(end),
        }

    def _load(self) -> Json:
        return self._store.get("meta", "credits") or {}

    def _save(self, state: Json) -> None:
        self._store.put("meta", "credits", state)
