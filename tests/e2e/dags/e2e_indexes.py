# SPDX-License-Identifier: Apache-2.0
"""Calls of the service's indexes and of the team that no example DAG makes."""

from __future__ import annotations

from typing import Any

from airflow.sdk import dag, task

from airflow_provider_webdata.hooks.webdata import WebDataHook
from airflow_provider_webdata.operators.parse import WebDataParseOperator
from airflow_provider_webdata.operators.search import WebDataSearchOperator


@dag(dag_id="e2e_indexes", schedule=None)
def indexes():
    search = WebDataSearchOperator(task_id="search", query="river")
    WebDataParseOperator(task_id="parse", file="{{ dag_run.conf['file'] }}", upload="reference")

    @task
    def rate(job_id: str) -> float:
        feedback = {"rating": "bad", "querySuggestions": "The level of today."}
        rated = WebDataHook().request("POST", f"/v2/search/{job_id}/feedback", json=feedback, billed=False)
        return float(rated["creditsRefunded"])

    @task
    def of_the_team() -> dict[str, Any]:
        hook = WebDataHook()
        hook.replace_threat_policy(mode="normal")
        return {
            "issues": len(hook.search_developer(query="clocks go forward").results),
            "papers": len(hook.search_papers(query="rain").results),
            "similar": len(hook.similar_papers("doi:10.5555/rain", intent="rain").results or []),
            "policy": hook.threat_policy().mode,
            "most": hook.concurrency().max_concurrency,
        }

    rate(search.output["id"])
    of_the_team()


indexes()
