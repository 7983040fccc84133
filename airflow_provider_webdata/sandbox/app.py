"""The routes: the service's operations under ``/v2``, the control API under ``/_sandbox``."""

from __future__ import annotations

import asyncio
import re
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from starlette.applications import Starlette
from starlette.routing import Mount

from .conduct import Conduct, Endpoint
from .control_routes import routes
from .wire import Call, Reply

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
}


def endpoints(sandbox: Sandbox) -> list[Endpoint]:
    """Return the operations the sandbox knows, with the rate classes of supplement 2."""

    async def credit_usage(_: Call) -> Reply:
        return Reply(200, {"success": True, "data": sandbox.credits.usage()})

    monitors, path = sandbox.monitors, {name: re.compile(text) for name, text in PATHS.items()}
    return [
        Endpoint("POST", path["search"], sandbox.searching.search, "search", keyless=True),
        Endpoint("POST", path["monitors"], monitors.create, "crawl"),
        Endpoint("GET", path["monitors"], monitors.list, "crawl-status"),
        Endpoint("GET", path["monitor"], monitors.get, "crawl-status"),
        Endpoint("PATCH", path["monitor"], monitors.update, "crawl"),
        Endpoint("DELETE", path["monitor"], monitors.delete, "crawl-status"),
        Endpoint("POST", path["run"], monitors.run, "crawl"),
        Endpoint("GET", path["checks"], monitors.list_checks, "crawl-status"),
        Endpoint("GET", path["check"], monitors.get_check, "crawl-status"),
        Endpoint("GET", path["credits"], credit_usage, "account"),
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
        routes=[Mount("/_sandbox", routes=routes(sandbox)), Mount("/", app=conduct)], lifespan=lifespan
    )
