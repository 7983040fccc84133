"""The command that asks the service about a job."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from airflow.utils.cli import suppress_logs_and_warning
from airflow.utils.providers_configuration_loader import providers_configuration_loaded

from airflow_provider_webdata.api.errors import WebDataError
from airflow_provider_webdata.common.terminal import terminal_text
from airflow_provider_webdata.hooks.explanation import QUESTION, explanation
from airflow_provider_webdata.hooks.webdata import WebDataHook
from airflow_provider_webdata.inbox_server.airflow_connections import named_connection
from airflow_provider_webdata.inbox_server.storage.errors import StoreUnavailableError

if TYPE_CHECKING:
    import argparse


@suppress_logs_and_warning
@providers_configuration_loaded
def explain(args: argparse.Namespace) -> None:
    """Print the service's answer to a question about a job; exit with 1 if the service does not answer.

    :param args: job_id, conn_id, question.
    """
    try:
        with WebDataHook.of(named_connection(args.conn_id)) as hook:
            answer = explanation(hook, args.job_id, args.question or QUESTION)
    except (StoreUnavailableError, WebDataError) as error:
        raise SystemExit(f"The service did not explain the job: {terminal_text(str(error))}") from None
    sys.stdout.write(f"{terminal_text(answer)}\n")
