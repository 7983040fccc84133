# SPDX-License-Identifier: Apache-2.0
"""Arguments of the operators are checked while a DAG file is parsed."""

from __future__ import annotations

from datetime import timedelta

import pytest
from airflow.sdk import DAG
from pydantic import BaseModel

from airflow_provider_webdata.operators.batch_scrape import WebDataBatchScrapeOperator
from airflow_provider_webdata.operators.batch_search import WebDataBatchSearchOperator
from airflow_provider_webdata.operators.crawl import WebDataCrawlOperator
from airflow_provider_webdata.operators.credit_usage import WebDataCreditUsageOperator
from airflow_provider_webdata.operators.interact import WebDataInteractOperator
from airflow_provider_webdata.operators.map import WebDataMapOperator
from airflow_provider_webdata.operators.monitor import (
    WebDataCreateMonitorOperator,
    WebDataDeleteMonitorOperator,
    WebDataRunMonitorOperator,
    WebDataUpdateMonitorOperator,
)
from airflow_provider_webdata.operators.scrape import WebDataScrapeOperator
from airflow_provider_webdata.operators.search import WebDataSearchOperator
from airflow_provider_webdata.transfers.webdata_to_table import WebDataToTableOperator


class Plan(BaseModel):
    price: float


URL = {"url": "https://a.example/"}
TARGETS = [{"type": "scrape", "urls": ["https://a.example/"]}]


def watched(*formats):
    return {"type": "scrape", "urls": ["https://a.example/"], "scrapeOptions": {"formats": [*formats]}}


MONITOR = {"name": "n", "schedule": {"text": "daily"}, "targets": TARGETS}
REFUSED = {
    "unknown kind of result": (
        WebDataSearchOperator,
        {"query": "q", "returns": "videos"},
        "returns must be one of",
    ),
    "mapping of a list": (
        WebDataSearchOperator,
        {"query": "q", "returns": "web", "multiple_outputs": True},
        "multiple_outputs",
    ),
    "if_exists": (
        WebDataCreateMonitorOperator,
        {"name": "n", "schedule": {}, "targets": [], "if_exists": "replace"},
        "if_exists must be one of update, reuse",
    ),
    "neither id nor name": (WebDataUpdateMonitorOperator, {"status": "paused"}, "monitor_id or monitor_name"),
    "id and name": (
        WebDataDeleteMonitorOperator,
        {"monitor_id": "m", "monitor_name": "n"},
        "monitor_id or monitor_name",
    ),
    "body for a request that sends none": (
        WebDataRunMonitorOperator,
        {"monitor_id": "m", "extra_body": {"a": 1}},
        "extra_body would have no effect",
    ),
    "a span in words": (
        WebDataRunMonitorOperator,
        {"monitor_id": "m", "replica_wait": "3"},
        "replica_wait must be seconds or a timedelta, at least 0",
    ),
    "no span": (
        WebDataSearchOperator,
        {"query": "q", "rate_limit_timeout": None},
        "rate_limit_timeout must be seconds or a timedelta, at least 0",
    ),
    "no pages": (
        WebDataRunMonitorOperator,
        {"monitor_id": "m", "include_pages": None},
        "include_pages must be",
    ),
    "pages by number": (
        WebDataRunMonitorOperator,
        {"monitor_id": "m", "include_pages": 5},
        "include_pages must be",
    ),
    "no events": (
        WebDataCreateMonitorOperator,
        {"name": "n", "schedule": {}, "targets": [], "webhook_events": None},
        "webhook_events must name some of",
    ),
    "events by number": (
        WebDataCreateMonitorOperator,
        {"name": "n", "schedule": {}, "targets": [], "webhook_events": [5]},
        "webhook_events must name some of",
    ),
    "if_running": (WebDataRunMonitorOperator, {"monitor_id": "m", "if_running": "wait"}, "if_running"),
    "kind of map result": (
        WebDataMapOperator,
        {**URL, "returns": "pages"},
        "returns must be one of links, urls",
    ),
    "a list that goes to a file": (
        WebDataMapOperator,
        {**URL, "returns": "urls", "save_to": "/x.jsonl"},
        "no effect with save_to",
    ),
    "format of the output": (WebDataScrapeOperator, {**URL, "save_to": "/x.xlsx"}, "jsonl"),
    "what low credits lead to": (
        WebDataCreditUsageOperator,
        {"on_low": "warn"},
        "on_low must be one of fail, skip",
    ),
    "body for a request without one": (WebDataCreditUsageOperator, {"extra_body": {"a": 1}}, "no effect"),
    "a profile for a scrape's browser": (
        WebDataInteractOperator,
        {"steps": ["x"], "scrape_id": "i", "profile": {}},
        "profile: no effect",
    ),
    "no concurrency": (
        WebDataBatchSearchOperator,
        {"queries": ["q"], "save_to": "a.jsonl", "max_concurrency": 0},
        "max_concurrency",
    ),
    "concurrency that is no number": (
        WebDataBatchSearchOperator,
        {"queries": ["q"], "save_to": "a.jsonl", "max_concurrency": "10"},
        "max_concurrency",
    ),
}


