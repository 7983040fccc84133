# SPDX-License-Identifier: Apache-2.0
"""A lazily created value shared by concurrent tasks."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

T = TypeVar("T")


class Once(Generic[T]):
    """Creates a value on first use, once for all concurrent callers.

    Canceling one caller does not affect the others. An error is raised in every waiting caller and is not cached: the
    next caller tries again.

    :ivar made: the value, once created.
    """

    def __init__(self, make: Callable[[], Coroutine[Any, Any, T]]) -> None:
        self._make = make
        self._making: asyncio.Task[T] | None = None
        self.made: T | None = None

    async def get(self) -> T:
        """Return the value.

        :raises Exception: any error of the factory.
        """
        if self.made is not None:
            return self.made
        if self._making is None or self._making.done():
            self._making = asyncio.get_running_loop().create_task(self._keep())
        return await asyncio.shield(self._making)

    async def _keep(self) -> T:
        self.made = await self._make()
        return self.made

    def reset(self) -> T | None:
        """Remove and return the value, or None; the next caller creates a new one."""
        made, self.made = self.made, None
        return made
