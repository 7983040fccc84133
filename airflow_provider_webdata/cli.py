"""`airflow webdata ...`. Every `airflow` command imports this: what a command does is imported when it runs."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from airflow.cli.cli_config import ActionCommand, Arg, GroupCommand

if TYPE_CHECKING:
    import argparse


class _SandboxFlags(Arg):
    """All flags of the sandbox, which declares them itself."""

    def __init__(self) -> None:
        # Airflow sorts arguments by their flags; this one stands for all.
        super().__init__(flags=("--sandbox",))  # type: ignore[no-untyped-call]

    def add_to_parser(self, parser: argparse.ArgumentParser) -> None:
        from airflow_provider_webdata.sandbox.cli import add_arguments

        add_arguments(parser)


def get_commands() -> list[GroupCommand]:
    """Return the commands that Airflow's command line adds."""
    sandbox = ActionCommand(
        name="sandbox",
        help="Run an emulator of the service, for the development of DAGs",
        func=run_sandbox,
        args=(_SandboxFlags(),),
    )
    return [GroupCommand(name="webdata", help="Tools for the web data service", subcommands=(sandbox,))]


def run_sandbox(args: argparse.Namespace) -> None:
    """Run the sandbox until it is interrupted, and exit with its status.

    :param args: the sandbox's flags.
    """
    from airflow_provider_webdata.sandbox.cli import run

    sys.exit(run(args))
