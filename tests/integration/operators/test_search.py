"""The search operator in a real Airflow, against the sandbox over HTTP."""

from __future__ import annotations

import pytest
from airflow import __version__ as airflow_version
from packaging.version import Version

from airflow_provider_webdata.api.models import SearchRequest
from tests.support.request_fields import alias, samples

ASKS_A_POLICY = pytest.mark.skipif(
    Version(airflow_version).release < (3, 3), reason="this Airflow asks no policy"
)


@pytest.fixture(autouse=True)
def _pages(sandbox):
    for number in range(3):
        title = f"Zeppelin {number}"
        sandbox.control.set_page(
            f"https://zeppelin.example/{number}", markdown=f"# {title}\n\nOf airships.", title=title
        )


def test_search_then_one_mapped_task_per_result(run_dag, sandbox):
    """`returns` makes the list the return value, which maps with no task in between."""
    done = run_dag(
        """
        search = WebDataSearchOperator(task_id="search", query="zeppelin", limit="{{ 1 + 1 }}", returns="web")

        @task
        def address(item):
            return item["url"]

        @task
        def report(urls):
            return sorted(urls)

        report(address.expand(item=search.output))
        """
    )
    assert done.run["state"] == "success"
    found = [item["url"] for item in done.xcom["search.return_value"]]
    assert len(found) == 2
    assert done.xcom["report.return_value"] == sorted(found)
    assert {done.state("address[0]"), done.state("address[1]")} == {"success"}
    assert done.xcom["search.creditsUsed"] == 2
    assert done.xcom["search.id"]
    assert "search.warning" in done.xcom
    (sent,) = sandbox.control.requests("/v2/search")
    assert sent["body"] == {"query": "zeppelin", "limit": 2}
    assert f"Search for 'zeppelin' ({done.xcom['search.id']}) brought 2 web; credits used: 2" in done.log


@pytest.mark.rule("search-data", "search-facts")
def test_wire_names_in_xcom(run_dag, sandbox):
    """Without `returns`, the return value is a mapping, and each of its keys an XCom of its own."""
    done = run_dag(
        """
        WebDataSearchOperator(
            task_id="search", query="zeppelin", sources=["web", "news"], scrape_options={"formats": ["markdown"]},
            extra_body={"origin": "{{ dag.dag_id }}"},
        )
        """
    )
    value = done.xcom["search.return_value"]
    assert {"id", "creditsUsed", "warning", "web", "news"} <= value.keys()
    assert {name: done.xcom[f"search.{name}"] for name in value} == value
    assert "Of airships." in value["web"][0]["markdown"]
    assert value["web"][0]["metadata"]["sourceURL"]
    (sent,) = sandbox.control.requests("/v2/search")
    assert sent["body"]["scrapeOptions"] == {"formats": ["markdown"]}
    assert sent["body"]["origin"].startswith("dag_")


def test_no_results_is_an_empty_list(run_dag):
    """A mapped task over it is skipped, not failed."""
    done = run_dag(
        """
        search = WebDataSearchOperator(task_id="search", query="qqqxyzzy", returns="web")

        @task
        def each(item): ...

        each.expand(item=search.output)
        """
    )
    assert done.xcom["search.return_value"] == []
    assert done.state("each") == "skipped"


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
def test_every_field_is_templated_and_sent(run_dag, sandbox):
    """Each documented field, rendered from a template; numbers and switches as text become what they are."""
    sandbox.control.configure(entitlements=["enterprise", "threatProtection"])

    def as_text(value):
        return str(value) if isinstance(value, (bool, int)) else value

    def templated(value):
        if isinstance(value, str):
            return "{{ " + repr(value) + " }}"
        if isinstance(value, list):
            return [templated(item) for item in value]
        return {k: templated(v) for k, v in value.items()} if isinstance(value, dict) else value

    fields = {**samples(SearchRequest), **{name: sent for name, (_, sent) in TEMPLATED_INSIDE.items()}}
    fields["timeout"] = 20_000
    # Only one of the domain filters may be given; the other has a test of its own.
    del fields["excludeDomains"]
    python = {alias(SearchRequest, name): name for name in SearchRequest.model_fields}
    given = {
        python[name]: templated(TEMPLATED_INSIDE[name][0] if name in TEMPLATED_INSIDE else as_text(value))
        for name, value in fields.items()
    }
    done = run_dag(f"WebDataSearchOperator(task_id='search', **{given!r})")
    (sent,) = sandbox.control.requests("/v2/search")
    assert sent["body"] == fields
    assert done.run["state"] == "success"


