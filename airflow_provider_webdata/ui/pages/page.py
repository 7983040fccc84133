"""Base of the pages: query, visitor, and sources."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

from starlette.exceptions import HTTPException

from airflow_provider_webdata.common.dates import moment
from airflow_provider_webdata.inbox_server.storage.database import airflow_engine
from airflow_provider_webdata.inbox_server.storage.store import DeliveryStore
from airflow_provider_webdata.ui.rendering import in_utc, render
from airflow_provider_webdata.ui.threads import in_thread

if TYPE_CHECKING:
    from collections.abc import Iterable

    from starlette.requests import Request
    from starlette.responses import Response

    from airflow_provider_webdata.ui.lookups import Lookups
    from airflow_provider_webdata.ui.visitor import Visitor

_LONGEST_PARAMETER = 2000
_FIRST = datetime(1971, 1, 1, tzinfo=timezone.utc)
_LAST = datetime(2999, 1, 1, tzinfo=timezone.utc)


class Page:
    """A request for a page.

    :param request: what was asked.
    :param visitor: who asks.
    :param lookups: what the service was asked before.
    """

    def __init__(self, request: Request, visitor: Visitor, lookups: Lookups) -> None:
        self.request = request
        self.visitor = visitor
        self.lookups = lookups

    def text(self, name: str) -> str:
        """Return a parameter, empty where it is not given.

        :raises HTTPException: it is too long, or holds what no id holds.
        """
        given = self.request.query_params.get(name, "").strip()
        if len(given) > _LONGEST_PARAMETER or not given.isprintable():
            raise HTTPException(
                400, f"{name} must be printable text of at most {_LONGEST_PARAMETER} characters."
            )
        return given

    def required(self, name: str) -> str:
        """Return a parameter that the page cannot do without.

        :raises HTTPException: it is missing.
        """
        given = self.text(name)
        if not given:
            raise HTTPException(400, f"{name} is missing in the address.")
        return given

    def whole(self, name: str, default: int = 0) -> int:
        """Return a whole number.

        :raises HTTPException: it is none, or negative.
        """
        given = self.text(name)
        if not given:
            return default
        try:
            # More digits than the database's numbers have are no id of a row.
            value = int(given) if len(given) <= 18 else -1
        except ValueError:
            value = -1
        if value < 0:
            raise HTTPException(400, f"{name} must be a whole number, at least 0.")
        return value

    def moment(self, name: str) -> datetime | None:
        """Return a moment; one without a time zone is UTC's.

        :raises HTTPException: it is none.
        """
        given = self.text(name)
        if not given:
            return None
        if (value := moment(given)) is None:
            raise HTTPException(400, f"{name} must be a moment such as 2026-01-31T10:00.")
        # Databases and clocks know less than the calendar; no delivery is beyond these.
        return min(max(in_utc(value), _FIRST), _LAST)

    def require_dags(self, dag_ids: Iterable[str]) -> None:
        """Check the right to read all of some DAGs. Blocks.

        :raises HTTPException: 403, the visitor may not read one of them.
        """
        # The text names none: the id may come from a job or a monitor.
        if not self.visitor.may_read_dags(dag_ids):
            raise HTTPException(403, "This belongs to a DAG that you have no right to read.")

    async def conn_ids(self) -> list[str]:
        """Return the connections that the visitor may read, the default one first."""
        listed = await self.lookups.conn_ids()
        readable = await in_thread(self.visitor.readable_connections, listed)
        return [conn_id for conn_id in listed if conn_id in readable]

    async def render(self, template: str, **values: Any) -> Response:
        """Return the page. A thread renders it: a large one must not hold up the API server."""
        return await in_thread(render, template, self.request, **values)

    def store(self) -> DeliveryStore:
        """Return the deliveries of this Airflow."""
        return DeliveryStore(airflow_engine())
