"""Results: the XCom values that tasks push, and the columns of files."""

from __future__ import annotations

import importlib
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

from airflow.sdk.exceptions import AirflowFailException

from tests.support.direct import TaskInstance, context_of, parts_of
from tools.stored.examples import CONNECTION_ID, environment, working_in


def columns() -> dict[str, Any]:
    """Return the columns of Parquet files, in order."""
    from airflow_provider_webdata.results.columns import TABLES

    return {kind: {column.name: column.type for column in table} for kind, table in TABLES.items()}


PAGE = "https://river.example/"
RESULTS: dict[str, tuple[str, dict[str, Any]]] = {
    "search": ("search.WebDataSearchOperator", {"query": "river"}),
    "search, one source": ("search.WebDataSearchOperator", {"query": "river", "returns": "web"}),
    "search, to a file": ("search.WebDataSearchOperator", {"query": "river", "output": "found.jsonl"}),
    "search, not published": ("search.WebDataSearchOperator", {"query": "river", "fails": True}),
    "batch search": ("batch_search.WebDataBatchSearchOperator", {"queries": ["river"]}),
    "scrape": ("scrape.WebDataScrapeOperator", {"url": PAGE}),
    "scrape, to a file": ("scrape.WebDataScrapeOperator", {"url": PAGE, "output": "page.jsonl"}),
    "map": ("map.WebDataMapOperator", {"url": PAGE}),
    "parse": ("parse.WebDataParseOperator", {"file": "page.html"}),
    "interact": ("interact.WebDataInteractOperator", {"steps": [f'await page.goto("{PAGE}")']}),
    "credit usage": ("credit_usage.WebDataCreditUsageOperator", {}),
    "crawl": ("crawl.WebDataCrawlOperator", {"url": PAGE, "limit": 2}),
    "crawl, not waited for": ("crawl.WebDataCrawlOperator", {"url": PAGE, "limit": 2, "wait_for_completion": False}),
    "batch scrape": ("batch_scrape.WebDataBatchScrapeOperator", {"urls": [PAGE]}),
    "agent": ("agent.WebDataAgentOperator", {"prompt": "p", "urls": [PAGE]}),
    "agent, validated": ("agent.WebDataAgentOperator", {"prompt": "p", "schema": {"required": ["x"]}}),
    "create monitor": (
        "monitor.WebDataCreateMonitorOperator",
        {
            "name": "rivers",
            "schedule": {"text": "every 30 minutes"},
            "targets": [{"type": "scrape", "urls": [PAGE]}],
            "wait_for_completion": False,
        },
    ),
    "run monitor": ("monitor.WebDataRunMonitorOperator", {"monitor_name": "rivers", "include_pages": True}),
}  # fmt: skip
"""Tasks in execution order, and their arguments; `fails`: the result cannot be published."""


def xcom() -> dict[str, Any]:
    """Return the XCom keys of each task, with the field names of mappings and of the items of lists."""
    from webdata_sandbox.server import SandboxServer

    # A job that has ended when its call returns needs no poll interval.
    with (
        SandboxServer(settle=True) as sandbox,
        tempfile.TemporaryDirectory() as folder,
        working_in(Path(folder)),
    ):
        Path("page.html").write_text("<p>a page</p>")
        stored = {"conn_type": "webdata", "host": sandbox.url, "password": sandbox.api_key}
        with environment(connection=stored):
            pushed = {case: pushed_by(case, *task) for case, task in RESULTS.items()}
    return {
        case: {key: names_in(value) for key, value in sorted(found.items())} for case, found in pushed.items()
    }


def pushed_by(case: str, operator: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """Run a task and return its XCom values."""
    module, _, name = operator.partition(".")
    cls = getattr(importlib.import_module(f"airflow_provider_webdata.operators.{module}"), name)
    arguments = dict(arguments)
    fails = arguments.pop("fails", False)
    # With the same task id, a request would count as a repetition of an earlier one.
    ti = TaskInstance(task_id=case)
    task = cls(task_id="t", webdata_conn_id=CONNECTION_ID, **arguments)
    if not fails:
        value = task.execute(context_of(ti))
        return {"return_value": value, **ti.xcom, **parts_of(task, value)}

    def publish(*_: Any, **__: Any) -> None:
        raise OSError("no room")

    new_run = task.new_run

    def failing_run(context: Any) -> Any:
        run = new_run(context)
        run.publish = publish
        return run

    task.new_run = failing_run
    with suppress(AirflowFailException):
        task.execute(context_of(ti))
    return ti.xcom


def names_in(value: Any) -> dict[str, bool]:
    """Return the field names of a mapping, or of the first item of a list."""
    if isinstance(value, list):
        value = value[0] if value else None
    return dict.fromkeys(sorted(value), True) if isinstance(value, dict) else {}
