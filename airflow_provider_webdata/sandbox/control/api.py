"""The control API: how tests and demos steer a sandbox. No authentication; it is for this machine only."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from starlette.responses import JSONResponse
from starlette.routing import Route

from airflow_provider_webdata.sandbox.engine.page import compose
from airflow_provider_webdata.sandbox.reference.rules import check
from airflow_provider_webdata.sandbox.state.faults import Fault

if TYPE_CHECKING:
    from starlette.requests import Request

    from airflow_provider_webdata.sandbox.operations.page_jobs import Jobs
    from airflow_provider_webdata.sandbox.operations.step_jobs import Errands
    from airflow_provider_webdata.sandbox.service import Sandbox

Answer = Callable[["Request"], Awaitable[Any]]


class _Control:
    """One method per call of the control API."""

    def __init__(self, sandbox: Sandbox) -> None:
        self._sandbox = sandbox

    async def health(self, _: Request) -> Any:
        return {"ok": True}

    async def state(self, _: Request) -> Any:
        return self._sandbox.state()

    async def requests(self, request: Request) -> Any:
        query = request.query_params
        return self._sandbox.recorder.select(query.get("path"), query.get("method"))

    async def clear_requests(self, _: Request) -> Any:
        self._sandbox.recorder.clear()

    async def deliveries(self, _: Request) -> Any:
        return self._sandbox.webhooks.deliveries()

    async def sessions(self, _: Request) -> Any:
        return self._sandbox.sessions.all()

    async def end_session(self, request: Request) -> Any:
        return self._sandbox.sessions.destroy(request.path_params["id"])

    async def jobs(self, request: Request) -> Any:
        sandbox = self._sandbox
        kinds: dict[str, Errands | Jobs] = {
            "crawl": sandbox.crawls,
            "batch_scrape": sandbox.batches,
            "extract": sandbox.extracting,
            "agent": sandbox.agents,
        }
        return kinds[request.path_params["kind"]].all()

    async def put_site(self, request: Request) -> Any:
        self._sandbox.sites.put(**await request.json())

    async def put_media(self, request: Request) -> Any:
        self._sandbox.media.put(**await request.json())

    async def put_page(self, request: Request) -> Any:
        page = compose(**await request.json())
        self._sandbox.web.put(page)
        return {"url": page.url}

    async def delete_page(self, request: Request) -> Any:
        return {"removed": self._sandbox.web.remove(request.query_params["url"])}

    async def pages(self, _: Request) -> Any:
        return [{"url": page.url, "title": page.title, "status": page.status} for page in self._sandbox.web]

    async def add_fault(self, request: Request) -> Any:
        return {"id": self._sandbox.faults.add(Fault(**await request.json()))}

    async def faults(self, _: Request) -> Any:
        return [asdict(fault) for fault in self._sandbox.faults.all()]

    async def clear_faults(self, _: Request) -> Any:
        self._sandbox.faults.clear()

    async def set_quirks(self, request: Request) -> Any:
        self._sandbox.quirks.set(await request.json())
        return self._sandbox.quirks.names()

    async def configure(self, request: Request) -> Any:
        self._sandbox.configure(await request.json())

    async def advance(self, request: Request) -> Any:
        await self._sandbox.advance(float((await request.json())["seconds"]))
        return {"now": self._sandbox.clock.iso()}

    async def settle(self, _: Request) -> Any:
        await self._sandbox.agenda.settle()

    async def reset(self, _: Request) -> Any:
        await self._sandbox.reset()

    async def validate(self, request: Request) -> Any:
        asked = await request.json()
        return [issue.to_wire() for issue in check(asked["operation"], asked["body"])]


def routes(sandbox: Sandbox) -> list[Route]:
    """Return the routes of the control API."""
    control = _Control(sandbox)
    table: list[tuple[str, str, Answer]] = [
        ("GET", "/health", control.health),
        ("GET", "/state", control.state),
        ("GET", "/requests", control.requests),
        ("DELETE", "/requests", control.clear_requests),
        ("GET", "/deliveries", control.deliveries),
        ("GET", "/sessions", control.sessions),
        ("DELETE", "/sessions/{id}", control.end_session),
        ("GET", "/jobs/{kind}", control.jobs),
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
    return [Route(path, _answering(answer), methods=[method]) for method, path, answer in table]


def _answering(answer: Answer) -> Callable[[Request], Awaitable[JSONResponse]]:
    async def endpoint(request: Request) -> JSONResponse:
        try:
            return JSONResponse(await answer(request))
        except (ValueError, TypeError, KeyError) as error:
            return JSONResponse({"error": f"{type(error).__name__}: {error}"}, status_code=400)

    return endpoint
