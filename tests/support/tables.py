# SPDX-License-Identifier: Apache-2.0
"""Tables of cases that one test tries in turn."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable
from typing import Any

import pytest


def each_row(
    names: str, rows: Iterable[Any], before: Callable[..., object] | None = None
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Call a test with every row of a table, as one case, and report each row that fails.

    The rows share the test's fixtures, so no row may depend on what another one leaves behind. Use
    `pytest.mark.parametrize` for rows that take long or need separate fixtures.

    :param names: the test's parameters that a row sets, separated by commas.
    :param rows: tuples, or single values for a single name.
    :param before: called before each row with the test's fixtures.
    """
    of_row = [name.strip() for name in names.split(",")]
    table = [row if len(of_row) > 1 else (row,) for row in rows]

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(test)
        def run(*args: Any, **fixtures: Any) -> None:
            failed: list[tuple[str, BaseException]] = []

            def attempt(row: Any) -> None:
                try:
                    if before is not None:
                        before(**fixtures)
                    test(*args, **fixtures, **dict(zip(of_row, row, strict=True)))
                except (Exception, pytest.fail.Exception) as error:
                    failed.append((", ".join(f"{value!r:.100}" for value in row), error))

            for row in table:
                attempt(row)
            if failed:
                texts = [f"{row}:\n{type(error).__name__}: {error}" for row, error in failed]
                raise AssertionError("\n\n".join(texts)) from failed[0][1]

        signature = inspect.signature(test)
        left = [parameter for name, parameter in signature.parameters.items() if name not in of_row]
        run.__signature__ = signature.replace(parameters=left)  # type: ignore[attr-defined]
        return run

    return decorate
