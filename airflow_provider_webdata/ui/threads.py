# SPDX-License-Identifier: Apache-2.0
"""Worker threads of the pages. The API server's own threads also serve its other routes and task heartbeats."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, ParamSpec, TypeVar

import anyio
import anyio.to_thread

from airflow_provider_webdata.inbox_server.storage.threads import in_thread_within

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")
P = ParamSpec("P")

_LIMITER = anyio.CapacityLimiter(4)
_SECRETS_LIMITER = anyio.CapacityLimiter(4)


async def in_thread(function: Callable[P, T], *args: P.args, **options: P.kwargs) -> T:
    """Run a blocking function in one of four threads that all pages share, and return its result."""
    return await anyio.to_thread.run_sync(partial(function, *args, **options), limiter=_LIMITER)


async def with_secrets(seconds: float, function: Callable[[], T]) -> T:
    """Run a function that queries secrets backends, which may hang, in a separate thread, and return its result.

    :raises TimeoutError: the function took longer, and is abandoned.
    """
    return await in_thread_within(seconds, _SECRETS_LIMITER, function)
