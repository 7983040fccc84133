"""The inbox's tables come, change and go with Airflow's: `airflow db migrate`, `airflow db reset`.

Airflow 3.2 and later find the manager through `db-managers` in the provider's metadata.
"""

from __future__ import annotations

from pathlib import Path

from airflow.utils.db_manager import BaseDBManager

from airflow_provider_webdata.inbox.server.storage import tables

_STORAGE = Path(tables.__file__).parent


class InboxDBManager(BaseDBManager):
    """Creates, migrates and drops the inbox's tables."""

    metadata = tables.metadata
    version_table_name = tables.VERSION_TABLE
    migration_dir = str(_STORAGE / "migrations")
    alembic_file = str(_STORAGE / "alembic.ini")
    supports_table_dropping = True
    # The newest revision of each release of this package, for `airflow db-manager`.
    revision_heads_map = {"0.1.0": "4c1f0a7d9b21"}  # noqa: RUF012

    def downgrade(
        self, to_revision: str, from_revision: str | None = None, show_sql_only: bool = False
    ) -> None:
        """Go back to an older revision.

        :param to_revision: the revision; "base" for none, which drops the tables.
        :param from_revision: where the printed statements start; only with `show_sql_only`.
        :param show_sql_only: print the statements instead of running them.
        :raises ValueError: `from_revision` is given without `show_sql_only`.
        """
        from alembic import command

        if from_revision and not show_sql_only:
            raise ValueError("from_revision only makes sense together with show_sql_only")
        config = self.get_alembic_config()  # type: ignore[no-untyped-call]
        target = to_revision
        if show_sql_only:
            current = self.get_current_revision()  # type: ignore[no-untyped-call]
            target = f"{from_revision or current}:{to_revision}"
        # Alembic works through a connection of its own, which this session must not keep waiting.
        self.session.commit()
        command.downgrade(config, revision=target, sql=show_sql_only)