@pytest.mark.parametrize(("operator", "arguments", "words"), REFUSED.values(), ids=REFUSED.keys())
def test_contradictions_fail_while_the_dag_is_read(operator, arguments, words):
    """What can be seen without rendering is said to whoever writes the DAG, before it runs."""
    with pytest.raises(ValueError, match=words):
        operator(task_id="t", **arguments)


RIGHT = {
    "a schema of pages that a query asks for": (
        WebDataBatchSearchOperator,
        {
            "queries": [{"query": "q", "scrapeOptions": {"formats": [{"type": "json", "schema": {}}]}}],
            "result_schema": {},
            "save_to": "a.jsonl",
        },
    ),
    "a schema of pages that queries may ask for": (
        WebDataBatchSearchOperator,
        {"queries": "{{ queries }}", "result_schema": {}, "save_to": "a.jsonl"},
    ),
    "a search for what domain tools find": (
        WebDataSearchOperator,
        {"query": "q", "returns": "tools", "domain_tools": True},
    ),
    "images among others": (
        WebDataSearchOperator,
        {"query": "q", "returns": "images", "sources": ["web", {"type": "images"}]},
    ),
    "papers of the research category": (
        WebDataSearchOperator,
        {"query": "q", "returns": "research", "categories": ["research"]},
    ),
    "expressions with stars": (
        WebDataCrawlOperator,
        {**URL, "include_paths": ["^/$", "/blog/.*", "/a/?b*$"]},
    ),
    "expressions as a template": (WebDataCrawlOperator, {**URL, "exclude_paths": "{{ params.paths }} /"}),
    "a limit that is held": (WebDataCrawlOperator, {**URL, "limit": 100, "credit_limit": 500}),
    "a limit with a switch as text": (
        WebDataCrawlOperator,
        {
            **URL,
            "limit": 3,
            "allow_external_links": "False",
            "scrape_options": {"proxy": "basic"},
            "credit_limit": 5,
        },
    ),
    "a limit as text": (WebDataCrawlOperator, {**URL, "limit": "100", "credit_limit": 5}),
    "a limit for pages that are known later": (
        WebDataBatchScrapeOperator,
        {"urls": "{{ urls }}", "credit_limit": 5},
    ),
    "a limit for what is known later": (
        WebDataCrawlOperator,
        {**URL, "limit": "{{ limit }}", "credit_limit": 5},
    ),
    "a model for a schema": (
        WebDataScrapeOperator,
        {**URL, "formats": [{"type": "json", "schema": Plan}], "result_schema": Plan},
    ),
    "JSON of a monitor": (
        WebDataCreateMonitorOperator,
        {**MONITOR, "targets": [watched({"type": "changeTracking", "modes": ["json"], "schema": {}})]},
    ),
    "a cron and a URL": (
        WebDataCreateMonitorOperator,
        {**MONITOR, "schedule": "0 5 * * *", "targets": ["https://a.example/"]},
    ),
}


@pytest.mark.parametrize(("operator", "arguments"), RIGHT.values(), ids=RIGHT.keys())
def test_literals_that_can_work_pass(operator, arguments):
    operator(task_id="t", **arguments)


def test_time_spans():
    operator = WebDataRunMonitorOperator(
        task_id="t", monitor_id="m", replica_wait=timedelta(seconds=3), rate_limit_timeout=timedelta(hours=1)
    )
    assert (operator.replica_wait, operator.rate_limit_timeout) == (timedelta(seconds=3), timedelta(hours=1))
    WebDataSearchOperator(task_id="t", query="q", rate_limit_timeout=0)


