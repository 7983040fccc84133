"""The triggers: what Airflow stores by its path while a task waits, or for an asset watcher.

A path and the arguments of a trigger never change once they are released. A trigger says what it waits for and
what ends the wait; how it waits is in `waiting`.
"""

from airflow_provider_webdata.common.supported_airflow import require_airflow

require_airflow()
