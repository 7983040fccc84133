# SPDX-License-Identifier: Apache-2.0
"""Browser sessions: standalone or on a scraped page, billed per minute."""

from __future__ import annotations

import asyncio
import math
import re
import secrets
import uuid
from datetime import timedelta
from typing import TYPE_CHECKING

from webdata_sandbox.engine.browser import CodeError, CodeRun, Tab, open_page
from webdata_sandbox.engine.words import sentences_about
from webdata_sandbox.reference.errors import ServiceError
from webdata_sandbox.reference.timestamps import from_iso, iso

from .call import Reply
from .endpoint import Endpoint
from .validation import valid

if TYPE_CHECKING:
    from collections.abc import Iterator

    from webdata_sandbox.engine.media import Media
    from webdata_sandbox.engine.scrape_store import ScrapeStore
    from webdata_sandbox.engine.web import Web
    from webdata_sandbox.reference.wire import Json
    from webdata_sandbox.state.core import Core
    from webdata_sandbox.state.quirks import Quirks

    from .call import Call

SESSIONS = "/v2/(?:interact|browser)"
PER_MINUTE = 2
PER_MINUTE_WITH_PROMPT = 7
BALANCE = 2
STATES = ("active", "destroyed", "error")
NOT_FOUND = "Browser session not found."
DESTROYED = "Browser session has been destroyed."
PROFILE_BUSY = (
    "Another session is currently saving to this profile. Close it or open this one with saveChanges false."
)
NO_SCRAPE = "Job not found."
REPLAY_GONE = "The data needed to replay this scrape is gone. Scrape the page again."
NO_REPLAY = "Replay not found."
NO_MODEL = "The sandbox has no language model; these sentences of the page share a word with the prompt: "

# Total and idle lifetimes in seconds: in the contract, and in guides and servers.
LIFETIMES: tuple[int, int | None] = (300, None)
LIFETIMES_ELSEWHERE = (600, 300)
DEFAULT_TIMEOUT = 30
SEGMENTS, SEGMENT_BYTES = 2, 1000
"""Segments per recording, and bytes per segment."""
CODE_MAX = 100_000
NO_CODE = {"stdout": "", "result": "", "stderr": None, "exitCode": 0, "killed": False, "error": None}


