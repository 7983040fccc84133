"""Checks of the service's answer: host, TLS, API key, credits, entitlements, and clock difference.

Reading the credits costs nothing, and tells nearly all.
"""

from __future__ import annotations

import ssl
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta, timezone
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Literal
from urllib.parse import urlsplit

from airflow_provider_webdata.api import endpoints
from airflow_provider_webdata.api.client import WebDataClient
from airflow_provider_webdata.api.errors import WebDataError
from airflow_provider_webdata.hooks.connection import is_loopback
from airflow_provider_webdata.hooks.diagnosis import credits_left, diagnosis_of
from airflow_provider_webdata.inbox.tokens import LEEWAY

from .finding import Finding

if TYPE_CHECKING:
    from airflow_provider_webdata.api.models import CreditUsage, QueueStatus
    from airflow_provider_webdata.common.http_library import httpx
    from airflow_provider_webdata.hooks.connection import ConnectionSettings
    from airflow_provider_webdata.hooks.diagnosis import Diagnosis

    from .finding import State

QUICK_CHECKS = ("host", "tls", "key", "credits", "clock")
CHECKS = (*QUICK_CHECKS, "entitlements")

CERTIFICATE_DAYS = 14
"""A certificate that ends within so many days is worth a warning."""

FEW_CREDITS = 0.05
"""The part of the plan's credits below which the rest is worth a warning."""


@dataclass
class _Meeting:
    """The network connection to the host; `ahead`: seconds by which its clock is ahead of this machine's."""

    address: str | None = None
    tls: str | None = None
    certificate_end: datetime | None = None
    ahead: float | None = None
    answered: bool = False

    def see(self, response: httpx.Response) -> None:
        self.answered = True
        stream = response.extensions.get("network_stream")
        if stream is not None:
            address = stream.get_extra_info("server_addr")
            self.address = address[0] if isinstance(address, tuple) else None
            if (tls := stream.get_extra_info("ssl_object")) is not None:
                self.tls = tls.version()
                # Unverified, a certificate is not read at all.
                end = (tls.getpeercert() or {}).get("notAfter")
                if isinstance(end, str):
                    self.certificate_end = datetime.fromtimestamp(ssl.cert_time_to_seconds(end), timezone.utc)
        try:
            date = parsedate_to_datetime(response.headers.get("date", ""))
        except ValueError:
            return
        if date.tzinfo is not None:
            # The header has whole seconds: on average it is half a second old.
            self.ahead = (date + timedelta(seconds=0.5) - datetime.now(timezone.utc)).total_seconds()


