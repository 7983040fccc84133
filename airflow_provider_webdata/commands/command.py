# SPDX-License-Identifier: Apache-2.0
"""Shared parts of commands: their decorator, and documents."""

from __future__ import annotations

import functools
import json
from typing import TYPE_CHECKING, Any

from sqlalchemy.exc import SQLAlchemyError

from airflow_provider_webdata.airflow_db.command_line import (
    action_cli,
    providers_configuration_loaded,
    suppress_logs_and_warning,
    yaml,
)
from airflow_provider_webdata.airflow_db.database import store_error
from airflow_provider_webdata.airflow_db.errors import StoreUnavailableError, TablesMissingError
from airflow_provider_webdata.api.errors import ConfigurationError, WebDataError
from airflow_provider_webdata.commands.terminal import terminal_lines, terminal_text, write_text

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterable


def command(
    failure: str = "{}", *, audited: bool = False
) -> Callable[[Callable[[argparse.Namespace], Iterable[str] | None]], Callable[[argparse.Namespace], None]]:
    """Decorate a function that returns or yields the lines to print.

    Each line is printed immediately, with escaped control characters. Airflow's log is suppressed.

    :param failure: message for an error of the service, a connection, or the database, as a format of its text. The
        command exits with status 1.
    :param audited: whether Airflow records the command in its audit log.
    """

    def decorated(
        lines_of: Callable[[argparse.Namespace], Iterable[str] | None],
    ) -> Callable[[argparse.Namespace], None]:
        @functools.wraps(lines_of)
        def run(args: argparse.Namespace) -> None:
            try:
                for line in lines_of(args) or ():
                    write_text(f"{terminal_text(line)}\n")
            except SQLAlchemyError as error:
                # The error's text contains the values.
                text = f"Airflow's metadata database failed ({type(error).__name__})"
                if isinstance(store_error(error), TablesMissingError):
                    text = "Airflow's own tables are missing; run `airflow db migrate`"
                raise SystemExit(failure.format(text)) from None
            except ConfigurationError as error:
                # The remedy of its code is for a form.
                raise SystemExit(failure.format(terminal_lines(error.brief()))) from None
            except (StoreUnavailableError, WebDataError) as error:
                raise SystemExit(failure.format(terminal_lines(str(error)))) from None

        # Airflow's own check of the database raises the driver's errors, and asks to migrate.
        recorded = action_cli(run, check_db=False) if audited else run  # type: ignore[no-untyped-call]
        return suppress_logs_and_warning(providers_configuration_loaded(recorded))

    return decorated


def print_document(document: Any, output: str) -> None:
    """Print a document as YAML if that is the output, else as JSON."""
    write_text(yaml.dump(document) if output == "yaml" else f"{json.dumps(document, indent=2)}\n")
