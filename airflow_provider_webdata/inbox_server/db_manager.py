# SPDX-License-Identifier: Apache-2.0
"""Creation, migration, and removal of the inbox's tables with Airflow's: `airflow db migrate`, `airflow db reset`.

Airflow 3.2 and later find the manager through `db-managers` in the provider's metadata, whether the inbox is on or off.
If `airflow db migrate` has not run since it was turned on, the inbox may call `create_tables`.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow.sdk.exceptions import AirflowException
from alembic import command
from sqlalchemy import exc, inspect
from sqlalchemy.orm import Session

from airflow_provider_webdata.airflow_db.database import airflow_engine, store_error
from airflow_provider_webdata.airflow_db.errors import StoreUnavailableError, TablesMissingError
from airflow_provider_webdata.airflow_db.migrations import BaseDBManager, migration_lock
from airflow_provider_webdata.common.coded_errors import CodedError
from airflow_provider_webdata.common.logs import logger
from airflow_provider_webdata.inbox_server.options import creates_tables, inbox_enabled
from airflow_provider_webdata.inbox_server.storage import tables

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sqlalchemy.engine import Engine

log = logger(__name__)

LOCK_SECONDS = 5
"""Maximum wait for another process's migration; the next request waits again."""

_STORAGE = Path(tables.__file__).parent


class NewerTablesError(CodedError, AirflowException):
    """A newer version of this package has migrated the inbox's tables; the message explains the downgrade."""

    help_code = "WD-052"


class InboxDBManager(BaseDBManager):
    """Creates, migrates, and drops the inbox's tables. While the inbox is off, it creates and migrates none."""

    metadata = tables.metadata
    version_table_name = tables.VERSION_TABLE
    migration_dir = str(_STORAGE / "migrations")
    alembic_file = str(_STORAGE / "alembic.ini")
    supports_table_dropping = True
    # The newest revision of each release of this package, for `airflow db-manager`.
    revision_heads_map = {"0.1.0": "4c1f0a7d9b21"}  # noqa: RUF012

    def check_migration(self) -> bool:
        """Return whether the tables need no `airflow db migrate`; log the reason if they do.

        Always true if the inbox is off or creates its tables itself.
        """
        if not inbox_enabled() or creates_tables() or self.is_current():
            return True
        # docs/contributing/upstream/check_migrations_names_no_manager.md
        if self.is_newer():
            log.warning("%s", self.too_new())
        else:
            log.warning("InboxDBManager: %s", TablesMissingError())
        return False

    def is_current(self) -> bool:
        """Return whether all tables exist, at this package's revision."""
        if not super().check_migration():  # type: ignore[no-untyped-call]
            return False
        present = inspect(self.session.connection())
        return all(present.has_table(one.name, schema=one.schema) for one in self.metadata.tables.values())

    def is_newer(self) -> bool:
        """Return whether the tables have a revision that this package does not know."""
        current = self.get_current_revision()  # type: ignore[no-untyped-call]
        return current is not None and current not in revisions()

    def initdb(self, *args: Any, **kwargs: Any) -> None:
        """Create the tables in a new database; the parameters are Airflow's."""
        if inbox_enabled():
            super().initdb(*args, **kwargs)  # type: ignore[no-untyped-call]

    def upgradedb(self, *args: Any, **kwargs: Any) -> None:
        """Create or migrate the tables; the parameters are Airflow's.

        :raises NewerTablesError: a newer version of this package has migrated the tables.
        """
        if not inbox_enabled():
            log.info(
                "The inbox is off ([webdata] inbox = False), so its tables are neither created nor migrated"
            )
            return
        if self.is_newer():
            raise self.too_new()
        super().upgradedb(*args, **kwargs)  # type: ignore[no-untyped-call]
        prints_only = kwargs.get("show_sql_only") or True in args[2:3]
        if not prints_only and super().check_migration():  # type: ignore[no-untyped-call]
            self._create_missing()

    def _create_missing(self) -> None:
        """Create what tables at the newest revision lack: a dump may omit tables, and a killed migration leave some."""
        self.session.commit()
        with airflow_engine().begin() as connection:
            self.metadata.create_all(connection)
            for one in self.metadata.tables.values():
                for index in one.indexes:
                    index.create(connection, checkfirst=True)

    def too_new(self) -> NewerTablesError:
        """Return the error that explains the downgrade from a newer revision."""
        current = self.get_current_revision()  # type: ignore[no-untyped-call]
        return NewerTablesError(
            f"the inbox's tables have revision {current} of a newer airflow-provider-webdata. Reinstall it and "
            f"run `airflow db-manager downgrade {type(self).__module__}.{type(self).__name__} "
            f"--to-revision {revisions()[0]}` before downgrading to this version"
        )

    def downgrade(
        self, to_revision: str, from_revision: str | None = None, show_sql_only: bool = False
    ) -> None:
        """Downgrade to an older revision, or "base" for no tables; the parameters are Airflow's.

        :raises ValueError: `from_revision` is set without `show_sql_only`.
        """
        if from_revision and not show_sql_only:
            raise ValueError("from_revision requires show_sql_only")
        config = self.get_alembic_config()  # type: ignore[no-untyped-call]
        target = to_revision
        if show_sql_only:
            current = self.get_current_revision()  # type: ignore[no-untyped-call]
            target = f"{from_revision or current}:{to_revision}"
        # Alembic uses a separate connection, which this session must not block.
        self.session.commit()
        command.downgrade(config, revision=target, sql=show_sql_only)


@cache
def revisions() -> tuple[str, ...]:
    """Return the table revisions that this package knows, its own first."""
    manager = InboxDBManager(None)  # type: ignore[no-untyped-call]
    return tuple(script.revision for script in manager.get_script_object().walk_revisions())


def create_tables() -> None:
    """Create or migrate the tables like `airflow db migrate`, under its lock, unless they are up to date.

    Any number of processes may call this concurrently.

    :raises StoreUnavailableError: the database is unavailable or locked.
    """
    engine = airflow_engine()
    try:
        with Session(engine) as session:
            manager = InboxDBManager(session)  # type: ignore[no-untyped-call]
            if manager.is_current():
                return
            if manager.is_newer():
                log.warning("The inbox continues with unchanged tables: %s", manager.too_new())
                return
            session.rollback()
            with _file_lock(engine), migration_lock(session, LOCK_SECONDS):
                if not manager.is_current():
                    manager.upgradedb()
    except exc.SQLAlchemyError as error:
        reason = store_error(error)
        raise StoreUnavailableError(f"the inbox's tables could not be created: {reason}") from None
    log.info("Created or migrated the inbox's tables")


@contextlib.contextmanager
def _file_lock(engine: Engine) -> Iterator[None]:
    """Hold an interprocess lock on SQLite, for which Airflow has none: concurrent stamps would leave two versions."""
    if engine.dialect.name != "sqlite" or not engine.url.database:
        yield
        return
    folder = os.open(Path(engine.url.database).absolute().parent, os.O_RDONLY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        yield
    finally:
        os.close(folder)
