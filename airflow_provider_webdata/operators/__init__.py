"""The operators: what a DAG author imports, and nothing else.

One file per operation, and `monitor` for all of those for monitors. An operator states its arguments and its call;
shared code is in `tasks`. Nothing heavy is imported at module level: a DAG file pays for every import.
"""

from airflow_provider_webdata.common.supported_airflow import require_airflow

require_airflow()
