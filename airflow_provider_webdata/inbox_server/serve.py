# SPDX-License-Identifier: Apache-2.0
"""`airflow webdata inbox serve`: the inbox on uvicorn, without Airflow's own routes."""

from __future__ import annotations

import contextlib
import sys
from typing import TYPE_CHECKING

import uvicorn

from airflow_provider_webdata.airflow_db.errors import StoreUnavailableError
from airflow_provider_webdata.common.plain_errors import plain_reason
from airflow_provider_webdata.inbox_server.application import create_application
from airflow_provider_webdata.inbox_server.options import inbox_enabled, retention_days

if TYPE_CHECKING:
    import argparse
    import socket

    from airflow_provider_webdata.inbox_server.http.app import InboxApplication
    from airflow_provider_webdata.inbox_server.storage.inbox import Inbox

KEEP_ALIVE_SECONDS = 75
"""Keep-alive timeout in seconds: longer than that of proxies, so that they never reuse a closed connection."""

GRACE_SECONDS = 20
"""Maximum seconds to wait for deliveries at shutdown: up to 10 for arrival and 8 for storage."""


def run(args: argparse.Namespace) -> int:
    """Serve the inbox until SIGINT or SIGTERM; return the exit status.

    :param args: host, port, ssl_certfile, ssl_keyfile.
    """
    if not inbox_enabled():
        return _failed(
            "the inbox is off in this configuration. Set `inbox = True` in section [webdata] of airflow.cfg, or "
            "AIRFLOW__WEBDATA__INBOX=True, run `airflow db migrate`, and start it again"
        )
    if not 0 <= args.port <= 65535:
        return _failed(f"--port must be 0 to 65535 (given: {args.port})")
    if args.ssl_keyfile and not args.ssl_certfile:
        return _failed("--ssl-keyfile requires --ssl-certfile")
    try:
        days = retention_days()
        application = create_application()
    except (ValueError, StoreUnavailableError) as error:
        return _failed(str(error))
    config = _config(application, args)
    try:
        config.load()
    except OSError as error:
        given = ", ".join(repr(path) for path in (args.ssl_certfile, args.ssl_keyfile) if path)
        return _failed(
            f"--ssl-certfile and --ssl-keyfile must be a certificate and its key: {plain_reason(error)} "
            f"(given: {given})"
        )
    try:
        application.inbox.store.end()
    except StoreUnavailableError as error:
        # The database may become available. Until then, deliveries get a 503 and the service sends them again.
        print(f"inbox: deliveries cannot be stored yet: {error}", file=sys.stderr)  # noqa: T201
    application.inbox.start_pruning(days)
    with contextlib.suppress(KeyboardInterrupt):
        _Server(config, application.inbox).run()
    return 0


def _config(application: InboxApplication, args: argparse.Namespace) -> uvicorn.Config:
    return uvicorn.Config(
        application,
        host=args.host,
        port=args.port,
        ssl_certfile=args.ssl_certfile,
        ssl_keyfile=args.ssl_keyfile,
        # Airflow has already configured logging, also uvicorn's.
        log_config=None,
        access_log=False,
        lifespan="off",
        server_header=False,
        ws="none",
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=GRACE_SECONDS,
    )


class _Server(uvicorn.Server):
    """Uvicorn, which at its end would wait for readers that wait for deliveries."""

    def __init__(self, config: uvicorn.Config, inbox: Inbox) -> None:
        super().__init__(config)
        self._inbox = inbox

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Release the readers, and store and acknowledge the deliveries in flight."""
        self._inbox.feed.close()
        await super().shutdown(sockets)
        await self._inbox.close()


def _failed(message: str) -> int:
    print(f"inbox: {message}", file=sys.stderr)  # noqa: T201
    return 2
