# SPDX-License-Identifier: Apache-2.0
"""Runs commands of `airflow` in a process of its own, one after the other, and tells what each has left behind.

Reads a JSON list of orders from stdin: `argv` behind `airflow`, `environ` and `stdin`. Prints a JSON list of answers:
`status`, `output`, the stored `connections` by id, and the `files` of the DAG folder with their text.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import sys
from pathlib import Path
from typing import Any


def run(order: dict[str, Any]) -> dict[str, Any]:
    from airflow.cli.cli_parser import get_parser

    output = io.StringIO()
    status: Any = 0
    sys.stdin = io.StringIO(order.get("stdin", ""))
    os.environ.update(order.get("environ", {}))
    with contextlib.redirect_stdout(output), contextlib.redirect_stderr(output):
        try:
            args = get_parser().parse_args(order["argv"])
            args.func(args)
        except SystemExit as end:
            status = end.code
    for name in order.get("environ", {}):
        del os.environ[name]
    return {"status": status, "output": output.getvalue(), "connections": connections(), "files": files()}


def connections() -> dict[str, dict[str, Any]]:
    from airflow.models.connection import Connection
    from airflow.utils.session import create_session
    from sqlalchemy import select

    with create_session() as session:
        return {
            found.conn_id: {
                "conn_type": found.conn_type,
                "host": found.host,
                "port": found.port,
                "password": found.password,
                "description": found.description,
                "extra": found.extra_dejson,
            }
            for found in session.scalars(select(Connection))
        }


def files() -> dict[str, str]:
    folder = Path(os.environ["AIRFLOW__CORE__DAGS_FOLDER"])
    return {path.name: path.read_text() for path in folder.iterdir()} if folder.exists() else {}


if __name__ == "__main__":
    answers = [run(order) for order in json.load(sys.stdin)]
    sys.stdout.write(f"\nANSWER {json.dumps(answers)}\n")
