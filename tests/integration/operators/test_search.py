# SPDX-License-Identifier: Apache-2.0
"""The search operator: in a real Airflow what depends on one, in this process all else."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest
from airflow.sdk.exceptions import AirflowFailException, AirflowRescheduleException

from airflow_provider_webdata.api.errors import WebDataError
from airflow_provider_webdata.api.models import SearchRequest
from airflow_provider_webdata.base.service_task import HAS_RETRY_POLICIES
from airflow_provider_webdata.operators.batch_search import WebDataBatchSearchOperator
from airflow_provider_webdata.operators.search import WebDataSearchOperator
from airflow_provider_webdata.policies.retry import POLICIES_RESCHEDULE
from tests.support import direct
from tests.support.airflow_versions import NEEDS_MEMORY
from tests.support.dag_runner import Airflow, Outcome, dag_runner
from tests.support.direct import TaskInstance, context_of, postponed
from tests.support.fault_server import FaultServer, answer
from tests.support.request_fields import alias, samples
from tests.support.service import UNFETCHED, connection_text
from webdata_sandbox.server import SandboxServer

NEEDS_POLICIES = pytest.mark.skipif(not HAS_RETRY_POLICIES, reason="this Airflow has no retry policies")
FOUND = answer(
    body='{"success": true, "id": "s", "creditsUsed": 2, "data": {"web": [{"url": "https://a.example/"}]}}'
)


def refusal(status: int, error: str = "never so", **headers: str) -> Any:
    body = json.dumps({"success": False, "error": error})
    return answer(status, body, headers={name.replace("_", "-"): value for name, value in headers.items()})


def show_zeppelins(sandbox: SandboxServer) -> None:
    for number in range(3):
        title = f"Zeppelin {number}"
        sandbox.control.set_page(
            f"https://zeppelin.example/{number}", markdown=f"# {title}\n\nOf airships.", title=title
        )


# In a real Airflow: one DAG, in which the faults have a service each.

FAULTS = {
    "never": [refusal(402)],
    "again": [refusal(500), FOUND],
    "later": [refusal(429, Retry_After="1"), FOUND],
    "bounded": [refusal(429, Retry_After="1")],
    "policy": [refusal(402), FOUND],
    "taskflow": [refusal(429, Retry_After="1"), FOUND],
}
TASKS = """
search = WebDataSearchOperator(task_id="search", query="zeppelin", limit="{{ 1 + 1 }}", returns="web")

@task
def address(item):
    return item["url"]

@task
def report(urls):
    return sorted(urls)

report(address.expand(item=search.output))

WebDataSearchOperator(
    task_id="names", query="zeppelin", sources=["web", "news"], scrape_options={"formats": ["markdown"]},
    extra_body={"origin": "{{ dag.dag_id }}"},
)

none = WebDataSearchOperator(task_id="none", query="qqqxyzzy", returns="web")

@task
def each(item): ...

each.expand(item=none.output)

WebDataSearchOperator(
    task_id="secret", query="zeppelin",
    scrape_options={
        "formats": ["markdown"],
        "headers": {"X-Pass": "{{ 'hush-' ~ 'header' }}", "Accept-Language": "de-DE"},
    },
)
WebDataSearchOperator.partial(task_id="mapped").expand_kwargs(
    [
        {
            "query": "zeppelin",
            "scrape_options": {"formats": ["markdown"], "headers": {"X-Pass": "{{ 'hush-' ~ 'mapped' }}"}},
        }
    ]
)
another = task(task_id="words")(lambda: ["a", "b"])()
WebDataSearchOperator(task_id="bad_input", query=another, retries=3)
WebDataSearchOperator(task_id="nothing", query="{{ none }}", retries=3)
for name in ("never", "again", "later"):
    WebDataSearchOperator(
        task_id=name, query="q", webdata_conn_id=name, retries=2, retry_delay=datetime.timedelta(0)
    )
WebDataSearchOperator(task_id="bounded", query="q", webdata_conn_id="bounded", rate_limit_timeout=4)
"""
POLICIES = """
from airflow.sdk import ExceptionRetryPolicy
from airflow_provider_webdata.hooks.webdata import WebDataHook
from airflow_provider_webdata.policies.retry import WebDataRetryPolicy

