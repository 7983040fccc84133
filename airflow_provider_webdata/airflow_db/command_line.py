# SPDX-License-Identifier: Apache-2.0
"""The parts of Airflow's command line that a command needs."""

from airflow.cli.simple_table import AirflowConsole, SimpleTable
from airflow.utils import yaml
from airflow.utils.cli import action_cli, suppress_logs_and_warning
from airflow.utils.providers_configuration_loader import providers_configuration_loaded

__all__ = [
    "AirflowConsole",
    "SimpleTable",
    "action_cli",
    "providers_configuration_loaded",
    "suppress_logs_and_warning",
    "yaml",
]
