"""Every way a call can fail, as one tree, so that a caller decides by class and never by parsing text.

Each error says in `verdict` what a later repetition can expect, which is all that a retry policy needs to know.
No error carries a header, a key or a request body; what the service wrote is trimmed before it is kept.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from airflow_provider_webdata.common.coded_errors import CodedError
from airflow_provider_webdata.common.spelling import nearest

if TYPE_CHECKING:
    from pydantic import BaseModel, ValidationError

Verdict = Literal["never", "later", "unknown"]
"""What repeating the same call may bring: never success; success at a later time; nobody can tell."""

# Sequences that a terminal obeys, then single control characters, marks that turn the direction of text, and halves of
# surrogate pairs.
_CONTROLS = re.compile(
    r"\x1b\][^\x07\x1b]{0,200}(?:\x07|\x1b\\)|(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]|\x1b[ -/]*[0-~]"
    r"|[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff\ud800-\udfff]"
)

_SECRET_PARTS = ("header", "secret", "token", "password", "authorization", "cookie", "key")


class WebDataError(CodedError):
    """Base of all errors of the web data service's client."""

    verdict: ClassVar[Verdict] = "unknown"


class ConfigurationError(WebDataError):
    """The connection's settings cannot work: a bad base URL, key, header, proxy or number."""

    help_code = "WD-001"
    verdict = "never"


class InvalidRequestError(WebDataError):
    """The request breaks a documented rule; nothing was sent.

    :param operation: name of the operation, such as `search`.
    :param problems: one sentence per broken rule, each naming field, rule and given value.
    """

    help_code = "WD-002"
    verdict = "never"

    def __init__(self, operation: str, problems: Sequence[str]) -> None:
        super().__init__(operation, tuple(problems))
        self.operation = operation
        self.problems = tuple(problems)

    def text(self) -> str:
        count = "a problem" if len(self.problems) == 1 else f"{len(self.problems)} problems"
        lines = "".join(f"\n  - {problem}" for problem in self.problems)
        return f"{self.operation}: nothing was sent, the request has {count}:{lines}"

    @classmethod
    def from_validation_error(
        cls,
        operation: str,
        error: ValidationError,
        model: type[BaseModel] | None = None,
        is_meant: Callable[[Mapping[str, Any]], bool] = lambda _: True,
    ) -> InvalidRequestError:
        """Put a pydantic error into a DAG author's words.

        :param operation: name of the operation the request was for.
        :param error: what the request model raised.
        :param model: the request model; with it, top-level fields are also named in Python spelling.
        :param is_meant: tells which of pydantic's issues count.
        """
        names = {}
        if model is not None:
            names = {
                field.alias: name
                for name, field in model.model_fields.items()
                if field.alias and field.alias != name
            }
        issues = error.errors(include_url=False)
        return cls(operation, [_problem(issue, names) for issue in issues if is_meant(issue)])


def _problem(issue: Mapping[str, Any], python_names: Mapping[str, str]) -> str:
    path = ""
    for part in issue["loc"]:
        path += f"[{part}]" if isinstance(part, int) else f".{part}" if path else str(part)
    first = str(issue["loc"][0]) if issue["loc"] else ""
    if first in python_names:
        path = f"{python_names[first]}{path[len(first) :]} (sent as {first})"
    message = issue["msg"].removeprefix("Value error, ")
    if issue["type"] in {"too_long", "too_short"} and isinstance(issue["input"], str):
        # pydantic counts the characters of a validated text as items.
        message = message.replace(" item", " character")
    if issue["type"] == "literal_error" and isinstance(issue["input"], str):
        near = nearest(issue["input"], re.findall("'([^']*)'", message))
        message += f"; did you mean {near!r}?" if near else ""
    sentence = f"{path}: {message}" if path else message
    if issue["type"] in {"missing", "unknown_field"} or _may_be_secret(issue["loc"]):
        return sentence
    given = issue.get("input")
    if isinstance(given, str) and given.lstrip()[:1] in {"{", "["}:
        # What a template made of a mapping or list may hold a secret.
        return f"{sentence} (given: text of {len(given)} characters that begins with {given.lstrip()[0]!r})"
    return f"{sentence} (given: {trimmed(repr(_without_secrets(given, issue['loc'])), 120)})"


