"""`airflow webdata inbox serve`: the inbox alone, with none of Airflow's own routes."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import socket
import ssl
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import uvicorn

from airflow_provider_webdata.inbox_server.application import create_application
from airflow_provider_webdata.inbox_server.http.listener import HEADER_BYTES, BoundedServer
from airflow_provider_webdata.inbox_server.options import retention_days
from airflow_provider_webdata.inbox_server.storage.errors import StoreUnavailableError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

    from airflow_provider_webdata.inbox_server.http.app import InboxApplication

KEEP_ALIVE_SECONDS = 75
"""For how long an idle connection stays: longer than proxies keep theirs, so that they never use a closed one."""

GRACE_SECONDS = 20
"""For how long a stop waits for deliveries that are under way: one may take ten to arrive and eight to be stored."""


def run(args: argparse.Namespace) -> int:
    """Serve the inbox until SIGINT or SIGTERM; return the exit status.

    What was acknowledged is stored when this returns.
    """
    if args.ssl_keyfile and not args.ssl_certfile:
        return _failed("--ssl-keyfile needs --ssl-certfile")
    for flag, path in (("--ssl-certfile", args.ssl_certfile), ("--ssl-keyfile", args.ssl_keyfile)):
        if path and not Path(path).is_file():
            return _failed(f"{flag}: there is no such file (given: {path!r})")
    try:
        application = create_application()
        with _listen(args.host, args.port) as listener:
            _serve(application, listener, args.ssl_certfile, args.ssl_keyfile)
    except (OSError, OverflowError, ValueError, StoreUnavailableError) as error:
        return _failed(str(error))
    return 0


def _serve(
    application: InboxApplication, listener: socket.socket, certfile: str | None, keyfile: str | None
) -> None:
    class Server(BoundedServer):
        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets)
            application.inbox.start_pruning(retention_days())
            print(f"inbox listening on {_address(listener, certfile)}", flush=True)  # noqa: T201

        async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
            # Readers would wait on; deliveries that are under way are stored and answered.
            application.inbox.publisher.close()
            await super().shutdown(sockets)
            await application.inbox.close()

        @contextlib.contextmanager
        def capture_signals(self) -> Iterator[None]:
            # Uvicorn's own handler would raise the signal again, and the process would seem to have failed.
            loop = asyncio.get_running_loop()
            for number in (signal.SIGINT, signal.SIGTERM):
                loop.add_signal_handler(number, self.handle_exit, number, None)
            yield

    settings = uvicorn.Config(
        application,
        # httptools bounds neither headers nor URL.
        http="h11",
        h11_max_incomplete_event_size=HEADER_BYTES,
        ssl_certfile=certfile,
        ssl_keyfile=keyfile,
        # Airflow has set up logging already.
        log_config=None,
        # A stranger could fill the log with uvicorn's warnings of requests that are no HTTP.
        log_level="error",
        access_log=False,
        lifespan="off",
        server_header=False,
        ws="none",
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=GRACE_SECONDS,
    )
    try:
        settings.load()
    except ssl.SSLError as error:
        raise ValueError(f"--ssl-certfile, --ssl-keyfile: no certificate and its key: {error}") from None
    try:
        application.inbox.store.end()
    except StoreUnavailableError as error:
        # The database may come up: until then, deliveries get a 503 and the service sends them again.
        print(f"inbox: nothing can be stored now: {error}", file=sys.stderr)  # noqa: T201
    Server(settings).run(sockets=[listener])


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # The protocol is named because asyncio switches Nagle's algorithm off only for sockets that say they are TCP.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        listener.listen(1024)
    except BaseException:
        listener.close()
        raise
    return listener


def _address(listener: socket.socket, certfile: str | None) -> str:
    host, port = listener.getsockname()[:2]
    scheme = "https" if certfile else "http"
    return f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"


def _failed(message: str) -> int:
    print(f"inbox: {message}", file=sys.stderr)  # noqa: T201
    return 2
