# SPDX-License-Identifier: Apache-2.0
"""An agent with tools of the service. Common AI, which needs Python 3.11, takes a second to import."""

from __future__ import annotations

import sys
from datetime import timedelta
from importlib.util import find_spec
from pathlib import Path

from airflow.sdk import dag

if find_spec("airflow.providers.common.ai"):
    from airflow.providers.common.ai.hooks.pydantic_ai import PydanticAIHook
    from airflow.providers.common.ai.operators.agent import AgentOperator

    from airflow_provider_webdata.toolsets.webdata import WebDataToolset

    sys.path.insert(0, str(Path(__file__).parents[3]))
    from tests.support.obedient_model import obedient_model

    # No real model can be reached, so the connection has another one here.
    PydanticAIHook.get_conn = lambda self: obedient_model()

    @dag(dag_id="e2e_agent", schedule=None)
    def agent():
        AgentOperator(
            task_id="agent",
            llm_conn_id="pydanticai_default",
            prompt="{{ dag_run.conf['prompt'] }}",
            toolsets=[WebDataToolset("{{ dag_run.conf['connection'] }}", max_credits=10)],
            durable=True,
            retries=1,
            retry_delay=timedelta(seconds=1),
        )

    agent()
