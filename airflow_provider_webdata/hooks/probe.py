"""Detection of a server's kind: whether it responds, reports a balance, and checks API keys. Costs no credits."""

from __future__ import annotations

import secrets
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import msgspec

from airflow_provider_webdata.api import endpoints
from airflow_provider_webdata.api.client import WebDataClient
from airflow_provider_webdata.api.errors import (
    APIError,
    AuthenticationError,
    EntitlementError,
    RateLimitError,
    TransportError,
    WebDataError,
)
from airflow_provider_webdata.api.servers import NO_BALANCE
from airflow_provider_webdata.hooks.diagnosis import credits_left, diagnose, without

if TYPE_CHECKING:
    from collections.abc import Callable

    from airflow_provider_webdata.api.config import ClientConfig
    from airflow_provider_webdata.api.endpoints import Endpoint
    from airflow_provider_webdata.api.models import CreditUsage
    from airflow_provider_webdata.api.servers import Kind, Server
    from airflow_provider_webdata.common.http_library import httpx

_REPORTS_BALANCE = (
    'The server reports a balance, so it bills calls, but the connection declares it self-hosted. Set "Server" to '
    "hosted: for a self-hosted server, tasks repeat calls whose outcome is unknown, which would be billed twice"
)
_CHECKS_NO_KEY = (
    "The server reports no credits and accepts any API key, like a self-hosted server, but the connection declares it "
    'hosted. Set "Server" to self-hosted: the idempotency key of a crawl ends such a server'
)

# Every known server answers one of these, free of charge.
_FREE: tuple[Endpoint[Any], ...] = (endpoints.CONCURRENCY, endpoints.QUEUE_STATUS)
_CONCERNS_CALLER = (AuthenticationError, EntitlementError, RateLimitError)


class Probe(msgspec.Struct, frozen=True):
    """What a server answered.

    :param server: the server as the connection declares it.
    :param usage: the credits; None: they could not be read.
    :param failure: the error of that read.
    :param responds: the credits could not be read, but a free call succeeded.
    :param accepts_any_key: so did a call with a random key.
    """

    server: Server
    usage: CreditUsage | None = None
    failure: WebDataError | None = None
    responds: bool = False
    accepts_any_key: bool = False

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

    def message(self) -> tuple[bool, str]:
        """Return whether the connection works, and a message with the problem or the remaining credits."""
        if self.contradiction:
            return False, f"{self.contradiction} (WD-001)."
        declare = "" if self.server.kind or not self.kind else f' Set "Server" to {self.kind}.'
        if self.usage is not None:
            return True, credits_left(self.usage) + declare
        if self.responds and self.server.kind != "hosted":
            unknown = (
                ' Set "Server" to hosted if it bills calls, else to self-hosted.' if not self.kind else ""
            )
            return True, f"{without(NO_BALANCE)}.{declare or (unknown if self.server.kind is None else '')}"
        assert self.failure is not None  # noqa: S101
        return diagnose(self.failure)


def probe(config: ClientConfig, on_response: Callable[[httpx.Response], None] | None = None) -> Probe:
    """Ask a server for its credits, and, if it has none, whether it responds and checks keys: up to four calls.

    Each call is made once.

    :param on_response: called with each response.
    :raises ConfigurationError: the CA bundle cannot be read.
    """
    once = replace(config, retry_budget=0.0)
    with WebDataClient(once, on_response) as client:
        try:
            return Probe(config.server, usage=client.call(endpoints.CREDIT_USAGE).data)
        except WebDataError as error:
            failure = error
        if not isinstance(failure, APIError) or isinstance(failure, _CONCERNS_CALLER):
            return Probe(config.server, failure=failure)
        responds = _responds(client)
    any_key = False
    if responds:
        with WebDataClient(replace(once, api_key=secrets.token_hex()), on_response) as stranger:
            any_key = _responds(stranger)
    return Probe(config.server, None, failure, responds, any_key)


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