@pytest.mark.rule("search-domains")
def test_exclude_domains(run_dag, sandbox):
    run_dag("WebDataSearchOperator(task_id='search', query='zeppelin', exclude_domains=['zeppelin.example'])")
    (sent,) = sandbox.control.requests("/v2/search")
    assert sent["body"] == {"query": "zeppelin", "excludeDomains": ["zeppelin.example"]}


BAD_INPUT = {
    "number over its limit": ("query='q', limit='{{ 101 }}'", ["limit", "100", "101"]),
    "number that is none": ("query='q', limit='{{ \"many\" }}'", ["limit", "many"]),
    "both domain filters": (
        "query='q', include_domains=['a.example'], exclude_domains=['b.example']",
        ["include", "exclude"],
    ),
    "unknown format": (
        "query='q', scrape_options={'formats': ['{{ \"markdwn\" }}']}",
        ["scrape_options.formats[0]", "did you mean 'markdown'?"],
    ),
    "template of None": ("query='{{ none }}'", ["query: the template '{{ none }}' rendered to None"]),
    "template of None, inside": (
        "query='q', sources=[{'type': 'web', 'location': '{{ params.get(\"x\") }}'}]",
        ["sources: the template", "rendered to None"],
    ),
    "another task's list": (
        "query=task(task_id='words')(lambda: ['a', 'b'])()",
        ["query: one text is expected (given: list of 2)", ".expand(query="],
    ),
    "template that renders to nothing": ("query='{{ none or \"\" }}'", ["query"]),
    "extra body that is a list": ("query='q', extra_body='[1]'", ["extra_body", "list"]),
}


@pytest.mark.parametrize(("arguments", "words"), BAD_INPUT.values(), ids=BAD_INPUT.keys())
def test_bad_input_fails_before_any_request(run_dag, sandbox, arguments, words):
    """No request, no retry; the message names field, rule and given value."""
    done = run_dag(f"WebDataSearchOperator(task_id='search', retries=3, {arguments})")
    assert done.run["tasks"]["search"] == {"state": "failed", "try_number": 1}
    assert sandbox.control.requests() == []
    for word in words:
        assert word in done.log


NEVER = [400, 401, 402, 403]


@pytest.mark.rule("status-400", "status-401", "status-402", "status-403")
@pytest.mark.parametrize("status", NEVER)
def test_what_no_retry_helps_fails_at_once(run_dag, sandbox, status):
    """On every Airflow, with retries left."""
    sandbox.control.add_fault(
        "status", path="/v2/search", status=status, body={"success": False, "error": "never so"}
    )
    done = run_dag("WebDataSearchOperator(task_id='search', query='q', retries=2)")
    assert done.run["tasks"]["search"] == {"state": "failed", "try_number": 1}
    assert "never so" in done.log
    assert len(sandbox.control.requests("/v2/search")) == 1


@pytest.mark.rule("status-500")
def test_what_a_retry_may_help_is_retried(run_dag, sandbox):
    """A search is billed, so that the client does not repeat it after a fault of the service; the task does."""
    sandbox.control.add_fault(
        "status", path="/v2/search", status=500, body={"success": False, "error": "oops"}
    )
    done = run_dag(
        "WebDataSearchOperator(task_id='search', query='zeppelin', retries=1, "
        "retry_delay=datetime.timedelta(0))"
    )
    assert done.run["tasks"]["search"] == {"state": "success", "try_number": 2}


@pytest.mark.rule("status-429", "status-5xx", "retry-after")
@pytest.mark.parametrize("status", [429, 503])
def test_a_named_wait_reschedules(run_dag, sandbox, status):
    """The wait is over the budget, so that the task comes back at the named time, on the same try."""
    sandbox.control.add_fault("status", path="/v2/search", status=status, headers={"Retry-After": "2"})
    done = run_dag("WebDataSearchOperator(task_id='search', query='zeppelin')", retry_budget=0)
    assert done.run["tasks"]["search"] == {"state": "success", "try_number": 1}
    assert len(done.run["reschedules"]) == 1
    assert "Rescheduling task" in done.log
    assert [request["status"] for request in sandbox.control.requests("/v2/search")] == [status, 200]


@pytest.mark.parametrize("status", [429, 503])
def test_a_wait_without_end_fails_the_task(run_dag, sandbox, status):
    """No wait is too long to be understood."""
    sandbox.control.add_fault(
        "status", path="/v2/search", status=status, headers={"Retry-After": "Fri, 31 Dec 9999 23:59:59 GMT"}
    )
    done = run_dag("WebDataSearchOperator(task_id='search', query='zeppelin')")
    assert done.state("search") == "failed"
    assert "exceed rate_limit_timeout=21600 s" in done.log
    assert "OverflowError" not in done.log
    assert len(sandbox.control.requests("/v2/search")) == 1


