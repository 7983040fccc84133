# SPDX-License-Identifier: Apache-2.0
"""When a monitored page changes, let an agent propose what to do, and ask a person before acting on it.

The agent reads pages and proposes. It has no tool that acts: the task `act` does, after a person approves the proposal
in Airflow's UI (Required Actions). If the person rejects it, `act` is skipped.

Requires Airflow's package for agents with the extra of a model, such as
`apache-airflow-providers-common-ai[anthropic]`, and its connection `pydanticai_default`.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pendulum
from airflow.providers.common.ai.operators.agent import AgentOperator
from airflow.providers.common.ai.toolsets.hook import HookToolset
from airflow.providers.standard.operators.hitl import ApprovalOperator
from airflow.sdk import dag, task

from airflow_provider_webdata.hooks.webdata import WebDataHook
from airflow_provider_webdata.operators.monitor import WebDataCreateMonitorOperator, WebDataRunMonitorOperator
from airflow_provider_webdata.toolsets.webdata import WebDataToolset


@dag(
    dag_id="webdata_change_review",
    schedule="@daily",
    start_date=pendulum.datetime(2025, 1, 1, tz="UTC"),
    catchup=False,
    # Two concurrent runs could both find no monitor of that name.
    max_active_runs=1,
    tags=["webdata", "example"],
)
def webdata_change_review():
    keep_monitor = WebDataCreateMonitorOperator(
        task_id="keep_monitor",
        name="Kettles at Bean & Kettle",
        # This DAG runs the checks; the service adds one per week.
        schedule={"cron": "0 4 * * 0", "timezone": "UTC"},
        targets=[{"type": "scrape", "urls": ["https://shop.example/kettles"]}],
    )

    run_check = WebDataRunMonitorOperator(
        task_id="run_check",
        monitor_id=keep_monitor.output["monitor_id"],
        wait_for_completion=True,
        deferrable=True,
        include_pages="changed",
    )

    @task.short_circuit
    def changed_pages(check: dict[str, Any]) -> list[str]:
        return [page["url"] for page in check["pages"] or ()]

    look = AgentOperator(
        task_id="look",
        llm_conn_id="pydanticai_default",
        system_prompt="You watch a competitor's prices. Read the check with the changes of its pages, and the pages "
        "where you need more. Propose in a few sentences what to do.",
        prompt="Check {{ ti.xcom_pull('run_check')['id'] }} of the monitor "
        "{{ ti.xcom_pull('keep_monitor', key='monitor_id') }} found changes of these pages:\n"
        "{{ ti.xcom_pull('changed_pages') | join('\n') }}",
        toolsets=[
            WebDataToolset(allowed_domains=["shop.example"], max_credits=30),
            # The check has the differences of each page, as of its visit. Reading it is free.
            HookToolset(WebDataHook(), allowed_methods=["get_monitor_check"]),
        ],
        retries=2,
        retry_delay=timedelta(minutes=1),
    )

    approve = ApprovalOperator(
        task_id="approve",
        subject="A page has changed",
        # Text of a page or a model is not trusted; a person reads it.
        body="{{ ti.xcom_pull('look') }}\n\nRead: "
        "{{ ti.xcom_pull('look', key='sources') | map(attribute='url') | join(', ') }}",
        response_timeout=timedelta(days=2),
    )

    @task
    def act(proposal: str) -> str:
        return f"Approved: {proposal}"

    changed_pages(run_check.output) >> look >> approve >> act(look.output)


webdata_change_review()
