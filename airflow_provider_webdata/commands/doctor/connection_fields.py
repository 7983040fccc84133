# SPDX-License-Identifier: Apache-2.0
"""The connections of this Airflow, and checks of their fields."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlalchemy.exc import SQLAlchemyError

from airflow_provider_webdata.airflow_db.connections import (
    UndecryptableError,
    environment_variable,
    find_connection,
    find_webdata_connection,
    stored_conn_ids,
    team_variable,
    webdata_conn_ids_in_environment,
)
from airflow_provider_webdata.airflow_db.database import store_error
from airflow_provider_webdata.airflow_db.errors import StoreUnavailableError, TablesMissingError
from airflow_provider_webdata.api.errors import ConfigurationError
from airflow_provider_webdata.hooks.connection import settings_of
from airflow_provider_webdata.hooks.masking import mask
from airflow_provider_webdata.hooks.webdata import WebDataHook

from .finding import failed, passed, skipped, warning

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from airflow_provider_webdata.hooks.connection import ConnectionSettings

    from .finding import Finding

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

    def without_settings(
        seen: str, advice: str, result: Callable[[str, str], Finding] = failed
    ) -> ExaminedConnection:
        return ExaminedConnection(conn_id, result(seen, advice))

    try:
        connection = find_connection(conn_id)
    except UndecryptableError as error:
        return without_settings(error.brief(), _FERNET)
    except StoreUnavailableError as error:
        if variable := environment_variable(conn_id):
            # The environment variable exists, but is invalid.
            return without_settings(error.brief(), f"Correct the environment variable {variable}.")
        return without_settings(error.brief(), _BACKENDS, skipped)
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
        return warning(seen, _FORM)
    return passed(f"the Base URL is {settings.client.base_url}; all fields are valid")


def webdata_connections() -> tuple[list[str], Finding | None]:
    """Return the ids of the connections of type `webdata`, and a finding if there are none or some may be missing.

    Airflow's database and the environment can be listed. In a secrets backend, only the default connection is looked
    up.
    """
    found: set[str] = set()
    reasons: list[StoreUnavailableError] = []
    for list_ids in (_stored, webdata_conn_ids_in_environment, _default):
        listed = _ids_or_reason(list_ids)
        if isinstance(listed, StoreUnavailableError):
            reasons.append(listed)
        else:
            found.update(listed)
    if any(isinstance(reason, TablesMissingError) for reason in reasons):
        return sorted(found), skipped("Airflow's own tables are missing", "Run `airflow db migrate`.")
    if reasons:
        return sorted(found), skipped(
            f"the list may be incomplete: {'; '.join(dict.fromkeys(reason.brief() for reason in reasons))}",
            f"{_BACKENDS} Pass --conn-id to check a certain connection.",
        )
    if not found:
        return [], failed(
            f"no connection of type {WebDataHook.conn_type!r} in Airflow's database or the environment",
            "Create one with `airflow webdata init`, or pass one from a secrets backend with --conn-id.",
        )
    return sorted(found), None


def _ids_or_reason(list_ids: Callable[[], list[str]]) -> list[str] | StoreUnavailableError:
    try:
        return list_ids()
    except SQLAlchemyError as error:
        return store_error(error)
    except StoreUnavailableError as error:
        return error


def _stored() -> list[str]:
    return stored_conn_ids(WebDataHook.conn_type)


def _default() -> list[str]:
    conn_id = WebDataHook.default_conn_name
    return [conn_id] if find_webdata_connection(conn_id) else []
