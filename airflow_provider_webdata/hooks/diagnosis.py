# SPDX-License-Identifier: Apache-2.0
"""The result of a connection test as a message for the connection form."""

from __future__ import annotations

import ssl
from typing import TYPE_CHECKING, Literal

import msgspec

from airflow_provider_webdata.api.errors import (
    APIError,
    AuthenticationError,
    CertificateRequiredError,
    ConfigurationError,
    EntitlementError,
    InvalidResponseError,
    NotFoundError,
    RateLimitError,
    ServerError,
    TransportError,
    UnsupportedError,
    WebDataError,
)
from airflow_provider_webdata.common.numbers import credits_text
from airflow_provider_webdata.common.plain_errors import REFUSED
from airflow_provider_webdata.common.remedies import sentence, with_ending

if TYPE_CHECKING:
    from airflow_provider_webdata.api.models import CreditUsage

Part = Literal["fields", "host", "tls", "service", "rate", "key", "rights", "credits"]
"""The part of a connection that failed. The parts listed before it work."""


class Diagnosis(msgspec.Struct, frozen=True):
    """The reason why the credits could not be read.

    :param seen: a sentence without its period.
    :param advice: the next steps, as sentences; None if there are none.
    :param is_other_service: the host responds, but not like the service.
    """

    part: Part
    seen: str
    advice: str | None = None
    is_other_service: bool = False

    def __str__(self) -> str:
        return f"{self.seen}. {self.advice}" if self.advice else f"{self.seen}."


def credits_left(usage: CreditUsage) -> str:
    """Return the remaining credits as a clause without its period."""
    if usage.remaining_credits is None:
        return "the service does not report how many credits are left"
    left = f"{credits_text(usage.remaining_credits)} credits are left"
    return f"{left} of {credits_text(usage.plan_credits)} in the plan" if usage.plan_credits else left


def without(lack: str) -> str:
    """Return a sentence without its period about a server that responds.

    :param lack: what it lacks, as in `UnsupportedError`.
    """
    return f"The server responds. {lack[0].upper()}{lack[1:]}"


def diagnose(error: WebDataError, found: Diagnosis | None = None) -> tuple[bool, str]:
    """Explain a failure to read the credits.

    :param found: its diagnosis; None: the one that follows from the error alone.
    :return: whether the connection works anyway, and a message with the next step and the error's code.
    """
    found = found or diagnosis_of(error)
    if found.part == "fields":
        return False, str(error)
    works, advice = found.part == "credits", str(found)
    if works:
        return True, advice
    # The code is named once, at the end.
    return False, with_ending(advice.replace(error.brief(), error.text()), error.help_code, "")


def diagnosis_of(error: WebDataError) -> Diagnosis:
    """Classify a failure to read the credits."""
    if isinstance(error, ConfigurationError):
        return Diagnosis("fields", error.brief())
    if isinstance(error, TransportError):
        return _unreachable(error)
    if isinstance(error, AuthenticationError):
        return Diagnosis("key", f"The service rejects the API key: {error.message}", 'Check "API Key".')
    if isinstance(error, EntitlementError):
        return Diagnosis("rights", f"The service accepts the key but forbids the call: {error.message}")
    if isinstance(error, NotFoundError) and "credit" in error.message.lower():
        return Diagnosis("credits", "The API key works; the service has no credit figures for its team")
    if isinstance(error, RateLimitError):
        return Diagnosis(
            "rate",
            f"The service responds but limits the request rate, so the key could not be checked: {error.brief()}",
            "Try again later.",
        )
    if isinstance(error, UnsupportedError) and error.status not in (404, 405):
        return Diagnosis("credits", without(error.lack))
    if isinstance(error, ServerError) and error.status != 404:
        return Diagnosis("service", f"The host responds with an error: {error.brief()}", "Try again later.")
    if isinstance(error, (NotFoundError, InvalidResponseError, ServerError, UnsupportedError)):
        seen = f"The host responds, but not like this service: {error.brief()}"
        return Diagnosis("service", seen, 'Check "Base URL".', is_other_service=True)
    if isinstance(error, APIError):
        seen = f"The host sent an unexpected response: {error.brief()}"
        return Diagnosis("service", seen, 'Check "Base URL".', is_other_service=True)
    return Diagnosis("fields", error.brief())


def _unreachable(error: TransportError) -> Diagnosis:
    if isinstance(error, CertificateRequiredError):
        return Diagnosis("tls", f"The TLS connection fails: {error.reason}", f"{sentence(error.remedy)}.")
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, ssl.SSLError):
        cause = cause.__cause__ or cause.__context__
    if cause is not None or "CERTIFICATE" in error.reason:
        return Diagnosis(
            "tls",
            f"The TLS connection fails: {error.reason}",
            'Check the host name and the scheme (http or https) in "Base URL"; for a private certificate authority, '
            'set "CA bundle".',
        )
    start = "Start the server, or check" if REFUSED in error.reason else "Check"
    return Diagnosis(
        "host",
        f"The host is unreachable: {error.reason.removeprefix('cannot reach ')}",
        f'{start} "Base URL" and "Proxy", and the network.',
    )
