# SPDX-License-Identifier: Apache-2.0
"""Let an agent research a topic on the web, and store its statements with their sources in a table.

Statements whose source the agent did not read, according to the toolset's record, are omitted.

Requires Airflow's package for agents with the extra of a model, such as
`apache-airflow-providers-common-ai[anthropic]`, its connection `pydanticai_default`, and a connection to the database,
`research_db`. On Airflow 3.2, `durable` needs the option `[common.ai] durable_cache_path`.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pendulum
from airflow.sdk import BaseHook, Param, dag, task
from pydantic import BaseModel

from airflow_provider_webdata.toolsets.webdata import WebDataToolset


class Finding(BaseModel):
    """A statement and its source."""

    statement: str
    url: str


class Findings(BaseModel):
    """The agent's output."""

    findings: list[Finding]


@dag(
    dag_id="webdata_research",
    schedule="@weekly",
    start_date=pendulum.datetime(2025, 1, 1, tz="UTC"),
    catchup=False,
    params={"topic": Param("How high did the river rise, and why?", type="string")},
    tags=["webdata", "example"],
)
def webdata_research():
    @task.agent(
        llm_conn_id="pydanticai_default",
        system_prompt="Research the topic on the web. Return statements, each with the URL of a page that you read.",
        output_type=Findings,
        serialize_output=True,
        toolsets=[
            # Hard limits, which neither the model nor a page can exceed.
            WebDataToolset(max_credits=60, max_calls=30)
        ],
        usage_limits={"request_limit": 40},
        # A retry continues at the failed step; earlier steps are not billed again.
        durable=True,
        retries=2,
        retry_delay=timedelta(minutes=1),
    )
    def research(params: dict[str, Any]) -> str:
        return f"Topic: {params['topic']}"

    @task
    def with_sources(found: dict[str, Any], sources: list[dict[str, str]]) -> list[list[str]]:
        read = {source["url"]: source["title"] for source in sources}
        cited = [finding for finding in found["findings"] if finding["url"] in read]
        return [[finding["statement"], finding["url"], read[finding["url"]]] for finding in cited]

    @task
    def into_table(rows: list[list[str]], run_id: str) -> int:
        """Replace the rows of this run, so that a repeated task adds no duplicates."""
        database: Any = BaseHook.get_connection("research_db").get_hook()
        database.run(
            "CREATE TABLE IF NOT EXISTS findings (run_id TEXT, statement TEXT, url TEXT, title TEXT)"
        )
        mark = database.placeholder
        database.run(f"DELETE FROM findings WHERE run_id = {mark}", parameters=[run_id])  # noqa: S608
        fields = ["run_id", "statement", "url", "title"]
        database.insert_rows("findings", [[run_id, *row] for row in rows], target_fields=fields)
        return len(rows)

    found = research()
    into_table(with_sources(found, found["sources"]))


webdata_research()
