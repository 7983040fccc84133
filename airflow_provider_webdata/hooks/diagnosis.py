"""What the answer to a connection test means, in words for whoever fills in the form."""

from __future__ import annotations

import ssl
from typing import TYPE_CHECKING

from airflow_provider_webdata.api.errors import (
    APIError,
    AuthenticationError,
    ConfigurationError,
    EntitlementError,
    InvalidResponseError,
    NotFoundError,
    RateLimitError,
    ServerError,
    TransportError,
    WebDataError,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from airflow_provider_webdata.api.models import CreditUsage


def credits_left(usage: CreditUsage) -> str:
    """Say that the key works and what it can spend."""
    if usage.remaining_credits is None:
        return "The API key works; the service does not say how many credits are left."
    left = f"The API key works; {usage.remaining_credits:g} credits are left"
    return f"{left} of {usage.plan_credits:g} in the plan." if usage.plan_credits else f"{left}."


def diagnose(error: WebDataError) -> tuple[bool, str]:
    """Tell apart the ways in which reading the credits can fail.

    :param error: what the call raised.
    :return: whether the connection works all the same, and what to do about it, with the error's code.
    """
    works, advice = _advice(error)
    return works, advice if works or error.help_code in advice else f"{advice} ({error.help_code})"


def _advice(error: WebDataError) -> tuple[bool, str]:
    if isinstance(error, ConfigurationError):
        return False, str(error)
    if isinstance(error, TransportError):
        return False, _unreachable(error)
    if isinstance(error, AuthenticationError):
        return False, f'The service refuses the API key: {error.message}. Check "API Key".'
    if isinstance(error, EntitlementError):
        return False, f"The service knows the key but forbids the call: {error.message}."
    if isinstance(error, NotFoundError) and "credit" in error.message.lower():
        return True, "The API key works; the service has no credit figures for its team."
    if isinstance(error, RateLimitError):
        return (
            False,
            f"The service answers but limits the rate, so that the key was not tried: {error}. Try later.",
        )
    if isinstance(error, ServerError):
        return False, f"The host answers with an error of its own. Try again later: {error}."
    if isinstance(error, (NotFoundError, InvalidResponseError)):
        return False, f'The host answers but is not this service: {error}. Check "Base URL".'
    if isinstance(error, APIError):
        return False, f'The host answers, but not as expected: {error}. Check "Base URL".'
    return False, str(error)


def _unreachable(error: TransportError) -> str:
    if any(isinstance(cause, ssl.SSLError) for cause in _causes(error)) or "CERTIFICATE" in error.reason:
        return (
            f'The TLS connection fails: {error.reason}. Check the name in "Base URL", set "CA bundle" for a '
            'private certificate authority, or correct http against https in "Base URL".'
        )
    return f'The host is not reachable: {error.reason}. Check "Base URL" and "Proxy", and the network.'


def _causes(error: BaseException) -> Iterator[BaseException]:
    seen: set[int] = set()
    cause: BaseException | None = error
    while cause is not None and id(cause) not in seen:
        seen.add(id(cause))
        yield cause
        cause = cause.__cause__ or cause.__context__
