# SPDX-License-Identifier: Apache-2.0
"""A player of histories of a task with `changes`: nights, edits, kills, clears, loads, and another Airflow.

The decisions are the package's; the world around them is the smallest that can go wrong. Snapshots are lists of pages
here, so that all short histories can be played.
"""

from __future__ import annotations

import copy
import itertools
import random
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from airflow_provider_webdata.results.changes.pages import (
    Found,
    Page,
    RunFacts,
    compared,
    is_emitted_again,
    joined,
    merged_streams,
    version_after,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from airflow_provider_webdata.results.changes.pages import Outcome

    Event = tuple[Any, ...]
    History = list[Event]
    Decide = Callable[[Page | None, Found | None, RunFacts], Outcome | None]

REMOVED_AFTER = 2
QUIET_NIGHTS = 4
_NEVER = -1


class Site(NamedTuple):
    """What the site is like.

    :param pages: contents by key.
    :param down: keys of pages that fail.
    """

    pages: dict[str, str]
    down: tuple[str, ...] = ()


class How(NamedTuple):
    """How a run reads the site.

    :param is_complete: False: it ended at its limit.
    :param request: what it requests of a page.
    :param emits_all: `emit="all"`.
    :param is_incremental: it requests only pages that are new, not consumed, or stale.
    """

    is_complete: bool = True
    request: str = "markdown"
    emits_all: bool = False
    is_incremental: bool = False


class Written(NamedTuple):
    """A run's file.

    :param rows: emissions: key, version, content (None: removed).
    """

    rows: list[tuple[str, int, str | None]]


class World:
    """A site, a task's folder of snapshots, its DAG runs, and a table."""

    def __init__(self, decide: Decide = compared) -> None:
        self._decide = decide
        self.site = Site({})
        self.night = self.clock = 0
        self.folder: dict[int, list[Page]] = {}
        self.names = itertools.count()
        self.files: dict[int, Any] = {}
        self.steps: dict[int, list[tuple[str, Any]]] = {}
        self.succeeded: set[int] = set()
        self.loads: dict[int, str] = {}
        self.being_read: dict[int, Any] = {}
        self.is_fresh: dict[int, bool] = {}
        self.table: dict[str, tuple[int, str | None]] = {}
        self.misses: dict[str, int] = {}
        self.removed_early = 0
        self.emitted = 0
        self.wrong_changes = 0
        self.applied: set[str] = set()
        self.is_shared = False

    def copied(self) -> World:
        """Return a world with the same past, between whole runs."""
        other = copy.copy(self)
        for name, value in vars(self).items():
            if isinstance(value, (dict, set)):
                setattr(other, name, value.copy())
        # What a killed run left undone is never done.
        other.steps = {}
        return other

    def state(self) -> Any:
        """Return what later events depend on: the order of versions instead of their values, and ages."""
        files = [sorted(files.items()) for files in (self.files, self.being_read)]
        versions = {page.version for pages in self.folder.values() for page in pages}
        versions |= {version for version, _ in self.table.values()}
        versions |= {version for one in files for _, file in one for _, version, _ in file.rows}
        rank = {version: number for number, version in enumerate(sorted(versions))}

        def aged(page: Page) -> Any:
            ages = (self.night - page.seen, self.night - page.read)
            missed = None if page.missed is None else self.night - page.missed
            others = (page.key, page.digest, page.request, page.by, page.consumed, page.change)
            return (rank[page.version], ages, missed, *others)

        return (
            (tuple(self.site.pages.items()), self.site.down),
            frozenset(tuple(map(aged, pages)) for pages in self.folder.values()),
            tuple(
                tuple(
                    (run, tuple((key, rank[version], text) for key, version, text in file.rows))
                    for run, file in one
                )
                for one in files
            ),
            frozenset((key, rank[version], text) for key, (version, text) in self.table.items()),
            (frozenset(self.loads.items()), frozenset(self.is_fresh.items()), frozenset(self.misses.items())),
            (frozenset(self.succeeded), frozenset(self.applied)),
            (self.is_shared, self.removed_early > 0, self.wrong_changes > 0),
        )

    def rows(self) -> dict[str, str]:
        """Return the table's rows of pages that are not marked as removed."""
        return {key: content for key, (_, content) in self.table.items() if content is not None}

    def is_consumed(self, token: str) -> bool:
        """Return whether the load of a run has succeeded."""
        where, _, run = token.partition(" ")
        return where == "here" and int(run) in self.succeeded and self.loads.get(int(run)) == "success"

    def begin(self, run: int, how: How, *, alone: bool = False, where: str = "here") -> None:
        """Read the site, and compare."""
        if where == "here":
            self.succeeded.discard(run)
            if not alone:
                self.loads.pop(run, None)
                self.being_read.pop(run, None)
        self.night += 1
        # Clocks of workers differ.
        self.clock += random.choice((1, 1, 5, -3))
        names = [*self.folder]
        state = [*merged_streams(self.folder[name] for name in names)]
        token = f"{where} {run}"
        consumed = {page.by for page in state if page.by is not None and self.is_consumed(page.by)}
        found = self._found(state, token, consumed, how)
        facts = RunFacts(
            token,
            version_after(max((page.version for page in state), default=0), self.clock),
            self.night,
            how.request,
            REMOVED_AFTER,
            how.is_complete and bool(found),
            consumed,
            how.emits_all,
        )
        outcomes = [self._decide(*pair, facts) for pair in joined(state, found)]
        new = [outcome.page for outcome in outcomes if outcome is not None]
        items = [
            (outcome.page.key, outcome.page.version, outcome.page.digest)
            for outcome in outcomes
            if outcome is not None and outcome.is_emitted
        ]
        self.is_shared |= where != "here"
        # No consumer has had these pages.
        self.wrong_changes += not self.is_shared and any(
            outcome.is_emitted
            and outcome.change not in ("new", "removed")
            and outcome.page.key not in self.applied
            for outcome in outcomes
            if outcome is not None
        )
        for key in self.misses:
            self.misses[key] += facts.is_complete and key not in {one.key for one in found}
        self.removed_early += sum(
            digest is None and key in self.site.pages and self.misses.get(key, 0) < 2
            for key, _, digest in items
        )
        self.emitted = len(items)
        steps = [
            ("file", Written(items)),
            ("snapshot", (new, [one.key for one in found], token)),
            ("delete", names),
            ("success", None),
        ]
        self.steps[run] = steps if where == "here" else steps[1:3]

    def _found(self, state: list[Page], token: str, consumed: set[str], how: How) -> list[Found]:
        known = {page.key: page for page in state}
        found = []
        for key, content in sorted(self.site.pages.items()):
            page = known.get(key)
            if how.is_incremental and page is not None and page.digest is not None:
                is_open = is_emitted_again(page, token, consumed)
                # A site's dates show changes.
                is_stale = page.digest != content or page.missed is not None
                if not is_open and not is_stale and page.request == how.request:
                    found.append(Found(key, None))
                    continue
            if key not in self.site.down:
                found.append(Found(key, content))
        return found

    def step(self, run: int) -> None:
        """Do the next step of a run."""
        what, value = self.steps[run].pop(0)
        if what == "file":
            self.files[run] = value
            # A load that started before can have read another file: it consumes nothing of this one.
            self.is_fresh[run] = run not in self.loads
        elif what == "snapshot":
            state, found, token = value
            if token.startswith("here") and not self.is_fresh[run]:
                state = [
                    msgspec.structs.replace(page, by=None) if page.by == token else page for page in state
                ]
            self.folder[next(self.names)] = state
            self.misses |= dict.fromkeys(found, 0)
        elif what == "delete":
            for name in value:
                self.folder.pop(name, None)
        else:
            self.succeeded.add(run)

    def load(self, run: int, *, applies: bool, succeeds: bool) -> None:
        """Load a run's file, or the one that its load is reading."""
        written = self.being_read.pop(run, None) or self.files[run]
        for key, version, content in written.rows if applies else ():
            if version >= self.table.get(key, (_NEVER, None))[0]:
                self.table[key] = (version, content)
            self.applied.add(key)
        self.loads[run] = "success" if succeeds else "failed"

    def do(self, event: Event) -> None:
        """Do one event of a history."""
        kind, *rest = event
        if kind == "site":
            self.site = rest[0]
        elif kind == "gap":
            self.night += 7
        elif kind in ("begin", "alone"):
            self.begin(rest[0], _how(rest), alone=kind == "alone")
        elif kind == "step":
            self.step(rest[0])
        elif kind == "read":
            self.loads[rest[0]] = "running"
            self.being_read[rest[0]] = self.files[rest[0]]
        elif kind == "load":
            self.load(rest[0], applies=rest[1], succeeds=rest[2])
        elif kind == "elsewhere":
            self.begin(rest[0], _how(rest), where="laptop")
            self.step(rest[0])
            self.step(rest[0])
        else:
            self.begin(rest[0], _how(rest), alone=kind == "whole alone")
            for _ in range({"killed after file": 1, "killed after snapshot": 2}.get(kind, 4)):
                self.step(rest[0])


def _how(rest: list[Any]) -> How:
    return rest[1] if len(rest) > 1 else How()


SITES = (
    Site({"a": "x", "h": "h"}),
    Site({"a": "y", "h": "h"}),
    Site({"h": "h"}),
    Site({"a": "x", "h": "h"}, ("a",)),
)
LOADS = ((True, True), (True, False), (False, False))
HOWS = (
    How(is_complete=False),
    How(request="markdown, html"),
    How(emits_all=True),
    How(is_incremental=True),
)


class Stage(NamedTuple):
    """What decides which event may be next.

    :param last: the last event.
    :param started: runs that have begun.
    :param done: runs that have succeeded.
    """

    last: Event
    started: frozenset[int] = frozenset()
    done: frozenset[int] = frozenset()

    def following(self, hows: tuple[How, ...]) -> Iterator[Stage]:
        """Yield the stages after each possible event, with whole runs as one event.

        :param hows: how runs may read the site, beside completely.
        """
        last, started, done = self.last[0], self.started, self.done
        if last != "site":
            for site in SITES:
                yield self._replace(last=("site", site))
        if last != "gap" and started:
            yield self._replace(last=("gap",))
        for run in (1, 2):
            if run == 1 or 1 in started:
                for way in ((), *((how,) for how in hows)):
                    yield Stage(("whole", run, *way), started | {run}, done | {run})
                if run in done:
                    yield self._replace(last=("whole alone", run))
                    yield self._replace(last=("elsewhere", run))
                for kind in ("killed after file", "killed after snapshot"):
                    yield Stage((kind, run), started | {run}, done - {run})
            if run in done:
                if last != "read":
                    yield self._replace(last=("read", run))
                for load in LOADS:
                    yield self._replace(last=("load", run, *load))

    def state(self) -> Any:
        """Return what the next events depend on."""
        last = self.last[0]
        return last if last in ("site", "gap", "read") else "", self.started, self.done


FIRST = Stage(("site", SITES[0]))


def whole_runs(length: int, hows: tuple[How, ...] = ()) -> Iterator[History]:
    """Yield all histories of up to this number of events; see `Stage.following`."""

    def extended(history: History, stage: Stage) -> Iterator[History]:
        yield history
        if len(history) < length:
            for following in stage.following(hows):
                yield from extended([*history, following.last], following)

    yield from extended([FIRST.last], FIRST)


def worlds_after(length: int, hows: tuple[How, ...] = (), decide: Decide = compared) -> Iterator[World]:
    """Yield a world after each history of `whole_runs`. Of worlds that differ only in their past, one is yielded."""
    first = World(decide)
    first.do(FIRST.last)
    reached = [(first, FIRST)]
    known: set[Any] = set()
    for number in range(1, length + 1):
        before, reached = reached, []
        for world, stage in before:
            yield world.copied()
            for following in stage.following(hows) if number < length else ():
                changed = world.copied()
                changed.do(following.last)
                state = (changed.state(), following.state())
                if state not in known:
                    known.add(state)
                    reached.append((changed, following))


def all_orders() -> Iterator[History]:
    """Yield all orders of two whole runs, one load of each, and three changes of the site."""
    for places in itertools.combinations(range(7), 3):
        for order in itertools.permutations((("whole", 1), ("whole", 2), ("load", 1), ("load", 2))):
            if any(order.index(("whole", run)) > order.index(("load", run)) for run in (1, 2)):
                continue
            for sites in itertools.product(SITES, repeat=3):
                events = iter(order)
                changes = iter(sites)
                history: History = [("site", SITES[0])]
                for place in range(7):
                    if place in places:
                        history.append(("site", next(changes)))
                    else:
                        kind, run = next(events)
                        history.append((kind, run) if kind == "whole" else (kind, run, True, True))
                yield history


def after(history: History, world: World) -> World:
    """Play a history in a new world, and return it."""
    for event in history:
        world.do(event)
    return world


def drawn(rnd: random.Random, length: int, hows: tuple[How, ...] = ()) -> History:
    """Return a history with runs in single steps that overlap."""
    history: History = [("site", SITES[0])]
    opened: dict[int, int] = {}
    done: set[int] = set()
    while len(history) < length:
        choice, run = rnd.random(), rnd.choice((1, 2, 3))
        how = (rnd.choice(hows),) if hows and rnd.random() < 0.3 else ()
        if choice < 0.17:
            history.append(("site", rnd.choice(SITES)))
        elif choice < 0.2:
            history.append(("gap",))
        elif choice < 0.22 and run in done:
            history.append(("elsewhere", run, *how))
        elif choice < 0.35:
            history.append(("alone" if run in done and rnd.random() < 0.4 else "begin", run, *how))
            opened[run] = 0
            done.discard(run)
        elif choice < 0.8 and opened:
            run = rnd.choice([*opened])
            history.append(("step", run))
            opened[run] += 1
            if opened[run] == 4:
                del opened[run]
                done.add(run)
        elif done:
            run = rnd.choice([*done])
            history.append(("read", run) if rnd.random() < 0.25 else ("load", run, *rnd.choice(LOADS)))
    return history


def faults(world: World, last: How = How()) -> list[str]:  # noqa: B008 - immutable
    """Let quiet nights pass in a world, and return what is wrong then.

    :param last: how the runs of the quiet nights read the site.
    """
    world.site = Site(world.site.pages)
    for run in range(100, 100 + QUIET_NIGHTS):
        world.do(("whole", run, last))
        world.load(run, applies=True, succeeds=True)
    return [
        name
        for name, is_so in (
            ("wrong table", world.rows() != world.site.pages),
            ("removed early", world.removed_early > 0),
            ("restless", world.emitted > 0),
            ("wrong change", world.wrong_changes > 0),
        )
        if is_so
    ]
