# SPDX-License-Identifier: Apache-2.0
"""How each operator and sensor is tried: in a DAG with one task, which `dag.test()` runs."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Iterator
from datetime import datetime, timezone
from functools import partial
from types import ModuleType
from typing import TYPE_CHECKING, Any

from airflow.sdk import DAG, BaseOperator

from airflow_provider_webdata.api.prices import CATALOG
from airflow_provider_webdata.hooks.operations.providers import FIND
from airflow_provider_webdata.operators.agent import WebDataAgentOperator
from airflow_provider_webdata.operators.batch_scrape import WebDataBatchScrapeOperator
from airflow_provider_webdata.operators.batch_search import WebDataBatchSearchOperator
from airflow_provider_webdata.operators.crawl import WebDataCrawlOperator
from airflow_provider_webdata.operators.credit_usage import WebDataCreditUsageOperator
from airflow_provider_webdata.operators.incremental_crawl import WebDataIncrementalCrawlOperator
from airflow_provider_webdata.operators.interact import WebDataInteractOperator
from airflow_provider_webdata.operators.map import WebDataMapOperator
from airflow_provider_webdata.operators.monitor import (
    WebDataCreateMonitorOperator,
    WebDataDeleteMonitorOperator,
    WebDataListMonitorsOperator,
    WebDataRunMonitorOperator,
    WebDataUpdateMonitorOperator,
)
from airflow_provider_webdata.operators.parse import WebDataParseOperator
from airflow_provider_webdata.operators.provider import WebDataProviderOperator
from airflow_provider_webdata.operators.scrape import WebDataScrapeOperator
from airflow_provider_webdata.operators.search import WebDataSearchOperator
from airflow_provider_webdata.options import Changes
from airflow_provider_webdata.sensors.job import WebDataJobSensor
from airflow_provider_webdata.sensors.monitor import WebDataMonitorCheckSensor
from airflow_provider_webdata.sensors.webhook import WebDataWebhookSensor
from tools.acceptance.content import ContentError, remark, require_text
from tools.acceptance.dag_test import test_dag
from tools.acceptance.hook_cases import (
    CHEAP,
    FILE,
    FILE_TEXT,
    PRINT_PAGE,
    QUERY,
    SCHEMA,
    monitor,
    require_listed,
    require_read,
)
from tools.acceptance.run import PATIENCE, Case
from tools.metadata import modules_of

if TYPE_CHECKING:
    from tools.acceptance.run import Run

REASONS = {"WebDataToTableOperator": "calls no server: it loads a file into a database"}
"""Why operators have no case."""

_KEY = "acceptance"
_PAGE = {"proxy": "basic", "parsers": [], "max_age": 0, "formats": ["markdown"]}
_cases: dict[str, Case] = {}
_Judge = Callable[["Run", Any], str | None]


def operators() -> list[str]:
    """Return the names of the operators, transfers, and sensors in the provider's metadata."""
    modules = modules_of("operators", "transfers", "sensors")
    return [name for module in modules for name in _operators_of(importlib.import_module(module))]


def _operators_of(module: ModuleType) -> Iterator[str]:
    # A package imports its operators when they are first used.
    for name in getattr(module, "__all__", vars(module)):
        value = getattr(module, name)
        if (
            inspect.isclass(value)
            and issubclass(value, BaseOperator)
            and value.__module__.startswith(module.__name__)
        ):
            yield name


def cases() -> Iterator[Case]:
    """Yield the cases in order."""
    yield from _cases.values()


def reasons() -> dict[str, str]:
    """Return why operators have no case."""
    return dict(REASONS)


def current_dag() -> DAG:
    """Return the DAG of the case that runs, for the DAG file."""
    return _current()


def _current() -> DAG:
    raise RuntimeError("no case runs")


DAG_FILE = """\
from airflow.sdk import DAG

from tools.acceptance.operator_cases import current_dag

dag = current_dag()
"""


def _case(
    operator: type[BaseOperator], judge: _Judge | None = None
) -> Callable[[Callable[[Run], dict[str, Any]]], None]:
    """Register a function that returns the arguments of an operator.

    :param judge: returns a remark about what the task returned, or raises a `ContentError`.
    """

    def register(arguments: Callable[[Run], dict[str, Any]]) -> None:
        name = operator.__name__
        _cases[name] = Case(name, partial(_perform, operator=operator, arguments=arguments, judge=judge))

    return register


def _perform(
    run: Run,
    operator: type[BaseOperator],
    arguments: Callable[[Run], dict[str, Any]],
    judge: _Judge | None,
) -> str | None:
    """Run a DAG with one task, raise the task's error, and judge its result."""
    global _current
    given = arguments(run)
    dag_id = f"{run.name}-{operator.__name__}"

    def build() -> DAG:
        with DAG(dag_id, schedule=None) as dag:
            operator(task_id="task", **given)
        return dag

    _current = build
    returned = test_dag(build(), run.watch)
    return judge(run, returned) if judge else None


def _has_text(run: Run, returned: Any) -> None:
    require_text(run.site.text, returned)


def _files_have_text(names: str) -> _Judge:
    return lambda run, _: require_text(run.site.text, [*run.folder.glob(names)])


def _found(_: Run, returned: Any) -> str | None:
    return remark(returned)


def _lists_page(run: Run, returned: Any) -> None:
    require_listed(run, returned)


def _read_page(run: Run, returned: Any) -> None:
    require_read(run, next(iter(returned["pages"]), None))


