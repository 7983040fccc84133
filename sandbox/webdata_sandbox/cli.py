# SPDX-License-Identifier: Apache-2.0
"""Command line of the sandbox."""

from __future__ import annotations

import argparse
import errno
import logging
import sys
from typing import TYPE_CHECKING

from .config import DEFAULT_API_KEY, ENTITLEMENTS, PROFILES, RATE_CLASSES, SandboxConfig

if TYPE_CHECKING:
    from collections.abc import Sequence

DEFAULTS = SandboxConfig()


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the sandbox's flags to a parser."""
    parser.add_argument(
        "--profile",
        default=DEFAULTS.profile,
        choices=PROFILES,
        help="kind of server to play: the hosted service; the open-source server as its guide sets it up, without "
        "authentication, billing, search engine, language model, and browser; or a gateway to the hosted service that "
        "drops headers, queries, and most routes (default: %(default)s)",
    )
    parser.add_argument("--host", default=DEFAULTS.host, help="address to listen on (default: %(default)s)")
    parser.add_argument(
        "--port", type=int, default=0, help="port to listen on; 0 selects a free port (default: %(default)s)"
    )
    parser.add_argument(
        "--api-key", default=DEFAULT_API_KEY, help="API key that clients must send (default: %(default)s)"
    )
    parser.add_argument("--state", metavar="FILE", help="SQLite file for the state (default: in memory)")
    parser.add_argument("--pages", metavar="DIR", help="directory of additional pages: HOST/PATH.html")
    parser.add_argument(
        "--quirk",
        action="append",
        default=[],
        metavar="NAME[=N]",
        help="emulate a quirk of the service; can be repeated; `list` prints all quirks",
    )
    parser.add_argument("--speed", type=float, default=1.0, help="sandbox seconds per real second")
    parser.add_argument("--latency-ms", type=float, default=0.0, help="latency of each call in milliseconds")
    parser.add_argument("--credits", type=int, default=DEFAULTS.credits, help="initial credits")
    parser.add_argument(
        "--rate-limit",
        action="append",
        default=[],
        type=_rate_limit,
        metavar="CLASS=N",
        help=f"limit of calls per minute; can be repeated; CLASS is one of {', '.join(RATE_CLASSES)}",
    )
    parser.add_argument(
        "--entitlement",
        action="append",
        default=[],
        choices=ENTITLEMENTS,
        help="grant the team an entitlement; can be repeated",
    )
    parser.add_argument(
        "--bulk",
        type=_bulk,
        metavar="NxBYTES",
        help="return N generated results from every web search, each with BYTES bytes of markdown",
    )
    parser.add_argument("--no-gzip", action="store_true", help="do not compress responses")
    parser.add_argument(
        "--queue-seconds",
        type=float,
        help="queue time of a check or job, in sandbox seconds (default: 0; self-hosted: 1)",
    )
    parser.add_argument(
        "--closing-seconds",
        type=float,
        help="time from the last page of a crawl or batch scrape to its end, in sandbox seconds "
        "(default: 0; self-hosted: 12)",
    )
    parser.add_argument(
        "--check-seconds", type=float, default=0.0, help="duration of a check, in sandbox seconds"
    )
    parser.add_argument(
        "--page-seconds",
        type=float,
        default=0.0,
        help="duration of each page of a crawl or batch scrape, in sandbox seconds",
    )
    parser.add_argument("--webhook-secret", help="sign webhook deliveries with this key")
    parser.add_argument(
        "--webhook-timeout", type=float, default=10.0, help="timeout of webhook deliveries in seconds"
    )
    parser.add_argument("--verbose", action="store_true", help="log each call to stderr")


def run(args: argparse.Namespace) -> int:
    """Run a sandbox until SIGINT or SIGTERM; return the exit status."""
    # Imported late: every start of Airflow's command line imports this module to add the flags.
    if "list" in args.quirk:
        from webdata_sandbox.state.quirks import listing

        print(listing())  # noqa: T201
        return 0
    config = SandboxConfig(
        profile=args.profile,
        host=args.host,
        port=args.port,
        api_key=args.api_key,
        state=args.state,
        pages=args.pages,
        quirks=tuple(args.quirk),
        speed=args.speed,
        latency_ms=args.latency_ms,
        credits=args.credits,
        rate_limits=dict(args.rate_limit),
        entitlements=tuple(args.entitlement),
        bulk=args.bulk,
        compress=not args.no_gzip,
        queue_seconds=args.queue_seconds,
        closing_seconds=args.closing_seconds,
        check_seconds=args.check_seconds,
        page_seconds=args.page_seconds,
        webhook_secret=args.webhook_secret,
        webhook_timeout=args.webhook_timeout,
    )
    logging.getLogger("webdata_sandbox").setLevel(logging.INFO if args.verbose else logging.WARNING)
    from .reference.urls import is_loopback
    from .server import serve

    if not is_loopback(args.host):
        text = "sandbox: the control API has no authentication; do not expose it to other machines"
        print(text, file=sys.stderr)  # noqa: T201
    try:
        serve(config, _announce)
    except (OSError, ValueError) as error:
        in_use = isinstance(error, OSError) and error.errno == errno.EADDRINUSE
        advice = f"; port {config.port} is in use: choose another --port" if in_use else ""
        print(f"sandbox: {error}{advice}", file=sys.stderr)  # noqa: T201
        return 2
    return 0


def _announce(address: str) -> None:
    print(f"sandbox listening on {address}", flush=True)  # noqa: T201


def _rate_limit(text: str) -> tuple[str, int]:
    name, _, number = text.partition("=")
    if name not in RATE_CLASSES or not number.isdigit():
        raise argparse.ArgumentTypeError(
            f"expected CLASS=N, not {text!r}; CLASS is one of {', '.join(RATE_CLASSES)}"
        )
    return name, int(number)


def _bulk(text: str) -> tuple[int, int]:
    results, _, size = text.partition("x")
    if not (results.isdigit() and size.isdigit()):
        raise argparse.ArgumentTypeError(f"expected NxBYTES, not {text!r}")
    return int(results), int(size)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the sandbox as a standalone program."""
    from webdata_sandbox.state.quirks import QUIRKS

    parser = argparse.ArgumentParser(
        prog="webdata-sandbox",
        description="An emulator of the web data service, for development and tests.",
        epilog=f"The sandbox can emulate {len(QUIRKS)} quirks of the real service; `--quirk list` prints them.",
    )
    add_arguments(parser)
    logging.basicConfig(format="%(asctime)s %(levelname)s %(message)s")
    return run(parser.parse_args(argv))
