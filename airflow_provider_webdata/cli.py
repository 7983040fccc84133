# SPDX-License-Identifier: Apache-2.0
"""`airflow webdata ...`. Every `airflow` command imports this module, so commands are imported when they run."""

from __future__ import annotations

import sys
from argparse import ArgumentTypeError
from importlib import import_module
from typing import TYPE_CHECKING, Any

from airflow.cli.cli_config import (
    ARG_OUTPUT,
    ARG_VERBOSE,
    ARG_YES,
    ActionCommand,
    Arg,
    GroupCommand,
    lazy_load_command,
)

from airflow_provider_webdata.common.extras import install_command
from airflow_provider_webdata.common.needs_database import NEEDS_DATABASE

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable

_PACKAGE = "airflow_provider_webdata"
_SANDBOX = "webdata_sandbox.cli"
_SERVE = f"{_PACKAGE}.inbox_server.serve"


class _OwnFlags(Arg):
    """The flags of a command whose module declares them in `add_arguments`."""

    def __init__(self, module: str) -> None:
        # Airflow sorts arguments by their flags; this one represents all.
        super().__init__(flags=("--flags",))  # type: ignore[no-untyped-call]
        self._module = module

    def add_to_parser(self, parser: argparse.ArgumentParser) -> None:
        try:
            add_arguments = import_module(self._module).add_arguments
        except Exception:  # noqa: BLE001
            # Every `airflow` command runs this code. This command accepts any flags, and raises the error when it runs.
            parser.prefix_chars = "\0"
            parser.add_argument("flags", nargs="*")
            return
        add_arguments(parser)


def _without_login(url: str) -> str:
    """Return the URL. Refuse one with a login before Airflow writes the command to its audit log."""
    if "@" in url:
        raise ArgumentTypeError(
            "an address must not contain a user name, a password, or @; enter the API key at the prompt"
        )
    return url


def _arg(*flags: str, **options: Any) -> Arg:
    return Arg(flags, **options)  # type: ignore[no-untyped-call]


_ID = _arg("id", help="Id of the delivery", type=int)
_IDS = _arg("id", help="Id of a delivery", type=int, nargs="+")
_CONN_ID = _arg("--conn-id", help="Only deliveries of this connection")
_EVENT = _arg(
    "--event",
    help="Only this event, with or without its operation, such as monitor.check.completed; can be repeated",
    action="append",
    default=[],
)
_KEY = _arg("--key", help="Only deliveries with this correlation key")
_JOB_ID = _arg("--job-id", help="Only deliveries of this job, for monitors of this check")
_MONITOR_ID = _arg("--monitor-id", help="Only deliveries of this monitor")
_PAGE_URL = _arg("--page-url", help="Only deliveries about the page with exactly this URL")
_OF_DAG_IDS = _arg(
    "--dag-id",
    help="Only deliveries about jobs and monitors of this DAG; can be repeated",
    action="append",
    default=[],
)
_RECEIVED_SINCE = _arg(
    "--since", help="Only deliveries received at or after this date or time, in UTC without an offset"
)
_LIMIT = _arg("--limit", help="Most deliveries to show (default: %(default)s)", type=int, default=50)
_OLDER_THAN = _arg(
    "--older-than",
    help="Age such as 30d, 12h or 90m (default: the option inbox_retention_days)",
    metavar="AGE",
)
_DRY_RUN = _arg("--dry-run", help="Only print how many deliveries would be deleted", action="store_true")
_HOST = _arg("--host", help="address to listen on (default: %(default)s)", default="127.0.0.1")
_PORT = _arg(
    "--port", help="port to listen on; 0 chooses a free port (default: %(default)s)", type=int, default=8798
)
_CERTIFICATE = _arg("--ssl-certfile", help="certificate, to serve https", metavar="FILE")
_CERTIFICATE_KEY = _arg(
    "--ssl-keyfile", help="key of the certificate, if it is in a separate file", metavar="FILE"
)
_NEW_CONN_ID = _arg(
    "--conn-id", help="Id of the connection (default: %(default)s)", default="webdata_default"
)
_BASE_URL = _arg("--base-url", help="Address of the service (default: prompt for it)", type=_without_login)
_SERVER = _arg(
    "--server",
    help="Kind of server: hosted bills calls, gateway passes them on to one that bills, self-hosted bills nothing "
    "(default: detect)",
    choices=("hosted", "gateway", "self-hosted"),
)
_SKIP_TEST = _arg(
    "--skip-test",
    help="Store the connection without asking the server; set its kind with --server",
    action="store_true",
)
_WEBHOOK_URL = _arg(
    "--webhook-url",
    help="Address at which the service reaches this Airflow, for webhooks; https, unless the server is self-hosted; "
    "empty: tasks wait by polling (default: prompt for it)",
    type=_without_login,
)
_NO_EXAMPLE = _arg("--no-example", help="Write no example DAG", action="store_true")
_FORCE = _arg(
    "--force",
    help="Update an existing connection, whose other fields are unchanged, and replace the example DAG",
    action="store_true",
)
_CHECKED_CONN_IDS = _arg(
    "--conn-id",
    help="Only this connection; can be repeated (default: all of type webdata)",
    action="append",
    default=[],
)
_OFFLINE = _arg("--offline", help="Send nothing to the service and the inbox", action="store_true")

