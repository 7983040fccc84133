"""The end of a wait: the earliest of all time limits that apply."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from airflow_provider_webdata.states.stored import Stored

if TYPE_CHECKING:
    from typing_extensions import Self

    from airflow_provider_webdata.states.outcomes import OutcomeT

EXECUTION_TIMEOUT = "execution_timeout"
"""The limit of an attempt, from its first start, including its waits."""


class WaitDeadline(Stored, frozen=True):
    """The time at which a wait ends, and the limit that sets it.

    :param at: seconds since the epoch; None: a minute before Airflow's own timeout of the deferral.
    :param by: name of the argument that sets the limit.
    """

    at: float | None = None
    by: str = "timeout"

    @classmethod
    def of(cls, stored: Mapping[str, Any] | float | None) -> Self:
        """Return the deadline that a trigger received: a mapping, or seconds since the epoch, or None."""
        return cls.deserialize(stored) if isinstance(stored, Mapping) else cls(stored)

    def or_earlier(self, at: float | None) -> WaitDeadline:
        """Return this deadline, or the end of the attempt by `execution_timeout` if that is earlier."""
        if at is None or (self.at is not None and self.at <= at):
            return self
        return WaitDeadline(at, EXECUTION_TIMEOUT)

    def extended(self, seconds: float) -> WaitDeadline:
        """Return a deadline that leaves at least some seconds from now. The end of an attempt is not extended."""
        if self.at is None or self.by == EXECUTION_TIMEOUT:
            return self
        return WaitDeadline(max(self.at, time.time() + seconds), self.by)

    def named_in(self, outcome: OutcomeT) -> OutcomeT:
        """Return the outcome of a wait; that of a timeout names the limit."""
        if outcome.status != "timeout":
            return outcome
        limit = " (execution_timeout)" if self.by == EXECUTION_TIMEOUT else ""
        return replace(outcome, by=self.by, message=f"{outcome.message}{limit}")
