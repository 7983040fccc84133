# SPDX-License-Identifier: Apache-2.0
"""Tests of a user's project that use all that the fixtures can do; run by test_user_project.py."""

from __future__ import annotations

import os
from datetime import datetime, timezone

import attempts
import pytest
from airflow.sdk import DAG, get_current_context, task
from chunks import dag

from airflow_provider_webdata.hooks.webdata import WebDataHook
from airflow_provider_webdata.operators.agent import WebDataAgentOperator
from airflow_provider_webdata.operators.batch_scrape import WebDataBatchScrapeOperator
from airflow_provider_webdata.operators.batch_search import WebDataBatchSearchOperator
from airflow_provider_webdata.operators.crawl import WebDataCrawlOperator
from airflow_provider_webdata.operators.monitor import WebDataCreateMonitorOperator, WebDataRunMonitorOperator
from airflow_provider_webdata.operators.scrape import WebDataScrapeOperator
from airflow_provider_webdata.operators.search import WebDataSearchOperator
from airflow_provider_webdata.options import Quality
from airflow_provider_webdata.sensors.monitor import WebDataMonitorCheckSensor

PAGE = "https://town.example/"
NAME = "AIRFLOW_CONN_WEBDATA_DEFAULT"


def scrape(sandbox, **fields):
    return sandbox.execute(WebDataScrapeOperator(task_id="scrape", url=PAGE, **fields))


def test_a_page_of_one_test(webdata_sandbox):
    webdata_sandbox.set_page(PAGE, "<p>Here.</p>", screenshot="https://files.example/a.png")
    assert scrape(webdata_sandbox)["markdown"] == "Here."
    assert scrape(webdata_sandbox, formats=["screenshot"])["screenshot"] == "https://files.example/a.png"


def test_is_not_there_in_the_next(webdata_sandbox):
    with pytest.raises(Exception, match="DNS"):
        scrape(webdata_sandbox)


def test_a_shared_page(webdata_shared_sandbox):
    webdata_shared_sandbox.set_page(PAGE, "<p>Shared.</p>")


def test_is_there_in_the_next(webdata_shared_sandbox):
    assert scrape(webdata_shared_sandbox)["markdown"] == "Shared."


def test_the_own_sandbox_goes_first(webdata_shared_sandbox, webdata_sandbox):
    assert webdata_sandbox.url in os.environ[NAME]


def test_and_the_shared_one_is_back():
    assert "127.0.0.1" in os.environ[NAME]


def test_connections_are_set_back():
    assert "AIRFLOW_CONN_SHOP" not in os.environ


def test_another_connection(webdata_sandbox):
    webdata_sandbox.connect("shop", retry_budget=0, timeout=5)
    with WebDataHook("shop") as hook:
        assert hook.get_settings().client.timeout == 5
        assert hook.search(query="coffee").data.web


def test_the_service_is_not_called(webdata_sandbox, monkeypatch):
    """Whoever tests has its connection in the environment, perhaps."""
    monkeypatch.setenv("AIRFLOW_CONN_SHOP", "webdata://:a-real-key@service.example/https")
    text = r"(?s)'shop': host \(Base URL\) is not that of the sandbox.* connect\('shop'\)"
    with WebDataHook("shop") as hook, pytest.raises(Exception, match=text):
        hook.search(query="coffee")
    for deferrable in (False, True):
        crawl = WebDataCrawlOperator(task_id="c", url=PAGE, webdata_conn_id="shop", deferrable=deferrable)
        with pytest.raises(Exception, match=text):
            webdata_sandbox.execute(crawl)
    webdata_sandbox.connect("shop")
    with WebDataHook("shop") as hook:
        assert hook.search(query="coffee").data.web


def test_a_proxy_of_the_environment(monkeypatch, request):
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("NO_PROXY", "intranet.example")
    sandbox = request.getfixturevalue("webdata_sandbox")
    assert os.environ["NO_PROXY"].startswith("intranet.example,")
    sandbox.set_page(PAGE, "<p>Here.</p>")
    assert scrape(sandbox)["markdown"] == "Here."


