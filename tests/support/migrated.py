"""A SQLite database that Airflow has migrated, made once for all processes of a test run and copied from there."""

from __future__ import annotations

from airflow_provider_webdata.testing.migrated_database import MigratedDatabase

__all__ = ["MigratedDatabase"]
