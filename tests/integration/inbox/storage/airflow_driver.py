"""Runs in a process of its own, in an Airflow home of its own: what would take seconds a command, many at once.

`commands`: reads a JSON list of argument lists, runs each as `airflow ...`, and prints [status, output] for each.
`schema`: prints how the inbox's tables differ from what the code expects.
`downgrade REVISION`, `upgrade REVISION`, `sql`: through the DB manager.
"""

from __future__ import annotations

import contextlib
import io
import json
import sys
from typing import Any


def commands() -> list[list[Any]]:
    from airflow.cli.cli_parser import get_parser

    results: list[list[Any]] = []
    for argv in json.load(sys.stdin):
        output = io.StringIO()
        status: Any = 0
        with contextlib.redirect_stdout(output), contextlib.redirect_stderr(output):
            try:
                args = get_parser().parse_args(argv)
                args.func(args)
            except SystemExit as end:
                status = end.code
        results.append([status, output.getvalue()])
    return results


def schema() -> dict[str, Any]:
    from airflow import settings
    from alembic.autogenerate import compare_metadata
    from alembic.migration import MigrationContext
    from sqlalchemy import inspect

    from airflow_provider_webdata.inbox.server.db_manager import InboxDBManager

    names = {table.name for table in InboxDBManager.metadata.tables.values()}
    assert settings.engine is not None
    with settings.engine.connect() as connection:
        options = {
            "version_table": InboxDBManager.version_table_name,
            "compare_type": True,
            "include_object": lambda _, name, kind, *__: kind != "table" or name in names,
        }
        context = MigrationContext.configure(connection, opts=options)
        differences = compare_metadata(context, InboxDBManager.metadata)
        schema = InboxDBManager.metadata.schema
        tables = sorted(
            {*inspect(connection).get_table_names(schema=schema), *inspect(connection).get_table_names()}
        )
        revision = context.get_current_revision() if InboxDBManager.version_table_name in tables else None
    return {
        "differences": [repr(one) for one in differences],
        "tables": [name for name in tables if "webdata" in name],
        "airflow": "dag_run" in tables,
        "revision": revision,
        "complete": InboxDBManager(settings.Session()).check_migration(),  # type: ignore[misc]
    }


def manager(action: str, *arguments: str) -> str:
    from airflow import settings

    from airflow_provider_webdata.inbox.server.db_manager import InboxDBManager

    found = InboxDBManager(settings.Session())  # type: ignore[misc]
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        if action == "sql":
            found.upgradedb(show_sql_only=True)
            found.downgrade(
                "base", from_revision=found.get_script_object().get_current_head(), show_sql_only=True
            )
        elif action == "downgrade":
            found.downgrade(*arguments)
        else:
            found.upgradedb(to_revision=arguments[0])
    return output.getvalue()


if __name__ == "__main__":
    action, *rest = sys.argv[1:]
    answer = (
        commands() if action == "commands" else schema() if action == "schema" else manager(action, *rest)
    )
    sys.stdout.write(f"\nANSWER {json.dumps(answer)}\n")