_DAG_IDS = _arg("--dag-id", help="Only this DAG; can be repeated (default: all)", action="append", default=[])
_SINCE = _arg("--since", help="Only credits reported at or after this date or time, in UTC without an offset")
_DAYS = _arg("--days", help="Only credits of the last DAYS days, instead of --since (default: 30)", type=int)
_UNTIL = _arg("--until", help="Only credits reported before this date or time (default: now)")
_BY = _arg(
    "--by",
    help="Sum by DAG, task, month, or day of UTC (default: %(default)s)",
    choices=("dag", "task", "month", "day"),
    default="dag",
)
_SPENDING_CONN_ID = _arg("--conn-id", help="Only credits of this connection (default: all)")
_COSTS_OUTPUT = _arg(
    *("-o", "--output"),
    help="Output format (default: %(default)s)",
    choices=("table", "plain", "json", "yaml", "csv"),
    default="table",
)


def get_commands() -> list[GroupCommand]:
    """Return the commands that Airflow's command line adds."""
    sandbox = ActionCommand(
        name="sandbox",
        help="Run an emulator of the service for developing DAGs",
        func=_sandbox,
        args=(_OwnFlags(_SANDBOX),),
    )
    inbox = GroupCommand(name="inbox", help="Show and manage webhook deliveries", subcommands=_inbox())
    subcommands = (_init(), _doctor(), _costs(), inbox, sandbox)
    return [GroupCommand(name="webdata", help="Tools for the web data service", subcommands=subcommands)]


def _init() -> ActionCommand:
    return ActionCommand(
        name="init",
        help="Create a connection and an example DAG",
        description="Prompt for base URL, API key, and webhook URL, test them, find out the kind of server, store the "
        "connection with a new webhook secret, and write an example DAG into the "
        "first local DAG bundle; without one, print it. The key is read from the environment variable "
        "WEBDATA_API_KEY, a prompt, or standard input. If the test fails, nothing is stored.",
        func=_command("init.init"),
        args=(
            *(_NEW_CONN_ID, _BASE_URL, _SERVER, _WEBHOOK_URL, _SKIP_TEST, _NO_EXAMPLE, _FORCE),
            ARG_VERBOSE,
        ),
    )


def _doctor() -> ActionCommand:
    return ActionCommand(
        name="doctor",
        help="Check the installation and the connections",
        description="Check versions, plugin, tables, and triggerer, and for each connection its fields, host, TLS, "
        "key, credits, clock, inbox, and webhook URL. Needs Airflow's database. Changes nothing. The exit status is 1 "
        "if a check fails.",
        func=_command("doctor.report.doctor"),
        args=(_CHECKED_CONN_IDS, _OFFLINE, ARG_OUTPUT, ARG_VERBOSE),
    )


def _costs() -> ActionCommand:
    return ActionCommand(
        name="costs",
        help="Sum the credits that tasks spent",
        description="Sum the XComs credits of tasks. Airflow keeps the XComs of a run as long as the run; clearing a "
        f"task replaces its XComs. {NEEDS_DATABASE}",
        func=_command("costs.costs"),
        args=(_DAG_IDS, _DAYS, _SINCE, _UNTIL, _BY, _SPENDING_CONN_ID, _COSTS_OUTPUT, ARG_VERBOSE),
    )


def _inbox() -> tuple[ActionCommand, ...]:
    return (
        ActionCommand(
            name="list",
            help="List deliveries, the newest first, and the refused ones of the last day",
            func=_command("inbox.list_deliveries"),
            args=(
                *(
                    _CONN_ID,
                    _OF_DAG_IDS,
                    _EVENT,
                    _KEY,
                    _JOB_ID,
                    _MONITOR_ID,
                    _PAGE_URL,
                    _RECEIVED_SINCE,
                    _LIMIT,
                ),
                *(ARG_OUTPUT, ARG_VERBOSE),
            ),
        ),
        ActionCommand(
            name="show",
            help="Show one delivery with its body",
            func=_command("inbox.show_delivery"),
            args=(_ID, ARG_OUTPUT, ARG_VERBOSE),
        ),
        ActionCommand(
            name="replay",
            help="Replay deliveries to current readers",
            description="Store copies of deliveries as if they were received now. Waiting sensors and triggers treat "
            "them as new.",
            func=_command("inbox.replay_deliveries"),
            args=(_IDS, ARG_VERBOSE),
        ),
        ActionCommand(
            name="prune",
            help="Delete old deliveries",
            func=_command("inbox.prune_deliveries"),
            args=(_OLDER_THAN, _DRY_RUN, ARG_YES, ARG_VERBOSE),
        ),
        ActionCommand(
            name="serve",
            help="Serve the inbox without the rest of Airflow's API server",
            func=_runner(_SERVE),
            args=(_HOST, _PORT, _CERTIFICATE, _CERTIFICATE_KEY),
        ),
    )


def _command(path: str) -> Callable[..., Any]:
    return lazy_load_command(f"{_PACKAGE}.commands.{path}")


def _sandbox(args: argparse.Namespace) -> None:
    try:
        cli = import_module(_SANDBOX)
    except ModuleNotFoundError as error:
        if str(error.name).partition(".")[0] != _SANDBOX.partition(".")[0]:
            raise
        sys.exit(f"The sandbox is not installed; run: {install_command('sandbox')}")
    sys.exit(cli.run(args))


def _runner(module: str) -> Callable[[argparse.Namespace], None]:
    def run(args: argparse.Namespace) -> None:
        sys.exit(import_module(module).run(args))

    return run
