# SPDX-License-Identifier: Apache-2.0
"""Browser sessions: opened directly, or on the page of an earlier scrape. See sandbox/docs/service.md#interact.

URLs that control a browser are secrets: the hooks register them with Airflow's masker before returning them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_provider_webdata.api import endpoints, models
from airflow_provider_webdata.api.errors import GoneError
from airflow_provider_webdata.hooks.calls import Body, Call
from airflow_provider_webdata.hooks.operations.base import Operations
from airflow_provider_webdata.hooks.signatures import with_fields

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from airflow_provider_webdata.hooks.fields import (
        ExecuteFields,
        InteractFields,
        ScrapeInteractFields,
    )


class SessionOperations(Operations):
    """Browser sessions."""

    @with_fields
    async def open_session(
        self,
        request: models.InteractRequest | Body | None = None,
        *,
        extra_body: Body | None = None,
        **fields: Unpack[InteractFields],
    ) -> models.InteractSession:
        """Open a browser session, billed by time until it is closed or expires. Never retried after a lost response.

        :param request: the fields as a mapping or a model, in place of keyword arguments. See
            sandbox/docs/service.md#session; set `ttl`, because a session whose response is lost stays open until then.
        :param extra_body: merged into the body unchecked.
        """
        session = await self._execute(Call.of(endpoints.OPEN_SESSION, request, fields, extra_body=extra_body))
        await self._mask(session.secrets())
        return session

    async def list_sessions(self, *, status: str | None = None) -> list[models.InteractSession]:
        """Return the team's sessions. Free.

        :param status: return only sessions in this state: `active`, `destroyed`, or `error`.
        """
        answer = await self._execute(Call(endpoints.LIST_SESSIONS, query={"status": status}))
        await self._mask(answer.secrets())
        return answer.sessions

    @with_fields
    async def execute(
        self,
        session_id: str,
        request: models.ExecuteRequest | Body | None = None,
        *,
        extra_body: Body | None = None,
        **fields: Unpack[ExecuteFields],
    ) -> models.ExecuteResult:
        """Run code in a session; never retried after a lost response. Failing code does not raise an exception.

        :param session_id: the session's id.
        :param request: the fields as a mapping or a model, in place of keyword arguments. See
            sandbox/docs/service.md#session; only `code` is required.
        :param extra_body: merged into the body unchecked.
        :return: the result of the code; its `failure()` says whether it succeeded.
        """
        return await self._execute(
            Call.of(
                endpoints.EXECUTE, request, fields, path={"session_id": session_id}, extra_body=extra_body
            )
        )

    async def close_session(self, session_id: str) -> models.SessionClosed:
        """Close a session and save its profile's changes. Idempotent.

        :param session_id: the session's id.
        :return: the cost of the session; empty if it was already closed.
        :raises NotFoundError: the session does not exist.
        """
        try:
            return await self._execute(Call(endpoints.CLOSE_SESSION, path={"session_id": session_id}))
        except GoneError:
            return models.SessionClosed()

    async def replay(self, session_id: str) -> list[models.ReplayPage]:
        """Return the recorded tabs of an open or closed session that was opened with `record_session`.

        :param session_id: the session's id.
        :raises NotFoundError: the session or its recording does not exist.
        """
        return (await self._execute(Call(endpoints.REPLAY, path={"session_id": session_id}))).pages

    async def replay_page(self, session_id: str, page_id: str) -> str:
        """Return the recording of one tab as an HLS playlist (`.m3u8`).

        Each call returns new links to the segments, which expire after about 6 hours. Anyone with a link can watch.

        :param session_id: the session's id.
        :param page_id: `page_id` of a `ReplayPage`.
        :raises NotFoundError: the recording does not exist.
        """
        path = {"session_id": session_id, "page_id": page_id}
        return (await self._execute(Call(endpoints.REPLAY_PAGE, path=path))).text

    @with_fields
    async def interact_with_scrape(
        self,
        scrape_id: str,
        request: models.ScrapeInteractRequest | Body | None = None,
        *,
        extra_body: Body | None = None,
        **fields: Unpack[ScrapeInteractFields],
    ) -> models.ScrapeInteractResult:
        """Run code or a prompt on the page of an earlier scrape; never retried after a lost response.

        The first call opens a browser on the page, which bills until it is stopped or expires; later calls use the same
        browser. Failing code does not raise an exception.

        :param scrape_id: UUID in `metadata.scrape_id` of the scrape's document.
        :param request: the fields as a mapping or a model, in place of keyword arguments. See
            sandbox/docs/service.md#on-the-page-of-a-scrape; `code` or `prompt` is required.
        :param extra_body: merged into the body unchecked.
        :return: the outcome; its `failure()` says whether it succeeded.
        :raises ConflictError: the scrape can no longer be repeated (scrape again), or its profile is busy.
        """
        result = await self._execute(
            Call.of(
                endpoints.INTERACT_WITH_SCRAPE,
                request,
                fields,
                path={"scrape_id": scrape_id},
                extra_body=extra_body,
            )
        )
        await self._mask(result.secrets())
        return result

    async def stop_scrape_interaction(self, scrape_id: str) -> models.SessionClosed:
        """Close the browser on the page of a scrape. Idempotent.

        :param scrape_id: UUID in `metadata.scrape_id` of the scrape's document.
        :return: the cost of the browser; empty if it was already closed.
        :raises NotFoundError: the scrape does not exist, or no browser was ever opened on its page.
        """
        try:
            return await self._execute(
                Call(endpoints.STOP_INTERACTION_WITH_SCRAPE, path={"scrape_id": scrape_id})
            )
        except GoneError:
            return models.SessionClosed()