@pytest.mark.parametrize("status", [429, 503])
def test_rescheduling_is_bounded(run_dag, sandbox, status):
    """Coming back ends with rate_limit_timeout; the task then fails with the refusal."""
    sandbox.control.add_fault(
        "status", path="/v2/search", status=status, times=None, headers={"Retry-After": "1"}
    )
    done = run_dag(
        "WebDataSearchOperator(task_id='search', query='zeppelin', rate_limit_timeout=6)", retry_budget=0
    )
    assert done.state("search") == "failed"
    assert len(done.run["reschedules"]) >= 1
    assert "exceed rate_limit_timeout=6 s" in done.log


@pytest.mark.rule("scrape-headers")
def test_header_values_are_hidden_in_rendered_templates(run_dag, sandbox):
    """Airflow stores rendered arguments; the values of headers must not be among them, nor in any log."""
    done = run_dag(
        """
        WebDataSearchOperator(
            task_id="search", query="zeppelin",
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
        """
    )
    assert done.run["state"] == "success"
    sent = [
        request["body"]["scrapeOptions"]["headers"]["X-Pass"]
        for request in sandbox.control.requests("/v2/search")
    ]
    assert sorted(sent) == ["hush-header", "hush-mapped"]
    rendered = done.run["rendered"]
    assert rendered["search"]["scrape_options"]["headers"] == {"X-Pass": "***", "Accept-Language": "de-DE"}
    assert rendered["mapped[0]"]["scrape_options"]["headers"] == {"X-Pass": "***"}
    assert "hush-header" not in done.log
    assert "hush-mapped" not in done.log
    assert sandbox.api_key not in done.log


def test_bad_connection_fails_at_once(run_dag, sandbox):
    """What is wrong with the connection is said, and no retry is made."""
    done = run_dag("WebDataSearchOperator(task_id='search', query='q', retries=2)", timeout="soon")
    assert done.run["tasks"]["search"] == {"state": "failed", "try_number": 1}
    assert "connection 'webdata_default': timeout must be a number (given: 'soon')" in done.log


@pytest.mark.rule("search-facts")
def test_warning_of_the_service_is_logged_as_one(run_dag, sandbox):
    body = {
        "success": True,
        "data": {"web": []},
        "warning": "half of it is missing",
        "id": "s-1",
        "creditsUsed": 2,
    }
    sandbox.control.add_fault("status", path="/v2/search", status=200, body=body)
    done = run_dag("WebDataSearchOperator(task_id='search', query='q')")
    assert done.xcom["search.warning"] == "half of it is missing"
    (line,) = [line for line in done.log.splitlines() if "The service warns: half of it is missing" in line]
    assert "warning" in line.lower().split("the service warns")[0]


@ASKS_A_POLICY
def test_explicit_policy_is_respected(run_dag, sandbox):
    """A policy of the task's own decides, but bad input fails at once all the same."""
    sandbox.control.add_fault(
        "status", path="/v2/search", status=402, body={"success": False, "error": "no credits"}
    )
    done = run_dag(
        """
        from airflow.sdk import ExceptionRetryPolicy
        policy = ExceptionRetryPolicy(rules=[])
        WebDataSearchOperator(
            task_id="poor", query="q", retries=1, retry_delay=datetime.timedelta(0), retry_policy=policy
        ) >> WebDataSearchOperator(task_id="bad", query="q", limit="{{ 0 }}", retries=1, retry_policy=policy)
        """
    )
    assert done.run["tasks"]["poor"] == {"state": "success", "try_number": 2}
    assert done.run["tasks"]["bad"] == {"state": "failed", "try_number": 1}


@pytest.mark.rule("retry-after")
@ASKS_A_POLICY
def test_policy_in_a_taskflow_task(run_dag, sandbox):
    """The provider's policy fits any task that uses the hook: a refusal for rate is retried in time."""
    sandbox.control.add_fault("status", path="/v2/search", status=429, headers={"Retry-After": "1"})
    done = run_dag(
        """
        from airflow_provider_webdata.hooks.webdata import WebDataHook
        from airflow_provider_webdata.operators.retry import WebDataRetryPolicy

        @task(retries=1, retry_delay=datetime.timedelta(hours=1), retry_policy=WebDataRetryPolicy())
        def search():
            with WebDataHook() as hook:
                return len(hook.search({"query": "zeppelin"}).data.web)

        search()
        """,
        retry_budget=0,
    )
    assert done.run["tasks"]["search"] == {"state": "success", "try_number": 2}
    assert done.xcom["search.return_value"] == 3