@pytest.mark.parametrize("kind", ["webhook", "polling"])
@pytest.mark.parametrize("deferrable", [True, False])
def test_jobs_are_over_at_once(webdata_sandbox, caplog, capfd, kind, deferrable):
    webdata_sandbox.connect(webhooks=kind == "webhook")
    more = {"deferrable": deferrable, "poll_interval": 300}
    crawl = WebDataCrawlOperator(task_id="c", url="https://river.example/", limit=3, **more)
    agent = WebDataAgentOperator(task_id="a", prompt="river", **more)
    assert webdata_sandbox.execute(crawl)["count"] == 3
    assert webdata_sandbox.execute(agent)["data"]
    assert bool(webdata_sandbox.deliveries()) == (kind == "webhook")
    assert "Started crawl of https://river.example/" in caplog.text
    # Airflow warns of operators that its task runner does not execute.
    assert "Task Runner" not in caplog.text + capfd.readouterr().out


def test_a_job_that_takes_its_time_is_heard_of(webdata_sandbox):
    webdata_sandbox.configure(page_seconds=0.3)
    crawl = WebDataCrawlOperator(task_id="c", url="https://river.example/", limit=3, deferrable=True)
    assert webdata_sandbox.execute(crawl)["count"] == 3


def test_a_check(webdata_sandbox):
    monitor = WebDataCreateMonitorOperator(
        task_id="m",
        name="plans",
        schedule={"cron": "0 6 * * *"},
        targets=[{"type": "scrape", "urls": ["https://shop.example/plans"]}],
    )
    monitor_id = webdata_sandbox.execute(monitor)["id"]
    check = WebDataRunMonitorOperator(task_id="r", monitor_id=monitor_id)
    check_id = webdata_sandbox.execute(check)["id"]
    wait = WebDataMonitorCheckSensor(task_id="w", monitor_id=monitor_id, check_id=check_id, deferrable=True)
    assert webdata_sandbox.execute(wait)["id"] == check_id


def test_templates_see_the_run(webdata_sandbox):
    text = "{{ ds }} {{ ti.try_number }} {{ dag_run.run_id }} {{ params.town }} {{ macros.ds_add(ds, 1) }}"
    scrape = WebDataScrapeOperator(
        task_id="scrape", url=PAGE + "{{ logical_date.year }}", headers={"x": text}, params={"town": "north"}
    )
    for year in (2025, 2026):
        webdata_sandbox.set_page(f"{PAGE}{year}", f"<p>{year}</p>")
        date = datetime(year, 3, 1, tzinfo=timezone.utc)
        assert webdata_sandbox.execute(scrape, {"logical_date": date})["markdown"] == f"{year}"
    sent = webdata_sandbox.requests("/v2/scrape")[-1]["body"]["headers"]["x"]
    assert sent.split()[:2] == ["2026-03-01", "1"]
    assert sent.split()[3:] == ["north", "2026-03-02"]
    assert scrape.url == PAGE + "{{ logical_date.year }}"


def test_a_run_compares_with_the_run_before(webdata_sandbox, tmp_path):
    def run(*words, **options):
        for number, word in enumerate(words):
            webdata_sandbox.set_page(f"{PAGE}{number}", f"<p>{word}</p>")
        scrape = WebDataBatchScrapeOperator(
            task_id="scrape",
            urls=[f"{PAGE}{number}" for number in range(len(words))],
            changes=f"{tmp_path}/seen",
            save_to=f"{tmp_path}/{{{{ run_id }}}}.jsonl",
            max_age=0,
            deferrable=True,
            **options,
        )
        return webdata_sandbox.execute(scrape)

    assert run("a", "b", "c", "d")["changes"]["new"] == 4
    assert run("a", "x", "c", "d")["changes"]["changed"] == 1
    with pytest.raises(Exception, match="drop_vs_last"):
        run("a", quality=Quality(drop_vs_last=0.5))


def test_checks_without_changes_know_the_run_before(webdata_sandbox):
    search = {"task_id": "search", "quality": Quality(drop_vs_last=0.5)}
    assert len(webdata_sandbox.execute(WebDataSearchOperator(query="river", limit=5, **search))["web"]) > 2
    with pytest.raises(Exception, match="drop_vs_last"):
        webdata_sandbox.execute(WebDataSearchOperator(query="river", limit=1, **search))


