"""The examples that users copy from, on the real scheduler."""

from __future__ import annotations

import pytest

from airflow_provider_webdata.sandbox.control import SandboxControl
from demo.examples import CHECK_SECONDS, run_wait, see_event_driven_run
from tests.e2e.conftest import Run
from tests.support.errors import StackError
from tests.support.runs import follow, scheduled_run
from tests.support.service import SECRET_HEADER
from tests.support.stack import Stack


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
    # As often as there are runs: around midnight the next one is due already.
    searches = [request["body"]["tbs"] for request in sandbox.requests("/v2/search")]
    assert searches
    assert len(searches) == len(set(searches))
    assert all("cdr:1" in dates for dates in searches)


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


def test_a_check_is_waited_for_and_its_delivery_runs_the_event_driven_dag(
    stack: Stack, sandbox: SandboxControl
) -> None:
    stack.api.start_watching("webdata_on_check")
    sandbox.configure(check_seconds=CHECK_SECONDS)

    report = run_wait(stack)
    sandbox.configure(check_seconds=0)

    learned, *pages = report.splitlines()
    assert "(learned by webhook)" in learned
    assert pages
    assert all(page.startswith("new: https://shop.example/") for page in pages)
    check_id = learned.split()[1]
    assert check_id in see_event_driven_run(stack, check_id)
    runs = [run for run in stack.api.runs("webdata_on_check") if run["state"] == "success"]
    assert {run["run_type"] for run in runs} == {"asset_triggered"}
    # Another example's monitor may have run a check meanwhile. Each is told once.
    told = [stack.api.xcom("webdata_on_check", run["dag_run_id"], "report") for run in runs]
    assert [payload["job_id"] for payloads in told for payload in payloads].count(check_id) == 1
    # The webhook is the provider's own doing: address, key and secret are not in the DAG.
    monitor_id = learned.split()[4]
    (monitor,) = (found for found in sandbox.state()["monitors"] if found["id"] == monitor_id)
    assert monitor["webhook"]["url"].startswith(f"{stack.airflow_url}/webdata/inbox/webdata_default/")
    assert monitor["webhook"]["headers"].keys() == {SECRET_HEADER}


def test_a_failed_task_is_shown_with_its_log(stack: Stack) -> None:
    run = Run(stack, "e2e_bad_field")

    with pytest.raises(StackError, match=r"e2e_bad_field\.search failed on try 1") as failure:
        follow(stack.api, "e2e_bad_field", run.id, print)

    assert "limit" in str(failure.value)
