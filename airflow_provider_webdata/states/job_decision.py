# SPDX-License-Identifier: Apache-2.0
"""The decision about a task's job: what an attempt does next, from its record and what it has learned."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import msgspec

if TYPE_CHECKING:
    from airflow_provider_webdata.states.task_record import Started

Seen = Literal["alive", "dead", "expired", "lost"]
"""A job: it runs or has a result; it ended without one; its result has expired; the service does not know it."""

Answer = Literal["lost", "used"]
"""What became of a request of this attempt: it may have started a job; its key has started one before."""

Act = Literal["send", "ask_inbox", "look", "adopt", "replace", "abandon", "refuse", "wait", "fail"]


class Action(msgspec.Struct, frozen=True):
    """The next step.

    `send`: send the request. `ask_inbox`: ask the inbox for the jobs of the request's key. `look`: read a job's state.
    `adopt`: the job is the task's. `replace`: the job is over without a result; plan another. `abandon`: cancel and
    count the job of another request; plan another. `refuse`: end the task without a retry. `wait`: end the attempt; a
    retry asks the inbox again. `fail`: raise the error of the last request.

    :param job: id of the job that it concerns, if known.
    :param why: why the outcome is unknown, or the job is refused.
    """

    act: Act
    job: str = ""
    why: str = ""


class Facts(msgspec.Struct, frozen=True):
    """What an attempt knows beside the record.

    :param differs: what differs from the record: the request, or the account, whose key may only have changed.
    :param has_key: whether the server recognizes a repeated request.
    :param bills: whether the server bills.
    :param answers: answers to this attempt's requests that named no job, oldest first.
    :param named: ids that the inbox named since the last request; None: it was not asked.
    :param seen: the jobs that were looked at.
    """

    differs: Literal["", "request", "account"] = ""
    has_key: bool = False
    bills: bool = True
    answers: tuple[Answer, ...] = ()
    named: tuple[str, ...] | None = None
    seen: dict[str, Seen] = {}


def decide(started: Started | None, facts: Facts) -> Action:
    """Return the next step; the caller takes it, adds what it learned, and asks again.

    :param started: the record of the job; None: no request was planned, or its job was replaced.
    """
    if started is None:
        return Action("send")
    if facts.differs == "request":
        return Action("abandon", started.id or "")
    if facts.differs == "account":
        return _of_another_account(started, facts)
    return _of_own(started, facts)


def _of_own(started: Started, facts: Facts) -> Action:
    if started.id is not None:
        return _of_jobs((started.id,), facts)
    if started.reports and facts.named is None:
        return Action("ask_inbox")
    if facts.named:
        return _of_jobs(facts.named, facts)
    return _of_unknown_outcome(started, facts)


def _of_another_account(started: Started, facts: Facts) -> Action:
    """Decide whether only the API key or the address has changed, so that the job is still this account's."""
    jobs = facts.named or ()
    if started.id is not None:
        jobs = (started.id,)
    elif started.reports and facts.named is None:
        return Action("ask_inbox")
    for job in jobs:
        if job not in facts.seen:
            return Action("look", job)
    if any(facts.seen[job] in ("alive", "dead") for job in jobs):
        return _of_jobs(jobs, facts)
    return Action("abandon", started.id or "")


def _of_jobs(jobs: tuple[str, ...], facts: Facts) -> Action:
    """Decide about jobs that a key or an id identifies as the task's."""
    for job in jobs:
        if job not in facts.seen:
            return Action("look", job)
        if facts.seen[job] == "alive":
            return Action("adopt", job)
    for job in jobs:
        if facts.seen[job] == "lost" and facts.bills:
            why = f"the service does not find job {job}, although its result cannot have expired yet"
            return Action("refuse", job, why)
    return Action("replace", jobs[-1])


def _of_unknown_outcome(started: Started, facts: Facts) -> Action:
    """Decide about requests, of this or an earlier attempt, that may have started a job that nothing names."""
    is_used = facts.answers[-1:] == ("used",)
    if (facts.has_key or not facts.bills) and not is_used:
        return Action("send" if len(facts.answers) < 2 else "fail")
    why = "neither a key nor a delivery names its job"
    if is_used:
        why = "an earlier request with the same idempotency key started one"
    # A delivery may arrive later: the next attempt asks the inbox again.
    return Action("wait" if started.reports else "refuse", why=why)
