# SPDX-License-Identifier: Apache-2.0
"""Validation of request bodies, with the service's errors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from webdata_sandbox.reference.errors import ServiceError
from webdata_sandbox.reference.profiles import HOSTED, Profile
from webdata_sandbox.reference.rules import BAD_PATTERN, check
from webdata_sandbox.reference.schema import BODIES
from webdata_sandbox.reference.unions import nest
from webdata_sandbox.reference.urls import is_public, with_scheme
from webdata_sandbox.reference.wire import Issue, whole_number

if TYPE_CHECKING:
    from collections.abc import Sequence

    from webdata_sandbox.reference.wire import Json

    from .call import Call


def valid(operation: str, body: Any, profile: Profile = HOSTED) -> Json:
    """Return the body if it is valid.

    :param operation: a key of :data:`~webdata_sandbox.reference.schema.BODIES`.
    :param profile: the server that validates it.
    :raises ServiceError: 400 ``BAD_REQUEST`` with ``details``.
    """
    return without_issues(body, check(operation, body, profile))


def valid_in_brief(operation: str, body: Any, prefix: str = "") -> Json:
    """Return the body if it is valid. The service reports the issues of some operations only as text.

    :param prefix: text before the messages of the issues.
    :raises ServiceError: 400 ``BAD_REQUEST`` without ``details``.
    """
    if issues := check(operation, body):
        text = prefix + ", ".join(issue.message for issue in issues)
        raise ServiceError(400, text, code="BAD_REQUEST")
    checked: Json = body
    return checked


def query_body(operation: str, call: Call) -> Json:
    """Return a query as the equivalent POST body: lists, numbers, and booleans instead of text."""
    fields = BODIES[operation]["properties"]
    return {
        name: _typed(values, fields.get(name, {}).get("type")) for name, values in call.query_lists.items()
    }


def _typed(values: Sequence[str], kind: Any) -> Any:
    last = values[-1]
    if kind == "array":
        return [part for value in values for part in value.split(",")]
    if kind == "integer":
        number = whole_number(last)
        return last if number is None else number
    return {"true": True, "false": False}.get(last, last) if kind == "boolean" else last


def valid_query(operation: str, body: Any) -> Json:
    """Return the parameters of a query if they are valid.

    :param operation: a key of :data:`~webdata_sandbox.reference.schema.BODIES`.
    :raises ServiceError: 400 with ``details``.
    """
    if issues := check(operation, body):
        raise ServiceError(400, "Invalid query parameters", details=details_of(issues))
    checked: Json = body
    return checked


def without_issues(body: Any, issues: list[Issue]) -> Json:
    """Return the body if it has no issues; see :func:`valid`.

    :param issues: the rule violations.
    :raises ServiceError: 400.
    """
    issues = nest(issues)
    refuse_unknown_keys(issues)
    if issues and issues[0].code == BAD_PATTERN:
        raise ServiceError(400, issues[0].message)
    if issues:
        text = issues[0].message if issues[0].code == "custom" else "Bad Request"
        raise ServiceError(400, text, code="BAD_REQUEST", details=details_of(issues))
    checked: Json = body
    return checked


def refuse_unknown_keys(issues: list[Issue]) -> None:
    """Reject a body with unknown keys. The service reports these before any other error.

    :raises ServiceError: 400.
    """
    found = [issue for issue in issues if issue.code == "unrecognized_keys"]
    if found:
        raise ServiceError(
            400,
            "Unrecognized key in body -- please review the v2 API documentation for request body changes",
            code="BAD_REQUEST",
            details=details_of(found),
        )


def details_of(issues: list[Issue]) -> list[Json]:
    """Return the ``details`` of an error."""
    return [issue.to_wire() for issue in issues]


def split_urls(urls: list[str], *, lenient: bool, suffix: str = "") -> tuple[list[str], list[str]]:
    """Split URLs into valid ones, with a scheme, and invalid ones, unchanged.

    :param lenient: whether to accept invalid URLs if at least one is valid.
    :param suffix: text that may follow a URL.
    :raises ServiceError: 400: a URL is invalid, or all are if ``lenient``.
    """
    bad = [url for url in urls if not is_public(with_scheme(url.removesuffix(suffix)))]
    if bad and (not lenient or len(bad) == len(urls)):
        if lenient:
            raise ServiceError(400, "No valid URLs provided")
        issue = Issue(("urls", urls.index(bad[0])), f"Invalid URL: {bad[0]!r}")
        raise ServiceError(400, issue.message, code="BAD_REQUEST", details=details_of([issue]))
    return [with_scheme(url) for url in urls if url not in bad], bad
