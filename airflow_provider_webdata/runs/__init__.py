"""The work of a task. Operators and sensors declare; everything here is imported when a task executes."""

from airflow_provider_webdata.common.supported_airflow import require_airflow

require_airflow()
