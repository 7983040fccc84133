# SPDX-License-Identifier: Apache-2.0
"""Routes of the control API. They have no authentication and are for this machine only."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from starlette.responses import HTMLResponse, JSONResponse
from starlette.routing import Route

from webdata_sandbox.engine.canned import FILES, KINDS
from webdata_sandbox.engine.page import compose
from webdata_sandbox.reference.rules import check
from webdata_sandbox.reference.urls import canonical
from webdata_sandbox.state.faults import Fault

if TYPE_CHECKING:
    from starlette.requests import Request

    from webdata_sandbox.service import Sandbox

_JOBS = ("crawl", "batch_scrape", "extract", "agent")
Handler = Callable[["Request"], Awaitable[Any]]


class _Control:
    """One method per route of the control API."""

    def __init__(self, sandbox: Sandbox) -> None:
        self._sandbox = sandbox

    async def health(self, _: Request) -> Any:
        return {"ok": True}

    async def state(self, _: Request) -> Any:
        core = self._sandbox.core
        return {
            "now": core.clock.iso(),
            "speed": core.clock.speed,
            "profile": core.settings.profile.name,
            "credits": core.credits.remaining,
            "quirks": core.quirks.names(),
            "monitors": core.store.list("monitor"),
            "checks": core.store.list("check"),
            "requests": self._sandbox.recorder.total,
        }

    async def requests(self, request: Request) -> Any:
        query = request.query_params
        return self._sandbox.recorder.select(query.get("path"), query.get("method"))

    async def clear_requests(self, _: Request) -> Any:
        self._sandbox.recorder.clear()

    async def deliveries(self, _: Request) -> Any:
        return self._sandbox.webhooks.deliveries()

    async def sessions(self, _: Request) -> Any:
        return self._sandbox.interact.all()

    async def end_session(self, request: Request) -> Any:
        return self._sandbox.interact.destroy(request.path_params["id"])

    async def accept_terms(self, request: Request) -> Any:
        self._sandbox.providers.accept(request.path_params["provider"])

    async def jobs(self, request: Request) -> Any:
        kind = request.path_params["kind"]
        if kind not in _JOBS:
            raise ValueError(f"unknown job kind {kind!r}; use one of {', '.join(_JOBS)}")
        return getattr(self._sandbox, kind).all()

    async def put_site(self, request: Request) -> Any:
        self._sandbox.sites.put(**await request.json())

    async def put_media(self, request: Request) -> Any:
        self._sandbox.media.put(**await request.json())

    async def put_page(self, request: Request) -> Any:
        body = await request.json()
        answers = {kind: body.pop(kind) for kind in KINDS if kind in body}
        url = body["url"]
        if body.keys() - {"url"} or not answers:
            page = compose(**body)
            self._sandbox.web.put(page)
        elif not url.startswith(FILES) and self._sandbox.web.get(url) is None:
            raise ValueError(f"page {url} does not exist; pass html or markdown to create it")
        self._sandbox.canned.put(url, answers)
        return {"url": canonical(url)}

    async def delete_page(self, request: Request) -> Any:
        url = request.query_params["url"]
        self._sandbox.canned.forget(url)
        return {"removed": self._sandbox.web.remove(url)}

    async def pages(self, _: Request) -> Any:
        return [{"url": page.url, "title": page.title, "status": page.status} for page in self._sandbox.web]

    async def add_fault(self, request: Request) -> Any:
        return {"id": self._sandbox.core.faults.add(Fault(**await request.json()))}

    async def faults(self, _: Request) -> Any:
        return [asdict(fault) for fault in self._sandbox.core.faults.all()]

    async def clear_faults(self, _: Request) -> Any:
        self._sandbox.core.faults.clear()

    async def set_quirks(self, request: Request) -> Any:
        self._sandbox.core.quirks.set(await request.json())
        return self._sandbox.core.quirks.names()

    async def configure(self, request: Request) -> Any:
        self._sandbox.configure(await request.json())

    async def advance(self, request: Request) -> Any:
        await self._sandbox.core.advance(float((await request.json())["seconds"]))
        return {"now": self._sandbox.core.clock.iso()}

    async def settle(self, _: Request) -> Any:
        await self._sandbox.core.agenda.settle()

    async def reset(self, _: Request) -> Any:
        await self._sandbox.reset()

    async def validate(self, request: Request) -> Any:
        body = await request.json()
        return [issue.to_wire() for issue in check(body["operation"], body["body"])]


def routes(sandbox: Sandbox) -> list[Route]:
    """Return the routes of the control API."""
    control = _Control(sandbox)
    table: list[tuple[str, str, Handler]] = [
        ("GET", "/health", control.health),
        ("GET", "/state", control.state),
        ("GET", "/requests", control.requests),
        ("DELETE", "/requests", control.clear_requests),
        ("GET", "/deliveries", control.deliveries),
        ("GET", "/sessions", control.sessions),
        ("DELETE", "/sessions/{id}", control.end_session),
        ("GET", "/jobs/{kind}", control.jobs),
        ("POST", "/terms/{provider}", control.accept_terms),
        ("GET", "/pages", control.pages),
        ("PUT", "/pages", control.put_page),
        ("DELETE", "/pages", control.delete_page),
        ("PUT", "/sites", control.put_site),
        ("PUT", "/media", control.put_media),
        ("GET", "/faults", control.faults),
        ("POST", "/faults", control.add_fault),
        ("DELETE", "/faults", control.clear_faults),
        ("PUT", "/quirks", control.set_quirks),
        ("PATCH", "/settings", control.configure),
        ("POST", "/advance", control.advance),
        ("POST", "/settle", control.settle),
        ("POST", "/reset", control.reset),
        ("POST", "/validate", control.validate),
    ]
    readable = [path for method, path, _ in table if method == "GET" and "{" not in path]
    return [
        Route("/", _index([*readable, *(f"/jobs/{kind}" for kind in _JOBS)])),
        *(Route(path, _json_endpoint(handler), methods=[method]) for method, path, handler in table),
    ]


def _index(paths: list[str]) -> Callable[[Request], Awaitable[HTMLResponse]]:
    links = "\n".join(f'<li><a href="{path[1:]}">{path[1:]}</a></li>' for path in paths)
    page = f"<!doctype html>\n<title>Sandbox</title>\n<h1>Sandbox state</h1>\n<ul>\n{links}\n</ul>\n"

    async def endpoint(_: Request) -> HTMLResponse:
        return HTMLResponse(page)

    return endpoint


def _json_endpoint(handler: Handler) -> Callable[[Request], Awaitable[JSONResponse]]:
    async def endpoint(request: Request) -> JSONResponse:
        try:
            return JSONResponse(await handler(request))
        except (ValueError, TypeError, KeyError) as error:
            return JSONResponse({"error": f"{type(error).__name__}: {error}"}, status_code=400)

    return endpoint
