# SPDX-License-Identifier: Apache-2.0
"""Base of the pages: parameters, permissions, and data sources."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

from starlette.exceptions import HTTPException

from airflow_provider_webdata.airflow_db.database import airflow_engine
from airflow_provider_webdata.airflow_db.errors import StoreUnavailableError
from airflow_provider_webdata.common.dates import moment
from airflow_provider_webdata.inbox_server.options import inbox_enabled
from airflow_provider_webdata.inbox_server.storage.store import DeliveryStore
from airflow_provider_webdata.ui.rendering import in_utc, render
from airflow_provider_webdata.ui.threads import in_thread

if TYPE_CHECKING:
    from collections.abc import Collection

    from starlette.requests import Request
    from starlette.responses import Response

    from airflow_provider_webdata.airflow_db.visitor import Visitor
    from airflow_provider_webdata.inbox_server.storage.records import DeliveryFilter, StoredDelivery
    from airflow_provider_webdata.inbox_server.storage.refusals import RefusedDeliveries
    from airflow_provider_webdata.ui.lookups import Lookups

_MAX_PARAMETER = 2000
_FIRST = datetime(1971, 1, 1, tzinfo=timezone.utc)
_LAST = datetime(2999, 1, 1, tzinfo=timezone.utc)


class PageView:
    """A request for a page.

    :param request: the HTTP request.
    :param visitor: the user and their permissions.
    :param lookups: cached requests to the service.
    """

    def __init__(self, request: Request, visitor: Visitor, lookups: Lookups) -> None:
        self.request = request
        self.visitor = visitor
        self.lookups = lookups

    def text(self, name: str) -> str:
        """Return a query parameter, or empty text if it is missing.

        :raises HTTPException: the value is too long or not printable.
        """
        given = self.request.query_params.get(name, "").strip()
        if len(given) > _MAX_PARAMETER or not given.isprintable():
            raise HTTPException(400, f"{name} must be printable text of at most {_MAX_PARAMETER} characters.")
        return given

    def given(self, *names: str) -> dict[str, str]:
        """Return those of the parameters that are not empty, by name."""
        return {name: self.text(name) for name in names if self.text(name)}

    def required(self, name: str) -> str:
        """Return a required parameter.

        :raises HTTPException: the parameter is missing.
        """
        given = self.text(name)
        if not given:
            raise HTTPException(400, f"The URL lacks the parameter {name}.")
        return given

    def whole(self, name: str, default: int = 0) -> int:
        """Return a whole-number parameter.

        :raises HTTPException: the value is not a whole number, or is negative.
        """
        given = self.text(name)
        if not given:
            return default
        try:
            # Longer numbers exceed the range of the database's ids.
            value = int(given) if len(given) <= 18 else -1
        except ValueError:
            value = -1
        if value < 0:
            raise HTTPException(400, f"{name} must be a whole number of at least 0.")
        return value

    def moment(self, name: str) -> datetime | None:
        """Return a time parameter, in UTC if it has no time zone.

        :raises HTTPException: the value is not a time.
        """
        given = self.text(name)
        if not given:
            return None
        if (value := moment(given)) is None:
            raise HTTPException(400, f"{name} must be a time such as 2026-01-31T10:00.")
        # Databases and clocks have a smaller range than datetime. All deliveries are within these limits.
        return min(max(in_utc(value), _FIRST), _LAST)

    async def conn_ids(self) -> list[str]:
        """Return the ids of connections that the visitor may read, the default first."""
        listed = await self.lookups.conn_ids()
        readable = await in_thread(self.visitor.readable_connections, listed)
        return [conn_id for conn_id in listed if conn_id in readable]

    async def is_any_connection_hidden(self) -> bool:
        """Return whether there is a connection that the visitor may not read."""
        listed = await self.lookups.conn_ids()
        return len(await in_thread(self.visitor.readable_connections, listed)) < len(listed)

    async def render(self, template: str, **values: Any) -> Response:
        """Render a template in a thread, so that a large page does not block the API server."""
        return await in_thread(render, template, self.request, **values)

    def store(self) -> DeliveryStore:
        """Return the delivery store of this Airflow, whose tables exist only with the inbox."""
        return DeliveryStore(airflow_engine())

    def refused_deliveries(self, conn_ids: Collection[str]) -> list[RefusedDeliveries]:
        """Return the refused deliveries of connections, the newest first; none as in `last_deliveries`. Blocks."""
        if not inbox_enabled():
            return []
        try:
            return self.store().refusals(conn_ids)
        except StoreUnavailableError:
            return []

    def last_deliveries(self, conn_id: str, wanted: DeliveryFilter, limit: int) -> list[StoredDelivery]:
        """Return the newest deliveries. Blocks.

        Without the inbox, or if it cannot be read, there are none. Its own page says why.
        """
        if not inbox_enabled():
            return []
        try:
            return self.store().newest(conn_id, wanted, limit)
        except StoreUnavailableError:
            return []
