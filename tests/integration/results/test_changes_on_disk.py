# SPDX-License-Identifier: Apache-2.0
"""Histories of a task with `changes` on real files and a real table, and the state of a mapped instance."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest

from tests.support.changes_on_disk import DiskWorld
from tests.support.changes_player import HOWS, How, after, drawn, faults, whole_runs

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.changes_player import History

PARTS = 4
TOTAL = 420


@pytest.mark.parametrize("part", range(PARTS))
def test_all_short_histories(tmp_path: Path, part: int) -> None:
    random.seed(part)
    # The decisions are played through all histories elsewhere: every other one of four events shows their use.
    longest = [history for history in whole_runs(4) if len(history) == 4]
    histories = [*whole_runs(3, HOWS), *longest[::2]]
    assert len(histories) == TOTAL
    check(histories[part::PARTS], tmp_path)


@pytest.mark.parametrize("part", range(PARTS))
def test_long_histories_with_runs_that_overlap(tmp_path: Path, part: int) -> None:
    rnd = random.Random(part)
    random.seed(part)
    check([drawn(rnd, 40, HOWS) for _ in range(40)], tmp_path, How(is_incremental=part == 0))


def check(histories: list[History], home: Path, last: How = How()) -> None:  # noqa: B008 - immutable
    for number, history in enumerate(histories):
        (folder := home / str(number)).mkdir()
        assert faults(after(history, DiskWorld(folder)), last) == [], history
