# SPDX-License-Identifier: Apache-2.0
"""Airflow's simple auth manager with a DAG and a connection that only an admin may read."""

from __future__ import annotations

from collections import Counter
from typing import Any, ClassVar

from airflow.api_fastapi.auth.managers.models.resource_details import DagAccessEntity
from airflow.api_fastapi.auth.managers.simple.simple_auth_manager import SimpleAuthManager

HIDDEN_DAG = "payroll"
HIDDEN_CONN_ID = "ledger"
TEAM_CONN_ID = "stock"
"""A connection of team `TEAM`, which nobody but an admin belongs to."""
NO_XCOMS = "clerk"
"""A user with the rights of an op, except to read XComs."""
TEAM = "b"


class OneHiddenDag(SimpleAuthManager):
    """A `SimpleAuthManager` that hides `HIDDEN_DAG` and `HIDDEN_CONN_ID` from everybody but admins.

    As in any `SimpleAuthManager`, viewers read no connection.
    """

    asked: ClassVar[Counter[str]] = Counter()
    """How often each question was asked."""

    def is_authorized_dag(self, *, user: Any, details: Any = None, **more: Any) -> bool:
        """Return whether a user may see a DAG."""
        self.asked[f"{details.id if details else 'all DAGs'}, {more.get('access_entity')}"] += 1
        if details is not None and details.id == HIDDEN_DAG and user.role != "ADMIN":
            return False
        if user.username == NO_XCOMS and more.get("access_entity") is DagAccessEntity.XCOM:
            return False
        return super().is_authorized_dag(user=user, details=details, **more)

    def is_authorized_connection(self, *, user: Any, details: Any = None, **more: Any) -> bool:
        """Return whether a user may see a connection."""
        self.asked[f"connection {details.conn_id if details else 'any'}"] += 1
        if details is not None and details.conn_id == HIDDEN_CONN_ID and user.role != "ADMIN":
            return False
        return super().is_authorized_connection(user=user, details=details, **more)

    def is_authorized_view(self, *, user: Any, **more: Any) -> bool:
        """Return whether a user may see plugins. The guest may not."""
        return user.username != "guest" and super().is_authorized_view(user=user, **more)
