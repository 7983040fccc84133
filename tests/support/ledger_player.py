# SPDX-License-Identifier: Apache-2.0
"""A player of histories of a task's ledger: calls, lost responses, kills, clears, and failing writes.

The ledger is the package's. Beside it, the player keeps a list of what was sent and what is known of it, with which the
ledger must agree after each event. States that differ only in their history are walked once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple
from unittest.mock import patch

from airflow_provider_webdata.api.errors import CallRefusedError
from airflow_provider_webdata.hooks import ledger as module
from airflow_provider_webdata.hooks import task_memory
from airflow_provider_webdata.hooks.ledger import Ledger
from tests.support.direct import StateStore, TaskInstance, context_of

PRICE = 2
"""Highest price of each call."""

OUTCOMES = ("1", "2", "lost billed", "lost", "free")
"""What a call costs, or that its response is lost after or before it was billed, or that it fails without a cost."""

_OPERATION = "op"

Event = tuple[Any, ...]


class Call(NamedTuple):
    """A call of the task.

    :param kind: `plain`: each request is billed. `once`: billed once per name, however often it is sent. `job`: its
        cost is learned by its id, also by a later attempt, and may grow.
    :param name: name of its reservation.
    :param limit: name of its limit.
    """

    kind: str
    name: str
    limit: str = ""


class Sent(NamedTuple):
    """A call that was sent, and what the task knows of it.

    :param name: its reservation's.
    :param number: tells jobs apart.
    :param cost: credits that the service billed.
    :param state: `flying`; `lost`, its cost may be learned by its reservation; `untold`, by the id of the job;
        `running`, as `untold`, but a job that has used a credit so far; `unknown` for ever; or `known`.
    """

    name: str
    limit: str
    number: int
    round: int
    cost: int
    state: str

    @property
    def counted(self) -> int:
        return self.cost if self.state == "known" else PRICE


class State(NamedTuple):
    """The state of a task.

    :param memory: the process's credits, and those that it believes to be stored.
    :param store: the task state store.
    :param sent: the calls that the task can know of.
    :param saved: these calls as they were when the process last stored them.
    :param flying: outcome of each call in flight, by its place in the player's.
    :param executed: cost of the calls that are billed once, by name.
    :param metric: what the metric counted, without what a killed process counted and could not store.
    """

    memory: Any
    store: tuple[tuple[str, str], ...] = ()
    round: int = 1
    sent: tuple[Sent, ...] = ()
    saved: tuple[Sent, ...] = ()
    flying: tuple[tuple[int, str], ...] = ()
    executed: tuple[tuple[str, int], ...] = ()
    metric: float = 0


class BrokenPromiseError(AssertionError):
    """The ledger breaks a promise."""


class Process:
    """The process of an attempt, at any state of a history.

    :ivar fails: whether the store is unavailable.
    :ivar metric: what the metric counted.
    """

    def __init__(self, calls: tuple[Call, ...], limit: float | None) -> None:
        self.calls = calls
        self.store = StateStore()
        self.fails = False
        self.metric = 0.0
        store_it = self.store.set

        def write(key: str, value: Any, **options: Any) -> None:
            if self.fails:
                raise OSError("no database")
            store_it(key, value, **options)

        self.store.set = write  # type: ignore[method-assign]
        context = context_of(TaskInstance(max_tries=1), self.store)
        self.ledgers = [Ledger(context, "conn", limit, call.limit, push=lambda **_: None) for call in calls]
        self.record: Any = self.ledgers[0]._memory

    @property
    def memory(self) -> Any:
        return self.record._record, self.record._stored

    def restarted(self, number: int) -> Any:
        """Return the memory of the next process, in a round."""
        self.record.attempt.max_tries = number
        self.record.begin()
        return self.memory

    def at(self, state: State) -> None:
        """Continue from a state."""
        self.record._record, self.record._stored = state.memory
        self.record.attempt.max_tries = state.round
        self.store.values = dict(state.store)
        self.metric, self.fails = state.metric, False


class Player:
    """All histories of a task that makes some calls, again and again.

    :param limit: credits of each limit; None: no limit.
    """

    def __init__(self, *calls: Call, limit: float | None) -> None:
        self.calls, self.limit = calls, limit
        self.process = Process(calls, limit)

    def walk(self, length: int) -> int:
        """Play all histories of up to `length` events, and return the number of states.

        :raises BrokenPromiseError: a promise is broken; the message has the history.
        """

        def count(_name: str, number: float, *_: Any, **__: Any) -> None:
            self.process.metric += number

        edge: list[tuple[State, tuple[Event, ...]]] = [(State(self.process.memory), ())]
        seen = {self._key(edge[0][0])}
        with (
            patch.object(module, "count", count),
            patch.multiple(module.log, info=_mute),
            patch.multiple(task_memory.log, warning=_mute),
        ):
            for _ in range(length):
                following = []
                for state, history in edge:
                    for event in self.events(state):
                        self.process.at(state)
                        try:
                            after = self.play(state, event)
                            self.check(after)
                        except AssertionError as broken:
                            raise BrokenPromiseError(
                                f"{broken}: {(*history, event)} of {self.calls}"
                            ) from broken
                        if (key := self._key(after)) not in seen:
                            seen.add(key)
                            following.append((after, (*history, event)))
                edge = following
        return len(seen)

    def _key(self, state: State) -> Any:
        return (repr(state.memory), *state[1:])

    def events(self, state: State) -> Iterator[Event]:
        """Return what may happen next."""
        flying = dict(state.flying)
        for number, call in enumerate(self.calls):
            if number in flying:
                yield ("end", number)
                yield ("end unsaved", number)
                if call.kind != "once":
                    yield ("reserve again", number)
                continue
            yield from (("send", number, outcome) for outcome in OUTCOMES)
            yield ("try", number)
            if call.kind != "job":
                continue
            yield from (("send", number, outcome) for outcome in ("untold", "running"))
            states = {one.state for one in state.sent if one[:2] == call[1:]}
            if "lost" in states:
                yield from (("find", number), ("give up", number))
            if states & {"known", "untold", "running"}:
                yield from (("again", number, what) for what in ("all", "less", "unknown", "running"))
        yield from (("kill",), ("clear",))

    def play(self, state: State, event: Event) -> State:
        """Return the state after an event."""
        name, *rest = event
        if name in {"kill", "clear"}:
            left = [one._replace(state="lost") if one.state == "flying" else one for one in state.saved]
            number = state.round + (name == "clear")
            return state._replace(
                memory=self.process.restarted(number),
                round=number,
                sent=tuple(sorted(left)),
                saved=tuple(sorted(left)),
                flying=(),
                metric=state.metric - _known(state.sent) + _known(left),
            )
        self.process.fails = name == "end unsaved"
        act: Callable[..., State] = getattr(self, f"_{name.partition(' ')[0]}")
        return act(state, *rest)._replace(
            memory=self.process.memory,
            store=tuple(self.process.store.values.items()),
            metric=self.process.metric,
        )

    def _send(self, state: State, place: int, outcome: str) -> State:
        call, ledger = self.calls[place], self.process.ledgers[place]
        is_once = call.kind == "once"
        sent = [*state.sent]
        one = self._one(state, call, "flying", "lost")
        is_counted = is_once and (
            (one is not None and one.round == state.round) or self._one(state, call, "known") is not None
        )
        spent = self._spent(state, call.limit)
        fits = self.limit is None or spent + PRICE <= self.limit
        is_sent = (is_once and ledger.repeats(call.name, _OPERATION)) or ledger.reserve(call.name, PRICE)
        assert is_sent <= (fits or is_counted), f"a call is sent after {spent} of {self.limit} credits"
        assert (fits or is_counted) <= is_sent, f"a call is refused after {spent} of {self.limit} credits"
        if not is_sent:
            return state
        cost = {"1": 1, "2": 2, "lost billed": 2, "untold": 2, "running": 2}.get(outcome, 0)
        executed = dict(state.executed)
        if is_once and (cost or call.name in executed):
            cost = executed.setdefault(call.name, cost)
        if not is_counted:
            if one is not None:
                sent[sent.index(one)] = one._replace(state="unknown")
            number = sum(other[:2] == call[1:] for other in sent) if call.kind == "job" else 0
            sent.append(Sent(call.name, call.limit, number, state.round, cost, "flying"))
        elif one is not None:
            # One of both requests is billed, and the task does not know which.
            sent[sent.index(one)] = one._replace(state="lost", cost=cost)
        sent.sort()
        is_saved = not is_counted
        return state._replace(
            sent=tuple(sent),
            saved=tuple(sent) if is_saved else state.saved,
            flying=tuple(sorted({**dict(state.flying), place: outcome}.items())),
            executed=tuple(sorted(executed.items())),
        )

    def _try(self, state: State, place: int) -> State:
        """Check a call that is sent later."""
        call, after = self.calls[place], self._send(state, place, "lost")
        if after is state:
            return state
        self.process.ledgers[place].release(call.name)
        one = self._one(after, call, "flying")
        return self._replaced(after._replace(flying=state.flying), one, None)

    def _reserve(self, state: State, place: int) -> State:
        """Replace the reservation of a call in flight, as before a second request with its idempotency key."""
        call, one = self.calls[place], self._one(state, self.calls[place], "flying")
        assert self.process.ledgers[place].reserve(call.name, PRICE), "a call does not fit beside itself"
        return self._replaced(state, one, one)

    def _end(self, state: State, place: int) -> State:
        call, ledger, outcome = self.calls[place], self.process.ledgers[place], dict(state.flying)[place]
        state = state._replace(flying=tuple(pair for pair in state.flying if pair[0] != place))
        one, is_once = self._one(state, call, "flying", "lost"), call.kind == "once"
        error = CallRefusedError("no")
        after: Sent | None = None
        if outcome in {"1", "2"}:
            cost = dict(state.executed)[call.name] if is_once else one and one.cost
            ledger.settle(call.name, cost, _OPERATION, call=_id_of(call, one))
            after = one and one._replace(state="known")
        elif outcome in {"untold", "running"}:
            self._tell(call, ledger, one, outcome)
            after = one and one._replace(state=outcome)
        elif outcome == "free":
            if call.kind == "job":
                ledger.forget(call.name)
                self.process.record.note()
            else:
                ledger.settle_failed(call.name, error, 0, _OPERATION, is_repeatable=is_once)
            after = one if one is not None and one.state == "lost" else None
        elif call.kind == "job":
            ledger.lose(call.name)
            after = one and one._replace(state="lost")
        else:
            ledger.settle_failed(call.name, error, None, _OPERATION, is_repeatable=is_once)
            after = one and one._replace(state="lost" if is_once else "unknown")
        return self._replaced(state, one, after)

    def _find(self, state: State, place: int) -> State:
        call, one = self.calls[place], self._one(state, self.calls[place], "lost")
        assert one is not None
        self.process.ledgers[place].settle(
            call.name, one.cost, _OPERATION, call=_id_of(call, one) if one.cost else None
        )
        return self._replaced(state, one, one._replace(state="known") if one.cost else None)

    def _give(self, state: State, place: int) -> State:
        call, one = self.calls[place], self._one(state, self.calls[place], "lost")
        assert one is not None
        self.process.ledgers[place].settle(call.name, None, _OPERATION)
        return self._replaced(state, one, one._replace(state="unknown"))

    def _again(self, state: State, place: int, what: str) -> State:
        call = self.calls[place]
        one = self._one(state, call, "known", "untold", "running")
        assert one is not None
        self._tell(call, self.process.ledgers[place], one, what)
        if what in {"all", "less"}:
            told = max(one.cost - (what == "less"), one.state == "running")
            return self._replaced(
                state, one, one if one.state == "known" else one._replace(state="known", cost=told)
            )
        is_first = what == "running" and one.state == "untold"
        return self._replaced(state, one, one._replace(state="running") if is_first else one)

    def _tell(self, call: Call, ledger: Ledger, one: Sent | None, what: str) -> None:
        """Settle a job as what the service reports."""
        cost = one.cost if one is not None else 0
        used = {"all": cost, "less": cost - 1, "running": 1}.get(what)
        ledger.settle(call.name, used, _OPERATION, call=_id_of(call, one), is_final=what != "running")

    def _one(self, state: State, call: Call, *states: str) -> Sent | None:
        """Return the last call of the name in one of the states, or None."""
        found = [one for one in state.sent if one[:2] == call[1:] and one.state in states]
        return found[-1] if found else None

    def _spent(self, state: State, limit: str) -> int:
        return sum(one.counted for one in state.sent if (one.round, one.limit) == (state.round, limit))

    def _replaced(self, state: State, one: Sent | None, by: Sent | None) -> State:
        sent = [other for other in state.sent if other is not one]
        sent = sorted([*sent, by] if by is not None else sent)
        return state._replace(sent=tuple(sent), saved=state.saved if self.process.fails else tuple(sent))

    def check(self, state: State) -> None:
        """Compare the ledger with what was sent."""
        reported = self.process.ledgers[0].to_wire()
        known = _known(state.sent)
        unknown = sum(one.state in {"lost", "unknown", "untold", "running"} for one in state.sent)
        assert reported["used"] == known, f"{reported['used']} credits are reported, and {known} were billed"
        assert reported["unknown"] == unknown, (
            f"{reported['unknown']} of {unknown} unknown calls are reported"
        )
        assert sum(reported["by_connection"].values()) == known, (
            "the parts of connections differ from the sum"
        )
        assert state.metric == known, f"the metric counts {state.metric} of {known} credits"
        for call, ledger in zip(self.calls, self.process.ledgers, strict=True):
            counted = self._spent(state, call.limit)
            if self.limit is not None:
                assert ledger.spent == counted, f"{ledger.spent} credits count, and {counted} should"
                assert counted <= self.limit, f"{counted} credits were or may have been spent"


def _id_of(call: Call, one: Sent | None) -> str | None:
    """Return the id under which a call counts once."""
    if call.kind == "plain":
        return None
    return call.name if call.kind == "once" else f"{call.name}/{one and one.number}"


def _known(sent: Iterable[Sent]) -> int:
    return sum({"known": one.cost, "running": 1}.get(one.state, 0) for one in sent)


def _mute(*_: Any, **__: Any) -> None:
    pass
