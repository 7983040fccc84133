# SPDX-License-Identifier: Apache-2.0
"""A batch search whose worker is killed before each step that leaves a trace, over all short histories."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.batch_player import LOST, Plan, SearchService, play

ABC = Plan()
HISTORIES = {
    "a retry": ([ABC, ABC], {}),
    "a limit": ([ABC, ABC], {"limit": 30}),
    "a limit over two retries": ([Plan("ab")] * 3, {"limit": 30}),
    "other queries": ([Plan("ab"), Plan("bc")], {}),
    "other queries over two retries": ([Plan("a"), Plan("b"), Plan("ba")], {}),
    "another account": ([Plan("a"), Plan("a", "two"), Plan("a")], {}),
    "cleared": ([Plan("ab"), Plan("ab", round=1)], {}),
    "cleared, then a retry": ([Plan("a"), Plan("a", round=1), Plan("a", round=1)], {}),
    "a lost response": ([Plan(("a", LOST, "b"))] * 2, {}),
    "a lost response, with a limit": ([Plan(("a", LOST))] * 2, {"limit": 30}),
    "a lost response, sent again": ([Plan(("a", LOST), repeats=True)] * 2, {"limit": 30}),
    "all at once": ([ABC, ABC], {"max_concurrency": 3}),
}


@pytest.fixture(scope="module")
def service() -> Iterator[SearchService]:
    service = SearchService()
    yield service
    service.stop()


@pytest.mark.parametrize("name", HISTORIES)
def test_no_kill_repeats_a_stored_answer(service: SearchService, tmp_path: Path, name: str) -> None:
    """A retry sends only the other queries, and each cost is in the credits, once."""
    plans, options = HISTORIES[name]
    folders = (tmp_path / str(number) for number in itertools.count())
    histories = [*play(service, map(made, folders), plans, **options)]
    # At least one step before and one after each of the searches.
    assert len(histories) >= (3 * len(plans[0].queries)) ** (len(plans) - 1) / 2


def made(folder: Path) -> Path:
    folder.mkdir()
    return folder
