"""What happens when a task executes. Operators and sensors declare; everything here is imported when a task runs."""

from airflow_provider_webdata.supported_airflow import require_airflow

require_airflow()
