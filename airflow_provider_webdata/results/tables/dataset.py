"""OpenLineage's name of a table."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from airflow.sdk.exceptions import AirflowException

if TYPE_CHECKING:
    from airflow_provider_webdata.results.tables.layout import TableName


def dataset_of_table(connection: Any, table: TableName) -> tuple[str, str]:
    """Return namespace and name of a table, as its hook's own operators name it.

    Without a hook that names it, the namespace is the connection's type, host and port. It may ask the database for the
    schema that holds where none is named.
    """
    hook: Any = None
    # Not every type has a hook, and not every hook is one of a SQL database.
    with suppress(AirflowException, ImportError):
        hook = connection.get_hook()
    info = getattr(hook, "get_openlineage_database_info", lambda _: None)(connection)
    if info is None:
        port = f":{connection.port}" if connection.port else ""
        namespace = f"{connection.conn_type}://{connection.host or ''}{port}"
        return namespace, ".".join(filter(None, (connection.schema, *table.parts)))
    namespace = f"{info.scheme}://{info.authority}" if info.authority else info.scheme
    schema = table.schema or hook.get_openlineage_default_schema()
    return namespace, ".".join(filter(None, (info.database, schema, table.table)))
