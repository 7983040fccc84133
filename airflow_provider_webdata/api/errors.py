# SPDX-License-Identifier: Apache-2.0
"""The exception hierarchy of the client. Callers decide by class, not by parsing messages.

The `verdict` of an error says whether a later retry can succeed; a retry policy needs nothing else. No error
contains a header, an API key, or a request body. Text from the service is truncated.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from airflow_provider_webdata.api.servers import CODE_NAMES
from airflow_provider_webdata.common.clean_text import trimmed
from airflow_provider_webdata.common.coded_errors import CodedError
from airflow_provider_webdata.common.spelling import nearest

if TYPE_CHECKING:
    from pydantic import BaseModel, ValidationError

Verdict = Literal["never", "later", "unknown"]
"""Prospects of a retry of the same call: it never succeeds, it succeeds later, or the outcome is unknown."""

_SECRET_PARTS = ("header", "secret", "token", "password", "authorization", "cookie", "key")


class WebDataError(CodedError):
    """Base class of the errors of the web data service's client."""

    verdict: ClassVar[Verdict] = "unknown"


class ConfigurationError(WebDataError):
    """A setting of the connection is invalid: the base URL, API key, a header, the proxy, or a number."""

    help_code = "WD-001"
    verdict = "never"


class EnvironmentVariableError(ConfigurationError):
    """A variable of the environment is invalid that HTTP clients read. It is the same until the process ends."""

    help_code = "WD-009"


class InvalidRequestError(WebDataError):
    """The request violates a documented rule and was not sent.

    :param operation: name of the operation, such as `search`.
    :param problems: one sentence per violated rule, with the field, the rule, and the given value.
    """

    help_code = "WD-002"
    verdict = "never"

    def __init__(self, operation: str, problems: Sequence[str]) -> None:
        super().__init__(operation, tuple(problems))
        self.operation = operation
        self.problems = tuple(problems)

    def _message(self) -> str:
        count = "a problem" if len(self.problems) == 1 else f"{len(self.problems)} problems"
        return f"{self.operation}: nothing was sent, the request has {count}:"

    @classmethod
    def from_validation_error(
        cls,
        operation: str,
        error: ValidationError,
        model: type[BaseModel] | None = None,
        is_meant: Callable[[Mapping[str, Any]], bool] = lambda _: True,
    ) -> InvalidRequestError:
        """Convert a pydantic error into a message for DAG authors.

        :param operation: name of the operation.
        :param error: the validation error of the request model.
        :param model: the request model. If given, messages also show the Python names of top-level fields.
        :param is_meant: selects the pydantic issues to include.
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
        # A mapping or list that a template rendered to text may contain a secret.
        return f"{sentence} (given: text of {len(given)} characters, starting with {given.lstrip()[0]!r})"
    return f"{sentence} (given: {trimmed(repr(_without_secrets(given, issue['loc'])), 120)})"


def _without_secrets(given: Any, location: Sequence[int | str]) -> Any:
    """Return a value without the parts whose names indicate a secret."""
    if _may_be_secret(location):
        return "***"
    if isinstance(given, Mapping):
        return {key: _without_secrets(part, (*location, str(key))) for key, part in given.items()}
    if isinstance(given, (list, tuple)):
        return [_without_secrets(part, (*location, number)) for number, part in enumerate(given)]
    return given


def _may_be_secret(location: Sequence[int | str]) -> bool:
    # Text that an action types, and code, may contain a password. So may actions given as text.
    *above, field = location or ("",)
    if field in {"actions", "code"} or above[-1:] == ["actions"]:
        return True
    if "actions" in above and field in {"text", "script"}:
        return True
    return any(secret in str(part).lower() for part in location for secret in _SECRET_PARTS)


def flattened(body: Mapping[str, Any]) -> dict[str, Any]:
    """Return an error body with the fields of a nested `error` object at the top level, and its code in `code`."""
    flat = dict(body)
    while isinstance(inner := flat.pop("error", None), Mapping):
        flat |= {name: value for name, value in inner.items() if value is not None}
        flat |= {"error": inner.get("error", inner.get("message")), "success": body.get("success")}
    code = next((flat[name] for name in CODE_NAMES if flat.get(name) is not None), None)
    return {**flat, "error": inner} | ({} if code is None else {"code": code})


def error_text(error: Any) -> str:
    """Return the `error` of a job, check, or page on one line; for an object, its code and message."""
    body = flattened({"error": error})
    words = [str(word) for word in (body.get("code"), body["error"]) if word]
    return trimmed(": ".join(words) or str(error or ""))


class TransportError(WebDataError):
    """No complete response was received: the host is unreachable, the connection was lost, or the call timed out.

    :param operation: name of the operation.
    :param reason: description of the failure.
    :param sent: whether the service may have received the request. If true, it may have processed it, and
        retrying a call that starts or bills something may do so twice.
    """

    help_code = "WD-010"

    def __init__(self, operation: str, reason: str, *, sent: bool) -> None:
        super().__init__(operation, reason)
        self.operation = operation
        self.reason = reason
        self.sent = sent

    def _message(self) -> str:
        effect = "; the service may have processed the request" if self.sent else "; nothing was sent"
        return f"{self.operation}: {self.reason}{effect}"

    @property
    def remedy(self) -> str:
        """The next step, as the rest of a sentence."""
        from airflow_provider_webdata.common.remedies import LOST

        return LOST if self.sent else super().remedy

    @property
    def inspect_first(self) -> bool:
        """Whether a person must take the next step before the task is cleared."""
        return self.sent or super().inspect_first


class UnknownHostError(TransportError):
    """The name of the service's host, or of the proxy, does not exist. Nothing was sent."""

    help_code = "WD-017"
    verdict = "never"


