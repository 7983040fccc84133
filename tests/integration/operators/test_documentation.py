# SPDX-License-Identifier: Apache-2.0
"""Every example of the README and the documentation, unchanged, on a real Airflow, against the sandbox."""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pendulum
import pytest

from airflow_provider_webdata.base.service_task import HAS_RETRY_POLICIES
from tests.integration.results.conftest import s3_client, s3_connection, s3_server
from tests.support.dag_runner import Airflow, Outcome, connection
from tests.support.snippets import PAGES, ROOT, Snippet, name_of, snippets
from webdata_sandbox.server import SandboxServer

__all__ = ["s3_client", "s3_connection", "s3_server"]

# The reader of a fragment has imported this already.
HEAD = """
from __future__ import annotations
import pendulum
from airflow.sdk import DAG, Asset, AssetWatcher, dag as dag_of, task
from airflow_provider_webdata.operators.agent import WebDataAgentOperator
from airflow_provider_webdata.operators.batch_scrape import WebDataBatchScrapeOperator
from airflow_provider_webdata.operators.crawl import WebDataCrawlOperator
from airflow_provider_webdata.operators.interact import WebDataInteractOperator
from airflow_provider_webdata.operators.monitor import WebDataCreateMonitorOperator, WebDataRunMonitorOperator
from airflow_provider_webdata.operators.scrape import WebDataScrapeOperator
from airflow_provider_webdata.operators.search import WebDataSearchOperator
from airflow_provider_webdata.sensors.monitor import WebDataMonitorCheckSensor

with DAG("DAG_ID", schedule=None) as dag:
"""
PDF = ROOT / "sandbox" / "tests" / "files" / "chromium.pdf"
NOT_RUN = {
    "WebDataWebhookSensor(": "waits for a delivery to an inbox: tests/integration/sensors/test_webhook.py",
    "WebDataWebhookEventTrigger(": "is started by a delivery to an inbox: tests/e2e/test_event_driven.py",
    " AgentOperator(": "asks a model: tests/integration/toolsets/test_agents_page.py",
    "from firecrawl import": "is another client's, which calls the hosted service",
    "webdata_sandbox": "is a test in a user's project: sandbox/tests/testing/test_user_project.py",
    **({} if HAS_RETRY_POLICIES else {"retry_policy=": "Airflow 3.2 has no retry policies"}),
    **({} if HAS_RETRY_POLICIES else {"ApprovalOperator(": "dag.test() of Airflow 3.2 waits for nobody"}),
}
PAGES_WITH_PYTHON = [page for page in PAGES if snippets(page)]


def is_run(found: Snippet) -> bool:
    return not any(mark in found.code for mark in NOT_RUN)


