# SPDX-License-Identifier: Apache-2.0
"""Sandbox servers: in a thread of this process, or as the main program."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import socket
import threading
from typing import TYPE_CHECKING, Any

import uvicorn

from webdata_sandbox.control import SandboxControl

from .app import build
from .config import SandboxConfig
from .service import Sandbox

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

START_SECONDS = 30.0


class _Uvicorn(uvicorn.Server):
    """Uvicorn that reports when it is ready and installs no signal handlers."""

    def __init__(self, config: uvicorn.Config, on_ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._on_ready = on_ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if not self.should_exit:
            self._on_ready()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def _listen(config: SandboxConfig) -> socket.socket:
    family = socket.AF_INET6 if ":" in config.host else socket.AF_INET
    # asyncio disables Nagle's algorithm only for sockets with an explicit TCP protocol.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind((config.host, config.port))
    listener.listen(1024)
    return listener


def _address(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _uvicorn(config: SandboxConfig, on_ready: Callable[[], None]) -> _Uvicorn:
    settings = uvicorn.Config(
        build(Sandbox(config)),
        log_config=None,
        access_log=False,
        loop="asyncio",
        lifespan="on",
        server_header=False,
        timeout_keep_alive=75,
        timeout_graceful_shutdown=1,
    )
    return _Uvicorn(settings, on_ready)


def serve(config: SandboxConfig, on_ready: Callable[[str], None]) -> None:
    """Run a sandbox until SIGINT or SIGTERM.

    :param on_ready: called with the address when the sandbox accepts requests.
    :raises OSError: the address is in use, or does not belong to this machine.
    :raises ValueError: a setting is invalid.
    """
    with _listen(config) as listener:
        address = _address(listener)
        server = _uvicorn(config, lambda: on_ready(address))

        async def run() -> None:
            loop = asyncio.get_running_loop()
            for number in (signal.SIGINT, signal.SIGTERM):
                loop.add_signal_handler(number, server.handle_exit, number, None)
            await server.serve(sockets=[listener])

        asyncio.run(run())


class SandboxServer:
    """Context manager that runs a sandbox in a thread, by default on a free port.

    :param settings: fields of :class:`~webdata_sandbox.config.SandboxConfig`.
    """

    def __init__(self, **settings: Any) -> None:
        self.config = SandboxConfig(**settings)
        self.url = ""
        self._ready = threading.Event()
        self._failure: BaseException | None = None
        self._server: _Uvicorn | None = None
        self._thread: threading.Thread | None = None

    @property
    def api_key(self) -> str:
        """The accepted API key."""
        return self.config.api_key

    @property
    def control(self) -> SandboxControl:
        """A client of this sandbox's control API."""
        return SandboxControl(self.url)

    def start(self) -> None:
        """Start the sandbox and wait until it accepts requests.

        :raises RuntimeError: the sandbox did not start.
        """
        listener = _listen(self.config)
        self.url = _address(listener)
        self._ready.clear()
        self._thread = threading.Thread(
            target=self._run, args=(listener,), name="webdata-sandbox", daemon=True
        )
        self._thread.start()
        ready = self._ready.wait(START_SECONDS)
        if not ready or self._failure is not None or self._server is None or not self._server.started:
            raise RuntimeError("the sandbox did not start") from self._failure

    def stop(self) -> None:
        """Stop the sandbox and wait for its thread."""
        if self._server is not None:
            self._server.should_exit = True
        if self._thread is not None:
            self._thread.join()
        self._thread = self._server = None

    def __enter__(self) -> SandboxServer:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _run(self, listener: socket.socket) -> None:
        try:
            with listener:
                self._server = _uvicorn(self.config, self._ready.set)
                asyncio.run(self._server.serve(sockets=[listener]))
        except BaseException as error:  # noqa: BLE001 - start() reports it
            self._failure = error
        finally:
            self._ready.set()
