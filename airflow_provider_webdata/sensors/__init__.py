"""The sensors: what a DAG author imports to wait for a check of a monitor, a job, or any delivery.

One file per kind of thing that is waited for. Whether a check is the right one is decided in `states`; what
operators and sensors share is in `tasks`.
"""

from airflow_provider_webdata.common.supported_airflow import require_airflow

require_airflow()
