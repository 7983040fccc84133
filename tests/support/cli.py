# SPDX-License-Identifier: Apache-2.0
"""Airflow's command line in the process of the test."""

from __future__ import annotations

import pytest
from airflow.cli.cli_parser import get_parser


def run_command(capsys: pytest.CaptureFixture[str], *argv: str) -> str:
    """Run `airflow webdata ...`; return its error, or what it printed."""
    args = get_parser().parse_args(["webdata", *argv])
    capsys.readouterr()
    try:
        args.func(args)
    except SystemExit as end:
        return str(end.code)
    return capsys.readouterr().out
