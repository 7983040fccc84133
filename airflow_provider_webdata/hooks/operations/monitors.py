# SPDX-License-Identifier: Apache-2.0
"""Monitors and their checks. See sandbox/docs/service.md#monitors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from airflow_provider_webdata.api import endpoints, models
from airflow_provider_webdata.api.errors import InvalidRequestError, InvalidResponseError
from airflow_provider_webdata.common.coded_errors import ArgumentError
from airflow_provider_webdata.hooks.calls import PAGE_SIZE, Body, Call, MonitorPages, repeated_page
from airflow_provider_webdata.hooks.operations.base import Operations
from airflow_provider_webdata.hooks.signatures import with_fields
from airflow_provider_webdata.states.checks import CHANGED_STATUSES, is_change

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from typing_extensions import Unpack

    from airflow_provider_webdata.api.endpoints import Endpoint, ResponseT
    from airflow_provider_webdata.hooks.fields import (
        MonitorCreateFields,
        MonitorUpdateFields,
    )


def _list_monitors(*, limit: int | None, offset: int | None) -> Call[models.MonitorListResponse]:
    return Call(endpoints.LIST_MONITORS, query={"limit": limit, "offset": offset})


def _get_monitor_check(
    monitor_id: str, check_id: str, limit: int | None, skip: int | None, status: str | None
) -> Call[models.MonitorCheckResponse]:
    path = {"monitor_id": monitor_id, "check_id": check_id}
    query = {"limit": limit, "skip": skip, "status": status}
    return Call(endpoints.GET_MONITOR_CHECK, path=path, query=query)


def _of_monitor(endpoint: Endpoint[ResponseT], monitor_id: str) -> Call[ResponseT]:
    return Call(endpoint, path={"monitor_id": monitor_id})


class MonitorOperations(Operations):
    """Monitors."""

    @with_fields
    async def create_monitor(
        self,
        request: models.MonitorCreateRequest | Body | None = None,
        *,
        extra_body: Body | None = None,
        **fields: Unpack[MonitorCreateFields],
    ) -> models.Monitor:
        """Create a monitor. Never retried after a lost response, because names are not unique.

        :param request: the fields as a mapping or a model, in place of keyword arguments. See
            sandbox/docs/service.md#monitor-fields; name, schedule, and targets are required.
        :param extra_body: merged into the body unchecked.
        """
        return (
            await self._execute(Call.of(endpoints.CREATE_MONITOR, request, fields, extra_body=extra_body))
        ).data

    async def list_monitors(
        self, *, limit: int | None = None, offset: int | None = None
    ) -> list[models.Monitor]:
        """Return one page of the monitors, newest first. See sandbox/docs/service.md#monitor-list.

        :param limit: maximum number of monitors, 1 to 100. Service default: 25.
        :param offset: number of monitors to skip.
        """
        return (await self._execute(_list_monitors(limit=limit, offset=offset))).data

    async def iter_monitors(self) -> AsyncIterator[models.Monitor]:
        """Yield every monitor once, newest first, fetching page by page.

        :raises UnsupportedError: the server returns the same monitors again, because it does not receive `offset`.
        """
        pages = MonitorPages()
        while pages.query is not None:
            for monitor in pages.add_page((await self._execute(_list_monitors(**pages.query))).data):
                yield monitor

    async def get_monitor(self, monitor_id: str) -> models.Monitor:
        """Return one monitor.

        The service reads from a replica: a call right after the monitor's creation may raise `NotFoundError`.

        :param monitor_id: the monitor's UUID.
        """
        return (await self._execute(_of_monitor(endpoints.GET_MONITOR, monitor_id))).data

    @with_fields
    async def update_monitor(
        self,
        monitor_id: str,
        request: models.MonitorUpdateRequest | Body | None = None,
        *,
        extra_body: Body | None = None,
        **fields: Unpack[MonitorUpdateFields],
    ) -> models.Monitor:
        """Update a monitor; omitted fields are unchanged. See sandbox/docs/service.md#monitor-update.

        `targets` replaces the entire array, and a target without its `id` loses its page history.

        :param monitor_id: the monitor's UUID.
        :param request: the fields as a mapping or a model, in place of keyword arguments.
        :param extra_body: merged into the body unchecked; can be given without `request`.
        """
        if request is None and not fields and not extra_body:
            raise InvalidRequestError(
                endpoints.UPDATE_MONITOR.label,
                ["pass the fields to change, such as goal=... or targets=[...]"],
            )
        path = {"monitor_id": monitor_id}
        call = Call.of(endpoints.UPDATE_MONITOR, request, fields or None, path=path, extra_body=extra_body)
        return (await self._execute(call)).data

    async def delete_monitor(self, monitor_id: str) -> models.DeleteResponse:
        """Delete a monitor.

        :param monitor_id: the monitor's UUID.
        """
        return await self._execute(_of_monitor(endpoints.DELETE_MONITOR, monitor_id))

    async def run_monitor(self, monitor_id: str) -> models.MonitorCheck:
        """Start a check now and return the queued check. Bills credits; never retried after a lost response.

        :param monitor_id: the monitor's UUID.
        :raises ConflictError: a check is running (its id is in `body["checkId"]`), or the monitor is paused.
        """
        answer = await self._execute(_of_monitor(endpoints.RUN_MONITOR, monitor_id))
        if answer.data is not None:
            return answer.data
        if answer.id:
            return models.MonitorCheck(id=answer.id)
        raise InvalidResponseError(
            endpoints.RUN_MONITOR.label, "the response contains no check id", status=200
        )

    async def list_monitor_checks(
        self,
        monitor_id: str,
        *,
        limit: int | None = None,
        offset: int | None = None,
        status: str | None = None,
    ) -> list[models.MonitorCheck]:
        """Return one page of a monitor's checks, newest first, without pages. See sandbox/docs/service.md#check-list.

        :param monitor_id: the monitor's UUID.
        :param limit: maximum number of checks, 1 to 100. Service default: 25.
        :param offset: number of checks to skip.
        :param status: return only checks in this state.
        """
        query = {"limit": limit, "offset": offset, "status": status}
        call = Call(endpoints.LIST_MONITOR_CHECKS, path={"monitor_id": monitor_id}, query=query)
        return (await self._execute(call)).data

    async def get_monitor_check(
        self,
        monitor_id: str,
        check_id: str,
        *,
        limit: int | None = None,
        skip: int | None = None,
        status: str | None = None,
    ) -> models.MonitorCheckDetail:
        """Return a check with one part of its pages. Rely on its `status`.

        :param monitor_id: the monitor's UUID.
        :param check_id: the check's UUID.
        :param limit: maximum number of pages, 1 to 100. Service default: 25.
        :param skip: number of pages to skip.
        :param status: return only pages with this status: `same`, `new`, `changed`, `removed`, or `error`.
        """
        return (await self._execute(_get_monitor_check(monitor_id, check_id, limit, skip, status))).data

    async def iter_monitor_check_pages(
        self, monitor_id: str, check_id: str, *, status: str | None = None
    ) -> AsyncIterator[models.MonitorCheckPage]:
        """Yield each page of a check once.

        Use this for finished checks: a running check still adds pages.

        :param monitor_id: the monitor's UUID.
        :param check_id: the check's UUID.
        :param status: yield only pages with this status.
        :raises UnsupportedError: the server returns the same pages again, because it does not receive `skip`.
        """
        seen: set[str | None] = set()
        links: set[str] = set()
        call = _get_monitor_check(monitor_id, check_id, PAGE_SIZE, None, status)
        answer = await self._execute(call)
        while True:
            fresh = [page for page in answer.data.pages or () if page.id is None or page.id not in seen]
            seen.update(page.id for page in fresh)
            for page in fresh:
                yield page
            link = answer.next or answer.data.next
            if answer.data.pages and not fresh and link in links:
                raise repeated_page(call.endpoint, "pages")
            # Stop at a page without new pages, or if the links form a loop.
            if not fresh or not link or link in links:
                return
            links.add(link)
            answer = await self._follow(call.endpoint, link)

    async def changed_pages(self, event: Any) -> AsyncIterator[models.MonitorCheckPage]:
        """Yield the changed, new, and removed pages of the check that an asset event reports.

        :param event: the event, its `extra`, or the payload in `extra`, with `monitor_id` and `check_id`.
        :raises ArgumentError: the event does not name a check.
        """
        payload = getattr(event, "extra", event)
        for name in ("extra", "payload"):
            if isinstance(payload, Mapping) and "monitor_id" not in payload:
                payload = payload.get(name, payload)
        names = payload if isinstance(payload, Mapping) else {}
        monitor_id, check_id = names.get("monitor_id"), names.get("check_id") or names.get("job_id")
        if not (monitor_id and check_id):
            raise ArgumentError(
                "changed_pages needs an asset event of a monitor, with monitor_id and check_id in its payload; pass "
                "one of triggering_asset_events"
            )
        for status in CHANGED_STATUSES:
            # Not `self.iter_monitor_check_pages`: the blocking hook overrides it.
            pages = MonitorOperations.iter_monitor_check_pages(self, monitor_id, check_id, status=status)
            async for page in pages:
                if is_change(page):
                    yield page
