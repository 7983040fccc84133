"""Searches of the service's indexes."""

from __future__ import annotations

import json

import pytest
from airflow.sdk.exceptions import AirflowFailException

from airflow_provider_webdata.operators.developer_search import WebDataDeveloperSearchOperator
from airflow_provider_webdata.operators.paper_search import WebDataPaperSearchOperator
from airflow_provider_webdata.runs.failures import CreditLimitError
from tests.support import direct
from tests.support.direct import TaskInstance, context_of

IMPORT = (
    "from airflow_provider_webdata.operators.developer_search import WebDataDeveloperSearchOperator\n"
    "from airflow_provider_webdata.operators.paper_search import WebDataPaperSearchOperator"
)


@pytest.mark.rule("developer-answer", "developer-scope", "credits-index", "research-papers", "research-days")
def test_searches_in_a_real_airflow(run_dag, sandbox, tmp_path):
    path = tmp_path / "papers.jsonl"
    done = run_dag(
        f"""
        WebDataDeveloperSearchOperator(
            task_id="ask", query="{{{{ 'clocks go forward' }}}}", k="{{{{ 4 }}}}", repos=["pipeline/pipeline"],
            types=["issue", "readme"], extra_body={{"min_stars": 0}},
        )
        WebDataPaperSearchOperator(
            task_id="papers", query="rain", k=5, from_date="2001-01-01", authors=["brook"], output="{path}"
        )
        """,
        before=IMPORT,
    )
    assert done.run["state"] == "success"
    value = done.xcom["ask.return_value"]
    assert [result["id"] for result in value["results"]] == ["issue:pipeline/pipeline#42"]
    assert value["count"] == 1
    assert done.xcom["ask.coverage"] == value["coverage"]
    assert done.xcom["ask.credits"]["used"] == 2
    (sent,) = sandbox.control.requests("/v2/search/developer")
    assert sent["body"] == {
        "query": "clocks go forward",
        "k": 4,
        "types": ["issue", "readme"],
        "repos": ["pipeline/pipeline"],
        "min_stars": 0,
    }
    assert "Developer search for 'clocks go forward' returned 1 results" in done.log_of("ask")

    assert done.xcom["papers.return_value"]["count"] == 1
    (paper,) = map(json.loads, path.read_text().splitlines())
    assert paper["primaryId"] == "doi:10.5555/rain"
    (sent,) = sandbox.control.requests("/v2/search/research/papers")
    assert sent["query"] == {"query": "rain", "k": "5", "authors": "brook", "from": "2001-01-01"}


@pytest.mark.parametrize(
    ("operator", "arguments", "limit", "words"),
    [
        (WebDataDeveloperSearchOperator, {"k": 11}, 3, "4 for 11 results"),
        (WebDataPaperSearchOperator, {}, 7, "8 for 40 results"),
    ],
    ids=["developer", "papers"],
)
def test_a_search_that_may_cost_more_than_allowed_is_not_sent(here, operator, arguments, limit, words):
    task = operator(task_id="ask", query="river", **arguments)
    # As a template renders it: a literal fails while the DAG file is parsed.
    task.credit_limit = limit
    with pytest.raises(CreditLimitError, match=words):
        task.execute(context_of(TaskInstance()))
    assert here.control.requests() == []


@pytest.mark.rule("research-billed-get")
def test_a_lost_answer_is_left_to_the_retry(here):
    here.control.add_fault("drop_after_work", path="/v2/search/research/papers")
    outcome = direct.run(WebDataPaperSearchOperator(task_id="ask", query="rain", retries=1))
    assert outcome.ended == ("success", 2)
    assert len(here.control.requests("/v2/search/research/papers")) == 2


@pytest.mark.parametrize(
    ("operator", "arguments", "words"),
    [
        (WebDataDeveloperSearchOperator, {"types": ["doc"], "repos": ["a/b"]}, "repos cannot match"),
        (WebDataPaperSearchOperator, {"to_date": "{{ 'today' }}"}, "to_date: must be a date"),
    ],
    ids=["nothing can match", "no day"],
)
def test_bad_input_fails_before_any_request(here, operator, arguments, words):
    with pytest.raises(AirflowFailException, match=words):
        direct.execute(operator(task_id="ask", query="q", **arguments), context_of(TaskInstance()))
    assert here.control.requests() == []