@dataclass(frozen=True)
class ServiceAnswer:
    """The credits of a connection's team or why they could not be read, and its queue if requested and readable."""

    settings: ConnectionSettings
    usage: CreditUsage | None = None
    failure: Diagnosis | None = None
    queue: QueueStatus | None = None
    _meeting: _Meeting = field(default_factory=_Meeting)

    def findings(self) -> list[Finding]:
        """Return the findings of `CHECKS`, in their order."""
        made = (self._host(), self._tls(), self._key(), self._credits(), self._clock(), self._entitlements())
        return [replace(finding, conn_id=self.settings.conn_id) for finding in made]

    @property
    def _failed(self) -> str | None:
        return None if self.failure is None else self.failure.part

    def _wrong(self, check: str, state: State = "wrong") -> Finding:
        assert self.failure is not None  # noqa: S101
        return Finding(check, state, self.failure.seen, self.failure.advice)

    def _host(self) -> Finding:
        if self._failed in {"host", "service"}:
            return self._wrong("host")
        if self._failed == "fields":
            return Finding("host", "unknown", "see tls")
        client = self.settings.client
        if self._failed == "tls":
            return Finding("host", "ok", f"{client.base_url} can be reached; see tls")
        way = f" ({self._meeting.address})" if self._meeting.address else ""
        return Finding(
            "host", "ok", f"{client.base_url} answers" + (" through the proxy" if client.proxy else way)
        )

    def _tls(self) -> Finding:
        # Of the client's settings only the CA bundle is not tried before a connection is made.
        if self._failed in {"tls", "fields"}:
            return self._wrong("tls")
        client = self.settings.client
        parts = urlsplit(client.base_url)
        if parts.scheme == "http":
            if is_loopback(parts.hostname):
                return Finding("tls", "ok", "plain http, which does not leave this machine")
            return Finding(
                "tls",
                "warning",
                "plain http: anybody on the way can read the API key",
                'Write https in "Base URL".',
            )
        if not client.verify:
            return Finding(
                "tls",
                "warning",
                "the certificate is not verified: anybody on the way can read the API key",
                'Turn on "Verify TLS certificate", and name a private authority in "CA bundle".',
            )
        if self._meeting.tls is None:
            return Finding("tls", "unknown", "see host")
        end = self._meeting.certificate_end
        if end is None:
            return Finding("tls", "ok", self._meeting.tls)
        seen = f"{self._meeting.tls}, the certificate ends on {end.date().isoformat()}"
        if end - datetime.now(timezone.utc) < timedelta(days=CERTIFICATE_DAYS):
            return Finding("tls", "warning", seen, "Have it renewed by whoever runs the service.")
        return Finding("tls", "ok", seen)

    def _key(self) -> Finding:
        if self._failed == "key":
            return self._wrong("key")
        if self._failed == "rate":
            return self._wrong("key", "unknown")
        if self._failed in {None, "credits", "rights"}:
            return Finding("key", "ok", "the service knows the API key")
        return self._unanswered("key")

    def _credits(self) -> Finding:
        if self._failed == "credits":
            return self._wrong("credits", "unknown")
        if self.usage is None:
            return self._unanswered("credits")
        left, plan = self.usage.remaining_credits, self.usage.plan_credits
        seen = credits_left(self.usage).removeprefix("The API key works; ").rstrip(".")
        if left is None:
            return Finding("credits", "unknown", seen)
        advice = "Buy credits, or wait for the next billing period; docs/costs.md says what uses them."
        if left <= 0:
            return Finding("credits", "wrong", f"{seen}: whatever is billed fails", advice)
        if plan and left < FEW_CREDITS * plan:
            return Finding("credits", "warning", seen, advice)
        return Finding("credits", "ok", seen)

    def _clock(self) -> Finding:
        ahead = self._meeting.ahead
        if ahead is None:
            if not self._meeting.answered:
                return self._unanswered("clock")
            return Finding("clock", "unknown", "the service's answer has no date")
        seen = f"the service's clock and this machine's differ by {abs(ahead):.0f} s"
        if abs(ahead) <= LEEWAY:
            return Finding("clock", "ok", seen)
        seen = f"the service's clock is {abs(ahead):.0f} s {'ahead of' if ahead > 0 else 'behind'} this machine's"
        return Finding(
            "clock",
            "warning",
            seen,
            f"Set this machine's clock by NTP: from {LEEWAY} s on, readers' tokens and waits that the service names as "
            "a date go wrong.",
        )

    def _entitlements(self) -> Finding:
        if self._failed == "rights":
            return self._wrong("entitlements")
        if self._failed not in {None, "credits"}:
            return self._unanswered("entitlements")
        pages = self.queue.max_concurrency if self.queue else None
        seen = f"pages scraped at once: {pages:g}; " if pages is not None else ""
        return Finding(
            "entitlements",
            "unknown",
            f"{seen}the service does not tell which features the team has",
            "A task that asks for one that it lacks, such as zeroDataRetention or threatProtection, fails with WD-403.",
        )

    def _unanswered(self, check: str) -> Finding:
        where: dict[str | None, Literal["tls", "key", "entitlements"]] = {
            "tls": "tls",
            "fields": "tls",
            "key": "key",
            "rate": "key",
            "rights": "entitlements",
        }
        return Finding(check, "unknown", f"see {where.get(self._failed, 'host')}")


def ask_service(settings: ConnectionSettings, seconds: float, *, with_queue: bool = False) -> ServiceAnswer:
    """Ask the service for the credits, once.

    :param seconds: for how long, apart from the name server.
    :param with_queue: whether to ask for the team's queue too, in the same time.
    """
    meeting = _Meeting()
    seconds = seconds / 2 if with_queue else seconds
    # Connecting and reading may use the timeout each, and the result must be reported within the limit too.
    timeout = min(settings.client.timeout, max(seconds, 0.1) * 0.45)
    try:
        with WebDataClient(replace(settings.client, timeout=timeout, retry_budget=0), meeting.see) as client:
            try:
                usage = client.call(endpoints.CREDIT_USAGE).data
            except WebDataError as error:
                return ServiceAnswer(settings, failure=diagnosis_of(error), _meeting=meeting)
            return ServiceAnswer(settings, usage, None, _queue(client) if with_queue else None, meeting)
    except WebDataError as error:
        # The CA bundle cannot be read.
        return ServiceAnswer(settings, failure=diagnosis_of(error), _meeting=meeting)


def _queue(client: WebDataClient) -> QueueStatus | None:
    try:
        return client.call(endpoints.QUEUE_STATUS)
    except WebDataError:
        return None
