# SPDX-License-Identifier: Apache-2.0
"""The decision about a task's job, walked through all that may happen to a task in three attempts and a clear.

A world has a server, the task's record, and an attempt with what it has learned. `next_worlds` takes the step that
`decide` returns, in each way in which it may end, and lets the worker die before and after each. The invariants are
checked in each world.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import product
from typing import Literal, NamedTuple

import pytest
from msgspec.structs import replace

from airflow_provider_webdata.states.job_decision import Action, Facts, decide
from airflow_provider_webdata.states.task_record import Started

ATTEMPTS = 3
STEPS = 14

Health = Literal["runs", "done", "failed", "expired", "gone"]
SEEN = {"runs": "alive", "done": "alive", "failed": "dead", "expired": "expired", "gone": "lost"}

LATER: dict[Health, tuple[Health, ...]] = {
    "runs": ("done", "failed", "gone"),
    "done": ("expired", "gone"),
    "failed": (),
    "expired": (),
    "gone": (),
}


class Job(NamedTuple):
    """A job at the server.

    :param key: the key of its request, which names it in the inbox.
    :param reported: whether its first delivery has arrived.
    """

    id: str
    key: str
    request: str
    account: str
    health: Health
    reported: bool


class World(NamedTuple):
    """All that the decision may depend on.

    :param has_key: whether the server stores keys.
    :param has_inbox: whether jobs report to the inbox.
    :param request: what the task requests now; authors edit it between attempts.
    :param account: the connection's account, `a1` or `a2`. After a change of its key, `a1` has the name `b1`.
    :param sends: requests of this attempt for the planned job.
    :param steps: steps of this attempt.
    """

    bills: bool
    has_key: bool
    has_inbox: bool
    started: Started | None
    facts: Facts
    jobs: tuple[Job, ...] = ()
    request: str = "r1"
    account: str = "a1"
    attempt: int = 1
    sends: int = 0
    steps: int = 0
    keys: int = 0
    abandoned: frozenset[str] = frozenset()
    end: str = ""


def first_worlds() -> Iterator[World]:
    for bills, has_key, has_inbox in product((True, False), repeat=3):
        if bills or not has_key:
            yield World(bills, has_key, has_inbox, None, Facts(has_key=has_key, bills=bills))


def next_worlds(world: World, action: Action) -> Iterator[World]:
    """Yield the world after each way in which a step may end, and after the death of the worker."""
    world = world._replace(steps=world.steps + 1)
    started, facts = world.started, world.facts
    match action.act:
        case "send":
            yield from sent(world)
        case "ask_inbox":
            assert started is not None
            named = tuple(job.id for job in world.jobs if job.key == started.key and job.reported)
            yield world._replace(facts=replace(facts, named=named))
            # A delivery may arrive while the attempt asks.
            late = tuple(job._replace(reported=True) for job in world.jobs)
            if late != world.jobs:
                named = tuple(job.id for job in late if job.key == started.key)
                yield world._replace(jobs=late, facts=replace(facts, named=named))
        case "look":
            found = next((job for job in world.jobs if job.id == action.job), None)
            seen = SEEN[found.health] if found is not None and can_read(world, found) else "lost"
            yield world._replace(facts=replace(facts, seen={**facts.seen, action.job: seen}))
        case "adopt":
            assert started is not None
            yield world._replace(started=replace(started, id=action.job), end="adopted")
        case "replace":
            yield planned(world)
        case "abandon":
            yield planned(
                world._replace(abandoned=world.abandoned | {started.key} if started else frozenset())
            )
        case "refuse" | "fail":
            yield world._replace(end=action.act)


def can_read(world: World, job: Job) -> bool:
    return job.account[1] == world.account[1]


def planned(world: World) -> World:
    facts = replace(world.facts, differs="", answers=(), named=None)
    return world._replace(started=None, facts=facts, sends=0)


def sent(world: World) -> Iterator[World]:
    """Yield what a request may lead to. The record says that it was sent before it is."""
    if world.started is None:
        world = world._replace(
            keys=world.keys + 1,
            started=Started(
                kind="crawl",
                key=f"k{world.keys}",
                request=world.request,
                account=world.account,
                reports=world.has_inbox,
            ),
        )
    world = world._replace(sends=world.sends + 1)
    started, facts = world.started, world.facts
    assert started is not None
    known = [job for job in world.jobs if job.key == started.key]
    # The worker dies, or the answer is lost, before the service has the request.
    yield world._replace(end="killed")
    yield world._replace(facts=replace(facts, answers=(*facts.answers, "lost"), named=None))
    if world.has_key and known:
        yield world._replace(facts=replace(facts, answers=(*facts.answers, "used"), named=None))
        return
    job = Job(f"j{len(world.jobs)}", started.key, started.request, started.account, "runs", False)
    after = world._replace(jobs=(*world.jobs, job))
    yield after._replace(end="killed")
    yield after._replace(facts=replace(facts, answers=(*facts.answers, "lost"), named=None))
    yield after._replace(started=replace(started, id=job.id), end="started")
    # Refused by the service: nothing was started, and the record is the former one.
    if not known and len(facts.answers) == 0 and world.sends == 1:
        yield world._replace(started=None, end="rejected")


def later_worlds(world: World) -> Iterator[World]:
    """Yield the beginnings of the next attempt, after anything that may happen in between."""
    if world.attempt == ATTEMPTS or world.end == "refuse":
        return
    jobs = world.jobs
    healths: list[tuple[Job, ...]] = [jobs]
    if jobs:
        last = jobs[-1]
        healths += [(*jobs[:-1], last._replace(health=health)) for health in LATER[last.health]]
        healths.append(tuple(job._replace(reported=True) for job in jobs))
    edits = [(jobs, "r2", ""), (jobs, "", "a2"), (jobs, "", "b1")]
    for one, request, account in [*((one, "", "") for one in healths), *edits]:
        after = world._replace(
            jobs=one,
            request=request or world.request,
            account=account or world.account,
            attempt=world.attempt + 1,
            sends=0,
            steps=0,
            end="",
        )
        started = after.started
        differs: Literal["", "request", "account"] = ""
        if started is not None and started.request != after.request:
            differs = "request"
        elif started is not None and started.account != after.account:
            differs = "account"
        yield after._replace(facts=Facts(differs=differs, has_key=after.has_key, bills=after.bills))


def problem_of(world: World, action: Action) -> str | None:
    """Return the invariant that a step breaks, or None."""
    started = world.started
    jobs = {job.id: job for job in world.jobs}
    if world.steps >= STEPS:
        return "the attempt does not end"
    if action.act == "adopt":
        job = jobs.get(action.job)
        if job is None or started is None or job.key != started.key:
            return "it adopts another task's job"
        if job.health not in ("runs", "done") or job.request != world.request:
            return "it adopts a job without a result, or of another request"
    if action.act == "send":
        if started is not None and started.id is not None:
            return "it sends a request although it knows the job"
        own = [job for job in world.jobs if started is not None and job.key == started.key]
        if world.bills and not world.has_key and any(job.health in ("runs", "done") for job in own):
            return "it sends a billed request although an earlier one started a job"
        may_have = started is not None and not world.has_key and world.bills
        if may_have:
            return "it sends a billed request although an earlier one may have started a job"
        if world.facts.answers[-1:] == ("used",):
            return "it sends a request with a key that was used"
        if world.sends >= 2:
            return "it sends more than two requests"
        alive = [job for job in world.jobs if job.health in ("runs", "done") and job.request == world.request]
        others = [job for job in alive if can_read(world, job) and job.key not in world.abandoned]
        if started is None and world.bills and others:
            return "it plans another job although one runs or has a result"
    if action.act == "replace" and started is not None and action.job:
        job = jobs.get(action.job)
        if job is not None and job.health in ("runs", "done") and can_read(world, job):
            return "it replaces a job that runs or has a result"
        if world.bills and (job is None or job.health == "gone"):
            return "it is billed for another job in place of one that the service lost"
    if action.act == "abandon" and action.job and started is not None and started.request == world.request:
        job = jobs[action.job]
        if can_read(world, job) and job.health in ("runs", "done"):
            return "it abandons a job of the same request and account"
    if (
        action.act == "abandon"
        and started is not None
        and started.request == world.request
        and not started.id
    ):
        reported = [job for job in world.jobs if job.key == started.key and job.reported]
        usable = [job for job in reported if job.health in ("runs", "done") and can_read(world, job)]
        if started.reports and (
            world.facts.named is None or any(one.id in world.facts.named for one in usable)
        ):
            return "it abandons a job that the inbox may name"
    if action.act == "refuse" and world.has_key and not action.job and "used" not in world.facts.answers:
        return "it refuses although its key would show the outcome"
    if action.act in ("refuse", "fail"):
        reported = [job for job in world.jobs if started and job.key == started.key and job.reported]
        usable = [job for job in reported if job.health in ("runs", "done") and can_read(world, job)]
        if usable and started is not None and started.reports and not world.facts.differs:
            return "it gives up a job that the inbox names"
        if not world.bills and not world.facts.answers:
            return "it refuses where nothing is billed"
    return None


def explore() -> tuple[Counter[str], list[tuple[str, World, Action]]]:
    """Return the number of each step, and the broken invariants."""
    steps: Counter[str] = Counter()
    broken: list[tuple[str, World, Action]] = []
    known: set[World] = set()
    waiting = [*first_worlds()]
    while waiting:
        world = waiting.pop()
        marks = world._replace(facts=key_of(world.facts))
        if marks in known:
            continue
        known.add(marks)
        if world.end:
            waiting += later_worlds(world)
            continue
        action = decide(world.started, world.facts)
        steps[action.act] += 1
        if (problem := problem_of(world, action)) is not None:
            broken.append((problem, world, action))
            if len(broken) > 50:
                break
            continue
        waiting += later_worlds(world)
        waiting += next_worlds(world, action)
    steps["worlds"] = len(known)
    return steps, broken


def key_of(facts: Facts) -> Facts:
    """Return facts that can be a key."""
    return (facts.differs, facts.answers, facts.named, tuple(sorted(facts.seen.items())))  # type: ignore[return-value]


@pytest.mark.slow
def test_all_short_histories() -> None:
    steps, broken = explore()
    assert broken == []
    assert {*steps} == {
        "worlds",
        "send",
        "ask_inbox",
        "look",
        "adopt",
        "replace",
        "abandon",
        "refuse",
        "wait",
        "fail",
    }
    assert steps["worlds"] > 10_000
