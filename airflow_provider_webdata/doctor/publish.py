"""The command that publishes quarantined results."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from airflow_provider_webdata.airflow_db.command_line import (
    providers_configuration_loaded,
    suppress_logs_and_warning,
)
from airflow_provider_webdata.common.coded_errors import brief
from airflow_provider_webdata.common.terminal import terminal_text
from airflow_provider_webdata.results.errors import OutputError
from airflow_provider_webdata.results.quarantine import publish as publish_output

if TYPE_CHECKING:
    import argparse


@suppress_logs_and_warning
@providers_configuration_loaded
def publish(args: argparse.Namespace) -> None:
    """Move quarantined results to the path of their output; exit with 1 if that is impossible.

    :param args: path and force.
    """
    try:
        deleted = publish_output(args.path, force=args.force)
    except (OutputError, OSError) as error:
        raise SystemExit(
            f"{terminal_text(args.path)} was not published: {terminal_text(brief(error))}. Fix the problem, and run "
            "the command again"
        ) from None
    for path in deleted:
        sys.stdout.write(
            f"Deleted {terminal_text(path)}, which the run had written and did not write again\n"
        )
    sys.stdout.write(
        f"Published {terminal_text(args.path)}. Mark the task as success to run its downstream tasks\n"
    )
