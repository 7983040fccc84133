# SPDX-License-Identifier: Apache-2.0
"""The record of a task: everything that it remembers from one attempt to the next, in one value of Airflow's store."""

from __future__ import annotations

import json
import uuid
from typing import Any, Literal

import msgspec
from msgspec.structs import replace

from airflow_provider_webdata.common.storable import storable
from airflow_provider_webdata.common.stored_record import Count, Epoch, Moment, Text, read_record
from airflow_provider_webdata.states import credits as ledger
from airflow_provider_webdata.states.credits import Credits

KEY = "webdata"
"""The record's key in Airflow's task state store (3.3)."""

_MAX_INVALID_URLS = 1000

Phase = Literal["planned", "requested", "known", "ended", "published"]
"""The state of what a task starts at the service.

`planned`: no request was sent. `requested`: one was or may have been sent, and its outcome is unknown. `known`: its id
is known. `ended`: it is over, and its cost is counted. `published`: so are its results.
"""


class Started(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The job, check, browser session, or calls of data providers that a task starts.

    :param kind: kind of the job, `check`, `session`, or `provider` for calls of data providers.
    :param key: random text that identifies the request: its idempotency key, and the key of its webhook.
    :param request: digest of the request; of a check, the id of its monitor.
    :param account: name of the billed account.
    :param attempt: number of the attempt that sent the last request.
    :param sent_at: time of the first request.
    :param id: id, once known.
    :param known: ids that the service listed before the request.
    :param reports: whether it has the managed webhook, so that the inbox may name it.
    :param invalid_urls: URLs that the service dropped.
    :param stopped: whether the task cancels it because it exceeds the credit limit.
    """

    kind: Text
    key: Text
    request: Text = ""
    account: Text = ""
    attempt: Count = 0
    sent_at: Moment | None = None
    id: Text | None = None
    known: tuple[str, ...] = ()
    reports: bool = False
    invalid_urls: tuple[Any, ...] = ()
    stopped: bool = False

    def named(self, started_id: str, invalid_urls: list[Any] | None = None) -> Started:
        """Return the record with an id.

        :param invalid_urls: URLs that the service dropped.
        """
        return replace(self, id=started_id, invalid_urls=tuple((invalid_urls or [])[:_MAX_INVALID_URLS]))


def new_key() -> str:
    """Return a random key of a request: a UUID, as the service requires."""
    return str(uuid.uuid4())


class Source(msgspec.Struct, frozen=True):
    """A page or site that an agent read.

    :param tool: name of the tool.
    """

    tool: str
    url: str
    title: str


class PlanSummary(msgspec.Struct, frozen=True):
    """What an incremental crawl planned, to judge the job's result. The XCom `plan` has it, too.

    :param read: number of pages to read.
    :param listed: number of pages that the site lists, and that are not requested.
    :param is_whole: whether the map listed the whole site.
    :param sitemaps: number of sitemaps that may have changed.
    :param sitemaps_not_read: number of these that were not read.
    :param credits: cost of the map and the sitemaps.
    :param reasons: number of pages to read by `Reason`.
    """

    read: int
    listed: int
    is_whole: bool
    sitemaps: int
    sitemaps_not_read: int
    credits: float
    reasons: dict[str, int]


class TaskRecord(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The record of a task instance.

    :param round: number of times that the task was cleared, as far as `is_same_round` shows it.
    :param max_tries: Airflow's `max_tries` in this round.
    :param attempt: number of the attempt that wrote the record.
    :param is_final: whether that attempt ended without a retry.
    :param phase: state of what the task starts.
    :param started: the job, check, or session that the task starts.
    :param plan: the plan of an incremental crawl's job.
    :param wait_since: start of the wait for a check.
    :param wait_until: end of the wait, in seconds since the epoch.
    :param postponed_at: when this attempt was first rescheduled because the service asked to wait.
    :param credits: the task's ledger, over all rounds.
    :param sources: what an agent read.
    """

    max_tries: Count
    round: Count = 0
    attempt: Count = 0
    is_final: bool = False
    phase: Phase = "planned"
    started: Started | None = None
    plan: PlanSummary | None = None
    wait_since: Moment | None = None
    wait_until: Epoch | None = None
    postponed_at: Moment | None = None
    credits: Credits = Credits()
    sources: dict[str, Source] = {}

    def started_as(self, *kinds: str) -> Started | None:
        """Return what the task started, if it is of these kinds; an edited task may have another operator now."""
        return self.started if self.started is not None and self.started.kind in kinds else None


def is_same_round(record: TaskRecord, max_tries: int, retries: int, number: int) -> bool:
    """Return whether an attempt continues the work of a record: the task was not cleared in between.

    Airflow has no public fact for it. A clear sets `max_tries` to the number of attempts so far plus `retries`, which
    is the former value only if `retries` was lowered: then the round seems to have begun after the record's attempt.
    It did if that attempt ended for good; otherwise, the attempt counts as a retry of one that was killed. An edit of
    `retries` between a clear and its first attempt hides the clear, too.

    :param retries: the task's `retries`, as its file says now.
    :param number: number of the attempt.
    """
    # docs/contributing/upstream/clear_or_retry.md
    seems_later = record.attempt < max_tries - retries + 1 <= number
    return record.max_tries == max_tries and not (record.is_final and seems_later)


def begun(stored: TaskRecord | None, max_tries: int, retries: int, number: int) -> TaskRecord:
    """Return the record with which an attempt begins: that of its round, or a new one with the credits so far.

    :param stored: the stored record, if any.
    :param number: number of the attempt.
    """
    if stored is None:
        return TaskRecord(max_tries=max_tries, attempt=number)
    stored = replace(stored, credits=ledger.restarted(stored.credits))
    if not is_same_round(stored, max_tries, retries, number):
        return TaskRecord(max_tries=max_tries, attempt=number, round=stored.round + 1, credits=stored.credits)
    return stored if stored.attempt == number else replace(stored, attempt=number, postponed_at=None)


def stored_form(record: TaskRecord) -> Any:
    """Return a record as Airflow's store accepts it, which rejects tuples."""
    # Not msgspec's encoder, which rejects lone surrogates.
    return storable(json.loads(json.dumps(msgspec.to_builtins(record))))


def read_stored(value: Any) -> TaskRecord:
    """Return a stored record.

    :raises ValueError: it is damaged. The message does not contain its values.
    """
    record = read_record(value, TaskRecord)
    started = record.started
    contradicts = {
        "planned": started is not None,
        "requested": started is None,
        "known": started is None or started.id is None,
    }
    if contradicts.get(record.phase):
        raise ValueError(f"`started` contradicts the phase {record.phase}")
    return record
