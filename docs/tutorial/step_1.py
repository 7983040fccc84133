# SPDX-License-Identifier: Apache-2.0
"""What the web says about a river."""

import pendulum
from airflow.sdk import dag, task

from airflow_provider_webdata.operators.search import WebDataSearchOperator


@dag(schedule="@daily", start_date=pendulum.datetime(2026, 11, 1, tz="UTC"), catchup=False)
def river_watch():
    search = WebDataSearchOperator(
        task_id="search",
        query="river",
        limit=5,
        tbs="qdr:w",  # published in the last seven days
        returns="web",
    )

    @task
    def show(results: list):
        for result in results:
            print(result["title"], result["url"])

    show(search.output)


river_watch()
