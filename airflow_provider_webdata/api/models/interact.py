# SPDX-License-Identifier: Apache-2.0
"""Browser sessions that run code: standalone, or on the page of an earlier scrape.

A session's `cdpUrl` and interactive URL give control of the browser, so they are secrets. Reprs omit them, `secrets()`
returns them for masking, and `without_secrets()` returns a form that is safe to log or pass on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import AfterValidator, Field

from airflow_provider_webdata.api.errors import error_text
from airflow_provider_webdata.api.models.base import (
    Answer,
    Entries,
    Lenient,
    OrNone,
    RequestModel,
    ResponseModel,
    problem,
)
from airflow_provider_webdata.api.models.fields import Integer, Integration, String, Switch, Text
from airflow_provider_webdata.api.models.scrape import Profile

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


MAX_CODE_LENGTH = 100_000
"""Maximum length of code. The service counts UTF-8 bytes, which are never fewer than characters."""

_CONTROLLING_URLS = ("cdp_url", "interactive_live_view_url")


def _playlist(value: str) -> str:
    if not value.lstrip().startswith("#EXTM3U"):
        raise problem("playlist", "is not an HLS playlist, which begins with #EXTM3U")
    return value


def _code(value: str) -> str:
    size = len(value.encode())
    if not 1 <= size <= MAX_CODE_LENGTH:
        raise problem(
            "code",
            f"code must have 1 to {MAX_CODE_LENGTH} characters, counted in UTF-8 bytes (given: {size})",
        )
    return value


Code = Annotated[String, AfterValidator(_code)]
"""Code to run; it may contain credentials, so fields of this type have `repr=False`."""

Language = Literal["python", "node", "bash"]


class InteractRequest(RequestModel):
    """Body of `POST /v2/interact`, which opens a session; every field is optional.

    A session that is not closed stays open, and is billed, until it reaches one of its two limits. Sources differ on
    the defaults of the limits, so set both.

    :param ttl: maximum lifetime of the browser in seconds, 30 to 3600. Default: 300 or 600; sources differ.
    :param activity_ttl: maximum idle time in seconds, 10 to 3600. Default: none or 300; sources differ.
    :param stream_web_view: return a URL for watching the browser. Default: true.
    :param profile: browser state to use: `name`, `saveChanges`; changes are saved when the browser is closed.
    :param block_ads: block advertisements. Default: true. This and the next field are not publicly documented.
    :param record_session: record the session; `GET /v2/interact/{sessionId}/replay` returns the recording.
    :param origin: label of the caller for the service's statistics. Default: `api`.
    :param integration: second label: a name that the service knows, such as `n8n`, or text that begins with `_`.
    """

    nullable = frozenset({"integration"})
    parts = {"profile": Profile}  # noqa: RUF012

    ttl: Annotated[Integer, Field(ge=30, le=3600)] | None = None
    activity_ttl: Annotated[Integer, Field(ge=10, le=3600)] | None = None
    stream_web_view: Switch | None = None
    profile: Profile | None = None
    block_ads: Switch | None = None
    record_session: Switch | None = None
    origin: Text | None = None
    integration: Integration | None = None

    def _own_warnings(self) -> list[str]:
        if self.ttl is None:
            return [
                "ttl: not set, so a session that is not closed is billed for the service's default lifetime"
            ]
        return []


class ExecuteRequest(RequestModel):
    """Body of `POST /v2/interact/{sessionId}/execute`.

    :param code: code to run, 1 to 100,000 characters, counted in UTF-8 bytes; required, omitted from reprs.
    :param language: `python`, `node` or `bash`. Service default: node.
    :param timeout: seconds, 1 to 300. Service default: 30.
    """

    code: Code = Field(repr=False)
    language: Language | None = None
    timeout: Annotated[Integer, Field(ge=1, le=300)] | None = None


class ScrapeInteractRequest(RequestModel):
    """Body of `POST /v2/scrape/{jobId}/interact`; `code` or `prompt` is required.

    The first call for a scrape opens a browser on its page. Later calls continue in it, until it is stopped or reaches
    one of its limits.

    :param code: code to run, 1 to 100,000 characters, counted in UTF-8 bytes; omitted from reprs.
    :param prompt: instructions as text, 1 to 10,000 characters; costs more than code.
    :param language: `python`, `node` or `bash`. Default: `node`.
    :param timeout: seconds, 1 to 300. Default: 30.
    :param ttl: maximum lifetime of the session in seconds, 30 to 3600. Default: 600.
    :param activity_ttl: maximum idle time in seconds, 10 to 3600. Default: 300.
    :param origin: label of the caller.
    """

    code: Code | None = Field(None, repr=False)
    prompt: Annotated[Text, Field(max_length=10_000)] | None = None
    language: Language | None = None
    timeout: Annotated[Integer, Field(ge=1, le=300)] | None = None
    ttl: Annotated[Integer, Field(ge=30, le=3600)] | None = None
    activity_ttl: Annotated[Integer, Field(ge=10, le=3600)] | None = None
    origin: Text | None = None

    def _check(self) -> None:
        if self.code is None and self.prompt is None:
            raise problem("code_or_prompt", "'code' or 'prompt' is required")

    def _own_warnings(self) -> list[str]:
        if self.code is not None and self.prompt is not None:
            return [
                "code and prompt: the service documents only one of them per call, not which one it prefers"
            ]
        return []


class _Browser(ResponseModel):
    """A response with the URLs of a browser."""

    cdp_url: Lenient[str | None] = Field(None, repr=False)
    live_view_url: Lenient[str | None] = Field(None, repr=False)
    interactive_live_view_url: Lenient[str | None] = Field(None, repr=False)

    def secrets(self) -> Iterator[str]:
        """Yield the URLs that give control of the browser."""
        for name in _CONTROLLING_URLS:
            value = getattr(self, name)
            if isinstance(value, str) and value:
                yield value

    def without_secrets(self) -> dict[str, Any]:
        """Return the wire form without the URLs that give control of the browser, for XCom and logs.

        Unknown fields are omitted too, because a field of a newer service may also give control of the browser.
        """
        shown = {
            field.alias for name, field in type(self).model_fields.items() if name not in _CONTROLLING_URLS
        }
        return {name: value for name, value in self.to_wire().items() if name in shown}

    def __repr_args__(self) -> Iterable[tuple[str | None, Any]]:
        extra = self.__pydantic_extra__ or {}
        return [(name, value) for name, value in super().__repr_args__() if name not in extra]


class InteractSession(_Browser):
    """A browser session, as returned when it is opened or listed.

    `status` is active, destroyed, error, or a newer value. `expires_at` is set only when a session is opened, the other
    dates and `stream_web_view` only in the list.
    """

    success: OrNone[bool] = None
    id: str
    status: Lenient[str | None] = None
    expires_at: Lenient[str | None] = None
    stream_web_view: Lenient[bool | None] = None
    created_at: Lenient[str | None] = None
    last_activity: Lenient[str | None] = None


class InteractSessions(Answer):
    """All sessions of the team, in one page."""

    sessions: Entries[InteractSession]

    def secrets(self) -> Iterator[str]:
        """Yield the URLs that give control of the browsers."""
        for session in self.sessions:
            yield from session.secrets()


class ExecuteResult(Answer):
    """The result of running code. `success` is true if the code ran, even if it failed: see `failure()`.

    `stdout` and `result` are the same text. `killed` is true if the code was stopped at its timeout; `error` is the
    text of an exception.
    """

    stdout: Lenient[str | None] = None
    result: Any = None
    stderr: Lenient[str | None] = None
    exit_code: Lenient[int | None] = None
    killed: Lenient[bool | None] = None
    error: Lenient[str | None] = None

    def failure(self) -> str | None:
        """Return a description of the failure, or None if the code succeeded."""
        if not self.model_fields_set & ExecuteResult.model_fields.keys():
            return "the response does not contain the outcome"
        if self.killed:
            return "it was stopped at its timeout"
        if self.error:
            return error_text(self.error)
        if self.exit_code:
            return f"it exited with code {self.exit_code}"
        return "the service gave no reason" if self.success is False else None


class ScrapeInteractResult(ExecuteResult, _Browser):
    """The result of code or a prompt on the page of a scrape; `output` is the answer to a prompt.

    Here `success` is false if the code failed or was stopped.
    """

    output: Any = None
    session_id: Lenient[str | None] = None


class SessionClosed(Answer):
    """The cost of a closed session. All fields are absent if it was already closed.

    `cleanup_queued` is true if the browser of a scrape is being closed in the background.
    """

    session_duration_ms: OrNone[int | float] = None
    credits_billed: OrNone[int | float] = None
    cleanup_queued: Lenient[bool | None] = None


class ReplayPage(ResponseModel):
    """A recorded tab of a session. Times are milliseconds since the start of the session.

    :ivar page_id: id of the tab in `GET /v2/interact/{sessionId}/replay/{pageId}`.
    :ivar page_url: the first page in the tab.
    """

    page_id: str
    url: Lenient[str | None] = None
    page_url: Lenient[str | None] = None
    start_time_ms: Lenient[int | float | None] = None
    end_time_ms: Lenient[int | float | None] = None


class Replay(Answer):
    """The recording of a session, one entry per tab."""

    pages: Entries[ReplayPage]
    page_count: Lenient[int | None] = None


class ReplayPlaylist(ResponseModel):
    """The recording of a tab as an HLS playlist; its segments are signed URLs that expire after about 6 hours."""

    text: Annotated[str, AfterValidator(_playlist), Field(repr=False)]
