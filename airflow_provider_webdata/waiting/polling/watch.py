"""What is looked at for those who wait: one watch for each thing of the service, however many wait for it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

    from airflow_provider_webdata.waiting.mailbox import Mailbox
    from airflow_provider_webdata.waiting.polling.lookups import Lookups

Place = tuple[str, str]
"""What is looked at: what it is (`monitor`, or the kind of a job), and its id."""


class Wait(ABC):
    """One wait for something that is looked at.

    :param mailbox: where looks go.
    :param place: what is looked at.
    """

    __slots__ = ("mailbox", "place")

    def __init__(self, mailbox: Mailbox, place: Place) -> None:
        self.mailbox = mailbox
        self.place = place

    @abstractmethod
    def new_watch(self) -> Watch:
        """Return a watch for the place of this wait, without waits."""


class Watch(ABC):
    """One thing that is looked at, and who waits for it.

    :param place: what is looked at.
    """

    __slots__ = ("due", "looked_at", "missing_since", "place", "stumbles", "waits")

    def __init__(self, place: Place) -> None:
        self.place = place
        self.waits: set[Any] = set()
        self.due = 0.0
        self.looked_at: float | None = None
        self.missing_since: float | None = None
        self.stumbles = 0

    @property
    @abstractmethod
    def what(self) -> str:
        """What messages call it."""

    @property
    @abstractmethod
    def interval(self) -> float:
        """Seconds between two looks: what the most impatient wait asks for."""

    @property
    def pause(self) -> float:
        """Seconds until the next look, right after one; by itself the interval."""
        return self.interval

    @abstractmethod
    def stir(self) -> None:
        """Note that the next look is to be told though nothing may have changed since the last one."""

    @abstractmethod
    async def look(self, lookups: Lookups) -> Iterable[tuple[Wait, Any]]:
        """Ask the service, and return what is to be posted to whom.

        :param lookups: asks the service.
        """

    @abstractmethod
    def gone(self, reason: str) -> str:
        """Return what to say when the service does not know it for good.

        :param reason: what the service says.
        """

    @abstractmethod
    def state(self) -> str:
        """Say, for the message of a timeout, what the service said last."""
