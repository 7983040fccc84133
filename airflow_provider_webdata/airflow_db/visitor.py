# SPDX-License-Identifier: Apache-2.0
"""The user who visits a page, and the permissions that Airflow's auth manager grants."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow.api_fastapi.app import get_auth_manager
from airflow.api_fastapi.auth.managers.models.resource_details import (
    AccessView,
    DagAccessEntity,
    DagDetails,
)
from airflow.api_fastapi.core_api.security import get_user
from airflow.models.connection import Connection
from airflow.models.dag import DagModel
from fastapi.security import HTTPBearer

from airflow_provider_webdata.airflow_db.connections import (
    common_spelling,
    environment_variable,
    is_conn_id,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from starlette.requests import Request

_BEARER = HTTPBearer(auto_error=False)


class Visitor:
    """A logged-in user, of one request: the auth manager is asked once about each connection and DAG.

    The methods may block on the database or the auth manager. Call them in a thread, not in the event loop.

    :param user: the auth manager's user.
    """

    def __init__(self, user: Any) -> None:
        self._user = user
        self._dags: dict[str, bool] = {}
        self._connections: dict[str, bool] = {}
        self._stored: set[str] = set()

    @classmethod
    async def of(cls, request: Request) -> Visitor:
        """Return the user of a request, authenticated by the login cookie or a bearer token.

        :raises HTTPException: 401 or 403, the authentication failed.
        """
        # Called as a function: docs/contributing/upstream/auth_manager_in_mounted_apps.md
        return cls(await get_user(request, None, await _BEARER(request)))

    def may_view(self) -> bool:
        """Return whether the user may view the pages of plugins."""
        return bool(get_auth_manager().is_authorized_view(access_view=AccessView.PLUGINS, user=self._user))

    def may_read_connection(self, conn_id: str) -> bool:
        """Return whether the user may read a connection.

        :param conn_id: id of the connection, which need not exist.
        """
        return conn_id in self.readable_connections([conn_id])

    def readable_connections(self, conn_ids: Iterable[str]) -> set[str]:
        """Return the connections that the user may read.

        Environment variables and some secrets backends ignore letter case. Unless Airflow's database has the connection
        in this spelling, the user must also be permitted to read its lower-case spelling, by which it is listed.

        :param conn_ids: ids of connections; invalid ids are unreadable.
        """
        valid = {conn_id for conn_id in conn_ids if is_conn_id(conn_id)}
        unknown = {
            one for conn_id in valid for one in (conn_id, common_spelling(conn_id))
        } - self._connections.keys()
        teams = Connection.get_conn_id_to_team_name_mapping(list(unknown)) if unknown else {}
        self._stored.update(teams)
        readable: set[str] = set()
        for team, ids in _by_team(unknown, teams):
            readable |= get_auth_manager().filter_authorized_connections(
                conn_ids=ids, user=self._user, team_name=team
            )
        self._connections.update({conn_id: conn_id in readable for conn_id in unknown})
        return {conn_id for conn_id in valid if all(map(self._connections.get, self._spellings(conn_id)))}

    def _spellings(self, conn_id: str) -> set[str]:
        if conn_id in self._stored and environment_variable(conn_id) is None:
            return {conn_id}
        return {conn_id, common_spelling(conn_id)}

    def readable_dags(self, dag_ids: Iterable[str]) -> set[str]:
        """Return the DAGs that the user may read, with their task instances and XComs.

        :param dag_ids: ids of DAGs, which need not exist.
        """
        dag_ids = set(dag_ids)
        unknown = dag_ids - self._dags.keys()
        teams = DagModel.get_dag_id_to_team_name_mapping(list(unknown)) if unknown else {}
        readable: set[str] = set()
        for team, ids in _by_team(unknown, teams):
            found = get_auth_manager().filter_authorized_dag_ids(dag_ids=ids, user=self._user, team_name=team)
            # Nearly all users who may read a DAG may read its tasks: one question for all.
            if found and not self._may_read_tasks(found, team):
                found = {dag_id for dag_id in found if self._may_read_tasks([dag_id], team)}
            readable |= found
        self._dags.update({dag_id: dag_id in readable for dag_id in unknown})
        return {dag_id for dag_id in dag_ids if self._dags[dag_id]}

    def _may_read_tasks(self, dag_ids: Iterable[str], team: str | None) -> bool:
        return get_auth_manager().batch_is_authorized_dag(
            [
                {
                    "method": "GET",
                    "access_entity": entity,
                    "details": DagDetails(id=dag_id, team_name=team),
                }
                for dag_id in dag_ids
                for entity in (DagAccessEntity.TASK_INSTANCE, DagAccessEntity.XCOM)
            ],
            user=self._user,
        )


def _by_team(ids: Iterable[str], teams: Mapping[str, str | None]) -> Iterator[tuple[str | None, set[str]]]:
    """Yield each team with its ids; None for those without a team."""
    groups: dict[str | None, set[str]] = {}
    for one in ids:
        groups.setdefault(teams.get(one), set()).add(one)
    yield from groups.items()
