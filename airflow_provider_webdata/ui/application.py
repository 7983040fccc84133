"""The pages as one ASGI application: routes, who may enter, and what is answered when something fails."""

from __future__ import annotations

import logging
from importlib.resources import files
from typing import TYPE_CHECKING

import anyio.to_thread
from sqlalchemy.exc import SQLAlchemyError
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.routing import Route

from airflow_provider_webdata import __version__
from airflow_provider_webdata.inbox.server.storage.errors import StoreUnavailableError

from .lookups import Lookups
from .pages import deliveries, jobs, monitors, overview, task, waits
from .pages.page import Page
from .rendering import HEADERS, render
from .visitor import Visitor

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from starlette.requests import Request

log = logging.getLogger(__name__)

_STATIC = {"webdata.css": "text/css", "webdata.js": "text/javascript"}
VIEWS: dict[str, Callable[[Page], Awaitable[Response]]] = {
    "/": overview.page,
    "/service": overview.service_part,
    "/health": overview.health_part,
    "/deliveries": deliveries.page,
    "/deliveries/delivery": deliveries.one,
    "/monitors": monitors.page,
    "/monitors/list": monitors.list_part,
    "/monitors/monitor": monitors.one,
    "/monitors/monitor/part": monitors.one_part,
    "/monitors/check": monitors.check,
    "/monitors/check/part": monitors.check_part,
    "/jobs": jobs.page,
    "/jobs/list": jobs.list_part,
    "/jobs/job": jobs.one,
    "/jobs/job/part": jobs.one_part,
    "/waits": waits.page,
    "/task": task.page,
    "/run": task.run,
}
ROUTES = tuple(VIEWS)
"""Paths of all pages and parts, below the mount."""


def create_application() -> Starlette:
    """Return the pages of this Airflow, which read its database and its connections."""
    lookups = Lookups()
    routes = [Route(path, _guarded(view, lookups)) for path, view in VIEWS.items()]
    routes.append(Route(f"/static/{__version__}/{{name}}", _static))
    return Starlette(routes=routes, exception_handlers={HTTPException: _refused})


def _guarded(
    view: Callable[[Page], Awaitable[Response]], lookups: Lookups
) -> Callable[[Request], Awaitable[Response]]:
    async def respond(request: Request) -> Response:
        visitor = await Visitor.of(request)
        if not await anyio.to_thread.run_sync(visitor.may_view):
            raise HTTPException(403, "You have no right to view plugins.")
        try:
            return await view(Page(request, visitor, lookups))
        except StoreUnavailableError as error:
            return _message(request, 503, f"The inbox cannot be read: {error}.")
        except SQLAlchemyError as error:
            # Its text holds the statement with its values.
            log.error("A page could not be made: %s", type(error).__name__)
            return _message(request, 503, "Airflow's database does not answer. Try again.")

    return respond


async def _static(request: Request) -> Response:
    """Return the style sheet or the script, which hold no data: also to who is not logged in."""
    name = request.path_params["name"]
    if name not in _STATIC:
        raise HTTPException(404, "There is nothing here.")
    content = files("airflow_provider_webdata.ui").joinpath("static").joinpath(name).read_bytes()
    # The address changes with the version.
    headers = {**HEADERS, "cache-control": "public, max-age=86400"}
    return Response(content, media_type=_STATIC[name], headers=headers)


async def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)  # noqa: S101
    text = "Log in to Airflow to see this page." if error.status_code == 401 else str(error.detail)
    return _message(request, error.status_code, text)


def _message(request: Request, status: int, text: str) -> Response:
    return render("message.html", request, status=status, title="Web Data", text=text)