policy = ExceptionRetryPolicy(rules=[])
WebDataSearchOperator(
    task_id="policy", query="q", webdata_conn_id="policy", retries=1, retry_delay=datetime.timedelta(0),
    retry_policy=policy,
)
WebDataSearchOperator(task_id="policy_bad", query="q", limit="{{ 0 }}", retries=1, retry_policy=policy)

@task(retries=1, retry_delay=datetime.timedelta(hours=1), retry_policy=WebDataRetryPolicy())
def taskflow():
    with WebDataHook("taskflow") as hook:
        return len(hook.search({"query": "zeppelin"}).data.web)

taskflow()
"""


class Done(NamedTuple):
    outcome: Outcome
    sandbox: SandboxServer
    servers: dict[str, FaultServer]


@pytest.fixture(scope="module")
def done(airflow: Airflow) -> Iterator[Done]:
    servers = {name: FaultServer(steps) for name, steps in FAULTS.items()}
    environ = {
        f"AIRFLOW_CONN_{name.upper()}": connection_text(server.url, retry_budget=0)
        for name, server in servers.items()
    }
    with SandboxServer() as sandbox:
        show_zeppelins(sandbox)
        body = TASKS + (POLICIES if HAS_RETRY_POLICIES else "")
        outcome = dag_runner(airflow, sandbox)(body, environ=environ)
        yield Done(outcome, sandbox, servers)
    for server in servers.values():
        server.close()


def test_search_then_one_mapped_task_per_result(done: Done) -> None:
    """`returns` makes the list the return value, which maps with no task in between."""
    outcome, sandbox, _ = done
    found = [item["url"] for item in outcome.xcom["search.return_value"]]
    assert len(found) == 2
    assert outcome.xcom["report.return_value"] == sorted(found)
    assert {outcome.state("address[0]"), outcome.state("address[1]")} == {"success"}
    assert outcome.xcom["search.credits_used"] == 2
    assert outcome.xcom["search.id"]
    assert "search.warning" in outcome.xcom
    sent = [request["body"] for request in sandbox.control.requests("/v2/search")]
    assert {"query": "zeppelin", "limit": 2} in sent
    told = f"Search for 'zeppelin' ({outcome.xcom['search.id']}) returned 2 web"
    assert told in outcome.log_of("search")


@pytest.mark.rule("search-data", "search-facts")
def test_wire_names_in_xcom(done: Done) -> None:
    """Without `returns`, the return value is a mapping; what is indexed has keys of its own."""
    outcome, sandbox, _ = done
    value = outcome.xcom["names.return_value"]
    assert {"id", "creditsUsed", "warning", "web", "news"} <= value.keys()
    assert outcome.xcom["names.credits_used"] == value["creditsUsed"]
    assert outcome.xcom["names.id"] == value["id"]
    assert not {"names.web", "names.news", "names.creditsUsed"} & outcome.xcom.keys()
    assert "Of airships." in value["web"][0]["markdown"]
    assert value["web"][0]["metadata"]["sourceURL"]
    sent = [request["body"] for request in sandbox.control.requests("/v2/search")]
    (body,) = (body for body in sent if "origin" in body)
    assert body["scrapeOptions"] == {"formats": ["markdown"]}
    assert body["origin"].startswith("dag_")


def test_no_results_is_an_empty_list(done: Done) -> None:
    """A mapped task over it is skipped, not failed."""
    assert done.outcome.xcom["none.return_value"] == []
    assert done.outcome.state("each") == "skipped"


@pytest.mark.rule("scrape-headers")
def test_header_values_are_hidden_in_rendered_templates(done: Done) -> None:
    """Airflow stores rendered arguments; the values of headers must not be among them, nor in any log."""
    outcome, sandbox, _ = done
    bodies = [request["body"] for request in sandbox.control.requests("/v2/search")]
    headers = [body["scrapeOptions"].get("headers") for body in bodies if "scrapeOptions" in body]
    assert sorted(sent["X-Pass"] for sent in headers if sent) == ["hush-header", "hush-mapped"]
    rendered = outcome.run["rendered"]
    assert rendered["secret"]["scrape_options"]["headers"] == {"X-Pass": "***", "Accept-Language": "de-DE"}
    assert rendered["mapped[0]"]["scrape_options"]["headers"] == {"X-Pass": "***"}
    assert "hush-header" not in outcome.log
    assert "hush-mapped" not in outcome.log
    assert sandbox.api_key not in outcome.log


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("bad_input", ["query: must be one text (given: list of 2)", ".expand(query="]),
        ("nothing", ["query: the template '{{ none }}' rendered to None"]),
    ],
)
def test_bad_input_is_final(done: Done, name: str, words: list[str]) -> None:
    """The list of another task, which the message says how to map over, and a template of None."""
    outcome, sandbox, _ = done
    assert outcome.ended(name) == ("failed", 1)
    assert all(part in outcome.log_of(name) for part in words)
    assert not [sent for sent in sandbox.control.requests("/v2/search") if sent["status"] != 200]


@pytest.mark.rule("status-402")
def test_an_error_that_no_retry_helps_is_final(done: Done) -> None:
    """On every Airflow, with retries left."""
    outcome, _, servers = done
    assert outcome.ended("never") == ("failed", 1)
    assert "never so" in outcome.log_of("never")
    assert len(servers["never"].requests) == 1


@pytest.mark.rule("status-500")
def test_an_error_that_a_retry_may_help_is_retried(done: Done) -> None:
    """A search is billed, so that the client does not repeat it after a fault of the service; the task does."""
    assert done.outcome.ended("again") == ("success", 2)
    assert len(done.servers["again"].requests) == 2


@pytest.mark.rule("status-429", "retry-after")
def test_a_named_wait_reschedules(done: Done) -> None:
    """The wait is over the budget, so that the task comes back at the named time, on the same try."""
    outcome, _, servers = done
    assert outcome.ended("later") == ("success", 1)
    assert outcome.log_of("later").count("Rescheduling task") == 1
    assert len(servers["later"].requests) == 2


@NEEDS_MEMORY
def test_rescheduling_ends_with_the_refusal(done: Done) -> None:
    outcome, _, servers = done
    assert outcome.state("bounded") == "failed"
    assert len(servers["bounded"].requests) >= 2
    assert "exceed rate_limit_timeout=4 s" in outcome.log_of("bounded")


@NEEDS_POLICIES
def test_an_explicit_policy_decides(done: Done) -> None:
    """Bad input fails immediately anyway."""
    assert done.outcome.ended("policy") == ("success", 2)
    assert done.outcome.ended("policy_bad") == ("failed", 1)


@pytest.mark.rule("retry-after")
@NEEDS_POLICIES
def test_policy_in_a_taskflow_task(done: Done) -> None:
    """The provider's policy fits any task that uses the hook: it runs again in time, if possible without a retry."""
    assert done.outcome.ended("taskflow") == ("success", 1 if POLICIES_RESCHEDULE else 2)
    assert done.outcome.xcom["taskflow.return_value"] == 1


