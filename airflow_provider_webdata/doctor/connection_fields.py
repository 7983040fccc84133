"""The connections of this Airflow, and checks of their fields."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlalchemy.exc import SQLAlchemyError

from airflow_provider_webdata.airflow_db.connections import (
    UndecryptableError,
    conn_ids_in_environment,
    environment_variable,
    find_connection,
    find_webdata_connection,
    stored_conn_ids,
    team_variable,
)
from airflow_provider_webdata.airflow_db.database import store_error
from airflow_provider_webdata.airflow_db.errors import StoreUnavailableError, TablesMissingError
from airflow_provider_webdata.api.errors import ConfigurationError
from airflow_provider_webdata.common.coded_errors import brief
from airflow_provider_webdata.hooks.connection import settings_of
from airflow_provider_webdata.hooks.masking import mask
from airflow_provider_webdata.hooks.webdata import WebDataHook

from .finding import Finding
from .side_by_side import results_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from airflow_provider_webdata.hooks.connection import ConnectionSettings

    from .side_by_side import TimeLimit

_FORM = "Correct the field in the connection's form (Admin, Connections)."
_FERNET = "Set the Fernet key that encrypted the connection, or store the connection again."
_BACKENDS = "Check that Airflow's database and secrets backend are available."


@dataclass(frozen=True)
class ExaminedConnection:
    """A connection, the finding about its fields, and its settings if it is valid."""

    conn_id: str
    finding: Finding
    settings: ConnectionSettings | None = None


def examine(conn_id: str) -> ExaminedConnection:
    """Read and validate a connection."""

    def without_settings(seen: str, advice: str, *, unknown: bool = False) -> ExaminedConnection:
        finding = Finding("fields", "unknown" if unknown else "wrong", seen, advice, conn_id)
        return ExaminedConnection(conn_id, finding)

    try:
        connection = find_connection(conn_id)
    except UndecryptableError as error:
        return without_settings(error.brief(), _FERNET)
    except StoreUnavailableError as error:
        if variable := environment_variable(conn_id):
            # The environment variable exists, but is invalid.
            return without_settings(error.brief(), f"Correct the environment variable {variable}.")
        return without_settings(error.brief(), _BACKENDS, unknown=True)
    if connection is None and (variable := team_variable(conn_id)):
        return without_settings(
            f"only {variable} defines it, for the tasks of one team; the inbox and the pages do not read it",
            "Store the connection in Airflow's database, and assign it to the team.",
        )
    if connection is None:
        return without_settings(
            "the connection does not exist in Airflow's database, the environment, or the secrets backend",
            "Create it with `airflow webdata init --conn-id ID`, or pass another one with --conn-id.",
        )
    if connection.conn_type != WebDataHook.conn_type:
        return without_settings(
            f"its type is {connection.conn_type!r}", f"Change its type to {WebDataHook.conn_type!r}."
        )
    warnings: list[str] = []
    try:
        settings = settings_of(connection, warnings.append)
    except ConfigurationError as error:
        return without_settings(error.brief(), _FORM)
    except Exception as error:  # noqa: BLE001
        # Airflow decrypts the extras on access.
        return without_settings(UndecryptableError.of(conn_id, error).brief(), _FERNET)
    mask(settings.secrets())
    return ExaminedConnection(conn_id, _usable(settings, warnings), settings)


def _usable(settings: ConnectionSettings, warnings: Sequence[str]) -> Finding:
    if warnings:
        seen = "; ".join(text.removeprefix(f"connection {settings.conn_id!r}: ") for text in warnings)
        return Finding("fields", "warning", seen, _FORM, settings.conn_id)
    url = settings.client.base_url
    return Finding("fields", "ok", f"the Base URL is {url}; all fields are valid", conn_id=settings.conn_id)


def webdata_connections(limit: TimeLimit) -> tuple[list[str], Finding | None]:
    """Return the ids of the connections of type `webdata`, and a finding if there are none or some may be missing.

    Airflow's database and the environment can be listed. In a secrets backend, only the default connection is looked
    up.
    """
    found: set[str] = set()
    failed: list[str] = []
    has_tables = True
    for listed in results_of([_stored, _in_environment, _default], limit):
        if not isinstance(listed, Exception):
            found.update(listed)
            continue
        reason = store_error(listed) if isinstance(listed, SQLAlchemyError) else listed
        if isinstance(reason, TablesMissingError):
            has_tables = False
        failed.append(brief(reason))
    if not has_tables:
        seen = "Airflow's own tables are missing"
        return sorted(found), Finding("connections", "unknown", seen, "Run `airflow db migrate`.")
    if failed:
        seen = f"the list may be incomplete: {'; '.join(dict.fromkeys(failed))}"
        return sorted(found), Finding(
            "connections", "unknown", seen, f"{_BACKENDS} Pass --conn-id to check a certain connection."
        )
    if not found:
        return [], Finding(
            "connections",
            "wrong",
            f"no connection of type {WebDataHook.conn_type!r} in Airflow's database or the environment",
            "Create one with `airflow webdata init`, or pass one from a secrets backend with --conn-id.",
        )
    return sorted(found), None


def _stored() -> list[str]:
    return stored_conn_ids(WebDataHook.conn_type)


def _in_environment() -> list[str]:
    found = []
    for conn_id in conn_ids_in_environment():
        # Skip invalid variables.
        with contextlib.suppress(StoreUnavailableError):
            if find_webdata_connection(conn_id):
                found.append(conn_id)
    return found


def _default() -> list[str]:
    conn_id = WebDataHook.default_conn_name
    return [conn_id] if find_webdata_connection(conn_id) else []
