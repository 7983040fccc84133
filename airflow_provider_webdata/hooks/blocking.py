# SPDX-License-Identifier: Apache-2.0
"""Blocking versions of the asynchronous methods.

The blocking hook's own `_execute`, `_check`, `_follow`, `_send_file`, and `_mask` never suspend. A coroutine that
awaits only these finishes in its first step without an event loop.
"""

from __future__ import annotations

import inspect
from functools import wraps
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar, cast

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Iterator

P = ParamSpec("P")
T = TypeVar("T")


def blocking(
    method: Callable[Concatenate[Any, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate[Any, P], T]:
    """Return the blocking version of a coroutine method."""

    @wraps(method)
    def call(hook: Any, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return _finish(method(hook, *args, **kwargs))

    return call


def iterating(
    method: Callable[Concatenate[Any, P], AsyncIterator[T]],
) -> Callable[Concatenate[Any, P], Iterator[T]]:
    """Return the blocking version of an asynchronous generator method."""

    @wraps(method)
    def iterate(hook: Any, /, *args: P.args, **kwargs: P.kwargs) -> Iterator[T]:
        items = cast("AsyncGenerator[T, None]", method(hook, *args, **kwargs))
        try:
            while True:
                # Hold no reference to an item while fetching the next one.
                yield _finish(items.__anext__())
        except StopAsyncIteration:
            return
        finally:
            _finish(items.aclose())

    signature = inspect.signature(method)
    returns = signature.return_annotation.replace("AsyncIterator", "Iterator")
    iterate.__signature__ = signature.replace(return_annotation=returns)  # type: ignore[attr-defined]
    return iterate


def _finish(coroutine: Coroutine[Any, Any, T]) -> T:
    try:
        coroutine.send(None)
    except StopIteration as end:
        return cast("T", end.value)
    raise RuntimeError("the blocking hook awaited an event loop")
