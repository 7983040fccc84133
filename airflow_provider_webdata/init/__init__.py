"""`airflow webdata init`: prompts for a connection, tests and stores it, and writes an example DAG.

The DAG is `river_news.py`; the README shows it, too.
"""

from airflow_provider_webdata.common.supported_airflow import require_airflow

require_airflow()