WRONG = {
    "a source that is not searched": (
        WebDataSearchOperator,
        {"query": "q", "returns": "images"},
        "returns='images' requires the source 'images': add it to sources",
    ),
    "a glob": (
        WebDataCrawlOperator,
        {**URL, "include_paths": ["^/a", "/blog/*"]},
        r"include_paths: '/blog/\*' is a glob.*write '\^/blog/\.\*\$'",
    ),
    "a glob of a whole URL": (
        WebDataCrawlOperator,
        {**URL, "include_paths": ["https://a.example/b/*"], "regex_on_full_url": True},
        r"write '\^https://a\[\.\]example/b/\.\*\$'",
    ),
    "a glob of a URL for paths": (
        WebDataCrawlOperator,
        {**URL, "include_paths": ["^/$", "https://a.example/b/*"]},
        r"write '\^/b/\.\*\$'",
    ),
    "a start that is excluded": (
        WebDataCrawlOperator,
        {"url": "https://a.example/blog/", "exclude_paths": ["^/blog/"]},
        "exclude_paths: an expression matches the start",
    ),
    "look-around": (
        WebDataCrawlOperator,
        {**URL, "include_paths": ["^/", "^/(?!blog)"]},
        r"include_paths: '\^/\(\?!blog\)' uses look-around or a backreference",
    ),
    "look-around in a map": (
        WebDataMapOperator,
        {**URL, "exclude_paths": ["(?<=/)a"]},
        "exclude_paths: .* uses",
    ),
    "a glob of a map": (WebDataMapOperator, {**URL, "include_paths": ["/blog/*"]}, "a glob.*write '.*/blog/"),
    "a phrase": (WebDataCreateMonitorOperator, {**MONITOR, "schedule": "dayly"}, "schedule"),
    "a target that is no URL": (
        WebDataCreateMonitorOperator,
        {**MONITOR, "targets": ["ftp://a.example"]},
        "targets.0..urls.0.: .*only http and https",
    ),
    "a long query": (WebDataSearchOperator, {"query": "q" * 501}, "at most 500 characters after"),
    "too many": (WebDataSearchOperator, {"query": "q", "limit": 1000}, "limit: .* 100 .given: 1000"),
    "too many, as text": (WebDataSearchOperator, {"query": "q", "limit": "1000"}, "limit: .* 100"),
    "a format": (WebDataScrapeOperator, {**URL, "formats": ["markdwn"]}, "formats.0.: .*'markdown'"),
    "a choice": (WebDataScrapeOperator, {**URL, "proxy": "enhancd"}, "proxy: .*did you mean 'enhanced'"),
    "deep inside": (
        WebDataSearchOperator,
        {"query": "{{ q }}", "scrape_options": {"formats": ["markdwn"], "maxAge": "{{ age }}"}},
        "scrape_options.formats.0.: .*'markdown'",
    ),
    "a field of a mapping": (
        WebDataScrapeOperator,
        {**URL, "location": {"contry": "DE"}},
        "location.contry: .*'country'",
    ),
    "a mapping that lacks a field": (
        WebDataScrapeOperator,
        {**URL, "profile": {"saveChanges": True}},
        "profile.name",
    ),
    "a cron": (
        WebDataCreateMonitorOperator,
        {**MONITOR, "schedule": {"cron": "0 25 * * *"}},
        "schedule.cron",
    ),
    "a cron that runs too often": (
        WebDataCreateMonitorOperator,
        {**MONITOR, "schedule": {"cron": "*/2 * * * *"}},
        "schedule.cron: .* every 5 minutes",
    ),
    "a time zone": (
        WebDataCreateMonitorOperator,
        {**MONITOR, "schedule": {"text": "daily", "timezone": "Europe/Berln"}},
        "schedule.timezone: .*'Europe/Berlin'",
    ),
    "a target": (
        WebDataCreateMonitorOperator,
        {**MONITOR, "targets": [{"type": "scrap", "urls": ["https://a.example/"]}]},
        "targets.0.: .*'scrape'.* .given: {'type': 'scrap', 'urls': ",
    ),
    "JSON of a monitor": (
        WebDataCreateMonitorOperator,
        {**MONITOR, "targets": [watched({"type": "json", "schema": {"type": "object"}})]},
        "formats.0.: .*no json, but bills it; use {'type': 'changeTracking', 'modes': .'json'., 'schema': ...}",
    ),
    "JSON of a monitor, by name": (
        WebDataCreateMonitorOperator,
        {**MONITOR, "targets": [watched("markdown", "json")]},
        "formats.1.: .*no json",
    ),
    "a URL": (WebDataScrapeOperator, {"url": "ftp://a.example/"}, "url: .*only http and https"),
    "a list for a text": (
        WebDataScrapeOperator,
        {"url": ["a", "b"]},
        "url: must be one text .*expand.*WebDataBatchScrape",
    ),
    "queries for a query": (
        WebDataSearchOperator,
        {"query": ["a", "b"]},
        r"query: must be one text .given: list of 2.*\.expand\(query=.* WebDataBatchSearchOperator\(queries=",
    ),
}


