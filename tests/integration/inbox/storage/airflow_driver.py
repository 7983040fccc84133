# SPDX-License-Identifier: Apache-2.0
"""Carries out steps one after the other in a separate process and Airflow home.

Reads a JSON list of steps, and prints a JSON list of answers:

- `["airflow", ...]`, a command: exit status and output.
- `["attempt", ...]`, a command that may fail: the error that it raised, and the warnings of the provider.
- `["environ", name, value]`: sets an environment variable for the following steps.
- `["schema"]`: the inbox's tables, and how they differ from those that the code expects.
- `["upgrade", revision]`: through the DB manager; its output.
- `["sql"]`: the printed statements of both directions.
- `["run_sql"]`: the same, and carries out the statements.
- `["create_tables"]`: as the inbox does by itself; the revision.
- `["package", folder]`: uses the migrations of this folder, as if another version of the package were installed.
- `["execute", statement]`: on Airflow's database; the first value of the first row, if any.
"""

from __future__ import annotations

import contextlib
import io
import json
import logging
import os
import sys
from collections.abc import Callable
from typing import Any


def airflow(*argv: str) -> tuple[Any, str]:
    from airflow.cli.cli_parser import get_parser

    output = io.StringIO()
    status: Any = 0
    with contextlib.redirect_stdout(output), contextlib.redirect_stderr(output):
        try:
            args = get_parser().parse_args(argv)
            args.func(args)
        except SystemExit as end:
            status = end.code
    return status, output.getvalue()


def environ(name: str, value: str) -> None:
    os.environ[name] = value


def execute(statement: str) -> Any:
    from airflow import settings
    from sqlalchemy import text

    assert settings.engine is not None
    with settings.engine.begin() as connection:
        result = connection.execute(text(statement))
        return result.scalar() if result.returns_rows else None


def schema() -> dict[str, Any]:
    from airflow import settings
    from alembic.autogenerate import compare_metadata
    from alembic.migration import MigrationContext
    from sqlalchemy import inspect

    from airflow_provider_webdata.inbox_server.db_manager import InboxDBManager

    names = {table.name for table in InboxDBManager.metadata.tables.values()}
    assert settings.engine is not None
    with settings.engine.connect() as connection:
        options = {
            "version_table": InboxDBManager.version_table_name,
            "compare_type": True,
            "include_schemas": InboxDBManager.metadata.schema is not None,
            "include_object": lambda _, name, kind, *__: kind != "table" or name in names,
        }
        context = MigrationContext.configure(connection, opts=options)
        differences = compare_metadata(context, InboxDBManager.metadata)
        schema = InboxDBManager.metadata.schema
        tables = sorted(
            {*inspect(connection).get_table_names(schema=schema), *inspect(connection).get_table_names()}
        )
        revision = context.get_current_revision() if InboxDBManager.version_table_name in tables else None
    with contextlib.closing(settings.Session()) as session:  # type: ignore[misc]
        complete = InboxDBManager(session).check_migration()
    return {
        "differences": [repr(one) for one in differences],
        "tables": [name for name in tables if "webdata" in name],
        "airflow": "dag_run" in tables,
        "revision": revision,
        "complete": complete,
    }


def attempt(*argv: str) -> dict[str, Any]:
    warnings: list[str] = []
    handler = logging.Handler(logging.WARNING)
    handler.emit = lambda record: warnings.append(record.getMessage())  # type: ignore[method-assign]
    logging.getLogger("airflow_provider_webdata").addHandler(handler)
    error = None
    try:
        status, output = airflow(*argv)
        assert status in (0, None), output
    except Exception as failure:
        error = str(failure)
    logging.getLogger("airflow_provider_webdata").removeHandler(handler)
    return {"error": error, "warnings": warnings}


def create_tables() -> Any:
    from airflow_provider_webdata.inbox_server import db_manager

    db_manager.create_tables()
    return execute("SELECT version_num FROM alembic_version_webdata")


def package(folder: str) -> None:
    from airflow_provider_webdata.inbox_server import db_manager

    db_manager.InboxDBManager.migration_dir = folder
    db_manager.revisions.cache_clear()


def upgrade(revision: str) -> str:
    return printed(lambda manager: manager.upgradedb(to_revision=revision))


def sql() -> str:
    def both_ways(manager: Any) -> None:
        manager.upgradedb(show_sql_only=True)
        head = manager.get_script_object().get_current_head()
        manager.downgrade("base", from_revision=head, show_sql_only=True)

    return printed(both_ways)


def run_sql() -> str:
    text = sql()
    execute("\n".join(line for line in text.splitlines() if "[info" not in line))
    return text


def printed(work: Callable[[Any], None]) -> str:
    from airflow import settings

    from airflow_provider_webdata.inbox_server.db_manager import InboxDBManager

    output = io.StringIO()
    with contextlib.redirect_stdout(output), contextlib.closing(settings.Session()) as session:  # type: ignore[misc]
        work(InboxDBManager(session))
    return output.getvalue()


STEPS: list[Callable[..., Any]] = [
    airflow,
    attempt,
    environ,
    execute,
    create_tables,
    package,
    run_sql,
    schema,
    sql,
    upgrade,
]

if __name__ == "__main__":
    by_name = {step.__name__: step for step in STEPS}
    answers = [by_name[name](*arguments) for name, *arguments in json.load(sys.stdin)]
    sys.stdout.write(f"\nANSWER {json.dumps(answers)}\n")
