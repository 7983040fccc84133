# SPDX-License-Identifier: Apache-2.0
"""A browser session of the service that a task uses and always closes.

An open browser bills until its ttl ends. A task therefore closes it when it succeeds, fails, times out, or is killed;
after a crash, the next attempt does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow_provider_webdata.api.errors import NotFoundError, WebDataError
from airflow_provider_webdata.common.coded_errors import brief
from airflow_provider_webdata.common.logs import logger
from airflow_provider_webdata.common.numbers import credits_text
from airflow_provider_webdata.runs.failures import may_have_acted
from airflow_provider_webdata.runs.replica import until_found
from airflow_provider_webdata.states.task_record import Started, new_key

if TYPE_CHECKING:
    from collections.abc import Mapping

    from airflow_provider_webdata.api.models import (
        ExecuteResult,
        InteractRequest,
        InteractSession,
        SessionClosed,
    )
    from airflow_provider_webdata.api.models.base import RequestModel
    from airflow_provider_webdata.hooks.task_memory import TaskMemory
    from airflow_provider_webdata.hooks.webdata import WebDataHook

log = logger(__name__)

_LOST_SECONDS = 5.0
"""Maximum search time for a session after a lost response: the service may list it with a delay."""


class SessionBrowser:
    """A session that the task opens.

    The open sessions are recorded before a session is opened, and its id afterwards. This identifies a session whose
    response was lost, and lets the next attempt after a crash close the crashed attempt's session.

    :param request: the request that opens it.
    :param extra_body: merged into that request unchecked.
    :param memory: the task's record, which names the session.
    :ivar ids: its ids for XCom.
    :ivar secrets: the URLs that control it.
    """

    def __init__(
        self,
        hook: WebDataHook,
        request: InteractRequest,
        extra_body: Mapping[str, Any] | None,
        memory: TaskMemory,
    ) -> None:
        self.ids: dict[str, Any] = {"sessionId": None}
        self.secrets: set[str] = set()
        self._hook = hook
        self._request = request
        self._extra_body = extra_body
        self._memory = memory
        self._known: set[str] = set()
        self._id: str | None = None
        self._may_be_open = False
        self._is_left_open = False

    def open(self) -> None:
        """Open the session."""

        self._known = {session.id for session in self._active(self._hook)}
        started = Started(kind="session", key=new_key(), known=tuple(sorted(self._known)))
        self._memory.write(started=started, phase="requested")
        self._may_be_open = True
        try:
            session = self._hook.open_session(self._request, extra_body=self._extra_body)
        except WebDataError as error:
            self._may_be_open = may_have_acted(error)
            raise
        self._id = self.ids["sessionId"] = session.id
        self.secrets.update(session.secrets())
        self._may_be_open = False
        self._memory.note(started=started.named(session.id), phase="known")
        log.info("Opened session %s; it expires at %s", session.id, session.expires_at or "its ttl")

    def run(self, step: RequestModel) -> ExecuteResult:
        """Run code in the session."""
        return self._hook.execute(self._id or "", step)  # type: ignore[arg-type]

    def close(self, hook: WebDataHook, *, best_effort: bool = False) -> SessionClosed | None:
        """Close the session if it may be open, and return its reported cost; never fails.

        If it stays open, so does its record, and the next attempt closes it.

        :param hook: a hook of the same connection whose client is idle.
        :param best_effort: search only once for a session whose id is unknown.
        """
        closed = None
        if self._id is not None:
            session_id, self._id = self._id, None
            closed = self._close(hook, session_id)
        elif self._may_be_open:
            closed = self._close_lost(hook, 0 if best_effort else _LOST_SECONDS)
            # The response that contains the id may still arrive.
            self._may_be_open = best_effort
        if not best_effort and not self._is_left_open:
            self._memory.note(started=None, phase="ended")
        return closed

    def close_leftovers(self) -> Mapping[str, SessionClosed]:
        """Close the session that an earlier attempt left open, even if its id is unknown; return its cost by id."""
        # The session of a killed attempt bills on after the task is cleared.
        former = self._memory.former
        started = self._memory.record.started_as("session")
        if started is None and former is not None:
            started = former.started_as("session")
        if started is None:
            return {}
        session_id, closed = started.id, None
        if session_id:
            log.info("Closing session %s, which an earlier attempt left open", session_id)
            closed = self._close(self._hook, session_id)
        else:
            self._known = set(started.known)
            closed = self._close_lost(self._hook, 0)
            session_id, self.ids["sessionId"] = self.ids["sessionId"], None
        return {session_id: closed} if session_id and closed else {}

    def _close(self, hook: WebDataHook, session_id: str) -> SessionClosed | None:
        closed, self._is_left_open = _close_browser(hook, session_id)
        return closed

    def _close_lost(self, hook: WebDataHook, seconds: float) -> SessionClosed | None:

        def opened_since() -> list[InteractSession]:
            return [session for session in self._active(hook) if session.id not in self._known]

        try:
            found = until_found(opened_since, seconds) or []
        except WebDataError as error:
            log.warning(
                "A session may be open and bill until its ttl, and the search for it failed: %s",
                error.brief(),
            )
            self._is_left_open = True
            return None
        if not found:
            log.info("No session was opened, or the service does not list it yet")
            return None
        if len(found) > 1:
            log.warning(
                "One of %d sessions opened in the meantime may be this task's, billed until its ttl: close it manually",
                len(found),
            )
            log.warning("The sessions: %s", ", ".join(session.id for session in found))
            return None
        log.info("Session %s was opened, although the response was lost", found[0].id)
        self.ids["sessionId"] = found[0].id
        return self._close(hook, found[0].id)

    def _active(self, hook: WebDataHook) -> list[InteractSession]:
        return hook.list_sessions(status="active")


class ScrapeBrowser:
    """The browser on an earlier scrape's page. The first step opens it.

    :param scrape_id: `metadata.scrapeId` of the scrape's document.
    :param extra_body: merged into each step's request unchecked.
    """

    def __init__(self, hook: WebDataHook, scrape_id: str, extra_body: Mapping[str, Any] | None) -> None:
        self.ids: dict[str, Any] = {"scrapeId": scrape_id}
        self.secrets: set[str] = set()
        self._hook = hook
        self._scrape_id = scrape_id
        self._extra_body = extra_body
        self._may_be_open = False

    def close_leftovers(self) -> Mapping[str, SessionClosed]:
        """Return an empty mapping: all attempts share the page's browser."""
        return {}

    def open(self) -> None:
        """Do nothing: the first step opens it."""

    def run(self, step: RequestModel) -> ExecuteResult:
        """Run code or a prompt on the page."""
        self._may_be_open = True
        result = self._hook.interact_with_scrape(self._scrape_id, step, extra_body=self._extra_body)  # type: ignore[arg-type]
        self.secrets.update(result.secrets())
        return result

    def close(self, hook: WebDataHook, *, best_effort: bool = False) -> SessionClosed | None:
        """Close the browser if a step was started; never fails."""
        if not self._may_be_open:
            return None
        # A step in flight may still open the browser.
        self._may_be_open = best_effort
        closed, _ = _close_browser(hook, self._scrape_id, of_scrape=True)
        return closed


Browser = SessionBrowser | ScrapeBrowser
"""The browser of a task."""


def _close_browser(
    hook: WebDataHook, browser_id: str, *, of_scrape: bool = False
) -> tuple[SessionClosed | None, bool]:
    """Close a browser; return its cost, and whether it may still be open."""
    close = hook.stop_scrape_interaction if of_scrape else hook.close_session
    try:
        closed = close(browser_id)
    except NotFoundError:
        log.info("The browser of %s was already closed", browser_id)
        return None, False
    except WebDataError as error:
        log.error(
            "Failed to close the browser of %s, which bills until its ttl: %s", browser_id, brief(error)
        )
        return None, True
    log.info(
        "Closed the browser of %s: %s credits for %s ms",
        browser_id,
        credits_text(closed.credits_billed),
        "unknown" if closed.session_duration_ms is None else f"{closed.session_duration_ms:g}",
    )
    return closed, False
