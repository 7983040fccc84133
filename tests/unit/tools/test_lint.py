# SPDX-License-Identifier: Apache-2.0
"""`make lint` runs every stage, whatever fails, and sums up the results."""

from __future__ import annotations

import pytest

from tools import lint
from tools.lint import STAGES, Stage

PASSES = Stage("passes", ("echo", "all is well"))
FAILS = Stage("fails", ("sh", "-c", "echo a.py: wrong; echo and why >&2; exit 3"))
DEPENDS = Stage("depends", ("echo", "never"), needs="fails")
AFTER = Stage("after", ("pwd",), needs="passes")


def test_each_stage_has_a_result_and_failures_come_last(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(lint, "STAGES", [FAILS, PASSES, DEPENDS, AFTER])
    assert lint.main([]) == 1
    progress, table, *failures = capsys.readouterr().out.split("\n\n")
    assert {*progress.splitlines()} == {
        "== fails: failed",
        "== passes: passed",
        "== depends: skipped",
        "== after: passed",
    }
    assert [line.split()[:2] for line in table.splitlines()] == [
        ["stage", "result"],
        ["fails", "failed"],
        ["passes", "passed"],
        ["depends", "skipped"],
        ["after", "passed"],
    ]
    assert failures == [
        "== fails: failed\na.py: wrong\nand why",
        "== depends: skipped\nFix first: fails.\n",
    ]


@pytest.mark.parametrize(("stages", "status"), [([PASSES], 0), ([PASSES, FAILS], 1), ([FAILS, DEPENDS], 1)])
def test_exit_status(monkeypatch: pytest.MonkeyPatch, stages: list[Stage], status: int) -> None:
    monkeypatch.setattr(lint, "STAGES", stages)
    assert lint.main([]) == status


def test_a_needed_stage_comes_first() -> None:
    names = [stage.name for stage in STAGES]
    assert all(not stage.needs or stage.needs in names[: names.index(stage.name)] for stage in STAGES)
    assert len({*names}) == len(names)
