"""The examples that users copy from, on the real scheduler."""

from __future__ import annotations

import pytest

from airflow_provider_webdata.sandbox.control import SandboxControl
from demo.errors import DemoError
from demo.runs import follow, scheduled_run
from demo.stack import Stack
from tests.e2e.conftest import Run


def test_search_maps_one_task_over_each_result(stack: Stack, sandbox: SandboxControl) -> None:
    run_id = scheduled_run(stack.api, "webdata_search")
    follow(stack.api, "webdata_search", run_id, print)

    results = stack.api.xcom("webdata_search", run_id, "search")
    tasks = stack.api.task_instances("webdata_search", run_id)
    mapped = [task for task in tasks if task["map_index"] >= 0]
    report = stack.api.xcom("webdata_search", run_id, "report")

    assert len(results) > 1
    assert len(mapped) == len(results)
    assert all(result["url"] in report for result in results)
    # No task stands between the search and the mapped one: nothing but these three in the DAG.
    assert {task["task_id"] for task in tasks} == {"search", "summarize", "report"}
    (request,) = sandbox.requests("/v2/search")
    assert "cdr:1" in request["body"]["tbs"]


def test_monitor_is_kept_not_repeated(stack: Stack, sandbox: SandboxControl) -> None:
    first = scheduled_run(stack.api, "webdata_monitor")
    follow(stack.api, "webdata_monitor", first, print)
    made = stack.api.xcom("webdata_monitor", first, "keep_monitor")
    sandbox.clear_requests()

    again = stack.api.trigger("webdata_monitor")
    follow(stack.api, "webdata_monitor", again, print)

    kept = stack.api.xcom("webdata_monitor", again, "keep_monitor")
    assert kept["id"] == made["id"]
    named = [monitor for monitor in sandbox.state()["monitors"] if monitor["name"] == made["name"]]
    assert [monitor["id"] for monitor in named] == [made["id"]]
    assert {request["method"] for request in sandbox.requests()} == {"GET"}


def test_a_failed_task_is_shown_with_its_log(stack: Stack) -> None:
    run = Run(stack, "e2e_bad_field")

    with pytest.raises(DemoError, match=r"e2e_bad_field\.search failed on try 1") as failure:
        follow(stack.api, "e2e_bad_field", run.id, print)

    assert "limit" in str(failure.value)