class CertificateRefusedError(TransportError):
    """The certificate of the service's host is not trusted. Nothing was sent."""

    help_code = "WD-018"
    verdict = "never"


class CertificateRequiredError(TransportError):
    """The service's host, or a proxy in front of it, ended the TLS handshake: it requires a client certificate, or
    refuses the connection's.

    In TLS 1.3, the server checks the certificate only after the client has sent its request, which it never reads.
    """

    help_code = "WD-019"
    verdict = "never"


class UploadError(WebDataError):
    """A file could not be uploaded completely: it ended early, grew, or is not a binary file.

    The service never received the complete request, so it did not process or bill it.

    :param operation: name of the operation.
    :param reason: the problem with the file.
    """

    help_code = "WD-013"

    def __init__(self, operation: str, reason: str) -> None:
        super().__init__(operation, reason)
        self.operation = operation
        self.reason = reason

    def _message(self) -> str:
        return f"{self.operation}: upload aborted: {self.reason}"


class UploadTooLargeError(UploadError):
    """The file is larger than the service accepts."""

    help_code = "WD-014"
    verdict = "never"


class InvalidResponseError(WebDataError):
    """The response does not match the documentation: invalid JSON, truncated, wrong shape, or a redirect.

    :param operation: name of the operation.
    :param reason: the problem with the response.
    :param status: HTTP status of the response.
    """

    help_code = "WD-011"

    def __init__(self, operation: str, reason: str, *, status: int) -> None:
        super().__init__(operation, reason)
        self.operation = operation
        self.reason = reason
        self.status = status

    def _message(self) -> str:
        return f"{self.operation}: the response (HTTP {self.status}) is invalid: {self.reason}"


class ResponseTooLargeError(InvalidResponseError):
    """The response exceeds the connection's size limit, and was not read further."""

    help_code = "WD-012"
    verdict = "never"


