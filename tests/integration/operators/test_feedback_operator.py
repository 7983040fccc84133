"""Feedback on results, in a real Airflow against the sandbox over HTTP."""

from __future__ import annotations

import pytest

IMPORT = (
    "from airflow_provider_webdata.operators.feedback import WebDataFeedbackOperator\n"
    "from airflow_provider_webdata.operators.search import WebDataSearchOperator"
)
SEARCH = 'search = WebDataSearchOperator(task_id="search", query="river")'
RATED = """job_id=search.output["id"], rating="good",
            valuable_sources=[{"url": "{{ ti.xcom_pull('search')['web'][0]['url'] }}"}]"""


def run(run_dag, arguments, **extra):
    return run_dag(
        f"""
        {SEARCH}
        WebDataFeedbackOperator(task_id="rate", retries=1, retry_delay=datetime.timedelta(0), {arguments})
        """,
        before=IMPORT,
        **extra,
    )


@pytest.mark.rule("feedback-answer", "feedback-sources", "credits-refund")
def test_a_credit_comes_back(run_dag, sandbox):
    before = sandbox.control.state()["credits"]
    done = run(run_dag, RATED)
    assert done.run["state"] == "success"
    value = done.xcom["rate.return_value"]
    assert (value["creditsRefunded"], value["alreadySubmitted"]) == (1, None)
    assert done.xcom["rate.feedbackId"] == value["feedbackId"]
    search = done.xcom["search.id"]
    (sent,) = sandbox.control.requests(f"/v2/search/{search}/feedback")
    assert sent["body"] == {
        "rating": "good",
        "valuableSources": [{"url": done.xcom["search.return_value"]["web"][0]["url"]}],
    }
    assert f"Feedback on search {search} was taken (good); credits returned: 1" in done.log
    assert sandbox.control.state()["credits"] == before - 2 + 1


# the answer that is lost, or stands for what was given before
EARLIER = {
    "answer lost": ("drop_after_work", {}),
    "told so": ("status", {"status": 409, "body": {"success": False, "error": "Feedback already submitted"}}),
}


@pytest.mark.rule("feedback-once")
@pytest.mark.parametrize(("kind", "fault"), EARLIER.values(), ids=EARLIER.keys())
def test_feedback_that_was_given_stands(run_dag, sandbox, kind, fault):
    """Whether a repetition meets the one before or a 409 says so: the task is done."""
    sandbox.control.add_fault(kind, path=".*/feedback", **fault)
    done = run(run_dag, RATED)
    assert done.run["state"] == "success"
    assert done.xcom["rate.alreadySubmitted"] is True
    assert "There was feedback on search" in done.log
    assert sandbox.control.state()["credits"] == 100_000 - 2 + (kind == "drop_after_work")


@pytest.mark.rule("feedback-job", "feedback-issues", "feedback-details")
def test_what_only_the_general_feedback_takes(run_dag, sandbox):
    done = run(run_dag, f'{RATED}, issues=["stale"], page_numbers=["{{{{ 2 }}}}"]')
    assert done.run["state"] == "success"
    (sent,) = sandbox.control.requests("/v2/feedback")
    assert sent["body"] == {
        "endpoint": "search",
        "jobId": done.xcom["search.id"],
        "rating": "good",
        "valuableSources": [{"url": done.xcom["search.return_value"]["web"][0]["url"]}],
        "issues": ["stale"],
        "pageNumbers": [2],
    }


CODES = ("FEEDBACK_WINDOW_EXPIRED", "SEARCH_FAILED", "INTERNAL")


@pytest.mark.rule("feedback-window", "feedback-errors")
@pytest.mark.parametrize("code", CODES)
@pytest.mark.parametrize(("arguments", "state"), [("", "failed"), (", on_refused='skip'", "skipped")])
def test_what_is_refused_is_not_taken_for_given(run_dag, sandbox, code, arguments, state):
    """No retry helps."""
    body = {"success": False, "error": "Cannot be taken.", "feedbackErrorCode": code}
    sandbox.control.add_fault("status", path=".*/feedback", status=409, body=body, times=None)
    done = run(run_dag, RATED + arguments)
    assert done.run["tasks"]["rate"] == {"state": state, "try_number": 1}
    assert code in done.log


BAD_INPUT = {
    "says nothing": ('job_id=search.output["id"], rating="bad"', "needs one of"),
    "wrong for a search": (
        'job_id=search.output["id"], rating="bad", valuable_sources=[{"url": "https://a.example"}]',
        "'bad' needs missingContent or querySuggestions",
    ),
    "no id": ('job_id="{{ none }}", rating="bad", note="n"', "job_id"),
}


@pytest.mark.rule("feedback-substance")
@pytest.mark.parametrize(("arguments", "words"), BAD_INPUT.values(), ids=BAD_INPUT.keys())
def test_bad_input_fails_before_any_request(run_dag, sandbox, arguments, words):
    done = run(run_dag, arguments)
    assert done.run["tasks"]["rate"] == {"state": "failed", "try_number": 1}
    assert words in done.log
    assert [sent["path"] for sent in sandbox.control.requests()] == ["/v2/search"]


def test_on_refused_is_checked():
    from airflow_provider_webdata.operators.feedback import WebDataFeedbackOperator

    with pytest.raises(ValueError, match="on_refused must be one of fail, skip"):
        WebDataFeedbackOperator(task_id="t", job_id="x", rating="good", on_refused="retry")
