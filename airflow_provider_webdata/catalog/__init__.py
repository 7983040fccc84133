"""The catalog of data providers: `airflow webdata providers`."""

from __future__ import annotations

from airflow_provider_webdata.common.supported_airflow import require_airflow

require_airflow()
