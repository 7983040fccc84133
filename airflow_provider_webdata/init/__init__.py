"""`airflow webdata init`: asks for a connection, tests and stores it, and writes a first DAG.

`river_news.py` is that DAG, which the README shows too.
"""

from airflow_provider_webdata.common.supported_airflow import require_airflow

require_airflow()
