"""The routes: the service's operations under ``/v2``, the control API under ``/_sandbox``."""

from __future__ import annotations

import asyncio
import re
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from starlette.applications import Starlette
from starlette.routing import Mount, Route

from airflow_provider_webdata.sandbox.control.api import routes
from airflow_provider_webdata.sandbox.http.dispatcher import Conduct, Endpoint

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from .service import Sandbox

PATHS = {
    "search": "/v2/search",
    "monitors": "/v2/monitor",
    "monitor": "/v2/monitor/(?P<id>[^/]+)",
    "run": "/v2/monitor/(?P<id>[^/]+)/run",
    "checks": "/v2/monitor/(?P<id>[^/]+)/checks",
    "check": "/v2/monitor/(?P<id>[^/]+)/checks/(?P<check>[^/]+)",
    "credits": "/v2/team/credit-usage",
    "scrapes": "/v2/scrape",
    "scrape": "/v2/scrape/(?P<id>[^/]+)",
    "batches": "/v2/batch/scrape",
    "batch": "/v2/batch/scrape/(?P<id>[^/]+)",
    "batch-errors": "/v2/batch/scrape/(?P<id>[^/]+)/errors",
    "crawls": "/v2/crawl",
    "active": "/v2/crawl/(?:active|ongoing)",
    "params": "/v2/crawl/params-preview",
    "crawl": "/v2/crawl/(?P<id>[^/]+)",
    "crawl-errors": "/v2/crawl/(?P<id>[^/]+)/errors",
    "map": "/v2/map",
    "credit-history": "/v2/team/credit-usage/historical",
    "tokens": "/v2/team/token-usage",
    "token-history": "/v2/team/token-usage/historical",
    "queue": "/v2/team/queue-status",
    "activity": "/v2/team/activity",
    "concurrency": "/v2/concurrency-check",
    "parse": "/v2/parse",
    "extracts": "/v2/extract",
    "extract": "/v2/extract/(?P<id>[^/]+)",
    "agents": "/v2/agent",
    "agent": "/v2/agent/(?P<id>[^/]+)",
    "sessions": "/v2/(?:interact|browser)",
    "session": "/v2/(?:interact|browser)/(?P<id>[^/]+)",
    "execute": "/v2/(?:interact|browser)/(?P<id>[^/]+)/execute",
    "interact": "/v2/scrape/(?P<id>[^/]+)/interact",
}


def endpoints(sandbox: Sandbox) -> list[Endpoint]:
    """Return the operations the sandbox knows, with the rate classes of supplement 2."""

    monitors, sessions, team = sandbox.monitors, sandbox.sessions, sandbox.team
    crawls, batches, noting = sandbox.crawls, sandbox.batches, team.noting
    path = {name: re.compile(text) for name, text in PATHS.items()}
    return [
        Endpoint(
            "POST",
            path["search"],
            noting("search", "query", sandbox.searching.search),
            "search",
            keyless=True,
        ),
        Endpoint("POST", path["monitors"], monitors.create, "crawl"),
        Endpoint("GET", path["monitors"], monitors.list, "crawl-status"),
        Endpoint("GET", path["monitor"], monitors.get, "crawl-status"),
        Endpoint("PATCH", path["monitor"], monitors.update, "crawl"),
        Endpoint("DELETE", path["monitor"], monitors.delete, "crawl-status"),
        Endpoint("POST", path["run"], monitors.run, "crawl"),
        Endpoint("GET", path["checks"], monitors.list_checks, "crawl-status"),
        Endpoint("GET", path["check"], monitors.get_check, "crawl-status"),
        Endpoint(
            "POST", path["scrapes"], noting("scrape", "url", sandbox.scraping.scrape), "scrape", keyless=True
        ),
        Endpoint("GET", path["scrape"], sandbox.scraping.status, "crawl-status"),
        Endpoint("POST", path["batches"], noting("batch_scrape", "urls", batches.start), "scrape"),
        Endpoint("GET", path["batch"], batches.status, "crawl-status"),
        Endpoint("DELETE", path["batch"], batches.cancel, "crawl-status"),
        Endpoint("GET", path["batch-errors"], batches.errors, "crawl-status"),
        Endpoint("POST", path["crawls"], noting("crawl", "url", crawls.start), "crawl"),
        Endpoint("GET", path["active"], crawls.active, "crawl-status"),
        Endpoint("POST", path["params"], crawls.preview, "crawl"),
        Endpoint("GET", path["crawl"], crawls.status, "crawl-status"),
        Endpoint("DELETE", path["crawl"], crawls.cancel, "crawl-status"),
        Endpoint("GET", path["crawl-errors"], crawls.errors, "crawl-status"),
        Endpoint("POST", path["map"], noting("map", "url", sandbox.mapping.map), "map"),
        Endpoint("GET", path["credits"], team.credit_usage, "account"),
        Endpoint("GET", path["credit-history"], team.credit_history, "account"),
        Endpoint("GET", path["tokens"], team.token_usage, "account"),
        Endpoint("GET", path["token-history"], team.token_history, "account"),
        Endpoint("GET", path["queue"], team.queue_status, "account"),
        Endpoint("GET", path["activity"], team.activity, "account"),
        Endpoint("GET", path["concurrency"], team.concurrency, "crawl-status"),
        Endpoint("POST", path["parse"], sandbox.parsing.parse, "scrape", keyless=True, upload=True),
        Endpoint("POST", path["extracts"], noting("extract", "urls", sandbox.extracting.start), "agent"),
        Endpoint("GET", path["extract"], sandbox.extracting.status, "agent-status"),
        Endpoint("POST", path["agents"], noting("agent", "prompt", sandbox.agents.start), "agent"),
        Endpoint("GET", path["agent"], sandbox.agents.status, "agent-status"),
        Endpoint("DELETE", path["agent"], sandbox.agents.cancel, "agent-status"),
        Endpoint("POST", path["sessions"], noting("interact", None, sessions.open), "interact", keyless=True),
        Endpoint("GET", path["sessions"], sessions.list, "interact-execute", keyless=True),
        Endpoint("POST", path["execute"], sessions.execute, "interact-execute", keyless=True),
        Endpoint("DELETE", path["session"], sessions.close, "interact-execute", keyless=True),
        Endpoint("POST", path["interact"], sessions.interact, "interact-execute", keyless=True),
        Endpoint("DELETE", path["interact"], sessions.stop, "interact-execute", keyless=True),
    ]


def build(sandbox: Sandbox) -> Starlette:
    """Return the ASGI application of a sandbox; its clockwork runs as long as the application does."""

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        sandbox.resume()
        clockwork = asyncio.ensure_future(sandbox.agenda.run())
        try:
            yield
        finally:
            clockwork.cancel()
            await sandbox.close()

    conduct = Conduct(sandbox, endpoints(sandbox))
    return Starlette(
        routes=[
            Mount("/_sandbox", routes=routes(sandbox)),
            Route("/media/{key}", sandbox.media.serve),
            Mount("/", app=conduct),
        ],
        lifespan=lifespan,
    )