@pytest.mark.parametrize(("operator", "arguments", "words"), WRONG.values(), ids=WRONG.keys())
def test_a_literal_that_cannot_work_fails_while_the_dag_is_read(operator, arguments, words):
    """The message names the task, the field, the rule and what was given, and the nearest name where it is one."""
    with pytest.raises(ValueError, match=f"(?s)'my_task' is invalid:.*{words}"):
        operator(task_id="my_task", **arguments)


UNKNOWN = {
    "of the request": ({"query": "q", "limt": 5}, "unknown argument 'limt'; did you mean 'limit'?"),
    "of a base class": ({"query": "q", "extra_bdy": {}}, "'extra_bdy'; did you mean 'extra_body'?"),
    "of Airflow": ({"query": "q", "retrie": 3}, "'retrie'; did you mean 'retries'?"),
    "of another client": (
        {"query": "q", "max_results": 5},
        "unknown argument 'max_results'; write limit=...",
    ),
    "of pages": (
        {"query": "q", "formats": ["markdown"]},
        "unknown argument 'formats'; write scrape_options={\"formats\": ...}",
    ),
    "of how pages are scraped": (
        {"query": "q", "max_age": 0},
        "'max_age'; write scrape_options={\"max_age\": ...}",
    ),
    "of an option": ({"query": "q", "min_items": 3}, "'min_items'; write quality=Quality(min_items=...)"),
    "like nothing": ({"query": "q", "zzzz": 3}, "unknown argument 'zzzz'"),
}


@pytest.mark.parametrize(("arguments", "words"), UNKNOWN.values(), ids=UNKNOWN.keys())
def test_an_argument_that_does_not_exist(arguments, words):
    with pytest.raises(TypeError) as failed:
        WebDataSearchOperator(task_id="my_task", **arguments)
    assert str(failed.value).startswith("WebDataSearchOperator 'my_task': ")
    assert words in str(failed.value)


@pytest.mark.parametrize("operator", [WebDataSearchOperator, WebDataToTableOperator])
def test_unknown_arguments_of_subclasses_and_of_loads(operator):
    """Each constructor passes on what it does not know, so the message names just what no class knows."""

    class Own(operator):
        def __init__(self, *, own=None, **kwargs):
            super().__init__(**kwargs)

    arguments = (
        {"query": "q"}
        if operator is WebDataSearchOperator
        else {"path": "/x.csv", "table": "t", "conn_id": "c"}
    )
    with pytest.raises(TypeError, match=r"Own 't': unknown argument 'retrie'; did you mean 'retries'\?"):
        Own(task_id="t", own=1, retrie=1, **arguments)


def test_what_is_known_at_run_time_only_is_left_to_the_task():
    """Templates, other tasks' results, and what a mapped task is made of."""
    with DAG("d", schedule=None):
        first = WebDataMapOperator(task_id="first", url="{{ url }}", limit="{{ limit }}")
        WebDataSearchOperator(
            task_id="second", query=first.output, sources=first.output, limit="{% if a %}1{% endif %}"
        )
        WebDataCrawlOperator(task_id="crawl", **URL, include_paths=first.output, exclude_paths=first.output)
        WebDataSearchOperator.partial(task_id="third").expand(query=["a", "b"])
        WebDataScrapeOperator(task_id="fourth", url="{{ url }}", formats=["{{ format }}", "markdown"])
        WebDataBatchScrapeOperator(task_id="sixth", urls=["htp://x"], ignore_invalid_urls="{{ lenient }}")
        WebDataBatchScrapeOperator(task_id="seventh", urls=["htp://x"], ignore_invalid_urls=True)
        WebDataCreateMonitorOperator(task_id="fifth", **{**MONITOR, "schedule": {"cron": "{{ cron }}"}})


def test_default_args_apply():
    with DAG("d", schedule=None, default_args={"multiple_outputs": True, "credit_limit": 5, "limt": 1}):
        search = WebDataSearchOperator(task_id="search", query="q")
        load = WebDataToTableOperator(task_id="load", path="/x.jsonl", table="t", conn_id="c")
    given = WebDataSearchOperator(task_id="given", query="q")
    assert [task.multiple_outputs for task in (search, load, given)] == [True, True, False]
    assert search.credit_limit == 5


def test_missing_is_said_as_airflow_says_it():
    with pytest.raises(TypeError, match="missing keyword argument 'query'"):
        WebDataSearchOperator(task_id="t")