class APIError(WebDataError):
    """The service reported that the call failed.

    :param operation: name of the operation.
    :param status: HTTP status.
    :param message: the service's message, truncated.
    :param code: the service's error code, if any; the set is open.
    :param details: the service's `details`, unchanged: a list of issues or an object.
    :param retry_after: seconds to wait, if the service specified a wait.
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

    def _message(self) -> str:
        code = f", {self.code}" if self.code else ""
        wait = f"; retry after {self.retry_after:g} s" if self.retry_after is not None else ""
        return f"{self.operation}: HTTP {self.status}{code}: {self.message}{wait}"


class UnsuccessfulError(APIError):
    """HTTP 200 with `success: false`."""

    help_code = "WD-200"


class PageError(APIError):
    """The page failed, not the service: an unreachable site, an anti-bot check, or an action that failed.

    Reported with HTTP 500. Another attempt may succeed; `code` names the cause. See
    sandbox/docs/service.md#codes-about-a-page, #metadata-not-fetched.
    """

    help_code = "WD-020"

    likely_remedy: str = ""
    """The next step, as the rest of a sentence, if the kind of server is a likely cause."""

    @property
    def remedy(self) -> str:
        """The next step, as the rest of a sentence."""
        return self.likely_remedy or super().remedy


class PermanentPageError(PageError):
    """The page fails in each attempt: an unknown host, an invalid certificate, a file that cannot be read.

    Reported with HTTP 500. A host that does not resolve is also reported with HTTP 200, and each attempt is billed;
    `code` names the cause. See sandbox/docs/service.md#codes-about-a-page, #success-false-in-a-200.
    """

    help_code = "WD-028"
    verdict = "never"


class ClientError(APIError):
    """A 4xx status without its own class: the request is invalid."""

    help_code = "WD-025"
    verdict = "never"


class BadRequestError(ClientError):
    """400: the service rejected the request body."""

    help_code = "WD-400"


class AuthenticationError(ClientError):
    """401: the API key is missing, wrong, or revoked."""

    help_code = "WD-401"


class PaymentRequiredError(ClientError):
    """402: not enough credits."""

    help_code = "WD-402"


class EntitlementError(ClientError):
    """403: the team lacks a permission, or a feature that the request uses.

    :param features: names of features in the request that need an entitlement; may be empty.
    """

    help_code = "WD-403"

    def __init__(self, *args: Any, features: Sequence[str] = (), **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.features = tuple(features)

    def _message(self) -> str:
        if not self.features:
            return super()._message()
        return (
            f"{super()._message()} (the request uses {' and '.join(self.features)}, "
            "which must be enabled for the team)"
        )


class TermsRequiredError(ClientError):
    """403: an organization administrator must first accept a data provider's terms. Nothing was executed."""

    help_code = "WD-029"

    def _message(self) -> str:
        action = self.body.get("requiresAction")
        url = action.get("url") if isinstance(action, Mapping) else None
        where = f" at {url}" if isinstance(url, str) and url else " in the service's dashboard"
        text = super()._message().removesuffix(".")
        return f"{text}. An organization administrator can review and accept the terms{where}"


class PageRefusedError(ClientError):
    """403: the service refuses this page: blocked, unsafe, a prompt injection, or media without access.

    The team has the permission; the page is refused. `code` names the cause. See
    sandbox/docs/service.md#codes-about-a-page.
    """

    help_code = "WD-021"


class NotFoundError(APIError):
    """404: the object is unknown, expired, deleted, owned by another team, or not yet replicated."""

    help_code = "WD-404"


class CacheMissError(NotFoundError):
    """404: the call reads only the cache, which does not have the page; a miss under `lockdown` is billed."""

    help_code = "WD-022"
    verdict = "never"


class RequestTimeoutError(APIError):
    """408: the request timed out in the service."""

    help_code = "WD-408"


class ProcessingContinuesError(RequestTimeoutError):
    """408 for a large document that the service is still processing. The same request later returns the result.

    Repeating the request starts no new work and is not billed again. See sandbox/docs/service.md#large-documents.

    :param pages: pages of the document, if known.
    :param remaining: the service's estimate of the remaining seconds, if any.
    :param may_exceed: whether processing may exceed the service's time limit.
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

    def _message(self) -> str:
        pages = f" of {self.pages} pages" if self.pages is not None else ""
        limit = ", which may exceed its time limit" if self.may_exceed else ""
        text = super()._message().removesuffix(".")
        return (
            f"{text}. The service is still processing the document{pages}{limit}. Repeat the same call later for the "
            "result, which is billed once"
        )


class ConflictError(APIError):
    """409: the state of the object does not allow the operation."""

    help_code = "WD-409"


class RequestIdUsedError(ConflictError):
    """409: the `x-request-id` was already used with another body.

    See sandbox/docs/service.md#provider-request-id.
    """

    help_code = "WD-062"
    verdict = "never"


class RequestInFlightError(ConflictError):
    """409: the request with this `x-request-id` is still running. The same request later returns its response.

    Repeating the request starts no new work and is not billed again. See sandbox/docs/service.md#provider-request-id.
    """

    help_code = "WD-063"
    verdict = "later"


class RequestUnresolvedError(APIError):
    """503 or 409: the service lost the outcome of the request with this `x-request-id`, and will not repeat it.

    Another id would execute and bill the request again. See sandbox/docs/service.md#provider-request-id.
    """

    help_code = "WD-070"
    verdict = "never"


class IdempotencyKeyUsedError(ConflictError):
    """409: an earlier call with the same `x-idempotency-key` was accepted, so this one started nothing.

    The response does not identify the job of that call: check the running jobs and the team's activity.
    See sandbox/docs/service.md#idempotency-key.
    """

    help_code = "WD-024"
    verdict = "never"

    def _message(self) -> str:
        text = super()._message().removesuffix(".")
        return f"{text}. Look for the job that an earlier call started with this key"


class GoneError(ClientError):
    """410: the session or thread has ended."""

    help_code = "WD-410"


class RateLimitError(APIError):
    """429: the plan's rate or concurrency limit is exceeded. `retry_after` is the wait in seconds, if known."""

    help_code = "WD-429"
    verdict = "later"