# In this process.


def search(**arguments: Any) -> Any:
    return WebDataSearchOperator(task_id="search", **{"query": "q", **arguments})


TEMPLATED_INSIDE = {
    "threatProtection": (
        {"mode": "normal", "risk_score_threshold": "50"},
        {"mode": "normal", "riskScoreThreshold": 50},
    ),
    "scrapeOptions": ({"max_age": "0", "only_main_content": False}, {"maxAge": 0, "onlyMainContent": False}),
}
"""Objects as their authors write them, and as they are sent."""


@pytest.mark.rule("search-limit", "search-sources", "search-categories", "search-tbs", "search-location")
@pytest.mark.rule("search-safe", "search-timeout", "search-ignore-invalid-urls", "search-highlights")
@pytest.mark.rule("search-enterprise", "search-scrape-options")
def test_every_field_is_templated_and_sent(here: SandboxServer) -> None:
    """Each documented field, rendered from a template; numbers and switches as text become what they are."""
    here.control.configure(entitlements=["enterprise", "threatProtection"])

    def as_text(value: Any) -> Any:
        return str(value) if isinstance(value, (bool, int)) else value

    def templated(value: Any) -> Any:
        if isinstance(value, str):
            return "{{ " + repr(value) + " }}"
        if isinstance(value, list):
            return [templated(item) for item in value]
        return {k: templated(v) for k, v in value.items()} if isinstance(value, dict) else value

    fields = {**samples(SearchRequest), **{name: sent for name, (_, sent) in TEMPLATED_INSIDE.items()}}
    fields["timeout"] = 20_000
    # Only one of the domain filters may be given; the other has its own test. Labels are sent by `extra_body`.
    for name in ("excludeDomains", "origin", "integration"):
        del fields[name]
    python = {alias(SearchRequest, name): name for name in SearchRequest.model_fields}
    given = {
        python[name]: templated(TEMPLATED_INSIDE[name][0] if name in TEMPLATED_INSIDE else as_text(value))
        for name, value in fields.items()
    }
    assert direct.run(search(**given)).state == "success"
    (sent,) = here.control.requests("/v2/search")
    assert sent["body"] == fields