class Interact:
    """Handles browser session requests."""

    def __init__(self, core: Core, web: Web, scrapes: ScrapeStore, media: Media) -> None:
        self._core, self._store, self._clock = core, core.store, core.clock
        self._web, self._scrapes, self._media = web, scrapes, media
        self._waiting: dict[str, set[asyncio.Event]] = {}
        self._running: dict[str, int] = {}

    def endpoints(self) -> list[Endpoint]:
        """Return the endpoints of this operation."""
        return [
            Endpoint("POST", SESSIONS, self.open, "interact", keyless=True, activity="interact"),
            Endpoint("GET", SESSIONS, self.list_sessions, "interact-execute", keyless=True),
            Endpoint("POST", SESSIONS + "/{id}/execute", self.execute, "interact-execute", keyless=True),
            Endpoint("DELETE", SESSIONS + "/{id}", self.close, "interact-execute", keyless=True),
            Endpoint("GET", SESSIONS + "/{id}/replay", self.replay, "interact-execute"),
            Endpoint(
                "GET", SESSIONS + "/{id}/replay/{page}", self.replay_page, "interact-execute", free_ids=True
            ),
            Endpoint("POST", "/v2/scrape/{id}/interact", self.interact, "interact-execute", keyless=True),
            Endpoint("DELETE", "/v2/scrape/{id}/interact", self.stop, "interact-execute", keyless=True),
        ]

    def resume(self) -> None:
        """Schedule the expiry of sessions that an earlier sandbox left open."""
        for session in self._active():
            self._plan(session)

    def all(self) -> list[Json]:
        """Return the open and closed sessions, oldest first."""
        return self._store.list("session")

    async def open(self, call: Call) -> Reply:
        """Open a session."""
        body = valid("interact", call.body)
        self._core.credits.require(BALANCE)
        session = self._open(body, body.get("profile"))
        names = ("id", "cdpUrl", "liveViewUrl", "interactiveLiveViewUrl", "expiresAt")
        return Reply(200, {"success": True, **{name: session[name] for name in names}})

    async def list_sessions(self, call: Call) -> Reply:
        """List all sessions, or those with the requested status."""
        wanted = call.query.get("status")
        if wanted is not None and wanted not in STATES:
            raise ServiceError(400, f"Invalid status: {wanted}", code="BAD_REQUEST")
        names = ("id", "status", "cdpUrl", "liveViewUrl", "interactiveLiveViewUrl", "streamWebView")
        shown = [
            {name: session[name] for name in (*names, "createdAt", "lastActivity")}
            for session in self.all()
            if wanted in (None, session["status"])
        ]
        return Reply(200, {"success": True, "sessions": shown})

    async def execute(self, call: Call) -> Reply:
        """Run code in a session. The call succeeds even if the code fails."""
        session = self._session(call.params["id"])
        body = valid("interact.execute", call.body)
        _refuse_long_code(body, self._core.quirks)
        _refuse_destroyed(session)
        return Reply(200, {"success": True, **await self._run(session["id"], body)})

    async def close(self, call: Call) -> Reply:
        """Close a session. Closing it again returns the same response."""
        session = self._session(call.params["id"])
        if self._core.quirks.on("closed-is-gone"):
            _refuse_destroyed(session)
        return Reply(200, {"success": True, **self.destroy(session["id"])})

    async def interact(self, call: Call) -> Reply:
        """Run code or a prompt in the browser of a scrape. The first call opens the browser."""
        scrape = self._scrape(call.params["id"])
        body = valid("scrape.interact", call.body)
        _refuse_long_code(body, self._core.quirks)
        session = self._bound(call.params["id"])
        if session is None:
            self._core.credits.require(BALANCE)
            session = self._open_on(scrape, call.params["id"], body)
        _refuse_destroyed(session)
        outcome: Json = {}
        if "code" in body:
            outcome = await self._run(session["id"], body)
        if "prompt" in body:
            outcome = {**NO_CODE, **outcome, "output": self._answer(session["id"], body["prompt"])}
        names = ("cdpUrl", "liveViewUrl", "interactiveLiveViewUrl")
        failed = outcome["killed"] or outcome["exitCode"] != 0
        return Reply(
            200,
            {
                "success": not failed,
                **outcome,
                **{name: session[name] for name in names},
                "sessionId": session["id"],
            },
        )

    async def stop(self, call: Call) -> Reply:
        """Close the browser of a scrape."""
        self._scrape(call.params["id"])
        session = self._bound(call.params["id"])
        if session is None:
            raise ServiceError(404, NOT_FOUND)
        return Reply(200, {"success": True, **self.destroy(session["id"]), "cleanupQueued": False})

    async def replay(self, call: Call) -> Reply:
        """List the recorded tabs of a session; the sandbox records one."""
        session = self._recorded(call.params["id"])
        page = {
            "pageId": "0",
            "url": f"/v2/interact/{session['id']}/replay/0",
            "pageUrl": session["tab"]["url"],
            "startTimeMs": 0,
            "endTimeMs": session.get("sessionDurationMs", self._milliseconds(session)),
        }
        return Reply(200, {"success": True, "pages": [page], "pageCount": 1})

    async def replay_page(self, call: Call) -> Reply:
        """Return the playlist of a tab; its segments are generated."""
        if not re.fullmatch(r"\d{1,3}", call.params["page"]):
            raise ServiceError(400, "Invalid pageId.")
        session = self._recorded(call.params["id"])
        if call.params["page"] != "0":
            raise ServiceError(404, NO_REPLAY)
        lines = ["#EXTM3U", "#EXT-X-VERSION:3", "#EXT-X-TARGETDURATION:6", "#EXT-X-PLAYLIST-TYPE:VOD"]
        for number in range(SEGMENTS):
            address = f"https://browser.sandbox.invalid/{session['id']}/{number}"
            self._media.put(address, "recording", size=SEGMENT_BYTES)
            lines += ["#EXTINF:6.000,", str(self._media.link(address, "recording"))]
        text = "\n".join([*lines, "#EXT-X-ENDLIST", ""])
        return Reply(200, raw=text.encode(), content_type="application/vnd.apple.mpegurl")

    def _recorded(self, session_id: str) -> Json:
        """Return an open or closed session that has a recording."""
        session = self._session(session_id)
        if not session.get("recorded"):
            raise ServiceError(404, NO_REPLAY)
        return session

    def _milliseconds(self, session: Json) -> int:
        begun = from_iso(session["createdAt"])
        return max(0, round((self._clock.datetime() - begun).total_seconds() * 1000))

    def destroy(self, session_id: str) -> Json:
        """Close a session, save its profile, and bill it; return its cost.

        :raises KeyError: the session does not exist.
        """
        session = self._store.get("session", session_id)
        if session is None:
            raise KeyError(session_id)
        if session["status"] == "active":
            spent = self._milliseconds(session)
            rate = PER_MINUTE_WITH_PROMPT if session["prompted"] else PER_MINUTE
            credits = max(rate, math.ceil(spent * rate / 60_000))
            session.update(status="destroyed", sessionDurationMs=spent, creditsBilled=credits)
            with self._store.transaction():
                profile = session["profile"]
                if profile and profile.get("saveChanges", True):
                    self._store.put("profile", profile["name"], {"kept": session["tab"]["kept"]})
                self._store.put("session", session_id, session)
                self._core.credits.spend(credits)
            for event in self._waiting.get(session_id, ()):
                event.set()
        return {name: session[name] for name in ("sessionDurationMs", "creditsBilled")}

    def _active(self) -> Iterator[Json]:
        return (session for session in self.all() if session["status"] == "active")

    def _session(self, session_id: str) -> Json:
        session = self._store.get("session", session_id)
        if session is None:
            raise ServiceError(404, NOT_FOUND)
        return session

    def _bound(self, scrape_id: str) -> Json | None:
        """Return the session of a scrape, or None."""
        found = self._store.get("bound-session", scrape_id)
        return self._store.get("session", found["id"]) if found else None

    def _scrape(self, scrape_id: str) -> Json:
        scrape = self._scrapes.find(scrape_id)
        if scrape is None:
            raise ServiceError(404, NO_SCRAPE)
        return scrape

    def _open_on(self, scrape: Json, scrape_id: str, body: Json) -> Json:
        try:
            page = open_page(self._web, scrape["url"])
        except CodeError:
            raise ServiceError(409, REPLAY_GONE) from None
        session = self._open(body, scrape["options"].get("profile"))
        session["tab"]["url"] = page.url
        self._store.put("session", session["id"], session)
        self._store.put("bound-session", scrape_id, {"id": session["id"]})
        return session

    def _open(self, body: Json, profile: Json | None) -> Json:
        active = list(self._active())
        limit = self._core.settings.max_sessions
        if len(active) >= limit:
            text = f"You have reached the maximum number of active browser sessions ({limit})."
            raise ServiceError(429, text)
        if profile and profile.get("saveChanges", True) and any(_saves(other, profile) for other in active):
            raise ServiceError(409, PROFILE_BUSY)
        kept = self._store.get("profile", profile["name"]) if profile else None
        session_id, now = str(uuid.uuid4()), self._clock.datetime()
        ttl, idle = LIFETIMES_ELSEWHERE if self._core.quirks.on("session-lifetimes") else LIFETIMES
        address = f"browser.sandbox.invalid/{session_id}"
        session: Json = {
            "id": session_id,
            "status": "active",
            "cdpUrl": f"wss://{address}?token={secrets.token_urlsafe(24)}",
            "liveViewUrl": f"https://{address}/view",
            "interactiveLiveViewUrl": f"https://{address}/control?token={secrets.token_urlsafe(24)}",
            "streamWebView": body.get("streamWebView", True),
            "createdAt": iso(now),
            "lastActivity": iso(now),
            "expiresAt": iso(now + timedelta(seconds=body.get("ttl", ttl))),
            "activityTtl": body.get("activityTtl", idle),
            "profile": profile,
            "prompted": False,
            "recorded": body.get("recordSession", True),
            "tab": {"url": "about:blank", "kept": kept["kept"] if kept else {}},
        }
        self._store.put("session", session_id, session)
        self._plan(session)
        return session

    def _plan(self, session: Json) -> None:
        self._core.agenda.at(self._end(session), lambda: self._expire(session["id"]))

    def _end(self, session: Json) -> float:
        """Return the expiry time of a session; running code counts as activity."""
        end = from_iso(session["expiresAt"]).timestamp()
        idle: float | None = session["activityTtl"]
        if idle is None:
            return end
        last = self._clock.now() if self._running.get(session["id"]) else _seconds(session["lastActivity"])
        return min(end, last + idle)

    async def _expire(self, session_id: str) -> None:
        session = self._store.get("session", session_id)
        if session is None or session["status"] != "active":
            return
        if self._end(session) <= self._clock.now():
            self.destroy(session_id)
        else:
            self._plan(session)

    async def _run(self, session_id: str, body: Json) -> Json:
        session = self._session(session_id)
        tab = Tab(**session["tab"])
        code_run = CodeRun(self._web, tab)
        left = float(body.get("timeout", DEFAULT_TIMEOUT))
        self._running[session_id] = self._running.get(session_id, 0) + 1
        killed = False
        try:
            for seconds in code_run.run(body["code"], body.get("language", "node")):
                await self._sleep(session_id, min(seconds, left))
                killed = seconds > left
                left -= seconds
                if killed:
                    break
        finally:
            self._running[session_id] -= 1
        self._touch(session_id, tab)
        timed_out = f"Execution timed out after {body.get('timeout', DEFAULT_TIMEOUT)} seconds"
        error = timed_out if killed else code_run.error
        return {
            "stdout": code_run.stdout,
            "result": code_run.stdout,
            "stderr": error,
            "exitCode": None if killed else code_run.exit_code,
            "killed": killed,
            "error": error,
        }

    async def _sleep(self, session_id: str, seconds: float) -> None:
        """Sleep in sandbox time.

        :raises ServiceError: 410: the session was closed during the sleep.
        """
        event = asyncio.Event()

        async def wake() -> None:
            event.set()

        waiting = self._waiting.setdefault(session_id, set())
        waiting.add(event)
        self._core.agenda.after(seconds, wake)
        try:
            await event.wait()
        finally:
            waiting.discard(event)
        _refuse_destroyed(self._session(session_id))

    def _touch(self, session_id: str, tab: Tab) -> None:
        session = self._session(session_id)
        _refuse_destroyed(session)
        session.update(lastActivity=self._clock.iso(), tab={"url": tab.url, "kept": tab.kept})
        self._store.put("session", session_id, session)

    def _answer(self, session_id: str, prompt: str) -> str:
        """Answer a prompt with sentences of the page, without interacting with it."""
        session = self._session(session_id)
        session.update(prompted=True, lastActivity=self._clock.iso())
        self._store.put("session", session_id, session)
        try:
            text = open_page(self._web, session["tab"]["url"]).body_text
        except CodeError:  # the page no longer exists
            text = ""
        return NO_MODEL + (" ".join(sentences_about(text, prompt)) or "none.")


def _seconds(text: str) -> float:
    return from_iso(text).timestamp()


def _saves(session: Json, profile: Json) -> bool:
    other = session["profile"]
    return bool(other and other["name"] == profile["name"] and other.get("saveChanges", True))


def _refuse_destroyed(session: Json) -> None:
    if session["status"] != "active":
        raise ServiceError(410, DESTROYED)


def _refuse_long_code(body: Json, quirks: Quirks) -> None:
    if quirks.on("code-in-bytes") and len(body.get("code", "").encode()) > CODE_MAX:
        raise ServiceError(400, f"code must not exceed {CODE_MAX} bytes", code="BAD_REQUEST")
