# SPDX-License-Identifier: Apache-2.0
"""The toolset in AgentOperator and @task.agent, on a real Airflow."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from airflow_provider_webdata.airflow_db.spent import _credits
from tests.integration.toolsets.test_web_tools import FLOODS, call
from tests.support.airflow_versions import HAS_STORE
from tests.support.dag_runner import Airflow, Outcome, connection
from tests.support.service import SANDBOX_KEY
from webdata_sandbox.server import SandboxServer

ROOT = Path(__file__).parents[3]
START = "https://river.example/start"
SALMON = "https://river.example/salmon"
TEMPTATIONS = [
    call("read_page", url="http://169.254.169.254/latest/meta-data/"),
    call("read_page", url="https://evil.example/"),
    call("read_page", url=FLOODS, headers={"X": "y"}),
    call("web_search", query="river"),
]
STUMBLING = [
    call("web_search", query="river"),
    call("read_page", url=FLOODS),
    call("read_page", url="http://10.0.0.1/"),
]
READING = [call("web_search", query="river"), call("read_page", url=FLOODS)]

# The model that stumbles fails once, at its last answer.
SOURCE = f"""
from __future__ import annotations
import datetime, json, pathlib, sys
sys.path.insert(0, {str(ROOT)!r})
from airflow.providers.common.ai.operators.agent import AgentOperator
from airflow.sdk import DAG, task
from airflow_provider_webdata.toolsets.webdata import WebDataToolset
from tests.support.obedient_model import obedient_model

has_stumbled = set()

def model_of(hook):
    def is_gone():
        if not hook.llm_conn_id.startswith("stumbles") or hook.llm_conn_id in has_stumbled:
            return False
        has_stumbled.add(hook.llm_conn_id)
        return True

    return obedient_model(is_gone)

def lineage(context):
    from airflow.providers.openlineage.extractors.manager import ExtractorManager
    from airflow.utils.state import TaskInstanceState

    ti = context["ti"]
    found = ExtractorManager().extract_metadata(context["dag_run"], ti.task, TaskInstanceState.SUCCESS, ti)
    names = [[one.namespace, one.name] for one in found.inputs]
    pathlib.Path("LINEAGE").write_text(json.dumps(names))

with DAG("DAG_ID", schedule=None) as dag:
    agent = AgentOperator(
        task_id="agent",
        llm_conn_id="obeys",
        prompt={call("read_page", url=START)!r},
        toolsets=[WebDataToolset("{{{{ 'agent' }}}}", allowed_domains=["river.example"], max_credits=10)],
        agent_params={{"retries": 5}},
    )

    @task
    def spent(sources, credits):
        return [len(sources), credits["used"]]

    spent(agent.output["sources"], agent.output["credits"])

    @task.agent(
        llm_conn_id="obeys", toolsets=[WebDataToolset("research", max_credits=5)]
    )
    def research(url: str):
        return 'CALL read_page {{"url": "' + url + '"}}'

    research.expand(url=[{FLOODS!r}, {SALMON!r}])

    for durable in (True, False):
        AgentOperator(
            task_id=f"durable_{{durable}}",
            llm_conn_id=f"stumbles_{{durable}}",
            prompt={chr(10).join(STUMBLING)!r},
            toolsets=[WebDataToolset(f"durable_{{durable}}", max_credits=10)],
            durable=durable,
            retries=1,
            retry_delay=datetime.timedelta(0),
        )
    AgentOperator(
        task_id="poor",
        llm_conn_id="obeys",
        prompt={call("read_page", url=FLOODS)!r},
        toolsets=[WebDataToolset("poor")],
        retries=3,
    )
    AgentOperator(
        task_id="lineage",
        llm_conn_id="obeys",
        prompt={chr(10).join(READING)!r},
        toolsets=[WebDataToolset("lineage")],
        on_success_callback=lineage,
    )
