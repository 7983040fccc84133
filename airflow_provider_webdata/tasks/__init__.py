"""Base classes and helpers of operators and sensors.

The base of every task that calls the service, arguments, masking, deferral, results, and what an attempt remembers for
the next one. Each kind of operation has a separate folder. Nothing heavy is imported at module level: a DAG file pays
for every import.
"""

from airflow_provider_webdata.common.supported_airflow import require_airflow

require_airflow()
