"""Results files into tables: what the files hold, and how each kind of database takes it, in one transaction."""

from airflow_provider_webdata.common.supported_airflow import require_airflow

require_airflow()
