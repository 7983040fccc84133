# SPDX-License-Identifier: Apache-2.0
"""Airflow's part of migrations: the base class of DB managers, and the lock of `airflow db migrate`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow.utils.db import DBLocks, create_global_lock
from airflow.utils.db_manager import BaseDBManager

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from sqlalchemy.orm import Session

__all__ = ["BaseDBManager", "migration_lock"]


def migration_lock(session: Session, seconds: int) -> AbstractContextManager[None]:
    """Hold the lock of `airflow db migrate`; SQLite has none.

    :param seconds: maximum wait for another process's migration.
    """
    # Seconds for MySQL, milliseconds for PostgreSQL.
    timeout = seconds * (1 if session.get_bind().dialect.name == "mysql" else 1000)
    return create_global_lock(session, DBLocks.MIGRATIONS, timeout)
