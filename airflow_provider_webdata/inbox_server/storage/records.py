# SPDX-License-Identifier: Apache-2.0
"""Input and output records of the inbox."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from airflow_provider_webdata.inbox.envelope import Envelope

if TYPE_CHECKING:
    from datetime import datetime


@dataclass(frozen=True)
class NewDelivery:
    """An accepted delivery to store.

    :param conn_id: the connection whose secrets authenticated it, at most 250 characters.
    :param key: correlation key of its URL, at most 200 characters.
    :param dedupe: deduplication key of 64 hexadecimal digits, equal for every repetition of the delivery. Without an id
        of the event, it is also equal for a later event with the same body; see `DeliveryStore.add`.
    :param received_at: timezone-aware.
    """

    conn_id: str
    key: str | None
    dedupe: str
    envelope: Envelope
    body: bytes = field(repr=False)
    received_at: datetime

    @classmethod
    def from_body(cls, conn_id: str, key: str | None, body: bytes, received_at: datetime) -> NewDelivery:
        """Parse the envelope of a delivery.

        :raises NotJSONError: the body is not JSON.
        """
        envelope = Envelope.read(body)
        return cls(conn_id, key, _identity(conn_id, key, envelope, body), envelope, body, received_at)


def _identity(conn_id: str, key: str | None, envelope: Envelope, body: bytes) -> str:
    """Return a digest that is equal for all repetitions of a delivery.

    An id from the service identifies the event at any address: a signed body that is sent again to another address of
    the connection is the same event. The digest includes the event's name, so that different events with the same id do
    not count as repetitions.
    """
    event = (envelope.event or "").encode()
    if envelope.webhook_id:
        parts = [conn_id.encode(), b"id", event, envelope.webhook_id.encode()]
    else:
        parts = [conn_id.encode(), b"body", event, (key or "").encode(), hashlib.sha256(body).digest()]
    # Each part is prefixed with its length, so that the encoding is unambiguous.
    digest = hashlib.sha256()
    for part in parts:
        digest.update(len(part).to_bytes(4, "big") + part)
    return digest.hexdigest()


@dataclass(frozen=True)
class DeliveryFilter:
    """Filter for deliveries; empty fields match everything.

    :param keys: correlation keys. A delivery matches if any of its key, ids, and page URL matches.
    :param job_ids: ids of jobs, or for monitors of checks.
    :param page_urls: URLs of the deliveries' pages.
    :param events: names of events, with or without the operation; an additional condition.
    :param dag_ids: DAGs of the tasks that started the jobs or declared the monitors; an additional condition.
    :param received_after: timezone-aware; only deliveries received at or after this time.
    :param received_before: timezone-aware; only deliveries received at or before this time, and published within an
        hour.
    :param without_started: omit the events that report the start of a job.
    """

    keys: tuple[str, ...] = ()
    job_ids: tuple[str, ...] = ()
    monitor_ids: tuple[str, ...] = ()
    page_urls: tuple[str, ...] = ()
    events: tuple[str, ...] = ()
    dag_ids: tuple[str, ...] = ()
    received_after: datetime | None = None
    received_before: datetime | None = None
    without_started: bool = False

    @property
    def page_hashes(self) -> tuple[int, ...]:
        """The hashes of the page URLs, as stored in the table."""
        return tuple(map(page_hash, self.page_urls))


def page_hash(url: str) -> int:
    """Return a 64-bit hash of a URL, practically free of collisions."""
    return int.from_bytes(hashlib.sha256(url.encode(errors="surrogatepass")).digest()[:8], "big", signed=True)


@dataclass(frozen=True)
class StoredDelivery:
    """A stored delivery.

    :param id: unique, never reused.
    :param position: position in the feed; None until published.
    :param job_id: id of the job, or for monitors of the check.
    :param monitor_name: the monitor's name, if the delivery reports it.
    :param dag_id: the DAG of the task that started the job or declared the monitor, if the delivery names it.
    :param task_id: that task.
    :param received_at: timezone-aware, UTC.
    :param size: size of the body, in bytes.
    :param body: verbatim; None if omitted because of its size.
    :param replay_of: id of the original of a replay.
    """

    id: int
    position: int | None
    conn_id: str
    key: str | None
    event: str | None
    job_id: str | None
    monitor_id: str | None
    monitor_name: str | None
    dag_id: str | None
    task_id: str | None
    success: bool | None
    received_at: datetime
    size: int
    body: bytes | None = field(default=None, repr=False)
    replay_of: int | None = None


@dataclass(frozen=True)
class StoredPage:
    """Deliveries, ordered by position.

    :param cursor: start of the next page; it also skips deliveries that the filter excluded.
    :param more: True if more deliveries are available.
    """

    deliveries: list[StoredDelivery]
    cursor: int
    more: bool