def _without_secrets(given: Any, location: Sequence[int | str]) -> Any:
    """Return a value as it may be shown: what its name says to be a secret is left out."""
    if _may_be_secret(location):
        return "***"
    if isinstance(given, Mapping):
        return {key: _without_secrets(part, (*location, str(key))) for key, part in given.items()}
    if isinstance(given, (list, tuple)):
        return [_without_secrets(part, (*location, number)) for number, part in enumerate(given)]
    return given


def _may_be_secret(location: Sequence[int | str]) -> bool:
    # What an action types into a page, or code does there, may hold a password; so may actions that are plain text.
    *above, field = location or ("",)
    if field in {"actions", "code"} or above[-1:] == ["actions"]:
        return True
    if "actions" in above and field in {"text", "script"}:
        return True
    return any(secret in str(part).lower() for part in location for secret in _SECRET_PARTS)


def one_line(text: str) -> str:
    """Return `text` in one line, without anything that a terminal or a log would obey."""
    return " ".join(_CONTROLS.sub("", text).split())


def trimmed(text: str, limit: int = 500) -> str:
    """Return `text` in one line of at most `limit` characters; see `one_line`."""
    text = one_line(text)
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def flattened(body: Mapping[str, Any]) -> dict[str, Any]:
    """Return an error body whose `error` is not an object: what stands in the object stands beside it."""
    flat = dict(body)
    while isinstance(inner := flat.pop("error", None), Mapping):
        flat |= {name: value for name, value in inner.items() if value is not None}
        flat |= {"error": inner.get("error", inner.get("message")), "success": body.get("success")}
    return {**flat, "error": inner}


def error_text(error: Any) -> str:
    """Return what the service gives as `error` of a job, check or page, in one line; of an object, code and text."""
    body = flattened({"error": error})
    words = [str(word) for word in (body.get("code"), body["error"]) if word]
    return trimmed(": ".join(words) or str(error or ""))


class TransportError(WebDataError):
    """No complete answer was received: the host is unreachable, the connection broke, or the time ran out.

    :param operation: name of the operation.
    :param reason: message that says what went wrong.
    :param sent: whether the service may have received the request. When true, it may also have acted on it,
        so that repeating a call that starts or bills something can do so twice.
    """

    help_code = "WD-010"

    def __init__(self, operation: str, reason: str, *, sent: bool) -> None:
        super().__init__(operation, reason)
        self.operation = operation
        self.reason = reason
        self.sent = sent

    def text(self) -> str:
        effect = "; the service may have acted on it anyway" if self.sent else "; nothing was sent"
        return f"{self.operation}: {self.reason}{effect}"


class UploadError(WebDataError):
    """A file could not be sent whole: it ended early, grew, or is no binary file.

    The service never had the complete request, so that it neither did nor billed anything.

    :param operation: name of the operation.
    :param reason: what is wrong with the file.
    """

    help_code = "WD-013"

    def __init__(self, operation: str, reason: str) -> None:
        super().__init__(operation, reason)
        self.operation = operation
        self.reason = reason

    def text(self) -> str:
        return f"{self.operation}: the upload was given up: {self.reason}"


class UploadTooLargeError(UploadError):
    """The file turned out to be larger than the service takes."""

    help_code = "WD-014"
    verdict = "never"


class InvalidResponseError(WebDataError):
    """An answer came that is not what the service documents: no JSON, cut short, a wrong shape, a redirect.

    :param operation: name of the operation.
    :param reason: what is wrong with the answer.
    :param status: HTTP status of the answer.
    """

    help_code = "WD-011"

    def __init__(self, operation: str, reason: str, *, status: int) -> None:
        super().__init__(operation, reason)
        self.operation = operation
        self.reason = reason
        self.status = status

    def text(self) -> str:
        return f"{self.operation}: the answer (HTTP {self.status}) is not usable: {self.reason}"


