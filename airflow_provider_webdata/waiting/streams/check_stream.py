"""The checks of a monitor that have ended, as a stream of asset events."""

from __future__ import annotations

import logging
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any

from airflow_provider_webdata.states.checks import Wanted, moment
from airflow_provider_webdata.waiting.followers.check_follower import CheckFollower
from airflow_provider_webdata.waiting.hub import Hub
from airflow_provider_webdata.waiting.mailbox import Failure
from airflow_provider_webdata.waiting.streams.stream import Item, Ready, Stream, Ticket

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Hashable

    from airflow_provider_webdata.waiting.followers.check_follower import WaitFor
    from airflow_provider_webdata.waiting.mailbox import Mailbox

log = logging.getLogger(__name__)


class CheckStream(Stream):
    """Every check of a monitor that has ended, each once, from where any watcher wants it.

    A place is `{"after": ..., "ids": [[id, end], ...]}`: a moment, and the checks after it that were decided on.

    :param key: of the stream.
    :param conn_id: id of the connection.
    :param monitor_id: the monitor's UUID.
    :param wait_for: how the end of a check is learned.
    :param poll_interval: seconds between looks where only looking helps.
    :param safety_poll: seconds between looks where deliveries come.
    """

    def __init__(
        self,
        key: Hashable,
        conn_id: str,
        monitor_id: str,
        wait_for: WaitFor,
        poll_interval: float,
        safety_poll: float,
    ) -> None:
        super().__init__(key)
        self._channel = Hub.of(conn_id)
        self._monitor_id = monitor_id
        self._how = (wait_for, poll_interval, safety_poll)
        self._follower: CheckFollower | None = None

    async def _read(self, mailbox: Mailbox) -> AsyncIterator[Any]:
        with self._channel.waiting() as own:
            own.closed = True
            while True:
                tickets, self._board.tickets = self._board.tickets, []
                if tickets:
                    yield await self._begin(mailbox, tickets)
                if self._follower is None:
                    await mailbox.get()
                    continue
                found = await self._follower.next(heeding=Ticket)
                if isinstance(found, Failure):
                    raise RuntimeError(found.text)
                if not isinstance(found, Ticket):
                    yield Item(found, None)

    async def _begin(self, mailbox: Mailbox, tickets: list[Ticket]) -> Ready:
        """Go back to the earliest moment that a new watcher asks for, if that is not what is followed already."""
        now = datetime.now(timezone.utc)
        starts = [
            moment(ticket.place["after"] if ticket.place is not None else ticket.start) or now
            for ticket in tickets
        ]
        if self._follower is not None:
            if self._follower.wanted.after is not None:
                starts.append(self._follower.wanted.after)
            self._follower.close()
        wanted = Wanted(after=min(starts), on_failed="accept", on_partial="accept", on_skipped="accept")
        self._follower = CheckFollower(self._channel, mailbox, self._monitor_id, wanted, log)
        await self._follower.start(*self._how)
        return Ready(frozenset(tickets), {"after": now.isoformat(), "ids": []})

    def _close(self, mailbox: Mailbox) -> None:  # noqa: ARG002
        if self._follower is not None:
            self._follower.close()


def behind(place: dict[str, Any], check_id: str, end: datetime, overlap: timedelta) -> dict[str, Any]:
    """Return the place behind a check.

    :param place: where the watcher was.
    :param check_id: the check's UUID.
    :param end: when it ended.
    :param overlap: for how long checks count that come to light after one that ended later.
    """
    start = moment(place["after"])
    late = end - overlap
    after = late if start is None else max(start, late)
    ids = {key: when for key, when in place["ids"] if (moment(when) or end) > after}
    ids[check_id] = end.isoformat()
    # Lists: the asset state store takes nothing but JSON.
    return {"after": after.isoformat(), "ids": [list(pair) for pair in sorted(ids.items())]}


def is_new(place: dict[str, Any], check_id: str, end: datetime) -> bool:
    """Return whether a check is still to be decided on.

    :param place: where the watcher is.
    :param check_id: the check's UUID.
    :param end: when it ended.
    """
    start = moment(place["after"])
    return (start is None or end > start) and all(key != check_id for key, _ in place["ids"])
