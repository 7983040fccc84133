# SPDX-License-Identifier: Apache-2.0
"""The ledger of a task's credits: a call is reserved before it is sent, and settled after it."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
from msgspec.structs import replace

from airflow_provider_webdata.common.job_kinds import ALL_JOB_KINDS
from airflow_provider_webdata.common.stored_record import Count  # noqa: TC001 - msgspec reads the annotations

if TYPE_CHECKING:
    from collections.abc import Mapping

_SHARED = (*ALL_JOB_KINDS, "monitor")
"""Operations whose results several tasks may read and report: jobs, and checks of monitors."""

# Whole numbers remain whole.
Amount = Annotated[int, msgspec.Meta(ge=0, le=10**12)] | Annotated[float, msgspec.Meta(ge=0, le=1e12)]

_PARTS = ("by_operation", "by_format", "by_connection")


class Entry(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The credits of a call, or of all calls of a limit that have no id.

    :param round: name of the attempt's round. A limit includes only the entries of the current one.
    :param limit: name of the limit that includes the entry; empty: the task's own.
    :param reserved: credits that calls of unknown cost may cost, without those that they are known to have used.
    :param unknown: number of these calls.
    :param saved: credits that were not spent.
    """

    round: str
    limit: str = ""
    reserved: Amount = 0
    unknown: Count = 0
    saved: Amount = 0
    by_operation: dict[str, Amount] = {}
    by_format: dict[str, Amount] = {}
    by_connection: dict[str, Amount] = {}

    @property
    def used(self) -> float:
        """Credits that were spent."""
        used: float = sum(self.by_operation.values())
        return used


