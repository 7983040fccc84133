# SPDX-License-Identifier: Apache-2.0
"""Tables of cases that one test tries in turn."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.support.tables import each_row


def test_every_row_is_tried_and_each_failure_reported() -> None:
    tried: list[str] = []

    @each_row("word, length", [("a", 1), ("bb", 1), ("ccc", 3), ("dddd", 7)])
    def test(word: str, length: int) -> None:
        tried.append(word)
        assert len(word) == length

    with pytest.raises(AssertionError, match=r"(?s)^'bb', 1:.*\n\n'dddd', 7:") as failed:
        test()
    assert tried == ["a", "bb", "ccc", "dddd"]
    assert isinstance(failed.value.__cause__, AssertionError)


def test_a_missing_exception_and_any_other_error_fail_a_row() -> None:
    @each_row("call", [lambda: None, lambda: int("x"), lambda: 1 / 0])
    def test(call: Callable[[], object]) -> None:
        with pytest.raises(ZeroDivisionError):
            call()

    with pytest.raises(AssertionError, match=r"(?s)DID NOT RAISE.*ValueError: invalid literal"):
        test()


class TestFixtures:
    @pytest.fixture
    def seen(self) -> list[int]:
        return []

    @each_row("number", range(3), before=lambda seen: seen.clear())
    def test_are_shared_and_may_be_cleared(self, seen: list[int], number: int) -> None:
        assert seen == []
        seen.append(number)
