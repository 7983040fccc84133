# SPDX-License-Identifier: Apache-2.0
"""Detection of a server's kind: whether it has the API, reports a balance, and checks API keys. Costs no credits."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import msgspec

from airflow_provider_webdata.api import endpoints, models
from airflow_provider_webdata.api.client import WebDataClient
from airflow_provider_webdata.api.endpoints import Endpoint
from airflow_provider_webdata.api.errors import (
    APIError,
    AuthenticationError,
    EntitlementError,
    InvalidResponseError,
    RateLimitError,
    TransportError,
    UnsupportedError,
    WebDataError,
)
from airflow_provider_webdata.api.servers import DECLARE, NO_BALANCE
from airflow_provider_webdata.hooks.diagnosis import Diagnosis, credits_left, diagnose, diagnosis_of, without

if TYPE_CHECKING:
    from collections.abc import Callable

    from airflow_provider_webdata.api.config import ClientConfig
    from airflow_provider_webdata.api.models import CreditUsage
    from airflow_provider_webdata.api.servers import Kind, Server
    from airflow_provider_webdata.common.http_library import httpx

_REPORTS_BALANCE = (
    'The server reports a balance, so it bills calls, but the connection declares it self-hosted. Set "Server" to '
    "hosted: for a self-hosted server, tasks repeat calls whose outcome is unknown, which would be billed twice"
)
_CHECKS_NO_KEY = (
    "The server reports no credits and accepts any API key, like a self-hosted server, but the connection declares it "
    f"hosted. {DECLARE}"
)
_KIND_UNKNOWN = f"Nothing shows whether it bills calls. {DECLARE}"

# Of a server that answers one of these, a random key shows whether it checks keys.
_FREE: tuple[Endpoint[Any], ...] = (endpoints.CONCURRENCY, endpoints.QUEUE_STATUS)


def _without_url(operation: str) -> Endpoint[Any]:
    """Return a call that a server with this operation refuses, so that nothing is billed."""
    return Endpoint(
        f"{operation}_without_url",
        "POST",
        f"/v2/{operation}",
        "endpoints",
        lambda: models.Answer,
        starts_nothing=True,
        is_declared=False,
        title=f"{operation} without a URL",
    )


# Every implementation has this operation.
_SCRAPE_WITHOUT_URL = _without_url("scrape")
_CRAWL_WITHOUT_URL = _without_url("crawl")

_CONCERNS_CALLER = (AuthenticationError, EntitlementError, RateLimitError)
_INVALID = frozenset({400, 422})
_PASSING = frozenset({408, 429, 502, 503, 504})
"""Statuses of a server or a gateway that fails for a moment, which show nothing about its kind."""


@dataclass
class _Tried:
    """The calls that were sent, and the form of their answers."""

    calls: list[str] = field(default_factory=list)
    redirects: bool = False
    answers_data: bool = False

    def see(self, response: httpx.Response) -> None:
        """Note a response."""
        content_type = response.headers.get("content-type", "")
        self.calls.append(f"{response.request.method} {response.request.url.path}: {response.status_code}")
        self.redirects |= 300 <= response.status_code < 400
        self.answers_data |= not content_type or "json" in content_type


class Probe(msgspec.Struct, frozen=True):
    """What a server answered.

    :param server: the server as the connection declares it.
    :param usage: the credits; None: they could not be read.
    :param failure: the error of that read, or of a later call that names the problem better.
    :param responds: the credits could not be read, but another answer shows that the server has the API.
    :param accepts_any_key: a free call with a random key succeeded, too.
    :param tried: the calls that were sent, with the statuses of their answers.
    :param is_possible: no answer shows that the host is something else, such as a web site or a redirect.
    """

    server: Server
    usage: CreditUsage | None = None
    failure: WebDataError | None = None
    responds: bool = False
    accepts_any_key: bool = False
    tried: tuple[str, ...] = ()
    is_possible: bool = False

    @property
    def kind(self) -> Kind | None:
        """The kind of server that the answers show; None: they do not show it."""
        if self.usage is not None and self.usage.remaining_credits is not None:
            return "hosted"
        return "self-hosted" if self.accepts_any_key else None

    @property
    def contradiction(self) -> str | None:
        """A sentence without its period, if the answers contradict the connection's `server`."""
        if self.server.is_self_hosted and self.kind == "hosted":
            return _REPORTS_BALANCE
        return _CHECKS_NO_KEY if self.server.kind == "hosted" and self.kind == "self-hosted" else None

    @property
    def is_believed(self) -> bool:
        """Whether only the declared kind says that the server has the API."""
        is_declared = self.server.kind is not None and not self.server.reports_credits
        return is_declared and self.is_possible and self._is_unproven

    @property
    def _is_unproven(self) -> bool:
        return self.failure is not None and not self.responds and diagnosis_of(self.failure).is_other_service

    @property
    def problem(self) -> Diagnosis | None:
        """The reason why the connection does not work, or only as declared; None: the server has the API."""
        lacks_balance = self.responds and not self.server.reports_credits
        if self.failure is None or lacks_balance:
            return None
        found = diagnosis_of(self.failure)
        if not self._is_unproven:
            return found
        seen = (
            f"The host responds, but nothing shows that it has this API: {self.failure.brief()} "
            f"(tried {'; '.join(self.tried)})"
        )
        if self.is_believed:
            return Diagnosis(
                "service", seen, 'The declared "Server" is believed. If tasks fail, check "Base URL".'
            )
        way_out = (
            'If it is right, set "Server" (--server) to its kind, or store the connection untested with '
            "`airflow webdata init --skip-test`."
        )
        if not self.is_possible:
            way_out = "If it is right, store the connection untested with `airflow webdata init --skip-test`."
        return Diagnosis("service", seen, f'Check "Base URL". {way_out}')

    def message(self) -> tuple[bool, str]:
        """Return whether the connection works, and a message with the problem or the remaining credits."""
        if self.contradiction:
            return False, f"{self.contradiction} (WD-001)."
        declare = "" if self.server.kind or not self.kind else f' Set "Server" to {self.kind}.'
        if self.usage is not None:
            works = "The API key works" if self.server.requires_key else "The server responds"
            return True, f"{works}; {credits_left(self.usage)}.{declare}"
        if (problem := self.problem) is None:
            unknown = f" {_KIND_UNKNOWN}." if self.server.kind is None and not self.kind else ""
            return True, f"{without(NO_BALANCE)}.{declare or unknown}"
        assert self.failure is not None  # noqa: S101
        if self.is_believed:
            return True, f"Warning: {problem}"
        return diagnose(self.failure, problem)