class Credits(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The ledger of a task instance, over all attempts and rounds.

    :param open: reserved calls of this process, by limit and name.
    :param lost: reserved calls whose response was lost, or whose process was killed; their cost may still be learned.
    :param settled: other calls, by operation and id; those without an id are added up.
    """

    open: dict[str, Entry] = {}
    lost: dict[str, Entry] = {}
    settled: dict[str, Entry] = {}


def restarted(credits: Credits) -> Credits:
    """Return the ledger of the next process: what an earlier one reserved is lost."""
    return replace(credits, open={}, lost={**credits.lost, **credits.open})


def reserve(credits: Credits, name: str, entry: Entry, most: float | None) -> Credits | None:
    """Reserve credits for a call before it is sent; return None if too few are left.

    A lost call of the name counts as one of unknown cost.

    :param name: name of the call, unique among the calls of the limit that are in flight; its former reservation is
        replaced.
    :param entry: the credits to reserve.
    :param most: maximum credits of the limit; None: no limit.
    """
    key = _key(entry.limit, name)
    free = replace(credits, open=_without(credits.open, key))
    if most is not None and entry.reserved > most - spent(free, entry.round, entry.limit):
        return None
    if (lost := free.lost.get(key)) is not None:
        free = replace(free, lost=_without(free.lost, key), settled=_settled(free, lost, None))
    return replace(free, open={**free.open, key: entry})


def repeat(credits: Credits, name: str, entry: Entry, call: str) -> Credits | None:
    """Return the ledger before a repeated call is sent, for which the first one pays; None if it is not counted yet.

    :param name: as in `reserve`.
    :param entry: its round and its limit.
    :param call: as in `settle`.
    """
    if call in credits.settled:
        return credits
    key = _key(entry.limit, name)
    if (held := credits.open.get(key)) is not None:
        # While two are in flight, the failure of one does not show whether the other is billed.
        return lose(credits, name, held.limit)
    held = credits.lost.get(key)
    return credits if held is not None and held.round == entry.round else None


def lose(credits: Credits, name: str, limit: str) -> Credits:
    """Return the ledger after the response of a reserved call was lost: its cost may still be learned."""
    key = _key(limit, name)
    if key not in credits.open:
        return credits
    return replace(credits, open=_without(credits.open, key), lost={**credits.lost, key: credits.open[key]})


def release(credits: Credits, name: str, limit: str) -> Credits:
    """Return the ledger without the reservation of a call of this process that cost nothing."""
    return replace(credits, open=_without(credits.open, _key(limit, name)))


def forget(credits: Credits, name: str, round: str, limit: str) -> Credits:
    """Return the ledger without what was reserved in this round for a call that costs nothing."""
    key = _key(limit, name)
    left = {
        part: {one: entry for one, entry in held.items() if one != key or entry.round != round}
        for part, held in (("open", credits.open), ("lost", credits.lost))
    }
    return replace(credits, **left)


def settle(credits: Credits, name: str, entry: Entry, call: str | None = None) -> Credits:
    """Replace the reservation of a call, of this process or an earlier one, by its cost.

    A call that is settled again has its highest known cost.

    :param name: as in `reserve`; without a reservation, the cost is only added.
    :param entry: the cost. If it is unknown, or known in part, and nothing is reserved, the former reservation counts.
    :param call: operation and id of the call, which counts once in all attempts; None: it has no id.
    """
    if call is None or call not in credits.settled:
        key = _key(entry.limit, name)
        held = credits.open.get(key) or credits.lost.get(key)
        credits = replace(credits, open=_without(credits.open, key), lost=_without(credits.lost, key))
        if held is not None:
            rest = max(held.reserved - entry.used, 0) if entry.unknown else 0
            entry = replace(entry, round=held.round, reserved=entry.reserved or rest)
    if call is None and not (entry.by_operation or entry.unknown or entry.saved):
        return credits
    return replace(credits, settled=_settled(credits, entry, call))


def spent(credits: Credits, round: str, limit: str) -> float:
    """Return the credits that count against a limit: those that were spent, and those that may have been."""
    entries = (*credits.open.values(), *credits.lost.values(), *credits.settled.values())
    return sum(one.used + one.reserved for one in entries if (one.round, one.limit) == (round, limit))


def used(credits: Credits) -> float:
    """Return the credits of all rounds that were spent."""
    return sum(entry.used for entry in credits.settled.values())


def used_before(credits: Credits, round: str) -> float:
    """Return the credits of earlier rounds, if no call of a round was made yet."""
    entries = (*credits.lost.values(), *credits.settled.values())
    return 0 if any(entry.round == round for entry in entries) else used(credits)


def report(credits: Credits) -> dict[str, Any]:
    """Return the XCom `credits`: `used`, `saved`, `unknown` (calls of unknown cost), and the breakdowns.

    `jobs`, if any, has the cost of each job and check by kind and id: several tasks may read the result of one.
    """
    entries = (*credits.lost.values(), *credits.settled.values())
    parts = {part: _sum(*(getattr(entry, part) for entry in entries)) for part in _PARTS}
    shared = {
        call: entry.used for call, entry in credits.settled.items() if call.partition("/")[0] in _SHARED
    }
    jobs = {call: cost for call, cost in shared.items() if cost}
    return {
        "used": used(credits),
        "saved": sum(entry.saved for entry in entries),
        "unknown": sum(entry.unknown for entry in entries),
        **parts,
        **({"jobs": jobs} if jobs else {}),
    }


def _settled(credits: Credits, entry: Entry, call: str | None) -> dict[str, Entry]:
    key = call or f"unnamed/{entry.round}/{entry.limit}"
    before = credits.settled.get(key)
    if before is not None:
        entry = _joined(before, entry) if call is None else _latest(before, entry)
    return {**credits.settled, key: entry}


def _joined(one: Entry, other: Entry) -> Entry:
    numbers = {name: getattr(one, name) + getattr(other, name) for name in ("reserved", "unknown", "saved")}
    parts = {part: _sum(getattr(one, part), getattr(other, part)) for part in _PARTS}
    return replace(one, **numbers, **parts)


def _latest(before: Entry, entry: Entry) -> Entry:
    """Return the entry of a call that is settled again."""
    most = entry if entry.used >= before.used else before
    if before.unknown and entry.unknown:
        rest = max(before.used + before.reserved - most.used, 0)
        most = replace(most, unknown=entry.unknown, reserved=entry.reserved or rest)
    elif before.unknown or entry.unknown:
        most = replace(most, unknown=0, reserved=0)
    return replace(most, round=before.round, limit=before.limit, saved=before.saved + entry.saved)


def _key(limit: str, name: str) -> str:
    return f"{limit}/{name}"


def _without(entries: Mapping[str, Entry], key: str) -> dict[str, Entry]:
    return {name: entry for name, entry in entries.items() if name != key}


def _sum(*parts: Mapping[str, float]) -> dict[str, float]:
    found: Counter[str] = Counter()
    for part in parts:
        for name, credits in part.items():
            found[name] += credits  # type: ignore[assignment]
    return dict(found)
