# SPDX-License-Identifier: Apache-2.0
"""ASGI application of the pages: routes, permission checks, and error responses."""

from __future__ import annotations

import asyncio
from importlib.resources import files
from typing import TYPE_CHECKING, Literal, NamedTuple

from sqlalchemy.exc import SQLAlchemyError
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from airflow_provider_webdata import __version__
from airflow_provider_webdata.airflow_db.connections import is_conn_id
from airflow_provider_webdata.airflow_db.errors import StoreUnavailableError
from airflow_provider_webdata.airflow_db.visitor import Visitor
from airflow_provider_webdata.common.logs import logger

from .lookups import Lookups
from .pages import credits, inbox, monitors, overview, task
from .pages.page import PageView
from .rendering import HEADERS, render
from .threads import in_thread

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from starlette.requests import Request

log = logger(__name__)

_STATIC = {
    "webdata.css": "text/css",
    "webdata.js": "text/javascript",
    "overview.js": "text/javascript",
    "card.js": "text/javascript",
}


class View(NamedTuple):
    """A page or a part of one.

    Two rules decide: data of the service requires permission to read its connection, data of a task to read its DAG.
    Every view requires permission to view plugins, and to read each `conn_id` and `dag_id` in the URL.

    :param respond: builds the response.
    :param right: the rule of all data in the view, whose `connection` or `DAG` the URL must name; or `rows`, each of
        which follows its rule.
    """

    respond: Callable[[PageView], Awaitable[Response]]
    right: Literal["connection", "DAG", "rows"]


VIEWS: dict[str, View] = {
    "/": View(overview.page, "rows"),
    "/attention": View(overview.attention_part, "rows"),
    "/changes": View(overview.changes_part, "rows"),
    "/card": View(overview.card, "rows"),
    "/credits": View(credits.part, "rows"),
    "/credits.csv": View(credits.csv, "rows"),
    "/inbox": View(inbox.page, "rows"),
    "/inbox.csv": View(inbox.csv, "rows"),
    "/inbox/delivery": View(inbox.delivery_part, "rows"),
    "/inbox/body": View(inbox.body_part, "rows"),
    "/monitors": View(monitors.page, "rows"),
    "/monitors/list": View(monitors.list_part, "connection"),
    "/monitors/monitor": View(monitors.one, "connection"),
    "/monitors/monitor/part": View(monitors.one_part, "connection"),
    "/monitors/values": View(monitors.values_part, "connection"),
    "/monitors/check": View(monitors.check_part, "connection"),
    "/task": View(task.page, "DAG"),
    "/task/job": View(task.job_part, "connection"),
}
"""All pages and parts, by path below the mount point."""
MAX_OPEN = 64
"""Maximum number of concurrent requests. Further requests receive 503."""
RETRY_AFTER = "2"


def create_application() -> Starlette:
    """Return the application, which reads this Airflow's database and connections."""
    lookups, room = Lookups(), asyncio.Semaphore(MAX_OPEN)
    routes = [Route(path, _guarded(view, lookups, room)) for path, view in VIEWS.items()]
    routes.append(Route(f"/static/{__version__}/{{name}}", _static))
    return Starlette(routes=routes, exception_handlers={HTTPException: _refused})


def _guarded(
    view: View, lookups: Lookups, room: asyncio.Semaphore
) -> Callable[[Request], Awaitable[Response]]:
    async def respond(request: Request) -> Response:
        page = PageView(request, await Visitor.of(request), lookups)
        if room.locked():
            return _message(request, 503, f"{MAX_OPEN} pages are already loading. Try again in a moment.")
        try:
            async with room:
                await in_thread(_check_rights, page, view)
                return await view.respond(page)
        except StoreUnavailableError as error:
            return _message(request, 503, f"The inbox cannot be read: {error}")
        except SQLAlchemyError as error:
            # The error's text contains the statement and its values.
            log.error("Cannot read Airflow's database for a page: %s", type(error).__name__)
            return _message(request, 503, "Airflow's database does not respond. Try again.")

    return respond


def _check_rights(page: PageView, view: View) -> None:
    """Raise an `HTTPException` unless the visitor may open a view."""
    if not page.visitor.may_view():
        raise HTTPException(403, "You do not have permission to view plugins.")
    conn_id = page.required("conn_id") if view.right == "connection" else page.text("conn_id")
    # Reject an invalid id before a secrets backend receives it.
    if conn_id and not is_conn_id(conn_id):
        raise HTTPException(
            400,
            r"conn_id must be 1 to 250 letters, digits, or any of _-.:/\#!(), without '.' and '..' as segments.",
        )
    if conn_id and not page.visitor.may_read_connection(conn_id):
        raise HTTPException(403, f"You do not have permission to read connection {conn_id!r}.")
    dag_id = page.required("dag_id") if view.right == "DAG" else page.text("dag_id")
    if dag_id and not page.visitor.readable_dags([dag_id]):
        raise HTTPException(
            403, f"You do not have permission to read DAG {dag_id!r} with its tasks and XComs."
        )


async def _static(request: Request) -> Response:
    """Return the style sheet or a script. They contain no data and require no login."""
    name = request.path_params["name"]
    if name not in _STATIC:
        raise HTTPException(404, "This file does not exist.")
    content = files("airflow_provider_webdata.ui").joinpath("static").joinpath(name).read_bytes()
    # The URL changes with the version.
    headers = {**HEADERS, "cache-control": "public, max-age=86400"}
    return Response(content, media_type=_STATIC[name], headers=headers)


async def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)  # noqa: S101
    text = "Log in to Airflow to see this page." if error.status_code == 401 else str(error.detail)
    return _message(request, error.status_code, text)


def _message(request: Request, status: int, text: str) -> Response:
    response: Response
    if request.url.path.endswith(".csv"):
        # A script reads it.
        response = PlainTextResponse(text, status, headers=HEADERS)
    else:
        response = render("message.html", request, status=status, title="Web Data", text=text)
    if status == 503:
        response.headers["retry-after"] = RETRY_AFTER
    return response
