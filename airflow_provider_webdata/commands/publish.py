"""`airflow webdata publish`: publishes quarantined results."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_provider_webdata.commands.command import command
from airflow_provider_webdata.commands.terminal import terminal_text
from airflow_provider_webdata.common.coded_errors import brief
from airflow_provider_webdata.results.errors import OutputError
from airflow_provider_webdata.results.files.quarantine import publish as publish_output

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator


@command()
def publish(args: argparse.Namespace) -> Iterator[str]:
    """Move quarantined results to the path of their output; exit with 1 if that is impossible.

    :param args: path and force.
    """
    try:
        publish_output(args.path, force=args.force)
    except (OutputError, OSError) as error:
        raise SystemExit(
            f"{terminal_text(args.path)} was not published: {terminal_text(brief(error))}. Fix the problem, and run "
            "the command again"
        ) from None
    yield f"Published {args.path}. Mark the task as success to run its downstream tasks"
