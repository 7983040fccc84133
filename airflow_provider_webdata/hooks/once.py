"""A lazily created value shared by concurrent tasks."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

T = TypeVar("T")


class Once(Generic[T]):
    """Makes a thing at its first need, once for all callers that come before it is ready.

    A caller that is cancelled leaves the others what they wait for. An error goes to all that waited and is not
    kept: the next caller starts anew.

    :ivar made: the thing, once it is ready.
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

    def take(self) -> T | None:
        """Return the thing if there is one, and forget it: the next caller makes another."""
        made, self.made = self.made, None
        return made
