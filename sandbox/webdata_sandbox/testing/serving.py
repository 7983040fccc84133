# SPDX-License-Identifier: Apache-2.0
"""An ASGI application behind uvicorn, on a separate port and in a separate thread."""

from __future__ import annotations

import asyncio
import socket
import threading
from typing import TYPE_CHECKING, Any

import uvicorn

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable


class Serving:
    """Serves an application until `stop`.

    The socket listens immediately; requests wait until `start`.

    :param application: ASGI 3 application.
    :param port: port on the loopback address; 0 chooses a free one.
    :param close: awaited at the end, in the event loop of the server.
    :param options: options of uvicorn's configuration.
    :ivar url: address of the server.
    """

    def __init__(
        self,
        application: Any,
        port: int = 0,
        close: Callable[[], Awaitable[None]] | None = None,
        **options: Any,
    ) -> None:
        # asyncio disables Nagle's algorithm only for sockets that name TCP as their protocol.
        self._listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        self._listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._listener.bind(("127.0.0.1", port))
        self._listener.listen(1024)
        self.port: int = self._listener.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        config = uvicorn.Config(
            application,
            interface="asgi3",
            log_config=None,
            access_log=False,
            lifespan="off",
            server_header=False,
            **options,
        )
        self._server = uvicorn.Server(config)
        self._close = close
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()), daemon=True)

    def start(self) -> None:
        """Accept requests."""
        self._thread.start()

    def stop(self, *, at_once: bool = False) -> None:
        """Stop the server, and return when it has ended.

        :param at_once: drop pending requests.
        """
        self._server.force_exit = at_once
        self._server.should_exit = True
        self._thread.join(20)

    async def _serve(self) -> None:
        await self._server.serve(sockets=[self._listener])
        if self._close is not None:
            await self._close()