def _has_data(_: Run, returned: Any) -> None:
    if not returned["data"].get("title"):
        raise ContentError("the data lacks the title of the page")


@_case(WebDataSearchOperator, _found)
def _search(run: Run) -> dict[str, Any]:
    return {"query": QUERY, "limit": 1, "returns": "web"}


@_case(WebDataBatchSearchOperator, lambda _, returned: remark(returned["count"]))
def _batch_search(run: Run) -> dict[str, Any]:
    return {"queries": [QUERY], "limit": 1, "save_to": str(run.folder / "searches.jsonl")}


@_case(WebDataScrapeOperator, _has_text)
def _scrape(run: Run) -> dict[str, Any]:
    return {"url": run.site.page, **_PAGE}


@_case(WebDataMapOperator, _lists_page)
def _map(run: Run) -> dict[str, Any]:
    return {"url": run.site.root, "limit": 3, "returns": "urls"}


@_case(WebDataParseOperator, lambda _, returned: require_text(FILE_TEXT, returned))
def _parse(run: Run) -> dict[str, Any]:
    path = run.folder / "level.html"
    path.write_bytes(FILE)
    return {"file": str(path), "formats": ["markdown"]}


@_case(WebDataBatchScrapeOperator, _files_have_text("batch.jsonl"))
def _batch_scrape(run: Run) -> dict[str, Any]:
    return {"urls": run.site.urls, **_wait(run), **_PAGE, "save_to": str(run.folder / "batch.jsonl")}


@_case(WebDataCrawlOperator, _files_have_text("crawl.jsonl"))
def _crawl(run: Run) -> dict[str, Any]:
    options = {"formats": ["markdown"], **CHEAP}
    return {
        "url": run.site.root,
        "limit": 2,
        "scrape_options": options,
        "deferrable": True,
        **_wait(run),
        "save_to": str(run.folder / "crawl.jsonl"),
    }


@_case(WebDataIncrementalCrawlOperator, _files_have_text("incremental-*.jsonl"))
def _incremental_crawl(run: Run) -> dict[str, Any]:
    return {
        "url": run.site.root,
        "refresh_after": 86_400,
        "changes": Changes(str(run.folder / "seen")),
        "map_options": {"limit": 2},
        "sitemap_url": "",
        "save_to": str(run.folder / "incremental-*.jsonl"),
        **_wait(run),
        **_PAGE,
    }


@_case(WebDataJobSensor)
def _job_sensor(run: Run) -> dict[str, Any]:
    job_id = run.known("start_crawl", lambda answer: answer.id)
    return {"kind": "crawl", "job_id": job_id, "deferrable": True, **_limits(run)}


@_case(WebDataWebhookSensor)
def _webhook_sensor(run: Run) -> dict[str, Any]:
    run.deliveries()
    job_id = run.known("start_crawl", lambda answer: answer.id)
    # The operator attached the webhook to its crawl, which ended before this DAG run began.
    after = datetime(2000, 1, 1, tzinfo=timezone.utc)
    return {"job_id": job_id, "events": "completed", "after": after, **_limits(run)}


@_case(WebDataCreditUsageOperator)
def _credit_usage(run: Run) -> dict[str, Any]:
    return {"min_remaining": 1}


@_case(WebDataProviderOperator, _found)
def _provider(run: Run) -> dict[str, Any]:
    return {"provider": CATALOG, "capability": FIND, "options": {"limit": 1}}


@_case(WebDataCreateMonitorOperator)
def _create_monitor(run: Run) -> dict[str, Any]:
    return monitor(run, "operator")


@_case(WebDataListMonitorsOperator)
def _list_monitors(run: Run) -> dict[str, Any]:
    return {}


@_case(WebDataRunMonitorOperator)
def _run_monitor(run: Run) -> dict[str, Any]:
    return {"monitor_id": _monitor_id(run)}


@_case(WebDataMonitorCheckSensor, _read_page)
def _check_sensor(run: Run) -> dict[str, Any]:
    check_id = run.known("run_monitor", lambda answer: answer.id or (answer.data and answer.data.id))
    return {
        "monitor_id": _monitor_id(run),
        "check_id": check_id,
        "include_pages": True,
        "deferrable": True,
        **_limits(run),
    }


@_case(WebDataUpdateMonitorOperator)
def _update_monitor(run: Run) -> dict[str, Any]:
    return {"monitor_id": _monitor_id(run), "status": "paused"}


@_case(WebDataDeleteMonitorOperator)
def _delete_monitor(run: Run) -> dict[str, Any]:
    return {"monitor_id": _monitor_id(run), "ignore_missing": False}


@_case(WebDataInteractOperator, _has_text)
def _interact(run: Run) -> dict[str, Any]:
    steps = [f'await page.goto("{run.site.page}")', PRINT_PAGE]
    return {"steps": steps, "language": "node", "ttl": 60}


@_case(WebDataAgentOperator, _has_data)
def _agent(run: Run) -> dict[str, Any]:
    return {
        "prompt": "What is the title of the page?",
        "urls": [run.site.page],
        "schema": SCHEMA,
        "max_credits": 100,
        **_wait(run),
    }


def _wait(run: Run) -> dict[str, Any]:
    return {"poll_interval": run.poll_seconds, "wait_timeout": PATIENCE}


def _limits(run: Run) -> dict[str, Any]:
    return {"poke_interval": run.poll_seconds, "timeout": PATIENCE}


def _monitor_id(run: Run) -> str:
    return run.known("create_monitor", lambda answer: answer.data.id)
