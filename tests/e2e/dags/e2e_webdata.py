# SPDX-License-Identifier: Apache-2.0
"""DAGs that go wrong, and one that uses every secret."""

from __future__ import annotations

from datetime import timedelta

from airflow.sdk import dag, task

from airflow_provider_webdata.operators.monitor import WebDataCreateMonitorOperator
from airflow_provider_webdata.operators.search import WebDataSearchOperator

# The worker dies while it waits for the answer to the creation; the retry must not create another monitor.
MONITOR = {
    "schedule": {"cron": "0 6 * * *", "timezone": "UTC"},
    "targets": [{"type": "scrape", "urls": ["https://shop.example/"]}],
    "goal": "Alert me when a price changes.",
}


@dag(dag_id="e2e_killed_worker", schedule=None)
def killed_worker():
    WebDataCreateMonitorOperator(
        task_id="keep_monitor",
        webdata_conn_id="{{ dag_run.conf['connection'] }}",
        name="{{ dag_run.conf['monitor'] }}",
        retries=1,
        retry_delay=timedelta(seconds=1),
        **MONITOR,
    )


killed_worker()


# 101 is over the reference's limit, which cannot be known before the template is rendered.
@dag(dag_id="e2e_bad_field", schedule=None)
def bad_field():
    WebDataSearchOperator(
        task_id="search",
        query="anything",
        limit="{{ 100 + 1 }}",
        retries=3,
        retry_delay=timedelta(seconds=1),
    )


bad_field()


@dag(dag_id="e2e_rate_limit", schedule=None)
def rate_limit():
    WebDataSearchOperator(task_id="search", query="anything", retries=0)


rate_limit()


# Every way in which a secret enters: the connection's key and headers, and the headers that a task passes.
@dag(dag_id="e2e_secrets", schedule=None)
def secrets():
    options = {"formats": ["markdown"], "headers": {"X-Session": "{{ var.value.e2e_page_session }}"}}
    # Refused by the service, so that an exception with its request around it is logged too.
    refused = WebDataSearchOperator(
        task_id="refused",
        webdata_conn_id="webdata_with_headers",
        query="refuse this",
        scrape_options=options,
        retries=0,
    )
    search = WebDataSearchOperator(
        task_id="search",
        webdata_conn_id="webdata_with_headers",
        query="{{ dag_run.conf['query'] }}",
        scrape_options=options,
        trigger_rule="all_done",
    )
    monitor = WebDataCreateMonitorOperator(
        task_id="monitor",
        webdata_conn_id="webdata_with_headers",
        name="with secret headers",
        trigger_rule="all_done",
        schedule=MONITOR["schedule"],
        targets=[{"type": "scrape", "urls": ["https://shop.example/"], "scrapeOptions": options}],
        webhook={
            "url": "https://hooks.example/webdata",
            "headers": {"X-Hook": "{{ var.value.e2e_page_session }}"},
        },
    )

    @task(trigger_rule="all_done")
    def use_hook() -> str:
        """A DAG author who prints whatever is at hand."""
        from airflow_provider_webdata.hooks.webdata import WebDataHook

        hook = WebDataHook("webdata_with_headers")
        with hook:
            print(hook, vars(hook), hook.get_settings())
            print(hook.credit_usage())
        return repr(hook)

    refused >> [search, monitor] >> use_hook()


secrets()
