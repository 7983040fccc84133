"""The command line of the sandbox."""

from __future__ import annotations

import argparse
import errno
import logging
import sys
from typing import TYPE_CHECKING

from .config import DEFAULT_API_KEY, ENTITLEMENTS, RATE_CLASSES, SandboxConfig

if TYPE_CHECKING:
    from collections.abc import Sequence

DEFAULTS = SandboxConfig()


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the sandbox's flags to a parser."""
    parser.add_argument("--host", default=DEFAULTS.host, help="address to listen on (default: %(default)s)")
    parser.add_argument("--port", type=int, default=0, help="port; 0 takes a free one (default: %(default)s)")
    parser.add_argument(
        "--api-key", default=DEFAULT_API_KEY, help="the key that is accepted (default: %(default)s)"
    )
    parser.add_argument("--state", metavar="FILE", help="SQLite file that keeps the state (default: memory)")
    parser.add_argument("--pages", metavar="DIR", help="directory of more pages: HOST/PATH.html")
    parser.add_argument(
        "--quirk",
        action="append",
        default=[],
        metavar="NAME[=N]",
        help="show a quirk of the service; may be repeated; `list` prints all",
    )
    parser.add_argument("--speed", type=float, default=1.0, help="sandbox seconds per real second")
    parser.add_argument("--latency-ms", type=float, default=0.0, help="milliseconds each call takes")
    parser.add_argument("--credits", type=int, default=DEFAULTS.credits, help="credits at the start")
    parser.add_argument(
        "--rate-limit",
        action="append",
        default=[],
        type=_rate_limit,
        metavar="CLASS=N",
        help=f"calls a minute; may be repeated; CLASS is one of {', '.join(RATE_CLASSES)}",
    )
    parser.add_argument(
        "--entitlement",
        action="append",
        default=[],
        choices=ENTITLEMENTS,
        help="grant a feature; may be repeated",
    )
    parser.add_argument(
        "--bulk",
        type=_bulk,
        metavar="NxBYTES",
        help="every web search answers N generated results of BYTES markdown",
    )
    parser.add_argument("--no-gzip", action="store_true", help="never compress answers")
    parser.add_argument("--queue-seconds", type=float, default=0.0, help="how long a check stays queued")
    parser.add_argument("--check-seconds", type=float, default=0.0, help="how long a check runs")
    parser.add_argument(
        "--page-seconds", type=float, default=0.0, help="how long a page of a crawl or batch takes"
    )
    parser.add_argument("--webhook-secret", help="sign webhook deliveries with this key")
    parser.add_argument(
        "--webhook-timeout", type=float, default=10.0, help="seconds a receiver has to answer"
    )
    parser.add_argument("--verbose", action="store_true", help="log each call to stderr")


def run(args: argparse.Namespace) -> int:
    """Run a sandbox until SIGINT or SIGTERM; return the exit status."""
    # Airflow's command line adds the flags each time it starts, so imports that only a run needs are here.
    if "list" in args.quirk:
        from airflow_provider_webdata.sandbox.state.quirks import listing

        print(listing())  # noqa: T201
        return 0
    config = SandboxConfig(
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
        check_seconds=args.check_seconds,
        page_seconds=args.page_seconds,
        webhook_secret=args.webhook_secret,
        webhook_timeout=args.webhook_timeout,
    )
    logging.getLogger("airflow_provider_webdata.sandbox").setLevel(
        logging.INFO if args.verbose else logging.WARNING
    )
    # `--help` and `--quirk list` need neither.
    try:
        from .reference.urls import is_loopback
        from .server import serve
    except ModuleNotFoundError as error:
        missing = str(error.name).partition(".")[0]
        if missing == "airflow_provider_webdata":
            raise
        text = f"sandbox: {missing} is missing; pip install 'airflow-provider-webdata[sandbox]' brings it"
        print(text, file=sys.stderr)  # noqa: T201
        return 2

    if not is_loopback(args.host):
        text = "sandbox: the control API has no authentication; do not run it where others reach it"
        print(text, file=sys.stderr)  # noqa: T201
    try:
        serve(config, _announce)
    except (OSError, ValueError) as error:
        is_taken = isinstance(error, OSError) and error.errno == errno.EADDRINUSE
        advice = f"; port {config.port} is taken: choose another --port" if is_taken else ""
        print(f"sandbox: {error}{advice}", file=sys.stderr)  # noqa: T201
        return 2
    return 0


def _announce(address: str) -> None:
    print(f"sandbox listening on {address}", flush=True)  # noqa: T201


def _rate_limit(text: str) -> tuple[str, int]:
    name, _, number = text.partition("=")
    if name not in RATE_CLASSES or not number.isdigit():
        raise argparse.ArgumentTypeError(f"not CLASS=N with CLASS one of {', '.join(RATE_CLASSES)}: {text!r}")
    return name, int(number)


def _bulk(text: str) -> tuple[int, int]:
    results, _, size = text.partition("x")
    if not (results.isdigit() and size.isdigit()):
        raise argparse.ArgumentTypeError(f"not NxBYTES: {text!r}")
    return int(results), int(size)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the sandbox as a standalone program."""
    from airflow_provider_webdata.sandbox.state.quirks import QUIRKS

    parser = argparse.ArgumentParser(
        prog="python -m airflow_provider_webdata.sandbox",
        description="An emulator of the web data service, for development and tests.",
        epilog=f"{len(QUIRKS)} quirks of the real service can be switched on.",
    )
    add_arguments(parser)
    logging.basicConfig(format="%(asctime)s %(levelname)s %(message)s")
    return run(parser.parse_args(argv))
