# SPDX-License-Identifier: Apache-2.0
"""Search the last day, and widen to a week, a month, and a year until enough results are found.

Each iteration of the loop is one search. The loop ends with the first one that finds enough results; later ones are not
sent, and not billed. Needs Airflow 3.4 or newer.
"""

from __future__ import annotations

import pendulum
from airflow.sdk import LoopDecision, Param, dag, task, task_group

from airflow_provider_webdata.operators.search import WebDataSearchOperator

WINDOWS = ("qdr:d", "qdr:w", "qdr:m", "qdr:y")


@dag(
    dag_id="webdata_search_until_enough",
    schedule="@daily",
    start_date=pendulum.datetime(2026, 1, 1, tz="UTC"),
    catchup=False,
    params={
        "query": Param("river", type="string"),
        "enough": Param(8, type="integer", minimum=1, description="Results that end the loop"),
    },
    user_defined_macros={"windows": WINDOWS},
    tags=["webdata", "example"],
)
def webdata_search_until_enough():
    @task_group
    def widen():
        WebDataSearchOperator(
            task_id="search",
            query="{{ params.query }}",
            tbs="{{ windows[loop.index] }}",
            limit=10,
            returns="web",
        )

    def found_enough(*, loop, params):
        """Stop with enough results, or after the widest window."""
        found, wanted = len(loop.result), params["enough"]
        is_last = loop.index + 1 == loop.max_iterations
        return LoopDecision(stop=found >= wanted or is_last, reason=f"{found} results, {wanted} wanted")

    @task
    def report(ti=None) -> dict:
        # Outside the loop, the task has one result per iteration.
        *earlier, last = ti.xcom_pull(task_ids="widen.search")
        return {"searches": len(earlier) + 1, "urls": [result["url"] for result in last]}

    widen.loop(max_iterations=len(WINDOWS), until=found_enough) >> report()


webdata_search_until_enough()