@pytest.mark.rule("search-domains")
def test_exclude_domains(here: SandboxServer) -> None:
    direct.run(search(exclude_domains=["zeppelin.example"]))
    (sent,) = here.control.requests("/v2/search")
    assert sent["body"] == {"query": "q", "excludeDomains": ["zeppelin.example"]}


BAD_INPUT: dict[str, tuple[dict[str, Any], list[str]]] = {
    "number over its limit": ({"limit": "{{ 101 }}"}, ["limit", "100", "101"]),
    "unknown format": (
        {"scrape_options": {"formats": ["{{ 'markdwn' }}"]}},
        ["scrape_options.formats[0]", "did you mean 'markdown'?"],
    ),
    "template of None, inside": (
        {"sources": [{"type": "web", "location": "{{ none }}"}]},
        ["sources: the template", "rendered to None"],
    ),
    "extra body that is a list": ({"extra_body": "[1]"}, ["extra_body", "list"]),
}


@pytest.mark.parametrize(("arguments", "words"), BAD_INPUT.values(), ids=BAD_INPUT.keys())
def test_bad_input_fails_before_any_request(
    here: SandboxServer, arguments: dict[str, Any], words: list[str]
) -> None:
    """The message names field, rule and given value."""
    with pytest.raises(AirflowFailException) as failure:
        direct.execute(search(**arguments), context_of(TaskInstance()))
    assert here.control.requests() == []
    assert all(word in str(failure.value) for word in words)


@pytest.mark.rule("status-400", "status-401", "status-402", "status-403")
@pytest.mark.parametrize("status", [400, 401, 402, 403])
def test_statuses_that_no_retry_helps(here: SandboxServer, status: int) -> None:
    here.control.add_fault(
        "status", path="/v2/search", status=status, body={"success": False, "error": "never so"}
    )
    outcome = direct.run(search(retries=2))
    assert outcome.ended == ("failed", 1)
    assert "never so" in str(outcome.error)
    assert len(here.control.requests("/v2/search")) == 1


@pytest.mark.rule("status-429", "status-5xx", "retry-after")
def test_a_service_that_names_a_time(here: SandboxServer, connect: Any) -> None:
    """Also one that is unavailable."""
    connect(here, retry_budget=0)
    here.control.add_fault("status", path="/v2/search", status=503, headers={"Retry-After": "2"})
    outcome = direct.run(search())
    assert (*outcome.ended, outcome.reschedules) == ("success", 1, 1)
    assert [request["status"] for request in here.control.requests("/v2/search")] == [503, 200]


def test_a_wait_without_end_fails_the_task(here: SandboxServer, log: Any) -> None:
    """No wait is too long to be understood."""
    here.control.add_fault(
        "status", path="/v2/search", status=429, headers={"Retry-After": "Fri, 31 Dec 9999 23:59:59 GMT"}
    )
    with pytest.raises(WebDataError):
        search().execute(context_of(TaskInstance()))
    assert "exceed rate_limit_timeout=21600 s" in log()
    assert len(here.control.requests("/v2/search")) == 1


