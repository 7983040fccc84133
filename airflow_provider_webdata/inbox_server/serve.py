"""`airflow webdata inbox serve`: the standalone inbox, without Airflow's own routes."""

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

from airflow_provider_webdata.airflow_db.errors import StoreUnavailableError
from airflow_provider_webdata.common.plain_errors import plain_reason
from airflow_provider_webdata.inbox_server.application import create_application
from airflow_provider_webdata.inbox_server.http.listener import HEADER_BYTES, BoundedServer
from airflow_provider_webdata.inbox_server.options import retention_days

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

    from airflow_provider_webdata.inbox_server.http.app import InboxApplication

KEEP_ALIVE_SECONDS = 75
"""Keep-alive timeout in seconds: longer than that of proxies, so that they never reuse a closed connection."""

GRACE_SECONDS = 20
"""Maximum seconds to wait for deliveries at shutdown: up to 10 for arrival and 8 for storage."""


def run(args: argparse.Namespace) -> int:
    """Serve the inbox until SIGINT or SIGTERM; return the exit status.

    All acknowledged deliveries are stored when this returns.
    """
    if args.ssl_keyfile and not args.ssl_certfile:
        return _failed("--ssl-keyfile requires --ssl-certfile")
    for flag, path in (("--ssl-certfile", args.ssl_certfile), ("--ssl-keyfile", args.ssl_keyfile)):
        if path and not Path(path).is_file():
            return _failed(f"{flag}: the file does not exist (given: {path!r})")
    try:
        days = retention_days()
        application = create_application()
        with _listen(args.host, args.port) as listener:
            application.inbox.start_pruning(days)
            _serve(application, listener, args.ssl_certfile, args.ssl_keyfile)
    except (OverflowError, ValueError, StoreUnavailableError) as error:
        return _failed(str(error))
    except OSError as error:
        return _failed(plain_reason(error))
    return 0


def _serve(
    application: InboxApplication, listener: socket.socket, certfile: str | None, keyfile: str | None
) -> None:
    class Server(BoundedServer):
        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets)
            print(f"inbox listening on {_address(listener, certfile)}", flush=True)  # noqa: T201

        async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
            # Releases waiting readers; deliveries in flight are stored and acknowledged.
            application.inbox.feed.close()
            await super().shutdown(sockets)
            await application.inbox.close()

        @contextlib.contextmanager
        def capture_signals(self) -> Iterator[None]:
            # Uvicorn's handler would raise the signal again, and the exit status would indicate a failure.
            loop = asyncio.get_running_loop()
            for number in (signal.SIGINT, signal.SIGTERM):
                loop.add_signal_handler(number, self.handle_exit, number, None)
            yield

    settings = uvicorn.Config(
        application,
        # httptools limits neither headers nor URL.
        http="h11",
        h11_max_incomplete_event_size=HEADER_BYTES,
        ssl_certfile=certfile,
        ssl_keyfile=keyfile,
        # Airflow has already configured logging.
        log_config=None,
        # Otherwise anyone could fill the log with uvicorn's warnings about invalid HTTP requests.
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
        raise ValueError(f"--ssl-certfile, --ssl-keyfile: not a certificate and its key: {error}") from None
    try:
        application.inbox.store.end()
    except StoreUnavailableError as error:
        # The database may become available. Until then, deliveries get a 503 and the service sends them again.
        print(f"inbox: deliveries cannot be stored yet: {error}", file=sys.stderr)  # noqa: T201
    Server(settings).run(sockets=[listener])


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # Explicit protocol: asyncio disables Nagle's algorithm only for sockets that are declared as TCP.
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
