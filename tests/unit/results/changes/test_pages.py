# SPDX-License-Identifier: Apache-2.0
"""The decisions about pages, played through all short histories and many long ones."""

from __future__ import annotations

import random
from itertools import permutations
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from airflow_provider_webdata.results.changes.pages import (
    Page,
    RunFacts,
    compared,
    merged,
    version_after,
)
from tests.support.changes_player import HOWS, How, World, after, all_orders, drawn, faults, worlds_after

if TYPE_CHECKING:
    from collections.abc import Callable

    from airflow_provider_webdata.results.changes.pages import Found, Outcome

    Decide = Callable[[Page | None, Found | None, RunFacts], Outcome | None]

NONE = {"wrong table": 0, "removed early": 0, "restless": 0, "wrong change": 0}


def counted(worlds: Any, lasts: tuple[How, ...] = (How(),)) -> tuple[int, dict[str, int]]:
    """Let quiet nights pass in worlds; return their number, and that of the faults by name."""
    played, found = 0, dict.fromkeys(NONE, 0)
    for world in worlds:
        for last in lasts:
            played += 1
            for name in faults(world.copied(), last):
                found[name] += 1
    return played, found


@pytest.mark.slow
def test_all_histories_of_six_events() -> None:
    random.seed(1)
    played, found = counted(worlds_after(6))
    assert found == NONE
    # Of 114,930 histories. A few more differ if the clocks do.
    assert played > 14_000


@pytest.mark.slow
def test_all_histories_of_five_events_with_other_ways_to_read() -> None:
    random.seed(1)
    played, found = counted(worlds_after(5, HOWS))
    assert found == NONE
    # Of 104,630 histories.
    assert played > 4_000


@pytest.mark.slow
def test_all_orders_of_two_runs_their_loads_and_three_changes() -> None:
    random.seed(1)
    played, found = counted(after(history, World()) for history in all_orders())
    assert (played, found) == (13_440, NONE)


@pytest.mark.slow
@pytest.mark.parametrize("hows", [(), HOWS], ids=["complete", "any way"])
def test_overlapping_steps(hows: tuple[How, ...]) -> None:
    rnd = random.Random(20261128)
    random.seed(1)
    histories = (drawn(rnd, rnd.randint(8, 60), hows) for _ in range(2_000))
    worlds = (after(history, World()) for history in histories)
    played, found = counted(worlds, (How(), How(is_incremental=True)) if hows else (How(),))
    # A run that read a page is killed before its snapshot, so that its reading is not recorded: the page may be marked
    # one night too early, until it is read again.
    assert found.pop("removed early") < played / 50
    assert found == {name: 0 for name in NONE if name != "removed early"}


def never_consumed(known: Page | None, found: Found | None, run: RunFacts) -> Outcome | None:
    return compared(known, found, run._replace(consumed=()))


def always_consumed(known: Page | None, found: Found | None, run: RunFacts) -> Outcome | None:
    if known is not None and known.by != run.token:
        known = msgspec.structs.replace(known, consumed=True)
    return compared(known, found, run)


def own_emission_stands(known: Page | None, found: Found | None, run: RunFacts) -> Outcome | None:
    outcome = compared(known, found, run)
    if known is not None and outcome is not None and known.by == run.token and not outcome.is_emitted:
        return outcome._replace(page=msgspec.structs.replace(outcome.page, by=known.by))
    return outcome


def removed_by_one_miss(known: Page | None, found: Found | None, run: RunFacts) -> Outcome | None:
    if known is not None and known.missed is None and run.is_complete:
        known = msgspec.structs.replace(known, missed=known.seen)
    return compared(known, found, run._replace(removed_after=1))


def same_until_consumed(known: Page | None, found: Found | None, run: RunFacts) -> Outcome | None:
    outcome = compared(known, found, run)
    return outcome and outcome._replace(change="same" if outcome.again else outcome.change)


def old_version(known: Page | None, found: Found | None, run: RunFacts) -> Outcome | None:
    return compared(known, found, run._replace(version=known.version if known is not None else run.version))


def removed_silently(known: Page | None, found: Found | None, run: RunFacts) -> Outcome | None:
    outcome = compared(known, found, run)
    if outcome is not None and outcome.change == "removed":
        return outcome._replace(is_emitted=False)
    return outcome


@pytest.mark.slow
@pytest.mark.parametrize(
    "broken",
    [
        never_consumed,
        always_consumed,
        same_until_consumed,
        own_emission_stands,
        removed_by_one_miss,
        old_version,
        removed_silently,
    ],
)
def test_the_player_finds_a_broken_rule(broken: Decide) -> None:
    random.seed(1)
    assert any(map(faults, worlds_after(6, decide=broken)))


def test_every_order_of_merging_gives_one_state() -> None:
    rnd = random.Random(7)
    for _ in range(500):
        pages = [
            Page(
                "https://a.example/",
                rnd.randint(1, 3),
                rnd.choice([None, "x", "y"]),
                "r",
                rnd.randint(0, 4),
                rnd.randint(0, 4),
                rnd.choice([None, "one"]),
                rnd.random() < 0.5,
                rnd.choice([None, *range(6)]),
            )
            for _ in range(3)
        ]
        # A version is one emission, with one content.
        pages = [msgspec.structs.replace(page, digest=f"{page.version}") for page in pages]
        whole = merged(pages)
        for first, second, third in permutations(pages):
            assert merged([merged([first, second]), third]) == whole
            assert merged([first, merged([second, third])]) == whole


def test_a_version_exceeds_the_clock_and_all_versions() -> None:
    behind = version_after(0, 1_000.0)
    assert version_after(behind, 5.0) > behind
    assert version_after(behind, 2_000.0) >> 20 == 2_000_000
    assert version_after(behind, 5.0) < 2**63
