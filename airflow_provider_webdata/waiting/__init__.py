"""Waits of one triggerer and connection: requests grow with connections, never with waits.

`hub` holds it together, `mailbox` is how it reaches a waiting trigger. `inbox` reads deliveries, `polling` polls the
service as a `policy` says, `followers` combine both for one wait, `streams` feed asset watchers. What a check or a job
means is decided in `states`.
"""

from airflow_provider_webdata.supported_airflow import require_airflow

require_airflow()