@pytest.fixture(scope="module")
def storage(s3_client: Any, s3_connection: str, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Return connections to buckets and a database that examples write to, and to the report that one reads."""
    for bucket in ("reports", "parsed", "my-bucket"):
        s3_client.create_bucket(Bucket=bucket)
    for day in (pendulum.today("UTC"), pendulum.tomorrow("UTC")):
        s3_client.put_object(Bucket="reports", Key=f"{day:%Y-%m-%d}.pdf", Body=PDF.read_bytes())
    warehouse = {"conn_type": "sqlite", "host": str(tmp_path_factory.mktemp("warehouse") / "warehouse.db")}
    return {"AIRFLOW_CONN_AWS_DEFAULT": s3_connection, "AIRFLOW_CONN_WAREHOUSE": json.dumps(warehouse)}


def dag_file(found: Snippet, folder: Path) -> str:
    """Return a DAG file that binds `dag`, with the example's code, which writes to a folder of the test."""
    code = found.code.replace("/tmp/", f"{folder}/")
    if not found.defines_dag:
        code = HEAD + textwrap.indent(code, "    ")
    code = re.sub(r"^(with DAG\([^:]*\)):$", r"\1 as dag:", code, flags=re.MULTILINE)
    code = re.sub(r"^(\w+)\(\)$", r"dag = \1()", code, flags=re.MULTILINE)
    if "ApprovalOperator(" in code:
        code += 'responses = {"approve": "Approve"}\n'
    # As `airflow dags trigger` starts it: without logical date and data interval.
    return f"{code}\nlogical_dates = [None]\n"


@pytest.mark.parametrize("page", PAGES_WITH_PYTHON, ids=name_of)
def test_the_examples_of_a_page_run_and_find_something(
    page: Any,
    airflow: Airflow,
    sandbox: SandboxServer,
    storage: dict[str, str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """In the order of the page, so that one may build on the results of another."""
    returned: list[Any] = []
    variables = {"AIRFLOW_VAR_WEB_FOLDER": f"file://{tmp_path}"}
    for found in filter(is_run, snippets(page)):
        if found.defines_dag or found.has_tasks:
            environ = {"AIRFLOW_CONN_WEBDATA_DEFAULT": connection(sandbox), **storage, **variables}
            outcome = airflow.run(dag_file(found, tmp_path), **environ)
            assert_found(found, outcome)
            returned += [value for key, value in outcome.xcom.items() if key.endswith(".return_value")]
        else:
            execute(found, sandbox, monkeypatch)
    for sample in samples(page):
        assert any(has_form_of(sample, value) for value in returned), sample


def samples(page: Path) -> list[Any]:
    """Return what a page says that its tasks return."""
    section = page.read_text(encoding="utf-8").partition("## What it returns\n")[2].partition("\n## ")[0]
    return [json.loads(block) for block in re.findall(r"```json\n(.*?)```", section, re.DOTALL)]


def has_form_of(sample: Any, value: Any) -> bool:
    """Return whether a value has the keys and the types of a sample, which may be shorter."""
    if sample is None or value is None:
        return True
    if isinstance(sample, dict) and isinstance(value, dict):
        return all(key in value and has_form_of(part, value[key]) for key, part in sample.items())
    if isinstance(sample, list) and isinstance(value, list):
        return all(any(has_form_of(part, item) for item in value) for part in sample)
    return type(sample) is type(value) or {type(sample), type(value)} == {int, float}


def assert_found(found: Snippet, outcome: Outcome) -> None:
    where = f"{found.page}:{found.line}"
    assert outcome.run["state"] == "success", f"{where}: {outcome.log[-4000:]}"
    assert [task for task, told in outcome.run["tasks"].items() if told["state"] == "skipped"] == [], where
    for key, value in outcome.xcom.items():
        if key.endswith(".return_value"):
            assert not list(empty(value, key)), f"{where}: {value!r}"


def empty(value: Any, path: str) -> Iterator[str]:
    """Yield where a result has nothing in it."""
    if value in ([], {}, ""):
        yield path
    # A run that waits for an approval has nothing yet.
    if isinstance(value, dict) and "pendingApproval" not in value:
        for name, item in value.items():
            if name == "count" and item == 0:
                yield f"{path}.{name}"
            if name in ("web", "news", "links", "data", "pages", "steps"):
                yield from empty(item, f"{path}.{name}")


def execute(found: Snippet, sandbox: SandboxServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run plain Python: its tests, and its query."""
    names: dict[str, Any] = {"sandbox": sandbox, "png_bytes": b"\x89PNG"}
    code = found.code.replace("http://127.0.0.1:8900", sandbox.url)
    exec(compile("\n" * (found.line - 1) + code, found.page, "exec"), names)
    for name, value in names.items():
        if name.startswith("test_"):
            value(monkeypatch)
    if "query" in names:
        assert post(sandbox, "/v2/search", query=names["query"])["data"]["web"]


def post(sandbox: SandboxServer, path: str, **body: Any) -> dict[str, Any]:
    import httpx

    headers = {"Authorization": f"Bearer {sandbox.api_key}"}
    answer = httpx.post(f"{sandbox.url}{path}", json=body, headers=headers, trust_env=False, verify=False)
    told: dict[str, Any] = answer.json()
    return told


def test_what_is_not_run_is_on_the_pages() -> None:
    code = "".join(found.code for page in PAGES for found in snippets(page))
    assert [mark for mark in NOT_RUN if mark not in code] == []
