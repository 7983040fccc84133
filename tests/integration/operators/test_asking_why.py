"""The question that a failed job suggests, asked as its log says."""

from __future__ import annotations

import re
from collections.abc import Callable

from airflow_provider_webdata.hooks.webdata import WebDataHook
from airflow_provider_webdata.operators.crawl import WebDataCrawlOperator
from airflow_provider_webdata.options import Wait
from tests.support import direct
from webdata_sandbox.server import SandboxServer


def test_a_failed_job_names_the_call_that_asks_why(here: SandboxServer, log: Callable[[], str]) -> None:
    here.control.add_fault("fail_crawl")
    outcome = direct.run(
        WebDataCrawlOperator(
            task_id="crawl",
            url="https://river.example/",
            limit=2,
            wait=Wait(poll_interval=1),
            deferrable=False,
        )
    )
    assert outcome.state == "failed"
    (call,) = set(re.findall(r"To ask the service why, call (WebDataHook.*\))", log()))
    answer = eval(call, {"WebDataHook": WebDataHook})
    assert answer.startswith(f"The crawl job {outcome.xcom['job_id']} failed: The job failed because")
