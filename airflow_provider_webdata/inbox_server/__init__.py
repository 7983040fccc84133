"""The serving side: `http` over `storage`, and what puts both together on an Airflow.

Those are the application that the plugin mounts, the process that `airflow webdata inbox serve` runs, the other
commands, and the DB manager. Only `plugin` and `cli` import this room, when they need it.
"""

from airflow_provider_webdata.common.supported_airflow import require_airflow

require_airflow()
