"""Joining a stream that other watchers may be reading already."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

if TYPE_CHECKING:
    from collections.abc import Hashable

    from airflow_provider_webdata.waiting.mailbox import Mailbox


@dataclass(eq=False)
class Join:
    """A watcher's request to read the stream from its cursor on.

    :param cursor: what its checkpoint held; None: there is none.
    :param start: where to begin without one: a moment in ISO 8601, or None for now.
    """

    cursor: Any
    start: str | None


@dataclass(eq=False)
class Joined:
    """A mark in the stream: the items behind it are for these watchers too.

    :param joins: whose watchers; None: all.
    :param cursor: the start of watchers without a cursor.
    :param reset: all of these begin there, regardless of what they have seen: the inbox was reset.
    """

    joins: frozenset[Join] | None
    cursor: Any
    reset: bool = False


class NewJoinError(Exception):
    """Posted to a stream to interrupt it: a watcher joins."""


class JoinQueue:
    """The joins that a stream has not answered yet; watchers may join before it opens."""

    def __init__(self) -> None:
        self._joins: list[Join] = []
        self.mailbox: Mailbox | None = None

    def add(self, join: Join) -> None:
        """Join, and wake the stream.

        :param join: of the watcher.
        """
        self._joins.append(join)
        if self.mailbox is not None:
            self.mailbox.post(NewJoinError())

    def remove(self, join: Join) -> None:
        """Leave; a join that was answered is not there any more.

        :param join: of the watcher.
        """
        if join in self._joins:
            self._joins.remove(join)

    def take(self) -> list[Join]:
        """Return the joins and empty the queue."""
        joins, self._joins = self._joins, []
        return joins


_QUEUES: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[Hashable, JoinQueue]] = WeakKeyDictionary()


def join_queue(key: Hashable) -> JoinQueue:
    """Return the queue of a stream in the running event loop.

    :param key: of the stream.
    """
    return _QUEUES.setdefault(asyncio.get_running_loop(), {}).setdefault(key, JoinQueue())