def probe(config: ClientConfig, on_response: Callable[[httpx.Response], None] | None = None) -> Probe:
    """Ask a server for its credits, and, if it has none, whether it has the API and checks keys: up to five calls.

    Each call is made once.

    :param on_response: called with each response.
    :raises ConfigurationError: the CA bundle cannot be read.
    """
    tried = _Tried()

    def see(response: httpx.Response) -> None:
        tried.see(response)
        if on_response is not None:
            on_response(response)

    once = replace(config, retry_budget=0.0)
    with WebDataClient(once, see) as client:
        try:
            return Probe(config.server, usage=client.call(endpoints.CREDIT_USAGE).data)
        except WebDataError as error:
            failure = error
        if not isinstance(failure, (APIError, InvalidResponseError)) or isinstance(failure, _CONCERNS_CALLER):
            return Probe(config.server, failure=failure)
        # Of a response that is not the API's, these calls would read anything.
        responds = isinstance(failure, APIError) and _responds(client)
        shows_kind = responds and failure.status not in _PASSING
        if not responds:
            responds, failure = _recognized(client, failure)
    any_key = False
    if shows_kind:
        with WebDataClient(replace(once, api_key=secrets.token_hex()), on_response) as stranger:
            any_key = _responds(stranger)
    is_possible = tried.answers_data and not tried.redirects
    return Probe(config.server, None, failure, responds, any_key, tuple(tried.calls), is_possible)


def has_crawl(config: ClientConfig) -> bool:
    """Return whether a server has crawls: it does unless it refuses one without a URL as unsupported. Bills nothing."""
    with WebDataClient(replace(config, retry_budget=0.0)) as client:
        try:
            client.call(_CRAWL_WITHOUT_URL, extra_body={})
        except UnsupportedError:
            return False
        except WebDataError:
            pass
    return True


def _responds(client: WebDataClient) -> bool:
    for endpoint in _FREE:
        try:
            client.call(endpoint)
        except TransportError:
            return False
        except WebDataError:
            continue
        return True
    return False


def _recognized(
    client: WebDataClient, failure: APIError | InvalidResponseError
) -> tuple[bool, APIError | InvalidResponseError]:
    """Return whether a scrape without a URL is refused as by the API, and the error that names the problem best."""
    try:
        client.call(_SCRAPE_WITHOUT_URL, extra_body={})
    except APIError as error:
        lists = (error.details, error.body.get("detail"), error.body.get("errors"))
        names_fields = any(isinstance(one, list) and one for one in lists)
        if error.status in _INVALID and (error.body.get("success") is False or names_fields):
            return True, failure
        is_refused = isinstance(error, _CONCERNS_CALLER) or (error.body and error.status in _PASSING)
        return False, error if is_refused else failure
    except WebDataError:
        pass
    return False, failure
