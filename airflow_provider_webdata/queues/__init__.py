"""Message queue providers, which Airflow discovers through the package's metadata."""

from airflow_provider_webdata.common.supported_airflow import require_airflow

require_airflow()
