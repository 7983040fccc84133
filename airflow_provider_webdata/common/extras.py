# SPDX-License-Identifier: Apache-2.0
"""Installation of what the extras of this distribution bring."""

from __future__ import annotations

_COMMANDS = {
    "ai": "pip install 'apache-airflow-providers-common-ai>=1.0'",
    "dlt": "pip install 'dlt[duckdb]' pyarrow",
    "parquet": "pip install pyarrow",
    "sandbox": "pip install ./sandbox, in a clone of the repository of airflow-provider-webdata",
}


def install_command(extra: str) -> str:
    """Return the command that installs an extra's packages, also for a package that was installed from a clone.

    :param extra: its name in `pyproject.toml`.
    """
    return f"{_COMMANDS[extra]} (the extra {extra})"
