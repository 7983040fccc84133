# SPDX-License-Identifier: Apache-2.0
"""The parts that mutants are made of, and their samples."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.mutants.parts import PARTS, Part, sample

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize("part", PARTS.values(), ids=PARTS)
def test_each_pattern_has_matches(part: Part) -> None:
    assert all([*(ROOT / "airflow_provider_webdata").glob(pattern)] for pattern in part.sources)
    assert all([*(ROOT / "tests").glob(pattern)] for pattern in part.tests)


def test_a_sample_depends_on_the_names_alone() -> None:
    names = [f"mutant {number}" for number in range(100)]
    taken = sample(names, 10, 1)
    assert len(taken) == 10
    assert sample([*reversed(names)], 10, 1) == taken
    # Another mutant replaces at most one of them.
    assert len({*taken} & {*sample([*names, "new"], 10, 1)}) >= 9
    assert sample(names, 10, 2) != taken
    assert sample(names, 0, 1) == sorted(names)
