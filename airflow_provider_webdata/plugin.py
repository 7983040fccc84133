# SPDX-License-Identifier: Apache-2.0
"""The Airflow plugin. Every Airflow process imports this module, so it imports nothing heavy at module level."""

from __future__ import annotations

from functools import cached_property
from importlib import import_module
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from airflow.plugins_manager import AirflowPlugin
from jinja2 import pass_context

from airflow_provider_webdata import __version__
from airflow_provider_webdata.common.coded_errors import traceback_of
from airflow_provider_webdata.common.logs import logger
from airflow_provider_webdata.common.page_urls import (
    CARD_ROUTE,
    FRAME_ROUTE,
    TASK_ROUTE,
    UI_PATH,
    path_of,
)
from airflow_provider_webdata.common.supported_airflow import require_airflow

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, MutableMapping
    from datetime import datetime, tzinfo

    from jinja2.runtime import Context

    Message = MutableMapping[str, Any]

require_airflow()

log = logger(__name__)


@pass_context
def tbs(
    context: Context,
    start: Any,
    end: datetime | None = None,
    *,
    sort_by_date: bool = False,
    tz: str | tzinfo | None = None,
) -> str:
    """Return the time filter of a search for an interval; in templates `macros.webdata.tbs`.

    `{{ macros.webdata.tbs(dag_run) }}` limits a search to the partition or data interval of its run. For a run without
    either, such as some manual runs, it is the day of `dag_run.run_after`. See
    `airflow_provider_webdata.api.query.tbs`.

    :param context: of the template, which Jinja provides.
    :param start: the DAG run, or the start of the interval.
    :param end: end of the interval, if `start` is a datetime; midnight excludes the day that it begins.
    :param sort_by_date: newest first.
    :param tz: time zone of the days; default: that of the DAG's timetable.
    """
    from airflow_provider_webdata.api import query
    from airflow_provider_webdata.common.run_span import time_zone_of

    return query.tbs(start, end, sort_by_date=sort_by_date, tz=tz or time_zone_of(context.get("dag")))


class _Lazy:
    """An ASGI application, created by `open` or by its first request.

    :param module: module of the factory.
    :param factory: name of the function that creates the application.
    """

    def __init__(self, module: str, factory: str) -> None:
        self.module = module
        self.factory = factory
        self._application: Any = None

    def open(self) -> Any:
        """Return the application."""
        if self._application is None:
            self._application = getattr(import_module(self.module), self.factory)()
        return self._application

    async def __call__(
        self,
        scope: MutableMapping[str, Any],
        receive: Callable[[], Awaitable[Message]],
        send: Callable[[Message], Awaitable[None]],
    ) -> None:
        await self.open()(scope, receive, send)


inbox = _Lazy("airflow_provider_webdata.inbox_server.application", "application_or_unavailable")
pages = _Lazy("airflow_provider_webdata.ui.application", "create_application")


def open_inbox(api_server: Any) -> Any:
    """Open the inbox when the API server starts; return the server's application unchanged.

    Airflow calls this as a root middleware. Otherwise, asset events that a killed server did not register, and old
    deliveries, would wait for the next request to the inbox.
    """
    try:
        inbox.open()
    except Exception as error:  # noqa: BLE001 - Airflow starts without the inbox
        log.error("The inbox cannot start; its first request retries%s", traceback_of(error))
    return api_server


def _views() -> list[dict[str, Any]]:
    """Return the menu entry and the tab. Airflow shows the tab on the tasks of every DAG."""
    from airflow.configuration import conf

    # If the API server is published below a path, the page's address starts with it. A malformed address must not break
    # the inbox, which this module mounts, too.
    root = path_of(conf.get("api", "base_url", fallback="")) + UI_PATH
    task = "dag_id={DAG_ID}&run_id={RUN_ID}&task_id={TASK_ID}&map_index={MAP_INDEX}"
    page = {"name": "Web Data", "icon": _icon("#52525b"), "icon_dark_mode": _icon("#d4d4d8")}
    return [
        # Airflow moves the entries of several plugins into a submenu, unless they are at the top level.
        {**page, "href": f"{root}/", "destination": "nav", "url_route": FRAME_ROUTE, "nav_top_level": True},
        {**page, "href": f"{root}/task?{task}", "destination": "task_instance", "url_route": TASK_ROUTE},
    ]


def _card() -> dict[str, Any]:
    """Return the card on Airflow's Home."""
    from airflow.configuration import conf

    root = path_of(conf.get("api", "base_url", fallback="")) + UI_PATH
    # Airflow draws the function that the script assigns to this name.
    script = f"{root}/static/{__version__}/card.js"
    return {"name": "WebDataCard", "url_route": CARD_ROUTE, "destination": "dashboard", "bundle_url": script}


def _icon(color: str) -> str:
    """Return the data URI of the icon, a globe with an arrow into this Airflow."""
    lines = "M6 28h44M10 17h36M10 39h24M48 36v20m-8-8 8 8 8-8"
    svg = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 64 64" fill="none" stroke="{color}" stroke-width="5" '
        'stroke-linecap="round" stroke-linejoin="round"><circle cx="28" cy="28" r="22"/>'
        f'<ellipse cx="28" cy="28" rx="9" ry="22"/><path d="{lines}"/></svg>'
    )
    return f"data:image/svg+xml,{quote(svg)}"


class WebDataPlugin(AirflowPlugin):
    """Template macros under `macros.webdata`; on the API server also the webhook inbox and the UI pages.

    Only the API server reads the other attributes, and for them the configuration.
    """

    name = "webdata"
    macros: list[Callable[..., Any]] = [tbs]  # noqa: RUF012

    @property
    def fastapi_apps(self) -> list[dict[str, Any]]:  # type: ignore[override]
        """The inbox and the pages, if they are enabled."""
        from airflow_provider_webdata.inbox_server.options import inbox_enabled, pages_enabled

        apps = []
        if inbox_enabled():
            apps.append({"app": inbox, "url_prefix": "/webdata", "name": "Web data inbox"})
        if pages_enabled():
            apps.append({"app": pages, "url_prefix": UI_PATH, "name": "Web data pages"})
        return apps

    @property
    def fastapi_root_middlewares(self) -> list[dict[str, Any]]:  # type: ignore[override]
        """The start of the inbox, if it is enabled."""
        from airflow_provider_webdata.inbox_server.options import inbox_enabled

        return [{"middleware": open_inbox, "name": "Web data inbox"}] if inbox_enabled() else []

    @cached_property
    def external_views(self) -> list[dict[str, Any]]:  # type: ignore[override]
        """The menu entry and the tab of the pages, if they are enabled."""
        from airflow_provider_webdata.inbox_server.options import pages_enabled

        return _views() if pages_enabled() else []

    @cached_property
    def react_apps(self) -> list[dict[str, Any]]:  # type: ignore[override]
        """The card of the pages on Home, if they are enabled."""
        from airflow_provider_webdata.inbox_server.options import pages_enabled

        return [_card()] if pages_enabled() else []
