"""What DAGs, runs and tasks spent, as their XComs tell it: `airflow webdata costs`."""

from __future__ import annotations

from airflow_provider_webdata.supported_airflow import require_airflow

require_airflow()
