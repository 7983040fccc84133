"""Calls of the service's indexes and of the team that no example DAG makes."""

from __future__ import annotations

from typing import Any

from airflow.sdk import dag, task
from airflow_provider_webdata.operators.developer_search import WebDataDeveloperSearchOperator
from airflow_provider_webdata.operators.paper_search import WebDataPaperSearchOperator

from airflow_provider_webdata.hooks.webdata import WebDataHook
from airflow_provider_webdata.operators.parse import WebDataParseOperator
from airflow_provider_webdata.operators.search import WebDataSearchOperator


@dag(dag_id="e2e_indexes", schedule=None)
def indexes():
    WebDataDeveloperSearchOperator(task_id="issues", query="clocks go forward")
    WebDataPaperSearchOperator(task_id="papers", query="rain")
    search = WebDataSearchOperator(task_id="search", query="river")
    WebDataParseOperator(task_id="parse", file="{{ dag_run.conf['file'] }}", upload="reference")

    @task
    def rate(job_id: str) -> float | None:
        feedback = {"rating": "bad", "query_suggestions": "The level of today."}
        return WebDataHook().search_feedback(job_id, feedback).credits_refunded

    @task
    def of_the_team() -> dict[str, Any]:
        hook = WebDataHook()
        hook.replace_threat_policy({"mode": "normal"})
        return {
            "laws": len(hook.search_government({"query": "dam"}).data.web or []),
            "similar": len(hook.similar_papers("doi:10.5555/rain", {"intent": "rain"}).results or []),
            "policy": hook.threat_policy().mode,
            "most": hook.concurrency().max_concurrency,
        }

    rate(search.output["id"])
    of_the_team()


indexes()
