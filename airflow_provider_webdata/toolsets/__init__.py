"""The service as tools of an agent, for `apache-airflow-providers-common-ai` (extra `ai`).

`WebDataToolset` is in `webdata.py`. Nothing else imports this room, so that the package works without the extra.
"""

from airflow_provider_webdata.common.supported_airflow import require_airflow

require_airflow()
