"""Worker threads of the pages. The API server's own threads also serve its other routes and task heartbeats."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, ParamSpec, TypeVar

import anyio
import anyio.to_thread

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")
P = ParamSpec("P")

_LIMITER = anyio.CapacityLimiter(4)


async def in_thread(function: Callable[P, T], *args: P.args, **options: P.kwargs) -> T:
    """Run a blocking function in one of four threads that all pages share, and return its result."""
    return await anyio.to_thread.run_sync(partial(function, *args, **options), limiter=_LIMITER)
