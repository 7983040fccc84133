"""A watch polls one monitor or job, for all waits that share it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

    from airflow_provider_webdata.waiting.mailbox import Mailbox
    from airflow_provider_webdata.waiting.polling.lookups import Lookups

WatchKey = tuple[str, str]
"""What is polled: `monitor` or the kind of a job, and its id."""


class Wait(ABC):
    """One wait for something that is polled.

    :param mailbox: gets the snapshots.
    :param key: what is polled.
    """

    __slots__ = ("key", "mailbox")

    def __init__(self, mailbox: Mailbox, key: WatchKey) -> None:
        self.mailbox = mailbox
        self.key = key

    @abstractmethod
    def new_watch(self) -> Watch:
        """Return a watch for the key of this wait, without waits."""


class Watch(ABC):
    """One monitor or job, what is known of it, and who waits for it.

    :param key: what is polled.
    """

    __slots__ = ("due", "failures", "key", "missing_since", "polled_at", "waits")

    def __init__(self, key: WatchKey) -> None:
        self.key = key
        self.waits: set[Any] = set()
        self.due = 0.0
        self.polled_at: float | None = None
        self.missing_since: float | None = None
        self.failures = 0

    @property
    @abstractmethod
    def label(self) -> str:
        """What messages call it."""

    @property
    @abstractmethod
    def interval(self) -> float:
        """Seconds between polls: the shortest that a wait asks for."""

    @property
    def pause(self) -> float:
        """Seconds until the next poll, right after one; by itself the interval."""
        return self.interval

    @abstractmethod
    def invalidate(self) -> None:
        """Forget what was seen: the next snapshot is posted though nothing may have changed."""

    @abstractmethod
    async def poll(self, lookups: Lookups) -> Iterable[tuple[Wait, Any]]:
        """Ask the service, and return what to post to which wait.

        :param lookups: makes the requests.
        """

    @abstractmethod
    def not_found(self, reason: str) -> str:
        """Return the message for something that the service does not know for good.

        :param reason: what the service says.
        """

    @abstractmethod
    def state(self) -> str:
        """Return what the service said last, for the message of a timeout."""
