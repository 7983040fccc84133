# SPDX-License-Identifier: Apache-2.0
"""DAGs that run once for each completed batch scrape of a connection."""

from __future__ import annotations

from airflow.providers.standard.operators.empty import EmptyOperator
from airflow.sdk import DAG

from airflow_provider_webdata.assets.job import job_asset

CONNECTIONS = ("webdata_default", "webdata_other_api_server")

for conn_id in CONNECTIONS:
    with DAG(f"webdata_chaos_on_{conn_id}", schedule=[job_asset("batch_scrape", conn_id)], catchup=False):
        EmptyOperator(task_id="seen")
