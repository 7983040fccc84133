"""Feedback on results."""

from __future__ import annotations

import pytest
from airflow.sdk.exceptions import AirflowFailException

from airflow_provider_webdata.operators.feedback import WebDataFeedbackOperator
from airflow_provider_webdata.operators.search import WebDataSearchOperator
from tests.support import direct
from tests.support.direct import TaskInstance, context_of

IMPORT = (
    "from airflow_provider_webdata.operators.feedback import WebDataFeedbackOperator\n"
    "from airflow_provider_webdata.operators.search import WebDataSearchOperator"
)


@pytest.mark.rule("feedback-answer", "feedback-sources", "credits-refund")
def test_a_credit_comes_back(run_dag, sandbox):
    before = sandbox.control.state()["credits"]
    done = run_dag(
        """
        search = WebDataSearchOperator(task_id="search", query="river")
        WebDataFeedbackOperator(
            task_id="rate", job_id=search.output["id"], rating="good",
            valuable_sources=[{"url": "{{ ti.xcom_pull('search')['web'][0]['url'] }}"}],
        )
        """,
        before=IMPORT,
    )
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
    assert f"Recorded feedback on search {search} (good); credits refunded: 1" in done.log_of("rate")
    assert sandbox.control.state()["credits"] == before - 2 + 1


@pytest.fixture
def search(here):
    """The result of a search that can be rated."""
    return WebDataSearchOperator(task_id="search", query="river").execute(context_of(TaskInstance()))


def rate(search, **arguments):
    given = {
        "job_id": search["id"],
        "rating": "good",
        "valuable_sources": [{"url": search["web"][0]["url"]}],
        "retries": 1,
        **arguments,
    }
    return WebDataFeedbackOperator(
        task_id="rate", **{name: value for name, value in given.items() if value is not None}
    )


# the answer that is lost, or stands for an earlier feedback
EARLIER = {
    "answer lost": ("drop_after_work", {}),
    "reported": (
        "status",
        {"status": 409, "body": {"success": False, "error": "Feedback already submitted"}},
    ),
}


@pytest.mark.rule("feedback-once")
@pytest.mark.parametrize(("kind", "fault"), EARLIER.values(), ids=EARLIER.keys())
def test_earlier_feedback_stands(here, search, log, kind, fault):
    """Whether a repetition meets the one before or a 409 says so: the task succeeds."""
    here.control.add_fault(kind, path=".*/feedback", **fault)
    assert direct.run(rate(search)).value["alreadySubmitted"] is True
    assert "was already recorded and is unchanged" in log()
    assert here.control.state()["credits"] == 100_000 - 2 + (kind == "drop_after_work")


@pytest.mark.rule("feedback-job", "feedback-issues", "feedback-details")
def test_fields_that_only_the_general_feedback_has(here, search):
    assert direct.run(rate(search, issues=["stale"], page_numbers=["{{ 2 }}"])).state == "success"
    (sent,) = here.control.requests("/v2/feedback")
    assert sent["body"] == {
        "endpoint": "search",
        "jobId": search["id"],
        "rating": "good",
        "valuableSources": [{"url": search["web"][0]["url"]}],
        "issues": ["stale"],
        "pageNumbers": [2],
    }


@pytest.mark.rule("feedback-window", "feedback-errors")
@pytest.mark.parametrize(
    ("code", "on_refused", "state"),
    [
        ("FEEDBACK_WINDOW_EXPIRED", "fail", "failed"),
        ("SEARCH_FAILED", "skip", "skipped"),
        ("INTERNAL", "fail", "failed"),
    ],
)
def test_a_refusal_does_not_pass_for_earlier_feedback(here, search, code, on_refused, state):
    """No retry helps."""
    body = {"success": False, "error": "Cannot be taken.", "feedbackErrorCode": code}
    here.control.add_fault("status", path=".*/feedback", status=409, body=body, times=None)
    outcome = direct.run(rate(search, on_refused=on_refused))
    assert outcome.ended == (state, 1)
    assert code in str(outcome.error)


BAD_INPUT = {
    "wrong for a search": ({"rating": "bad"}, "'bad' needs missingContent or querySuggestions"),
    "no id": (
        {"job_id": "{{ none }}", "rating": "bad", "valuable_sources": None, "note": "n"},
        "job_id",
    ),
}


@pytest.mark.rule("feedback-substance")
@pytest.mark.parametrize(("arguments", "words"), BAD_INPUT.values(), ids=BAD_INPUT.keys())
def test_bad_input_fails_before_any_request(here, search, arguments, words):
    with pytest.raises(AirflowFailException, match=words):
        direct.execute(rate(search, **arguments), context_of(TaskInstance()))
    assert [sent["path"] for sent in here.control.requests()] == ["/v2/search"]


def test_on_refused_is_checked():
    with pytest.raises(ValueError, match="on_refused must be one of fail, skip"):
        WebDataFeedbackOperator(task_id="t", job_id="x", rating="good", on_refused="retry")