class ResponseTooLargeError(InvalidResponseError):
    """The answer is larger than the connection's limit; reading stopped there."""

    help_code = "WD-012"
    verdict = "never"


class APIError(WebDataError):
    """The service answered that the call failed.

    :param operation: name of the operation.
    :param status: HTTP status.
    :param message: the service's own text, trimmed.
    :param code: the service's error code, where it gave one; the set is open.
    :param details: the service's `details`, unchanged: a list of issues or an object.
    :param retry_after: seconds the service asked to wait, where it did.
    :param body: the other fields of the error body, such as `checkId` of a conflict.
    """

    def __init__(
        self,
        operation: str,
        status: int,
        message: str,
        *,
        code: str | None = None,
        details: Any = None,
        retry_after: float | None = None,
        body: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(operation, status, message)
        self.operation = operation
        self.status = status
        self.message = message
        self.code = code
        self.details = details
        self.retry_after = retry_after
        self.body = dict(body or {})

    def text(self) -> str:
        code = f", {self.code}" if self.code else ""
        wait = f"; retry after {self.retry_after:g} s" if self.retry_after is not None else ""
        return f"{self.operation}: HTTP {self.status}{code}: {self.message}{wait}"


class UnsuccessfulError(APIError):
    """HTTP 200 with `success: false`."""

    help_code = "WD-200"


class PageError(APIError):
    """The service works, the page does not: no such host, a bad certificate, an action that cannot be done.

    Reported with HTTP 500, and for a host that does not resolve with HTTP 200 too (that one is billed). An immediate
    retry rarely helps; `code` names the cause. See docs/service.md#codes-about-a-page, #success-false-in-a-200.
    """

    help_code = "WD-020"


class ClientError(APIError):
    """A 4xx status without a separate class: the request is invalid."""

    help_code = "WD-025"
    verdict = "never"


class BadRequestError(ClientError):
    """400: the service refused the body."""

    help_code = "WD-400"


class AuthenticationError(ClientError):
    """401: the API key is missing, wrong or revoked."""

    help_code = "WD-401"


class PaymentRequiredError(ClientError):
    """402: not enough credits."""

    help_code = "WD-402"


class EntitlementError(ClientError):
    """403: the team lacks a feature that the request uses, or may not do this.

    :param features: names of the features in the request that need an entitlement; may be empty.
    """

    help_code = "WD-403"

    def __init__(self, *args: Any, features: Sequence[str] = (), **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.features = tuple(features)

    def text(self) -> str:
        if not self.features:
            return super().text()
        return (
            f"{super().text()} (the request uses {' and '.join(self.features)}, "
            "which must be enabled for the team)"
        )


class TermsRequiredError(ClientError):
    """403: an administrator of the organization must accept a data provider's terms first; nothing was executed."""

    help_code = "WD-029"

    def text(self) -> str:
        action = self.body.get("requiresAction")
        url = action.get("url") if isinstance(action, Mapping) else None
        where = f" at {trimmed(url)}" if isinstance(url, str) and url else " in the service's dashboard"
        return f"{super().text()}. An administrator of the organization can read and accept them{where}"


class PageRefusedError(ClientError):
    """403: the service will not fetch this page: blocked, unsafe, an injected prompt, media that it may not take.

    The team may do this; the page is what is refused. `code` tells why. See docs/service.md#codes-about-a-page.
    """

    help_code = "WD-021"


class NotFoundError(APIError):
    """404: unknown, expired, deleted, of another team, or too new for the replica that was asked."""

    help_code = "WD-404"


class CacheMissError(NotFoundError):
    """404 with `SCRAPE_NO_CACHED_DATA` or `SCRAPE_LOCKDOWN_CACHE_MISS`; a lockdown miss is billed."""

    help_code = "WD-022"
    verdict = "never"


class RequestTimeoutError(APIError):
    """408: the service ran out of time."""

    help_code = "WD-408"


class ProcessingContinuesError(RequestTimeoutError):
    """408 of a large document: the service works on. The very same request later returns the result.

    Repeating it starts and bills nothing again. See docs/service.md#large-documents.

    :param pages: pages of the document, where known.
    :param remaining: seconds that the service thinks it still needs, where it says so.
    :param may_exceed: whether the document may need more time than the service allows.
    """

    help_code = "WD-023"
    verdict = "later"

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        details = self.details if isinstance(self.details, Mapping) else {}
        asked = DEFAULT_PROCESSING_WAIT_SECONDS if self.retry_after is None else self.retry_after
        shortest, longest = PROCESSING_WAIT_SECONDS
        self.retry_after: float = min(max(asked, shortest), longest)
        pages, remaining = details.get("documentPages"), details.get("estimatedRemainingSeconds")
        self.pages: int | None = pages if isinstance(pages, int) else None
        self.remaining: float | None = remaining if isinstance(remaining, (int, float)) else None
        self.may_exceed = details.get("mayExceedProcessingWindow") is True

    def text(self) -> str:
        pages = f" of {self.pages} pages" if self.pages is not None else ""
        limit = ", though it may need more time than there is" if self.may_exceed else ""
        return (
            f"{super().text()}; the service still works on the document{pages}{limit}: the same call gives the "
            "result later, paid for once"
        )


class ConflictError(APIError):
    """409: the object is in a state that does not allow this."""

    help_code = "WD-409"


class RequestIdUsedError(ConflictError):
    """409: the `x-request-id` was used for another body. See docs/service.md#provider-request-id."""

    help_code = "WD-062"
    verdict = "never"


class RequestInFlightError(ConflictError):
    """409: the service still executes the request with this `x-request-id`; the same request returns its answer later.

    Repeating it starts and bills nothing again. See docs/service.md#provider-request-id.
    """

    help_code = "WD-063"
    verdict = "later"


class IdempotencyKeyUsedError(ConflictError):
    """409: an earlier call with the same `x-idempotency-key` was taken, so that this one started nothing.

    The answer does not say what that call started: look among the running jobs and the team's activity.
    See docs/service.md#idempotency-key.
    """

    help_code = "WD-024"
    verdict = "never"

    def text(self) -> str:
        return f"{super().text()}; look for what the earlier call with this key started"


class GoneError(ClientError):
    """410: the session or thread has ended."""

    help_code = "WD-410"


class OperationEndedError(GoneError):
    """410: the service has shut the operation down.

    :param successor: what to use instead, as an instruction.
    """

    help_code = "WD-028"

    def __init__(self, *args: Any, successor: str = "", **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.successor = successor

    def text(self) -> str:
        return f"{super().text()}. The service has shut this operation down. {self.successor}"


class RateLimitError(APIError):
    """429: over the plan's rate or concurrency; `retry_after` holds the wait in seconds where it is known."""

    help_code = "WD-429"
    verdict = "later"


class ServerError(APIError):
    """5xx: a fault of the service or of a proxy in front of it."""

    help_code = "WD-500"


class UnavailableError(ServerError):
    """503 that names a wait: the service, or a proxy in front of it, asks to come back at that time.

    :ivar retry_after: seconds to wait.
    """

    help_code = "WD-503"
    verdict = "later"


class UnfinishedJobError(WebDataError):
    """The job still runs, so that what it will have found cannot be read to the end yet.

    :param operation: name of the operation.
    :param job_id: the job's UUID.
    :param state: what the service calls its state.
    """

    help_code = "WD-026"
    verdict = "later"

    def __init__(self, operation: str, job_id: str, state: str) -> None:
        super().__init__(operation, job_id, state)
        self.operation = operation
        self.job_id = job_id
        self.state = state

    def text(self) -> str:
        return (
            f"{self.operation}: job {self.job_id} is {self.state}; its documents are read once it has ended"
        )


class CallRefusedError(WebDataError):
    """A guarded hook refuses a call: it may cost more, or visit other hosts, than its caps allow.

    :param reason: the refused call, and the reason.
    :param credits_used: credits that were billed anyway, because only the answer showed the cost; None if unknown.
    :param was_sent: whether only the answer showed it.
    """

    help_code = "WD-027"
    verdict = "never"

    def __init__(self, reason: str, *, credits_used: float | None = 0, was_sent: bool = False) -> None:
        super().__init__(reason)
        self.was_sent = was_sent
        self.credits_used = credits_used


PROCESSING_WAIT_SECONDS = (5.0, 600.0)
"""Shortest and longest wait before a large document is requested again. See docs/service.md#large-documents."""

DEFAULT_PROCESSING_WAIT_SECONDS = 60.0
"""The wait where the service names none. See docs/service.md#large-documents."""

PAGE_CODES = frozenset(
    {
        "SCRAPE_ACTION_ERROR",
        "SCRAPE_ALL_ENGINES_FAILED",
        "SCRAPE_DNS_RESOLUTION_ERROR",
        "SCRAPE_PDF_ANTIBOT_ERROR",
        "SCRAPE_PDF_INSUFFICIENT_TIME_ERROR",
        "SCRAPE_PDF_PREFETCH_FAILED",
        "SCRAPE_SITE_ERROR",
        "SCRAPE_SSL_ERROR",
        "SCRAPE_UNSUPPORTED_FILE_ERROR",
    }
)
"""Codes that are facts about the page, though reported with HTTP 500 or 200. See docs/service.md#codes-about-a-page."""

_BY_STATUS: dict[int, type[APIError]] = {
    400: BadRequestError,
    401: AuthenticationError,
    402: PaymentRequiredError,
    403: EntitlementError,
    404: NotFoundError,
    408: RequestTimeoutError,
    409: ConflictError,
    410: GoneError,
    429: RateLimitError,
}

_BY_CODE: dict[tuple[int, str | None], type[APIError]] = {
    # Of the page, not of the team. See docs/service.md#codes-about-a-page.
    (403, "SAFE_MODE_BLOCKED"): PageRefusedError,
    (403, "SCRAPE_MEDIA_ACCESS_DENIED"): PageRefusedError,
    (403, "SCRAPE_PROMPT_INJECTION_DETECTED"): PageRefusedError,
    (403, "unsafe_domain_blocked"): PageRefusedError,
    (403, "THIRD_PARTY_DATA_TERMS_REQUIRED"): TermsRequiredError,
    (404, "SCRAPE_NO_CACHED_DATA"): CacheMissError,
    (404, "SCRAPE_LOCKDOWN_CACHE_MISS"): CacheMissError,
    (409, "duplicate_request"): RequestIdUsedError,
    (409, "request_in_flight"): RequestInFlightError,
}

UPLOADS_USED_UP = "PARSE_UPLOAD_UNPARSED_LIMIT_REACHED"
"""Too many files of the last 24 hours were uploaded and never parsed."""


def error_class(
    status: int, code: str | None, details: Any = None, *, names_wait: bool = False
) -> type[APIError]:
    """Return the class for the status of a failure and what the service says of it.

    :param status: HTTP status; below 400 it is a success that says `success: false`.
    :param code: the service's error code.
    :param details: the service's details.
    :param names_wait: whether it says when to come back.
    """
    if code in PAGE_CODES and (status < 400 or status >= 500):
        return PageError
    if status < 400:
        return UnsuccessfulError
    if (status, code) in _BY_CODE:
        return _BY_CODE[status, code]
    if status == 408 and isinstance(details, Mapping) and details.get("state") == "processing_continues":
        return ProcessingContinuesError
    if code == UPLOADS_USED_UP:
        # A 429 that no wait of minutes ends.
        return ClientError
    if status == 503 and names_wait:
        return UnavailableError
    if status >= 500:
        return ServerError
    return _BY_STATUS.get(status, ClientError)
