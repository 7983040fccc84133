# SPDX-License-Identifier: Apache-2.0
"""Credits reported and guarded."""

from __future__ import annotations

import json

import pytest
from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException

from airflow_provider_webdata.operators.credit_usage import WebDataCreditUsageOperator
from airflow_provider_webdata.runs.failures import CreditLimitError
from tests.support import direct
from tests.support.direct import TaskInstance, context_of
from tests.support.fault_server import FaultServer, answer
from tests.support.service import connection_text

IMPORT = """
from airflow.providers.standard.operators.empty import EmptyOperator
from airflow_provider_webdata.operators.credit_usage import WebDataCreditUsageOperator
"""
USAGE = "/v2/team/credit-usage"


def usage(remaining, plan):
    data = {"remainingCredits": remaining, "planCredits": plan}
    return {"success": True, "data": data}


@pytest.mark.rule("team-credits")
def test_guards_in_a_real_airflow(run_dag, sandbox):
    """Names are those of the service. No retry helps against too few credits; the numbers are in XCom either way."""
    sandbox.control.configure(credits=1234)
    server = FaultServer([answer(body=json.dumps(usage(99, 200)))])
    done = run_dag(
        """
        guards = {
            "guard": {"min_remaining_percent": 1},
            "low": {"min_remaining": "{{ 100 }}", "webdata_conn_id": "low", "retries": 1},
            "skip": {"min_remaining": 100, "webdata_conn_id": "low", "on_low": "skip"},
        }
        for name, arguments in guards.items():
            guard = WebDataCreditUsageOperator(task_id=name, **arguments)
            guard >> EmptyOperator(task_id=f"after_{name}")
        """,
        before=IMPORT,
        environ={"AIRFLOW_CONN_LOW": connection_text(server.url)},
    )
    server.close()
    assert {task: done.state(task) for task in done.run["tasks"]} == {
        "guard": "success",
        "after_guard": "success",
        "low": "failed",
        "after_low": "upstream_failed",
        "skip": "skipped",
        "after_skip": "skipped",
    }
    assert done.ended("low") == ("failed", 1)
    value = done.xcom["guard.return_value"]
    assert value["remainingCredits"] == done.xcom["guard.remaining_credits"] == 1234
    assert {"planCredits", "billingPeriodStart", "billingPeriodEnd"} <= value.keys()
    assert "Credits left: 1234" in done.log_of("guard")
    assert done.xcom["low.remaining_credits"] == done.xcom["skip.remaining_credits"] == 99


# remaining, plan, arguments, error, words
GUARDED = {
    "enough": (100, 200, {"min_remaining": 100}, None, "Credits left: 100"),
    "too few": (99, 200, {"min_remaining": "{{ 100 }}"}, CreditLimitError, "99 credits are left"),
    "percent": (50, 200, {"min_remaining_percent": 25}, None, "Credits left: 50"),
    "too few percent": (49, 200, {"min_remaining_percent": "25"}, CreditLimitError, "fewer than 50"),
    "one of both": (60, 200, {"min_remaining": 50, "min_remaining_percent": 50, "on_low": "skip"},
                    AirflowSkipException, "min_remaining_percent=50"),
    "packs beyond the plan": (500, 200, {"min_remaining_percent": 100}, None, "of a plan of 200"),
    "no limit": (0, 200, {}, None, "Credits left: 0"),
}  # fmt: skip


@pytest.mark.parametrize(
    ("remaining", "plan", "arguments", "error", "words"), GUARDED.values(), ids=GUARDED.keys()
)
def test_guard(here, log, remaining, plan, arguments, error, words):
    here.control.add_fault("status", path=USAGE, status=200, body=usage(remaining, plan))
    task, ti = WebDataCreditUsageOperator(task_id="guard", **arguments), TaskInstance()
    if error is None:
        assert direct.execute(task, context_of(ti))["remainingCredits"] == remaining
        assert words in log()
    else:
        with pytest.raises(error, match=words):
            direct.execute(task, context_of(ti))
        assert ti.xcom["remaining_credits"] == remaining


UNKNOWN = {
    "credits": (usage(None, 100), {"min_remaining": 1}),
    "plan": (usage(100, None), {"min_remaining_percent": 1}),
}


@pytest.mark.parametrize(("body", "arguments"), UNKNOWN.values(), ids=UNKNOWN.keys())
def test_a_guard_that_cannot_see_lets_nothing_pass(here, body, arguments):
    """A later try may see more."""
    here.control.add_fault("status", path=USAGE, status=200, body=body)
    task = WebDataCreditUsageOperator(task_id="guard", retries=1, **arguments)
    assert direct.run(task).ended == ("success", 2)


BAD_INPUT = {
    "no number": ({"min_remaining": "many"}, "min_remaining: must be a number of at least 0"),
    "over a hundred percent": ({"min_remaining_percent": "{{ 101 }}"}, "at most 100"),
}


@pytest.mark.parametrize(("arguments", "words"), BAD_INPUT.values(), ids=BAD_INPUT.keys())
def test_bad_input_fails_before_any_request(here, arguments, words):
    with pytest.raises(AirflowFailException, match=words):
        direct.execute(WebDataCreditUsageOperator(task_id="guard", **arguments), context_of(TaskInstance()))
    assert here.control.requests() == []
