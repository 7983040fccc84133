"""Credits told and guarded, in a real Airflow against the sandbox over HTTP."""

from __future__ import annotations

import pytest

IMPORT = "from airflow_provider_webdata.operators.credit_usage import WebDataCreditUsageOperator"
USAGE = "/v2/team/credit-usage"


def run(run_dag, arguments, **extra):
    return run_dag(
        f"""
        from airflow.providers.standard.operators.empty import EmptyOperator

        guard = WebDataCreditUsageOperator(task_id="guard", retries=1, {arguments})
        guard >> EmptyOperator(task_id="after")
        """,
        before=IMPORT,
        **extra,
    )


@pytest.mark.rule("team-credits")
def test_wire_names_in_xcom(run_dag, sandbox):
    sandbox.control.configure(credits=1234)
    done = run(run_dag, "")
    assert done.run["state"] == "success"
    value = done.xcom["guard.return_value"]
    assert value["remainingCredits"] == done.xcom["guard.remainingCredits"] == 1234
    assert {"planCredits", "billingPeriodStart", "billingPeriodEnd"} <= value.keys()
    assert "Credits left: 1234" in done.log


def told(remaining, plan):
    data = {"remainingCredits": remaining, "planCredits": plan}
    return {"success": True, "data": data}


# remaining, plan, arguments, states of the guard and of what comes after it, words
GUARDED = {
    "enough": (100, 200, "min_remaining=100", "success", "success", "Credits left: 100"),
    "too few": (99, 200, "min_remaining='{{ 100 }}'", "failed", "upstream_failed", "99 credits are left"),
    "too few, skipped": (99, 200, "min_remaining=100, on_low='skip'", "skipped", "skipped", "fewer than 100"),
    "percent": (50, 200, "min_remaining_percent=25", "success", "success", "Credits left: 50"),
    "too few percent": (49, 200, "min_remaining_percent='25'", "failed", "upstream_failed", "fewer than 50"),
    "one of both": (60, 200, "min_remaining=50, min_remaining_percent=50, on_low='skip'", "skipped", "skipped",
                    "min_remaining_percent=50"),
    "packs beyond the plan": (500, 200, "min_remaining_percent=100", "success", "success", "of a plan of 200"),
    "nothing asked": (0, 200, "", "success", "success", "Credits left: 0"),
}  # fmt: skip


@pytest.mark.parametrize(
    ("remaining", "plan", "arguments", "state", "after", "words"), GUARDED.values(), ids=GUARDED.keys()
)
def test_guard(run_dag, sandbox, remaining, plan, arguments, state, after, words):
    """No retry helps against too few credits; the numbers are in XCom either way."""
    sandbox.control.add_fault("status", path=USAGE, status=200, body=told(remaining, plan), times=None)
    done = run(run_dag, arguments)
    assert done.run["tasks"]["guard"] == {"state": state, "try_number": 1}
    assert done.state("after") == after
    assert done.xcom["guard.remainingCredits"] == remaining
    assert words in done.log
    assert ("(WD-034)" in done.log) is (state == "failed")


UNKNOWN = {
    "credits": (told(None, 100), "min_remaining=1"),
    "plan": (told(100, None), "min_remaining_percent=1"),
}


@pytest.mark.parametrize(("body", "arguments"), UNKNOWN.values(), ids=UNKNOWN.keys())
def test_a_guard_that_cannot_see_lets_nothing_pass(run_dag, sandbox, body, arguments):
    """A later try may see more."""
    sandbox.control.add_fault("status", path=USAGE, status=200, body=body)
    done = run(run_dag, f"{arguments}, retry_delay=datetime.timedelta(0)")
    assert done.run["tasks"]["guard"] == {"state": "success", "try_number": 2}


BAD_INPUT = {
    "no number": ("min_remaining='many'", "min_remaining: must be a number of at least 0"),
    "negative": ("min_remaining='{{ -1 }}'", "min_remaining"),
    "over a hundred percent": ("min_remaining_percent=101", "at most 100"),
}


@pytest.mark.parametrize(("arguments", "words"), BAD_INPUT.values(), ids=BAD_INPUT.keys())
def test_bad_input_fails_before_any_request(run_dag, sandbox, arguments, words):
    done = run(run_dag, arguments)
    assert done.run["tasks"]["guard"] == {"state": "failed", "try_number": 1}
    assert words in done.log
    assert sandbox.control.requests() == []
