"""Searches of the service's indexes, in a real Airflow against the sandbox over HTTP."""

from __future__ import annotations

import json

import pytest

IMPORT = (
    "from airflow_provider_webdata.operators.developer_search import WebDataDeveloperSearchOperator\n"
    "from airflow_provider_webdata.operators.paper_search import WebDataPaperSearchOperator"
)


@pytest.mark.rule("developer-answer", "developer-scope", "credits-index")
def test_developer_search(run_dag, sandbox):
    done = run_dag(
        """
        WebDataDeveloperSearchOperator(
            task_id="ask", query="{{ 'clocks go forward' }}", k="{{ 4 }}", repos=["pipeline/pipeline"],
            types=["issue", "readme"], extra_body={"min_stars": 0},
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
    assert "Developer search for 'clocks go forward' brought 1 results" in done.log


@pytest.mark.rule("research-papers", "research-days", "credits-index")
def test_papers_into_a_file(run_dag, sandbox, tmp_path):
    path = tmp_path / "papers.jsonl"
    done = run_dag(
        f"""
        WebDataPaperSearchOperator(
            task_id="ask", query="rain", k=5, from_date="2001-01-01", authors=["brook"], output="{path}"
        )
        """,
        before=IMPORT,
    )
    assert done.run["state"] == "success"
    assert done.xcom["ask.return_value"]["count"] == 1
    (paper,) = map(json.loads, path.read_text().splitlines())
    assert paper["primaryId"] == "doi:10.5555/rain"
    (sent,) = sandbox.control.requests("/v2/search/research/papers")
    assert sent["query"] == {"query": "rain", "k": "5", "authors": "brook", "from": "2001-01-01"}


COSTLY = {
    "developer": ("WebDataDeveloperSearchOperator", "k=11", 3, "4 for 11 results"),
    "papers": ("WebDataPaperSearchOperator", "", 7, "8 for 40 results"),
}


@pytest.mark.parametrize(("operator", "arguments", "limit", "words"), COSTLY.values(), ids=COSTLY.keys())
def test_what_may_cost_more_than_allowed_is_not_sent(run_dag, sandbox, operator, arguments, limit, words):
    done = run_dag(
        f"""{operator}(task_id="ask", query="river", credit_limit={limit}, retries=1, {arguments})""",
        before=IMPORT,
    )
    assert done.run["tasks"]["ask"] == {"state": "failed", "try_number": 1}
    assert words in done.log
    assert sandbox.control.requests() == []


@pytest.mark.rule("research-billed-get")
def test_a_lost_answer_is_left_to_the_retry(run_dag, sandbox):
    sandbox.control.add_fault("drop_after_work", path="/v2/search/research")
    done = run_dag(
        """
        WebDataPaperSearchOperator(task_id="ask", query="rain", retries=1, retry_delay=datetime.timedelta(0))
        """,
        before=IMPORT,
    )
    assert done.run["tasks"]["ask"] == {"state": "success", "try_number": 2}
    assert len(sandbox.control.requests("/v2/search/research/papers")) == 2


BAD_INPUT = {
    "nothing can match": (
        'WebDataDeveloperSearchOperator(task_id="ask", query="q", types=["doc"], repos=["a/b"]',
        "repos cannot match",
    ),
    "no day": (
        'WebDataPaperSearchOperator(task_id="ask", query="q", to_date="{{ \'today\' }}"',
        "to_date: a day is expected",
    ),
}


@pytest.mark.parametrize(("task", "words"), BAD_INPUT.values(), ids=BAD_INPUT.keys())
def test_bad_input_fails_before_any_request(run_dag, sandbox, task, words):
    done = run_dag(f"{task}, retries=1)", before=IMPORT)
    assert done.run["tasks"]["ask"] == {"state": "failed", "try_number": 1}
    assert words in done.log
    assert sandbox.control.requests() == []
