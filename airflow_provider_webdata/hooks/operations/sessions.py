"""Browser sessions: opened by hand, or on the page of an earlier scrape. See docs/service.md#interact.

The URLs that control a browser are given to Airflow's masker before anybody else sees them.
"""

from __future__ import annotations

from airflow_provider_webdata.api import endpoints, models
from airflow_provider_webdata.api.errors import GoneError
from airflow_provider_webdata.hooks.calls import Body, Call
from airflow_provider_webdata.hooks.operations.base import Operations


class SessionOperations(Operations):
    """Browser sessions."""

    async def open_session(
        self, request: models.InteractRequest | Body, *, extra_body: Body | None = None
    ) -> models.InteractSession:
        """Open a browser session. It bills by time until it is closed or over; never opened twice for a lost answer.

        :param request: docs/service.md#session; give `ttl`, for a session whose answer is lost lives until then.
        :param extra_body: merged into the body unchecked.
        """
        session = await self._execute(Call.of(endpoints.OPEN_SESSION, request, extra_body=extra_body))
        await self._mask(session.secrets())
        return session

    async def list_sessions(self, *, status: str | None = None) -> list[models.InteractSession]:
        """Return the team's sessions. Costs nothing.

        :param status: only those in this state: `active`, `destroyed` or `error`.
        """
        answer = await self._execute(Call(endpoints.LIST_SESSIONS, query={"status": status}))
        await self._mask(answer.secrets())
        return answer.sessions

    async def execute(
        self, session_id: str, request: models.ExecuteRequest | Body, *, extra_body: Body | None = None
    ) -> models.ExecuteResult:
        """Run code in a session; never repeated after a lost answer. Code that fails raises nothing.

        :param session_id: the session's id.
        :param request: docs/service.md#session; only `code` is required.
        :param extra_body: merged into the body unchecked.
        :return: the result of the code; its `failure()` says whether it succeeded.
        """
        return await self._execute(
            Call.of(endpoints.EXECUTE, request, path={"session_id": session_id}, extra_body=extra_body)
        )

    async def close_session(self, session_id: str) -> models.SessionClosed:
        """Close a session and save its profile's changes; harmless for one that is closed already.

        :param session_id: the session's id.
        :return: what it cost; empty when it was closed before.
        :raises NotFoundError: there is no such session.
        """
        try:
            return await self._execute(Call(endpoints.CLOSE_SESSION, path={"session_id": session_id}))
        except GoneError:
            return models.SessionClosed()

    async def replay(self, session_id: str) -> list[models.ReplayPage]:
        """Return the recorded tabs of a session that was opened with `record_session`, also once it is closed.

        :param session_id: the session's id.
        :raises NotFoundError: there is no such session, or no recording of it.
        """
        return (await self._execute(Call(endpoints.REPLAY, path={"session_id": session_id}))).pages

    async def replay_page(self, session_id: str, page_id: str) -> str:
        """Return the recording of one tab as an HLS playlist (`.m3u8`), for any player that reads these.

        Each call returns new links to the segments, which expire after some 6 hours. Any holder can watch them.

        :param session_id: the session's id.
        :param page_id: `page_id` of a `ReplayPage`.
        :raises NotFoundError: there is no such recording.
        """
        path = {"session_id": session_id, "page_id": page_id}
        return (await self._execute(Call(endpoints.REPLAY_PAGE, path=path))).text

    async def interact_with_scrape(
        self,
        scrape_id: str,
        request: models.ScrapeInteractRequest | Body,
        *,
        extra_body: Body | None = None,
    ) -> models.ScrapeInteractResult:
        """Run code, or a prompt, on the page of an earlier scrape; never repeated after a lost answer.

        The first call opens a browser there, which bills until it is stopped or over; later calls continue in it. Code
        that fails raises nothing.

        :param scrape_id: UUID in `metadata.scrape_id` of the scrape's document.
        :param request: docs/service.md#on-the-page-of-a-scrape; `code` or `prompt` is required.
        :param extra_body: merged into the body unchecked.
        :return: the outcome; its `failure()` says whether it succeeded.
        :raises ConflictError: the scrape cannot be repeated any more (scrape again), or its profile is busy.
        """
        result = await self._execute(
            Call.of(
                endpoints.INTERACT_WITH_SCRAPE, request, path={"scrape_id": scrape_id}, extra_body=extra_body
            )
        )
        await self._mask(result.secrets())
        return result

    async def stop_scrape_interaction(self, scrape_id: str) -> models.SessionClosed:
        """Close the browser on the page of a scrape; harmless when it is closed already.

        :param scrape_id: UUID in `metadata.scrape_id` of the scrape's document.
        :return: what it cost; empty when it was closed before.
        :raises NotFoundError: there is no such scrape, or no browser was ever opened on it.
        """
        try:
            return await self._execute(
                Call(endpoints.STOP_INTERACTION_WITH_SCRAPE, path={"scrape_id": scrape_id})
            )
        except GoneError:
            return models.SessionClosed()