class ServerError(APIError):
    """5xx: an error of the service, or of a proxy in front of it; also a proxy's 404 for a repeatable call."""

    help_code = "WD-500"


class UndeclaredServerError(ServerError):
    """A 500 that a self-hosted server sends for an operation that it lacks, from a server of unknown kind."""

    def _message(self) -> str:
        text = super()._message().removesuffix(".")
        return f"{text}. If this is a self-hosted server, set server of the connection to 'self-hosted'"


class UnsupportedError(APIError):
    """The server lacks the operation, an option, or a service behind it, so that no retry can help.

    See docs/servers.md.

    :param lack: what it lacks and what to do, as the rest of a sentence about the server.
    """

    help_code = "WD-016"
    verdict = "never"

    def __init__(self, *args: Any, lack: str = "", **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.lack = lack

    def _message(self) -> str:
        return f"{super()._message().removesuffix('.')}. The server does not support this call: {self.lack}"


class UnavailableError(ServerError):
    """503 with a wait: the service, or a proxy in front of it, asks the client to retry after it.

    :ivar retry_after: seconds to wait.
    """

    help_code = "WD-503"
    verdict = "later"


class UnfinishedJobError(WebDataError):
    """The job is still running, so its result is incomplete.

    :param operation: name of the operation.
    :param job_id: the job's UUID.
    :param state: the job's state as the service reports it.
    """

    help_code = "WD-026"
    verdict = "later"

    def __init__(self, operation: str, job_id: str, state: str) -> None:
        super().__init__(operation, job_id, state)
        self.operation = operation
        self.job_id = job_id
        self.state = state

    def _message(self) -> str:
        return (
            f"{self.operation}: job {self.job_id} is {self.state}. Its result can be read after it has ended"
        )


class CallRefusedError(WebDataError):
    """A guarded hook refuses a call that may exceed its credit limit or visit hosts that it does not allow.

    :param reason: the refused call, and the reason.
    :param credits_used: credits that were billed anyway, because only the response showed the cost; None if unknown.
    :param was_sent: whether the call was sent, because only the response showed the violation.
    """

    help_code = "WD-027"
    verdict = "never"

    def __init__(self, reason: str, *, credits_used: float | None = 0, was_sent: bool = False) -> None:
        super().__init__(reason)
        self.was_sent = was_sent
        self.credits_used = credits_used


PROCESSING_WAIT_SECONDS = (5.0, 600.0)
"""Minimum and maximum wait before a large document is requested again. See sandbox/docs/service.md#large-documents."""

DEFAULT_PROCESSING_WAIT_SECONDS = 60.0
"""Default wait if the service specifies none. See sandbox/docs/service.md#large-documents."""

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

UPLOADS_USED_UP = "PARSE_UPLOAD_UNPARSED_LIMIT_REACHED"
"""Error code: too many files uploaded within 24 hours are still unparsed."""

_PAGE_STATUSES = (*range(200, 300), *range(500, 600))
"""Statuses of codes about a page, which are reported as failures of the service, or with HTTP 200."""

_CODES: Sequence[tuple[type[APIError], Sequence[int], str]] = (
    (
        BadRequestError,
        (400,),
        "BAD_REQUEST BAD_REQUEST_INVALID_JSON CATEGORY_REMOVED PARSE_UNSUPPORTED_OPTIONS SCRAPE_ACTIONS_NOT_SUPPORTED "
        "SCRAPE_JSON_CONTENT_TOO_LARGE UNSUPPORTED_FILE_TYPE",
    ),
    (
        PageRefusedError,
        (403,),
        "SAFE_MODE_BLOCKED SCRAPE_MEDIA_ACCESS_DENIED SCRAPE_PROMPT_INJECTION_DETECTED UNSUPPORTED_SITE "
        "unsafe_domain_blocked",
    ),
    (EntitlementError, (403,), "AGENT_INDEX_ONLY"),
    (TermsRequiredError, (403,), "THIRD_PARTY_DATA_TERMS_REQUIRED"),
    # The catalog of data providers has no such provider.
    (BadRequestError, (404,), "unknown_provider"),
    (NotFoundError, (404,), "approval_not_found thread_not_found"),
    (CacheMissError, (404,), "SCRAPE_LOCKDOWN_CACHE_MISS SCRAPE_NO_CACHED_DATA"),
    (RequestTimeoutError, (408,), "CONCURRENCY_QUEUE_TIMEOUT MAP_TIMEOUT SCRAPE_TIMEOUT"),
    (ConflictError, (409,), "thread_busy"),
    (RequestIdUsedError, (409,), "duplicate_request"),
    (RequestInFlightError, (409,), "request_in_flight"),
    (RequestUnresolvedError, (409, 503), "request_unresolved"),
    (GoneError, (410,), "thread_expired"),
    # This 429 lasts for hours, so a short wait does not help.
    (ClientError, (429,), UPLOADS_USED_UP),
    (
        PermanentPageError,
        _PAGE_STATUSES,
        "SCRAPE_AUDIO_UNSUPPORTED_URL SCRAPE_BRANDING_NOT_SUPPORTED SCRAPE_DNS_RESOLUTION_ERROR "
        "SCRAPE_PDF_OCR_REQUIRED SCRAPE_SSL_ERROR SCRAPE_UNSUPPORTED_FILE_ERROR SCRAPE_VIDEO_UNSUPPORTED_URL "
        "SCRAPE_ZDR_VIOLATION_ERROR",
    ),
    # Another attempt has another proxy, or more time.
    (
        PageError,
        _PAGE_STATUSES,
        "SCRAPE_ACTION_ERROR SCRAPE_ALL_ENGINES_FAILED SCRAPE_DOCUMENT_ANTIBOT_ERROR SCRAPE_DOCUMENT_PREFETCH_FAILED "
        "SCRAPE_PDF_ANTIBOT_ERROR SCRAPE_PDF_INSUFFICIENT_TIME_ERROR SCRAPE_PDF_PREFETCH_FAILED SCRAPE_SITE_ERROR",
    ),
    (
        ServerError,
        (500,),
        "MAP_FAILED SCRAPE_JOB_CANCELLED SCRAPE_PROXY_SELECTION_ERROR SCRAPE_RACED_REDIRECT_ERROR SCRAPE_RETRY_LIMIT "
        "SCRAPE_SITEMAP_ERROR UNKNOWN_ERROR",
    ),
)

CODE_CLASSES: Mapping[str, type[APIError]] = {
    code: kind for kind, _, codes in _CODES for code in codes.split()
}
"""The class, and so the verdict, of each error code that the service documents. The set of codes is open.

See sandbox/docs/service.md#codes-about-a-page.
"""

_BY_CODE: Mapping[tuple[int, str | None], type[APIError]] = {
    (status, code): kind for kind, statuses, codes in _CODES for code in codes.split() for status in statuses
}


def error_class(
    status: int, code: str | None, details: Any = None, *, names_wait: bool = False
) -> type[APIError]:
    """Return the exception class for a failed response.

    :param status: HTTP status; below 400, the body has `success: false`.
    :param code: the service's error code.
    :param details: the service's details.
    :param names_wait: whether the response specifies a wait.
    """
    if status == 408 and isinstance(details, Mapping) and details.get("state") == "processing_continues":
        return ProcessingContinuesError
    if (kind := _BY_CODE.get((status, code))) is not None:
        return kind
    if status < 400:
        return UnsuccessfulError
    if status == 503 and names_wait:
        return UnavailableError
    if status >= 500:
        return ServerError
    return _BY_STATUS.get(status, ClientError)
