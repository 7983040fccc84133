"""An Airflow connection becomes a client: settings are read and checked here, and each operation of the
service is a typed method, once blocking and once for the event loop.

No decision about tasks, retries of tasks or XCom belongs here; those live in `tasks`.
"""

from airflow_provider_webdata.common.supported_airflow import require_airflow

require_airflow()