def test_a_limit_of_credits(webdata_sandbox, tmp_path):
    search = WebDataBatchSearchOperator(
        task_id="s", queries=["river", "coffee", "bridge"], save_to=f"{tmp_path}/a.jsonl", credit_limit=5
    )
    found = webdata_sandbox.execute(search)
    assert (found["done"], found["credits_used"]) == (2, 4)
    webdata_sandbox.set_page(PAGE, "<p>Here.</p>")
    assert scrape(webdata_sandbox, proxy="basic", credit_limit=1)["markdown"] == "Here."


def test_a_task_reads_the_result_of_another(webdata_sandbox):
    with DAG("two", schedule=None) as two:
        search = WebDataSearchOperator(task_id="search", query="river", limit=2)
        scrape = WebDataBatchScrapeOperator(task_id="scrape", urls=search.output)

        @task
        def count(pages, ds=None):
            return len(pages["data"]), get_current_context()["ds"] == ds

        count(scrape.output)
    for name in ("search", "scrape"):
        webdata_sandbox.execute(two.get_task(name))
    assert webdata_sandbox.execute(two.get_task("count")) == (2, True)


def test_a_result_is_stored_as_in_airflow(webdata_sandbox):
    with DAG("stored", schedule=None) as stored:

        @task
        def first():
            return {1: ("a", "b")}

        @task
        def second(found):
            return found

        @task
        def wrong():
            return object()

        second(first())
        wrong()
    webdata_sandbox.execute(stored.get_task("first"))
    assert webdata_sandbox.execute(stored.get_task("second")) == {"1": ("a", "b")}
    with pytest.raises(TypeError):
        webdata_sandbox.execute(stored.get_task("wrong"))


def test_the_interval_of_a_run(webdata_sandbox):
    search = WebDataSearchOperator(
        task_id="s", query="{{ data_interval_start | ds }}", tbs="{{ macros.webdata.tbs(dag_run) }}"
    )
    start, end = (datetime(2026, 1, day, tzinfo=timezone.utc) for day in (5, 12))
    webdata_sandbox.execute(search, {"data_interval_start": start, "data_interval_end": end})
    sent = webdata_sandbox.requests("/v2/search")[-1]["body"]
    assert (sent["query"], sent["tbs"]) == ("2026-01-05", "cdr:1,cd_min:01/05/2026,cd_max:01/11/2026")


def test_the_schedule_of_a_monitor(webdata_sandbox):
    monitor = WebDataCreateMonitorOperator(
        task_id="m",
        name="plans",
        schedule={"cron": "0 6 * * *"},
        targets=[{"type": "scrape", "urls": ["https://shop.example/plans"]}],
    )
    monitor_id = webdata_sandbox.execute(monitor)["id"]
    webdata_sandbox.advance(24 * 3600)
    wait = WebDataMonitorCheckSensor(task_id="w", monitor_id=monitor_id, deferrable=True)
    assert webdata_sandbox.execute(wait)["monitorId"] == monitor_id


def test_a_dag_that_waits_by_webhook(webdata_sandbox):
    webdata_sandbox.configure(page_seconds=0.1)
    webdata_sandbox.run(dag)
    assert {delivery["status"] for delivery in webdata_sandbox.deliveries()} == {"delivered"}


def test_a_failed_run_shows_no_error_of_an_earlier_attempt(webdata_sandbox):
    with pytest.raises(pytest.fail.Exception, match=r"^DAG 'attempts' failed: \n  never: ValueError: no$"):
        webdata_sandbox.run(attempts.dag)


def test_a_failed_run_shows_the_error_of_the_task(webdata_sandbox):
    webdata_sandbox.add_fault("status", path="/v2/crawl", status=401, body={"error": "No such key."})
    with pytest.raises(pytest.fail.Exception, match=r"(?s)^DAG '.*' failed: \n  .*: .*No such key"):
        webdata_sandbox.run(dag)
