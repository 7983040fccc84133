# SPDX-License-Identifier: Apache-2.0
"""The provider's calls, one of each kind, for validation by a proxy."""

from __future__ import annotations

import os
from collections.abc import Callable
from io import BytesIO
from typing import Any

from airflow_provider_webdata.api.errors import WebDataError
from airflow_provider_webdata.hooks.webdata import WebDataHook

SITE = "https://river.example/"


def failures(url: str, key: str) -> list[str]:
    """Send the calls, and return a line for each failed one.

    :param url: base URL of the service.
    :param key: API key.
    """
    os.environ["AIRFLOW_CONN_CONFORMANCE"] = (
        f'{{"conn_type": "webdata", "host": "{url}", "password": "{key}"}}'
    )
    failed = []
    with WebDataHook("conformance") as hook:

        def called(name: str, call: Callable[[], Any]) -> Any:
            try:
                return call()
            except WebDataError as error:
                failed.append(f"{name}: {error}")
                return None

        def job(kind: str, started: Any) -> None:
            if started is not None:
                called(f"status of {kind}", lambda: hook.job_status(kind, started.id))

        page = {
            "url": SITE,
            "formats": ["markdown", {"type": "json", "prompt": "the level"}],
            "only_main_content": True,
        }
        called("search", lambda: hook.search(query="river", limit=3, sources=["web", "news"]))
        called("scrape", lambda: hook.scrape(**page, max_age=0, parsers=["pdf"]))
        called("map", lambda: hook.map(url=SITE, limit=5, sitemap="include"))
        called(
            "parse", lambda: hook.parse(BytesIO(b"<p>Water</p>"), "a.html", options={"formats": ["markdown"]})
        )
        job(
            "crawl",
            called("crawl", lambda: hook.start_crawl(url=SITE, limit=3, sitemap="include")),
        )
        job(
            "batch_scrape",
            called("batch", lambda: hook.start_batch_scrape(urls=[SITE], formats=["links"])),
        )
        job("agent", called("agent", lambda: hook.start_agent(prompt="the level", urls=[SITE])))
        declared = {
            "name": "conformance",
            "schedule": {"cron": "0 6 * * *", "timezone": "UTC"},
            "targets": [{"type": "scrape", "urls": [SITE]}],
            "goal": "the level",
        }
        monitor = called("create a monitor", lambda: hook.create_monitor(declared))
        if monitor is not None:
            called("update a monitor", lambda: hook.update_monitor(monitor.id, name="levels"))
            called("run a monitor", lambda: hook.run_monitor(monitor.id))
            called("list of checks", lambda: hook.list_monitor_checks(monitor.id, limit=5))
            called("delete a monitor", lambda: hook.delete_monitor(monitor.id))
        session = called("open a browser", lambda: hook.open_session(ttl=60))
        if session is not None:
            called("code in a browser", lambda: hook.execute(session.id, code="1", language="node"))
            called("close a browser", lambda: hook.close_session(session.id))
        called("developer search", lambda: hook.search_developer(query="pipeline", k=3))
        called("paper search", lambda: hook.search_papers(query="river", k=3))
        called("credits", hook.credit_usage)
        called("queue", hook.queue_status)
        called("activity", hook.activity)
    return failed
