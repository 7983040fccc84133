"""Credits of DAGs, runs, and tasks, read from their XComs: `airflow webdata costs`."""

from __future__ import annotations

from airflow_provider_webdata.common.supported_airflow import require_airflow

require_airflow()