@pytest.mark.parametrize(("status", "seconds_ago", "again"), [(429, 90, True), (503, 100, False)])
def test_rescheduling_is_bounded(
    here: SandboxServer, connect: Any, log: Any, status: int, seconds_ago: int, again: bool
) -> None:
    connect(here, retry_budget=0)
    here.control.add_fault("status", path="/v2/search", status=status, headers={"Retry-After": "1"})
    with pytest.raises(AirflowRescheduleException if again else WebDataError):
        search(rate_limit_timeout=100).execute(postponed(seconds_ago))
    assert ("exceed rate_limit_timeout=100 s" in log()) is not again


def test_a_bad_connection_is_final(here: SandboxServer, connect: Any) -> None:
    connect(here, timeout="soon")
    outcome = direct.run(search(retries=2))
    assert outcome.ended == ("failed", 1)
    assert "connection 'webdata_default': timeout must be a number (given: 'soon')" in str(outcome.error)


@pytest.mark.rule("search-facts")
@pytest.mark.rule("metadata-not-fetched")
@pytest.mark.parametrize(
    "page",
    [
        UNFETCHED,
        {"metadata": {"statusCode": 500, "error": "Network Connect Timeout Error", "proxyUsed": "basic"}},
    ],
    ids=["self-hosted", "public"],
)
def test_results_whose_pages_were_not_fetched_are_named(
    monkeypatch: pytest.MonkeyPatch, log: Any, page: Any, tmp_path: Any
) -> None:
    """The results themselves are valid."""
    web = [{"url": "https://a.example/", "title": "A"}, {"url": "http://nohost.example.net/x", **page}]
    server = FaultServer([answer(body=json.dumps({"success": True, "data": {"web": web}, "creditsUsed": 2}))])
    monkeypatch.setenv("AIRFLOW_CONN_WEBDATA_DEFAULT", connection_text(server.url))
    problem = "of 1 results could not be fetched: http://nohost.example.net/x: Network Connect Timeout Error"
    one = direct.run(WebDataSearchOperator(task_id="search", query="a"))
    assert one.value["web"] == web
    path = tmp_path / "a.jsonl"
    many = direct.run(WebDataBatchSearchOperator(task_id="many", queries=["a"], save_to=str(path)))
    server.close()
    failed = [{"kind": "pages_failed", "number": 1, "of": 1}]
    assert one.xcom["incomplete"] == many.xcom["incomplete"] == failed
    found = [json.loads(line)["url"] for line in path.read_text().splitlines()]
    assert found == [item["url"] for item in web]
    assert log().count(problem) == 2


@pytest.mark.rule("search-research-moves")
def test_papers_that_moved_from_the_web_results(here: SandboxServer, log: Any, tmp_path: Any) -> None:
    here.control.set_quirks(["research-moved"])
    query = {"query": "river", "categories": ["research"]}
    assert direct.run(search(**query, returns="web")).value == []
    assert "returns='web': the response has no such results, but results in 'research'" in log()
    found = direct.run(search(**query, returns="research")).value
    assert found[0].keys() == {"paperId", "primaryId", "ids", "title", "abstract", "score"}
    table = direct.run(search(**query, returns="research", save_to=f"{tmp_path}/papers.parquet"))
    assert table.value["count"] == len(found)


def test_warning_of_the_service_is_logged_as_one(here: SandboxServer, log: Any) -> None:
    body = {
        "success": True,
        "data": {"web": []},
        "warning": "half of it is missing",
        "id": "s-1",
        "creditsUsed": 2,
    }
    here.control.add_fault("status", path="/v2/search", status=200, body=body)
    assert direct.run(search()).value["warning"] == "half of it is missing"
    (line,) = [line for line in log().splitlines() if "The service warns: half of it is missing" in line]
    assert "warning" in line.lower().split("the service warns")[0]
