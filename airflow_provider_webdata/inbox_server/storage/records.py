"""Records that enter and leave the inbox."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from airflow_provider_webdata.inbox.envelope import Envelope

if TYPE_CHECKING:
    from datetime import datetime


@dataclass(frozen=True)
class NewDelivery:
    """An accepted delivery that will be stored.

    :param conn_id: connection whose secrets it carried, at most 250 characters.
    :param key: correlation key of its URL, at most 200 characters.
    :param dedupe: 64 hexadecimal digits, the same for every repetition of the delivery.
    :param received_at: aware.
    """

    conn_id: str
    key: str | None
    dedupe: str
    envelope: Envelope
    body: bytes = field(repr=False)
    received_at: datetime

    @classmethod
    def from_body(cls, conn_id: str, key: str | None, body: bytes, received_at: datetime) -> NewDelivery:
        """Read the envelope of a delivery.

        :raises NotJSONError: the body is no JSON.
        """
        envelope = Envelope.read(body)
        return cls(conn_id, key, _identity(conn_id, key, envelope, body), envelope, body, received_at)


def _identity(conn_id: str, key: str | None, envelope: Envelope, body: bytes) -> str:
    """Return a digest that is equal for all repetitions of a delivery, and for no other delivery.

    If the service gives an id, it identifies the event at any address: a signed body that is sent again to another
    address of the connection is still the same event. The event's name stays part of the digest: should a server give
    one id to several events, none of them is mistaken for a repetition of another.
    """
    event = (envelope.event or "").encode()
    if envelope.webhook_id:
        parts = [conn_id.encode(), b"id", event, envelope.webhook_id.encode()]
    else:
        parts = [conn_id.encode(), b"body", event, (key or "").encode(), hashlib.sha256(body).digest()]
    # Each part is led by its length, so that no two lists of parts read alike.
    digest = hashlib.sha256()
    for part in parts:
        digest.update(len(part).to_bytes(4, "big") + part)
    return digest.hexdigest()


@dataclass(frozen=True)
class DeliveryFilter:
    """Filter for the deliveries that a reader requests; empty fields do not limit.

    :param keys: correlation keys. A delivery matches by any of keys, ids and page URLs together.
    :param job_ids: ids of jobs, for monitors of checks.
    :param page_urls: URLs of the pages that deliveries are about.
    :param events: names of events, with or without the operation; matched in addition to the above.
    :param received_after: aware; only deliveries received then or later.
    :param received_before: aware; only deliveries received then or earlier, and published within an hour.
    """

    keys: tuple[str, ...] = ()
    job_ids: tuple[str, ...] = ()
    monitor_ids: tuple[str, ...] = ()
    page_urls: tuple[str, ...] = ()
    events: tuple[str, ...] = ()
    received_after: datetime | None = None
    received_before: datetime | None = None

    @property
    def page_hashes(self) -> tuple[int, ...]:
        """What stands for the page URLs in the table."""
        return tuple(map(page_hash, self.page_urls))


def page_hash(url: str) -> int:
    """Return 64 bits that stand for a URL of any length: no two in billions are alike."""
    return int.from_bytes(hashlib.sha256(url.encode(errors="surrogatepass")).digest()[:8], "big", signed=True)


@dataclass(frozen=True)
class StoredDelivery:
    """A delivery as the inbox stores it.

    :param id: never reused.
    :param position: its position in the order in which readers see deliveries; None until it is published.
    :param job_id: id of the job, for monitors of the check.
    :param received_at: aware, UTC.
    :param size: of the body, in bytes.
    :param body: verbatim; None if it was omitted for its size.
    :param replay_of: id of the delivery that this one replays.
    """

    id: int
    position: int | None
    conn_id: str
    key: str | None
    event: str | None
    job_id: str | None
    monitor_id: str | None
    success: bool | None
    received_at: datetime
    size: int
    body: bytes | None = field(default=None, repr=False)
    replay_of: int | None = None


@dataclass(frozen=True)
class StoredPage:
    """Deliveries in the order of their positions.

    :param cursor: read on from here; it also passes over what the filter left out.
    :param more: whether more is there already.
    """

    deliveries: list[StoredDelivery]
    cursor: int
    more: bool


@dataclass(frozen=True)
class EventCount:
    """How many deliveries of one event there are.

    :param event: its name, with the operation where that is known.
    :param count: how many, or the most that were counted.
    """

    event: str
    count: int