"""
SANDBOXES = ("agent", "research", "durable_True", "durable_False", "poor", "lineage")
MODELS = ("obeys", "stumbles_True", "stumbles_False")


class Done(NamedTuple):
    outcome: Outcome
    sandboxes: dict[str, SandboxServer]
    lineage: Path


@pytest.fixture(scope="module")
def done(airflow: Airflow, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Done]:
    """Run a DAG in which each agent has a sandbox."""
    folder = tmp_path_factory.mktemp("agents")
    sandboxes = {name: SandboxServer() for name in SANDBOXES}
    for server in sandboxes.values():
        server.start()
    sandboxes["agent"].control.set_page(START, markdown="\n".join(TEMPTATIONS), title="Start")
    sandboxes["poor"].control.configure(credits=0)
    model = json.dumps({"conn_type": "pydanticai", "password": "x"})
    outcome = airflow.run(
        SOURCE.replace("LINEAGE", str(folder / "inputs")),
        # Where Airflow 3.2 keeps the journal of a durable run.
        AIRFLOW__COMMON_AI__DURABLE_CACHE_PATH=f"file://{folder}/journal",
        **{f"AIRFLOW_CONN_{name.upper()}": connection(server) for name, server in sandboxes.items()},
        **{f"AIRFLOW_CONN_{name.upper()}": model for name in MODELS},
    )
    yield Done(outcome, sandboxes, folder / "inputs")
    for server in sandboxes.values():
        server.stop()


def test_an_agent_operator(done: Done) -> None:
    """Its sources and credits are in XCom, in the log, in costs and in the lineage; the cap holds."""
    outcome = done.outcome
    assert outcome.state("agent") == "success", outcome.log_of("agent")
    assert outcome.xcom["agent.sources"] == [{"tool": "read_page", "url": START, "title": "Start"}]
    assert outcome.xcom["agent.credits_used"] == 3
    assert outcome.xcom["agent.credits"]["by_operation"] == {"scrape": 1, "search": 2}
    assert outcome.xcom["spent.return_value"] == [1, 3]
    # `airflow webdata costs` adds these up.
    assert _credits(outcome.xcom["agent.credits"]) is not None
    sent = done.sandboxes["agent"].control.requests()
    assert [request["path"] for request in sent] == ["/v2/scrape", "/v2/search"]
    for line in (
        "read_page https://river.example/start: ",
        "Refused the agent's call of read_page for ",
        "169.254.169.254 is not among the allowed domains",
        "evil.example is not among the allowed domains",
        "Credits of this task: 3 used",
        "Rendered toolset webdata-agent",
    ):
        assert line in outcome.log_of("agent")
    assert SANDBOX_KEY not in outcome.log
    assert SANDBOX_KEY not in json.dumps(outcome.xcom)


def test_task_agent(done: Done) -> None:
    xcom = done.outcome.xcom
    assert [xcom[f"research[{index}].sources"][0]["url"] for index in (0, 1)] == [FLOODS, SALMON]
    # Each task instance has the whole cap.
    assert [xcom[f"research[{index}].credits_used"] for index in (0, 1)] == [1, 1]
    assert "412 cm" in str(xcom["research[0].return_value"])


@pytest.mark.parametrize("durable", [True, False])
def test_only_a_durable_retry_pays_nothing_again(done: Done, durable: bool) -> None:
    outcome, name = done.outcome, f"durable_{durable}"
    assert outcome.ended(name) == ("success", 2), outcome.log_of(name)
    assert "412 cm" in str(outcome.xcom[f"{name}.return_value"])
    sent = [(request["method"], request["path"]) for request in done.sandboxes[name].control.requests()]
    if durable:
        assert sent == [("POST", "/v2/search"), ("POST", "/v2/scrape")]
    elif HAS_STORE:
        # Without the journal the model calls again.
        assert sent == [("POST", "/v2/search"), ("POST", "/v2/scrape")] * 2
    if HAS_STORE:
        assert [source["url"] for source in outcome.xcom[f"{name}.sources"]] == [FLOODS]
        assert outcome.xcom[f"{name}.credits_used"] == (3 if durable else 6)


def test_missing_credits_are_final(done: Done) -> None:
    assert done.outcome.ended("poor") == ("failed", 1)
    assert "Connection 'poor': buy credits" in done.outcome.log_of("poor")


def test_openlineage_has_the_sources_of_an_agent(done: Done) -> None:
    pytest.importorskip("airflow.providers.openlineage")
    assert done.outcome.state("lineage") == "success", done.outcome.log_of("lineage")
    assert json.loads(done.lineage.read_text()) == [
        ["webdata://lineage", "river"],
        ["https://river.example", "/floods"],
    ]
