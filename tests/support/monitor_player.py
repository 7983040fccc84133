# SPDX-License-Identifier: Apache-2.0
"""A player of histories of declared monitors: tasks of two Airflows with one key, a dashboard, and lost responses.

The decision is the package's. The world around it is the smallest that can go wrong: what the service stores of a
monitor, and how each Airflow is configured. States that differ only in their history are walked once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from airflow_provider_webdata.inbox.wire import delivery_url, place_of
from airflow_provider_webdata.states.monitor_decision import (
    Create,
    Declared,
    Listed,
    Mark,
    Refuse,
    Reporter,
    Use,
)

NAME = "prices"
OTHER = "other"
RENAMED = "renamed in the dashboard"
ELSEWHERE = "https://chat.example/hook"
_MAX_MONITORS = 4

Decide = Callable[[Declared, Sequence[Listed]], Create | Use | Refuse]


class Hook(NamedTuple):
    """A stored webhook."""

    url: str
    secret: str = ""
    mark: Mark | None = None


class Stored(NamedTuple):
    """A stored monitor. `by` and `content` are those of the task that created it, or patched it last."""

    id: str
    name: str
    hook: Hook | None = None
    creator: str = "hand"
    content: str = "hand"

    @property
    def listed(self) -> Listed:
        hook = self.hook
        return Listed(self.id, self.name, hook.url if hook else None, hook.mark if hook else None)


class Airflow(NamedTuple):
    """How an Airflow, and its connection, are configured."""

    environment: str
    root: str | None
    conn_id: str = "webdata_default"
    secret: str = "s1"
    answers: bool = True


class Author(NamedTuple):
    """What the author of a task declares."""

    airflow: int
    dag_id: str = "d"
    name: str = NAME
    attach: bool | None = None
    adopt: bool = False
    monitor_id: str | None = None


class World(NamedTuple):
    monitors: tuple[Stored, ...]
    airflows: tuple[Airflow, ...]
    authors: tuple[Author, ...]
    serial: int = 0

    def airflow(self, who: int) -> Airflow:
        return self.airflows[self.authors[who].airflow]

    def declared(self, who: int) -> Declared:
        author, airflow = self.authors[who], self.airflow(who)
        return Declared(
            mark=Mark(airflow.environment, author.dag_id, "t", author.name),
            here=Reporter(airflow.environment, airflow.root),
            is_managed=author.attach is not False and airflow.root is not None,
            is_answered=airflow.answers,
            replaces=author.attach is True,
            adopt=author.adopt,
            monitor_id=author.monitor_id,
        )

    def with_author(self, who: int, **changes: object) -> World:
        changed = self.authors[who]._replace(**changes)  # type: ignore[arg-type]
        return self._replace(authors=_with(self.authors, who, changed))

    def with_airflow(self, number: int, **changes: object) -> World:
        changed = self.airflows[number]._replace(**changes)  # type: ignore[arg-type]
        return self._replace(airflows=_with(self.airflows, number, changed))

    def with_monitor(self, number: int, **changes: object) -> World:
        changed = self.monitors[number]._replace(**changes)  # type: ignore[arg-type]
        return self._replace(monitors=_with(self.monitors, number, changed))

    def created(self, **fields: object) -> World:
        made = Stored(f"m{self.serial}", NAME)._replace(**fields)  # type: ignore[arg-type]
        return self._replace(monitors=(*self.monitors, made), serial=self.serial + 1)

    def without(self, ids: Sequence[str]) -> World:
        return self._replace(monitors=tuple(one for one in self.monitors if one.id not in ids))


def _with(values: tuple, number: int, value: object) -> tuple:  # type: ignore[type-arg]
    return (*values[:number], value, *values[number + 1 :])


START = World(
    (),
    (
        Airflow("production", "https://airflow.example"),
        # The DAGs and the connection's secrets are a copy.
        Airflow("laptop", "https://laptop.example"),
    ),
    # Two instances of a mapped task, a task of another DAG, and a copy of the first one.
    (Author(0), Author(0, name=OTHER), Author(0, dag_id="d2"), Author(1)),
)
_WHO = ("production", "its second instance", "its second DAG", "the laptop")


class BrokenPromiseError(AssertionError):
    """A history breaks a promise."""


class Player:
    """Walks all histories.

    :ivar states: number of different states.
    :ivar declarations: number of decisions, by class and way out.
    """

    def __init__(self, decide: Decide) -> None:
        self._decide = decide
        self.states = 0
        self.counts: dict[str, int] = {}

    def walk(self, most: int, start: World = START) -> None:
        """Walk all histories of up to a number of events.

        :raises BrokenPromiseError: a history breaks a promise; its message has the events.
        """
        seen = {start}
        layer: list[tuple[World, tuple[str, ...]]] = [(start, ())]
        for _ in range(most):
            following: list[tuple[World, tuple[str, ...]]] = []
            for world, history in layer:
                for event, after in self._events(world, history):
                    if after not in seen and len(after.monitors) <= _MAX_MONITORS:
                        seen.add(after)
                        following.append((after, (*history, event)))
            layer = following
        self.states = len(seen)

    def _events(self, world: World, history: tuple[str, ...]) -> Iterator[tuple[str, World]]:
        for who in range(len(world.authors)):
            name = _WHO[who]
            after = self.declared(world, who, (*history, f"{name} declares"))
            yield f"{name} declares", after
            if len(after.monitors) > len(world.monitors):
                # The list lags behind: the monitor is created again.
                again = self.declared(
                    after, who, (*history, f"{name} declares twice"), hidden=after.monitors[-1:]
                )
                yield f"{name} declares twice, by a list that lags", again
            author = world.authors[who]
            for attach in {None, True, False} - {author.attach}:
                yield f"{name}: attach_webhook={attach}", world.with_author(who, attach=attach)
            yield f"{name}: adopt={not author.adopt}", world.with_author(who, adopt=not author.adopt)
            new_name = OTHER if author.name == NAME else NAME
            yield f"{name}: name={new_name}", world.with_author(who, name=new_name)
            if not who:
                for one_id in {None, *(one.id for one in world.monitors)} - {author.monitor_id}:
                    yield f"{name}: monitor_id={one_id}", world.with_author(who, monitor_id=one_id)
        for number, airflow in enumerate(world.airflows):
            name = airflow.environment
            yield f"{name}: connection", world.with_airflow(number, conn_id=f"{airflow.conn_id}2")
            yield f"{name}: secret", world.with_airflow(number, secret=f"{airflow.secret}2")
            yield f"{name}: inbox", world.with_airflow(number, answers=not airflow.answers)
            root = None if airflow.root else f"https://{name}.example"
            yield f"{name}: webhook_url={root}", world.with_airflow(number, root=root)
            moved = {"environment": f"{name}-moved", "root": f"https://{name}-moved.example"}
            yield f"{name}: moves", world.with_airflow(number, **moved)
        for number, one in enumerate(world.monitors):
            for new_name in {RENAMED, NAME, OTHER} - {one.name}:
                yield f"{one.id} renamed {new_name}", world.with_monitor(number, name=new_name)
            yield f"deleted {one.id}", world.without([one.id])
            if one.hook is None:
                yield f"webhook of {one.id}", world.with_monitor(number, hook=Hook(ELSEWHERE))
                manual = Hook(delivery_url("https://laptop.example", "webdata_default"), "s1")
                yield f"webhook of {one.id} to the laptop", world.with_monitor(number, hook=manual)
        yield "created by hand", world.created()

    def declared(
        self, world: World, who: int, history: tuple[str, ...] = (), hidden: Sequence[Stored] = ()
    ) -> World:
        """Return the world after a task has declared its monitor, and check the promises.

        :param hidden: monitors that the service's list lacks.
        """
        if world.authors[who].monitor_id not in {None, *(one.id for one in world.monitors)}:
            # The task fails: the selected monitor was deleted.
            return world
        action = self._decide_for(world, who, hidden)
        after = self._acted(world, who, action, history, hidden)
        if isinstance(action, Refuse):
            self._follow(world, who, action, history)
        elif not hidden:
            self._check_green(after, who, action, history)
        return after

    def _decide_for(self, world: World, who: int, hidden: Sequence[Stored] = ()) -> Create | Use | Refuse:
        listed = [one.listed for one in world.monitors if one not in hidden]
        action = self._decide(world.declared(who), listed)
        kinds = action.ways if isinstance(action, Refuse) else (type(action).__name__,)
        for kind in kinds:
            self.counts[kind] = self.counts.get(kind, 0) + 1
        return action

    def _acted(
        self,
        world: World,
        who: int,
        action: Create | Use | Refuse,
        history: tuple[str, ...],
        hidden: Sequence[Stored] = (),
    ) -> World:
        if isinstance(action, Refuse):
            return world
        author, airflow, declared = world.authors[who], world.airflow(who), world.declared(who)
        me = f"{author.airflow}/{author.dag_id}/{author.name}"
        if isinstance(action, Create):
            for one in world.monitors:
                known = one.hook and one.hook.mark == declared.mark
                if one.creator == me and one not in hidden and (known or one.name == author.name):
                    raise BrokenPromiseError(f"{history}: {one} is created again")
            hook = self._hook(world, who, None) if declared.attaches else None
            return world.created(name=author.name, hook=hook, creator=me, content=me)
        (number,) = (n for n, one in enumerate(world.monitors) if one.id == action.id)
        before = world.monitors[number]
        mark = before.hook.mark if before.hook else None
        is_foreign = mark is not None and mark.environment != airflow.environment
        if before.hook and mark is None and (place := place_of(before.hook.url)):
            is_foreign = place.root != airflow.root
        hook = self._hook(world, who, action.key) if action.reports else before.hook
        after = before._replace(name=author.name, hook=hook, content=me)
        if is_foreign and after != before and not author.adopt:
            raise BrokenPromiseError(f"{history}: {before} reports to another Airflow, and is patched")
        if mark is not None and mark.dag_id != author.dag_id and after != before and not author.adopt:
            raise BrokenPromiseError(f"{history}: {before} is another task's, and is patched")
        if mark is not None and mark.name != author.name and not (author.adopt or author.monitor_id):
            raise BrokenPromiseError(f"{history}: {before} is another instance's, and is patched")
        if is_foreign and action.key:
            raise BrokenPromiseError(f"{history}: a key that another Airflow knows is kept")
        named = [one for one in world.monitors if one.name == author.name]
        if mark != declared.mark and not author.monitor_id and len(named) > 1:
            raise BrokenPromiseError(
                f"{history}: {before} is one of {len(named)} with its name, and is patched"
            )
        if before.hook and before.hook.url == ELSEWHERE and hook != before.hook and author.attach is not True:
            raise BrokenPromiseError(f"{history}: the webhook of {before} is replaced")
        return world._replace(monitors=_with(world.monitors, number, after))

    def _hook(self, world: World, who: int, key: str | None) -> Hook:
        airflow = world.airflow(who)
        if airflow.root is None:
            raise BrokenPromiseError("a webhook without an address")
        url = delivery_url(airflow.root, airflow.conn_id, key or "new")
        return Hook(url, airflow.secret, world.declared(who).mark)

    def _check_green(
        self, world: World, who: int, action: Create | Use | Refuse, history: tuple[str, ...]
    ) -> None:
        """Check what holds after a task has succeeded."""
        author, airflow, declared = world.authors[who], world.airflow(who), world.declared(who)
        used = world.monitors[-1] if isinstance(action, Create) else None
        if isinstance(action, Use):
            (used,) = (one for one in world.monitors if one.id == action.id)
        assert used is not None
        own = [one.id for one in world.monitors if one.hook and one.hook.mark == declared.mark]
        if own and own != [used.id]:
            raise BrokenPromiseError(f"{history}: {own} report here, and {used.id} is used")
        reports_elsewhere = used.hook is not None and used.hook.url == ELSEWHERE
        if reports_elsewhere and author.attach is True and airflow.answers and airflow.root:
            raise BrokenPromiseError(f"{history}: the webhook is not replaced")
        if declared.is_managed and not reports_elsewhere and (used.hook or airflow.answers):
            expected = (airflow.root, airflow.conn_id, airflow.secret)
            place = place_of(used.hook.url) if used.hook else None
            if not place or not used.hook or (place.root, place.conn_id, used.hook.secret) != expected:
                raise BrokenPromiseError(f"{history}: this inbox refuses the deliveries of {used}")
            if used.hook.mark != declared.mark:
                raise BrokenPromiseError(f"{history}: the mark of {used} is another's")
        again = self._decide_for(world, who)
        if self._acted(world, who, again, (*history, "declares again")) != world or isinstance(again, Refuse):
            raise BrokenPromiseError(
                f"{history}: a second run does not find the monitor as declared, but {again}"
            )

    def _follow(self, world: World, who: int, refusal: Refuse, history: tuple[str, ...]) -> None:
        """Check that each way out of a refusal leads to a task that succeeds, and to one monitor that reports here."""
        if not refusal.ways:
            raise BrokenPromiseError(f"{history}: no way out of {refusal}")
        mark = world.declared(who).mark
        for way, after in self._ways(world, who, refusal):
            followed = (*history, f"refused: {refusal.text}", f"follows {way}")
            action = self._decide_for(after, who)
            if isinstance(action, Refuse):
                # It may have been created twice.
                if way not in {"environment", "omit"} or action.ways not in {("delete",), ("omit",)}:
                    raise BrokenPromiseError(f"{followed}: refused again, {action.text}")
                self._follow(after, who, action, followed)
                continue
            done = self._acted(after, who, action, followed)
            self._check_green(done, who, action, followed)
            if len([one for one in done.monitors if one.hook and one.hook.mark == mark]) > 1:
                raise BrokenPromiseError(f"{followed}: several monitors report here")

    def _ways(self, world: World, who: int, refusal: Refuse) -> Iterator[tuple[str, World]]:
        author, airflow = world.authors[who], world.airflow(who)
        for way in refusal.ways:
            if way in {"name", "name alone"}:
                yield way, world.with_author(who, name="a new name", monitor_id=None)
            elif way == "adopt":
                yield way, world.with_author(who, adopt=True)
            elif way == "webhook":
                root = airflow.root or f"https://{airflow.environment}.example"
                attached = world.with_author(who, attach=None, adopt=True)
                yield way, attached.with_airflow(author.airflow, root=root, answers=True)
            elif way == "environment":
                yield way, world.with_airflow(author.airflow, environment=refusal.former)
            elif way == "omit":
                yield way, world.with_author(who, monitor_id=None)
            elif way == "monitor_id":
                for one_id in refusal.ids:
                    yield f"{way}={one_id}", world.with_author(who, monitor_id=one_id)
            elif way == "delete":
                for one_id in refusal.ids:
                    yield f"{way} all but {one_id}", world.without([*({*refusal.ids} - {one_id})])
            else:
                raise AssertionError(way)
