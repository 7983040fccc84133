# SPDX-License-Identifier: Apache-2.0
"""A page in the state of `changes`, and the decision of a run about it.

A page's version grows with each of its emissions, so that of two snapshots, and of two rows of a table, the greater one
is right, in any order.
"""

from __future__ import annotations

import heapq
import secrets
from operator import attrgetter
from typing import TYPE_CHECKING, Literal, NamedTuple

import msgspec

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

Change = Literal["new", "changed", "same", "removed"]
CHANGES: tuple[Change | Literal["failed"], ...] = ("new", "changed", "same", "removed", "failed")
"""The values of an item's `change`."""

Again = Literal["repeated", "unconsumed", "request"]
"""Why a run emits a page with the content of its last emission: it is the same run, no consumer has it, or the request
differs."""

_TOKEN_BITS = 20
_key = attrgetter("key")


class Page(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """A page in a snapshot. Times are those of runs, in seconds since the epoch.

    :param key: its canonical URL, or the key of a record.
    :param version: version of its last emission; see `version_after`.
    :param digest: digest of its content in that emission; None if the page counts as removed.
    :param request: digest of what that emission's run requested of a page.
    :param seen: time of the last run that read it, or to which the site listed it.
    :param read: time of the last run that fetched its content.
    :param by: token of the run that emitted it; None if no task will consume that emission.
    :param consumed: whether the tasks downstream of that run have its emission.
    :param missed: time of the first complete run since `seen` that did not see it.
    :param change: what changed in that emission, for consumers that did not have one before it.
    """

    key: str
    version: int
    digest: str | None
    request: str
    seen: int
    read: int
    by: str | None = None
    consumed: bool = False
    missed: int | None = None
    change: Change = "new"


class Found(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """A page that a run found.

    :param digest: digest of its content; None: the site listed it, and it was not requested.
    :param index: its number among the items of the run, if the run read it.
    :param read: time when the service fetched it, if that was before the run.
    """

    key: str
    digest: str | None
    index: int = -1
    read: int | None = None


class RunFacts(NamedTuple):
    """What a run knows of itself when it compares.

    :param token: its token, as in `Page.by`.
    :param version: the version of its emissions.
    :param moment: its time, in seconds since the epoch.
    :param request: digest of what it requests of a page.
    :param removed_after: seconds after which a page that complete runs have missed counts as removed.
    :param is_complete: whether a page that it did not see is missing.
    :param consumed: tokens of the runs whose emissions were consumed since their snapshots were written.
    :param emits_all: whether it emits unchanged pages too.
    :param is_rejected: whether its results were rejected, so that pages that they lack are not missing.
    """

    token: str
    version: int
    moment: int
    request: str
    removed_after: int
    is_complete: bool
    consumed: Collection[str] = ()
    emits_all: bool = False
    is_rejected: bool = False


class Outcome(NamedTuple):
    """What a run makes of a page.

    :param page: the page in the run's snapshot.
    :param change: what changed since the emission that consumers have; None if the run neither read nor removed it.
    :param is_emitted: whether the run's file has the page.
    :param again: why it has it, if the content is that of its last emission.
    """

    page: Page
    change: Change | None
    is_emitted: bool
    again: Again | None = None


def version_after(newest: int, now: float) -> int:
    """Return the version of a run's emissions: greater than every version that it has read, and than the clock.

    It is a BIGINT: milliseconds of a Lamport clock, and 20 random bits, so that no two attempts have the same.

    :param newest: greatest version that the run has read.
    :param now: seconds since the epoch.
    """
    clock = max(int(now * 1000), (newest >> _TOKEN_BITS) + 1)
    return clock << _TOKEN_BITS | secrets.randbits(_TOKEN_BITS)


def merged(pages: Iterable[Page]) -> Page:
    """Merge what several snapshots know of one page; the order does not matter.

    The greatest version wins. The newest miss counts, so that a page is rather removed late than early.
    """
    first, *others = pages
    if not others:
        return first
    every = (first, *others)
    best = max(every, key=lambda page: (page.version, page.by is None, page.consumed))
    seen = max(page.seen for page in every)
    read = max(page.read for page in every)
    missed = max((page.missed for page in every if page.missed is not None), default=seen)
    return msgspec.structs.replace(best, seen=seen, read=read, missed=missed if missed > seen else None)


def merged_streams(snapshots: Iterable[Iterable[Page]]) -> Iterator[Page]:
    """Merge snapshots that are sorted by key."""
    streams = [*snapshots]
    if len(streams) == 1:
        yield from streams[0]
        return
    same: list[Page] = []
    for page in heapq.merge(*streams, key=_key):
        if same and same[0].key != page.key:
            yield merged(same)
            same = []
        same.append(page)
    if same:
        yield merged(same)


def joined(known: Iterable[Page], found: Iterable[Found]) -> Iterator[tuple[Page | None, Found | None]]:
    """Join the known pages with those that a run found, both sorted by key and without repetitions."""
    pages, others = iter(known), iter(found)
    page, other = next(pages, None), next(others, None)
    while page is not None or other is not None:
        if other is None or (page is not None and page.key < other.key):
            yield page, None
            page = next(pages, None)
        elif page is None or other.key < page.key:
            yield None, other
            other = next(others, None)
        else:
            yield page, other
            page, other = next(pages, None), next(others, None)


def is_emitted_again(page: Page, token: str, consumed: Collection[str]) -> bool:
    """Return whether a run emits a page even if it is unchanged: no consumer has it, or the run emitted it before.

    :param token: token of the run.
    :param consumed: see `RunFacts`.
    """
    return page.by == token or not (page.consumed or page.by in consumed)


def compared(known: Page | None, found: Found | None, run: RunFacts) -> Outcome | None:
    """Decide about a page; None if it was listed only, and no run has read it."""
    if known is None:
        if found is None or found.digest is None:
            return None
        return Outcome(_emission(found, run, run.moment, "new"), "new", True)
    consumed = known.consumed or known.by in run.consumed
    is_open = is_emitted_again(known, run.token, run.consumed)
    again: Again | None = None
    if is_open:
        again = "repeated" if known.by == run.token else "unconsumed"
    if found is not None and found.digest is not None:
        change = _change(known, found, is_open=is_open)
        if known.request != run.request:
            again = again or "request"
        if known.digest == found.digest and again is None and not run.emits_all:
            return Outcome(_seen(known, found, run, consumed), change, False)
        page = _emission(found, run, max(known.seen, run.moment), change)
        return Outcome(page, change, True, again if known.digest == found.digest else None)
    if known.digest is None:
        if is_open:
            return Outcome(_removal(known, run), "removed", True, again)
        return Outcome(known if known.consumed == consumed else _with(known, consumed=consumed), None, False)
    if found is not None:
        page = _seen(known, found, run, consumed)
    elif run.is_complete and known.missed is not None and _is_over(known.missed, run):
        return Outcome(_removal(known, run), "removed", True)
    else:
        is_missed = (
            run.is_complete and not run.is_rejected and known.missed is None and run.moment > known.seen
        )
        page = _with(known, consumed=consumed, missed=run.moment if is_missed else known.missed)
    # The file of this attempt does not have what an earlier one emitted.
    return Outcome(_with(page, by=None, consumed=False) if known.by == run.token else page, None, False)


def _is_over(missed: int, run: RunFacts) -> bool:
    # A run whose own miss was recorded may be repeated.
    return run.moment > missed and run.moment - missed >= run.removed_after


def _change(known: Page, found: Found, *, is_open: bool) -> Change:
    if known.digest is None or (is_open and known.change == "new"):
        return "new"
    if known.digest != found.digest:
        return "changed"
    return known.change if is_open else "same"


def _emission(found: Found, run: RunFacts, seen: int, change: Change) -> Page:
    read = run.moment if found.read is None else found.read
    return Page(found.key, run.version, found.digest, run.request, seen, read, run.token, change=change)


def _removal(known: Page, run: RunFacts) -> Page:
    return Page(
        known.key, run.version, None, run.request, known.seen, known.read, run.token, change="removed"
    )


def _seen(known: Page, found: Found, run: RunFacts, consumed: bool) -> Page:
    seen, read = max(known.seen, run.moment), known.read
    if found.digest is not None:
        read = max(read, run.moment if found.read is None else found.read)
    missed = known.missed if known.missed is not None and known.missed > seen else None
    # Most pages pass here. The constructor is faster than `replace`.
    return Page(
        known.key,
        known.version,
        known.digest,
        known.request,
        seen,
        read,
        known.by,
        consumed,
        missed,
        known.change,
    )


_with = msgspec.structs.replace
