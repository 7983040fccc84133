"""A browser session of the service that a task uses and always closes.

A browser that is left open bills until its ttl is over; so each way out of a task closes it: the end, a failure, a
timeout, a kill, and the next attempt after a crash.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from airflow_provider_webdata.api.errors import NotFoundError, WebDataError
from airflow_provider_webdata.runs.intent import Intent, may_have_acted
from airflow_provider_webdata.runs.replica import until_found

if TYPE_CHECKING:
    from collections.abc import Mapping

    from airflow_provider_webdata.api.models import (
        ExecuteResult,
        InteractRequest,
        InteractSession,
        SessionClosed,
    )
    from airflow_provider_webdata.api.models.base import RequestModel
    from airflow_provider_webdata.hooks.webdata import WebDataHook

log = logging.getLogger(__name__)

_LOST_SECONDS = 5.0
"""How long to search for a session whose opening was not answered: it may take a moment to be listed."""


class SessionBrowser:
    """A session that the task opens.

    Before a session is opened, the open ones are recorded; afterwards, its id. So a session whose creation was not
    answered can be distinguished from others, and the next attempt after a crash closes the sessions of the crashed
    one.

    :param request: how to open it.
    :param extra_body: merged into that request unchecked.
    :param intent: where this is recorded.
    :ivar facts: what names it in XCom.
    :ivar secrets: the URLs that control it.
    """

    def __init__(
        self,
        hook: WebDataHook,
        request: InteractRequest,
        extra_body: Mapping[str, Any] | None,
        intent: Intent,
    ) -> None:
        self.facts: dict[str, Any] = {"sessionId": None}
        self.secrets: set[str] = set()
        self._hook = hook
        self._request = request
        self._extra_body = extra_body
        self._intent = intent
        self._known: set[str] = set()
        self._id: str | None = None
        self._may_be_open = False

    def open(self) -> None:
        """Open the session."""

        self._known = {session.id for session in self._active(self._hook)}
        self._intent.begin(self._known)
        self._may_be_open = True
        try:
            session = self._hook.open_session(self._request, extra_body=self._extra_body)
        except WebDataError as error:
            self._may_be_open = may_have_acted(error)
            raise
        self._id = self.facts["sessionId"] = session.id
        self.secrets.update(session.secrets())
        self._may_be_open = False
        self._intent.started(session.id)
        log.info("Opened session %s; it ends by itself at %s", session.id, session.expires_at or "its ttl")

    def run(self, step: RequestModel) -> ExecuteResult:
        """Run code in the session."""
        return self._hook.execute(self._id or "", step)  # type: ignore[arg-type]

    def close(self, hook: WebDataHook, *, in_haste: bool = False) -> SessionClosed | None:
        """Close the session, if it may be open, and return what it cost, where the service says so; never fails.

        :param hook: of the same connection, with a client that is free.
        :param in_haste: search only once for a session whose id is not known.
        """
        closed = None
        if self._id is not None:
            session_id, self._id = self._id, None
            closed = _close(hook, session_id)
        elif self._may_be_open:
            closed = self._close_lost(hook, 0 if in_haste else _LOST_SECONDS)
            # In haste, the answer to the opening may be on its way, and with it the id.
            self._may_be_open = in_haste
        if not in_haste:
            self._intent.forget()
        return closed

    def close_leftovers(self) -> Mapping[str, SessionClosed]:
        """Close the session that an earlier attempt left open, known or not; return what it cost, by its id."""
        session_id, closed = self._intent.started_id, None
        if session_id:
            log.info("Closing session %s, which an earlier attempt left open", session_id)
            closed = _close(self._hook, session_id)
        elif self._intent.remembers:
            self._known = set(self._intent.recall("known") or ())
            closed = self._close_lost(self._hook, 0)
            session_id, self.facts["sessionId"] = self.facts["sessionId"], None
        return {session_id: closed} if session_id and closed else {}

    def _close_lost(self, hook: WebDataHook, seconds: float) -> SessionClosed | None:

        def opened_since() -> list[InteractSession]:
            return [session for session in self._active(hook) if session.id not in self._known]

        try:
            found = until_found(opened_since, seconds) or []
        except WebDataError as error:
            log.warning(
                "A session may be open and bill until its ttl; it could not be searched for: %s", error
            )
            return None
        if not found:
            log.info("No session was opened, or the service does not list it yet")
            return None
        if len(found) > 1:
            log.warning(
                "Sessions %s were opened meanwhile, and one of them may be this task's. None is closed, because the "
                "others are not this task's; close it by hand, or it bills until its ttl",
                ", ".join(session.id for session in found),
            )
            return None
        log.info("Session %s was opened, though its answer was lost", found[0].id)
        self.facts["sessionId"] = found[0].id
        return _close(hook, found[0].id)

    def _active(self, hook: WebDataHook) -> list[InteractSession]:
        return hook.list_sessions(status="active")


class ScrapeBrowser:
    """The browser on the page of an earlier scrape, which the first step opens.

    :param scrape_id: `metadata.scrapeId` of the scrape's document.
    :param extra_body: merged into each step's request unchecked.
    """

    def __init__(self, hook: WebDataHook, scrape_id: str, extra_body: Mapping[str, Any] | None) -> None:
        self.facts: dict[str, Any] = {"scrapeId": scrape_id}
        self.secrets: set[str] = set()
        self._hook = hook
        self._scrape_id = scrape_id
        self._extra_body = extra_body
        self._may_be_open = False

    def close_leftovers(self) -> Mapping[str, SessionClosed]:
        """Return none: the page's browser is that of all attempts."""
        return {}

    def open(self) -> None:
        """Do nothing: the first step opens it."""

    def run(self, step: RequestModel) -> ExecuteResult:
        """Run code or a prompt on the page."""
        self._may_be_open = True
        result = self._hook.interact_with_scrape(self._scrape_id, step, extra_body=self._extra_body)  # type: ignore[arg-type]
        self.secrets.update(result.secrets())
        return result

    def close(self, hook: WebDataHook, *, in_haste: bool = False) -> SessionClosed | None:
        """Close the browser, if a step was begun; never fails."""
        if not self._may_be_open:
            return None
        # In haste, a step that is under way may open the browser after this.
        self._may_be_open = in_haste
        return _close(hook, self._scrape_id, of_scrape=True)


Browser = SessionBrowser | ScrapeBrowser
"""The browser of a task."""


def _close(hook: WebDataHook, browser_id: str, *, of_scrape: bool = False) -> SessionClosed | None:

    close = hook.stop_scrape_interaction if of_scrape else hook.close_session
    try:
        closed = close(browser_id)
    except NotFoundError:
        log.info("The browser of %s was closed already", browser_id)
        return None
    except WebDataError as error:
        log.error("The browser of %s could not be closed and bills until its ttl: %s", browser_id, error)
        return None
    log.info(
        "Closed the browser of %s: %s credits for %s ms",
        browser_id,
        "unknown" if closed.credits_billed is None else f"{closed.credits_billed:g}",
        "unknown" if closed.session_duration_ms is None else f"{closed.session_duration_ms:g}",
    )
    return closed
