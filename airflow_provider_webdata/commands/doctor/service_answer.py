# SPDX-License-Identifier: Apache-2.0
"""Checks of the service's response: host, TLS, API key, kind of server, credits, and clock difference.

One request for the credits, which is free, covers nearly all checks of a server that reports them.
"""

from __future__ import annotations

import ssl
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta, timezone
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from airflow_provider_webdata.api.errors import WebDataError
from airflow_provider_webdata.api.servers import DECLARE, NO_BALANCE
from airflow_provider_webdata.common.hosts import is_loopback
from airflow_provider_webdata.common.links import docs_link
from airflow_provider_webdata.hooks.diagnosis import credits_left, diagnosis_of
from airflow_provider_webdata.hooks.probe import probe
from airflow_provider_webdata.inbox.tokens import LEEWAY

from .finding import Finding, failed, passed, skipped, warning

if TYPE_CHECKING:
    from airflow_provider_webdata.common.http_library import httpx
    from airflow_provider_webdata.hooks.connection import ConnectionSettings
    from airflow_provider_webdata.hooks.diagnosis import Diagnosis
    from airflow_provider_webdata.hooks.probe import Probe

    from .finding import State

CHECKS = ("host", "tls", "key", "server", "credits", "clock")

CERTIFICATE_DAYS = 14
"""Warn if the certificate expires within this number of days."""

FEW_CREDITS = 0.05
"""Warn if less than this fraction of the plan's credits is left."""


@dataclass
class _Contact:
    """The network connection to the host; `ahead`: seconds that its clock is ahead of this machine's."""

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
                # Without verification, Python does not parse the certificate.
                end = (tls.getpeercert() or {}).get("notAfter")
                if isinstance(end, str):
                    self.certificate_end = datetime.fromtimestamp(ssl.cert_time_to_seconds(end), timezone.utc)
        try:
            date = parsedate_to_datetime(response.headers.get("date", ""))
        except ValueError:
            return
        if date.tzinfo is not None:
            # The header has a resolution of one second: on average it is half a second old.
            self.ahead = (date + timedelta(seconds=0.5) - datetime.now(timezone.utc)).total_seconds()


@dataclass(frozen=True)
class ServiceAnswer:
    """The credits of a connection's team, or the failure to read them.

    :param found: what the server answered; None: it could not be asked.
    :param failure: the problem; None: there is none, or only no balance.
    """

    settings: ConnectionSettings
    found: Probe | None = None
    failure: Diagnosis | None = None
    _contact: _Contact = field(default_factory=_Contact)

    def findings(self) -> list[Finding]:
        """Return the findings of `CHECKS`, in this order."""
        return [self._host(), self._tls(), self._key(), self._server(), self._credits(), self._clock()]

    @property
    def _failed(self) -> str | None:
        return None if self.failure is None else self.failure.part

    def _failure(self, state: State = "failed") -> Finding:
        assert self.failure is not None  # noqa: S101
        return Finding("", state, self.failure.seen, self.failure.advice)

    def _host(self) -> Finding:
        if self._failed in {"host", "service"}:
            is_believed = self.found is not None and self.found.is_believed
            return self._failure("warning" if is_believed else "failed")
        if self._failed == "fields":
            return skipped("see tls")
        client = self.settings.client
        if self._failed == "tls":
            return passed(f"{client.base_url} is reachable; see tls")
        way = f" ({self._contact.address})" if self._contact.address else ""
        return passed(f"{client.base_url} responds" + (" through the proxy" if client.proxy else way))

    def _tls(self) -> Finding:
        # The CA bundle is the only client setting that is not validated earlier.
        if self._failed in {"tls", "fields"}:
            return self._failure()
        client = self.settings.client
        parts = urlsplit(client.base_url)
        if parts.scheme == "http":
            if is_loopback(parts.hostname):
                return passed("plain http within this machine")
            return warning("plain http exposes the API key on the network", 'Use https in "Base URL".')
        if not client.verify:
            return warning(
                "the certificate is not verified, so an attacker on the network can read the API key",
                'Turn on "Verify TLS certificate"; for a private certificate authority, set "CA bundle".',
            )
        if self._contact.tls is None:
            return skipped("see host")
        end = self._contact.certificate_end
        if end is None:
            return passed(self._contact.tls)
        seen = f"{self._contact.tls}, the certificate expires on {end.date().isoformat()}"
        if end - datetime.now(timezone.utc) < timedelta(days=CERTIFICATE_DAYS):
            return warning(seen, "Ask the operator of the service to renew it.")
        return passed(seen)

    def _key(self) -> Finding:
        if self._failed in {"key", "rights"}:
            return self._failure()
        if self._failed == "rate":
            return self._failure("skipped")
        if self.found is not None and self.found.accepts_any_key:
            return passed("the server requires no API key")
        if self._failed in {None, "credits"}:
            has_key = self.settings.client.has_api_key
            return passed(
                "the service accepts the API key" if has_key else "the server responds without an API key"
            )
        return self._unanswered()

    def _server(self) -> Finding:
        if self.found is None or self._failed not in {None, "credits"}:
            return self._unanswered()
        declared, kind = self.found.server.kind, self.found.kind
        if contradiction := self.found.contradiction:
            seen, _, advice = contradiction.partition(". ")
            return failed(f"{seen[0].lower()}{seen[1:]}", f"{advice}.")
        if declared is not None:
            is_shown = kind is not None or self.found.server.reports_credits
            return passed(declared if is_shown else f"{declared}, as declared: no response shows its kind")
        if kind == "hosted":
            seen = "the server reports a balance, but no kind is set"
        else:
            seen = "no kind is set, so calls count as billed"
        advice = f'Set "Server" to {kind}.' if kind else f"{DECLARE}."
        return warning(seen, advice)

    def _credits(self) -> Finding:
        if self._failed == "credits":
            return self._failure("skipped")
        usage = None if self.found is None else self.found.usage
        if usage is None and self.found is not None and self._failed is None:
            return passed(f"the server responds; {NO_BALANCE}")
        if usage is None:
            return self._unanswered()
        left, plan = usage.remaining_credits, usage.plan_credits
        seen = credits_left(usage)
        if left is None:
            return skipped(seen)
        advice = (
            f"Buy credits, or wait for the next billing period. For their use, see {docs_link('costs.md')}."
        )
        if left <= 0:
            return failed(f"{seen}: billed calls fail", advice)
        if plan and left < FEW_CREDITS * plan:
            return warning(seen, advice)
        return passed(seen)

    def _clock(self) -> Finding:
        ahead = self._contact.ahead
        if ahead is None:
            if not self._contact.answered:
                return self._unanswered()
            return skipped("the service's response has no Date header")
        seen = f"the service's clock and this machine's differ by {abs(ahead):.0f} s"
        if abs(ahead) <= LEEWAY:
            return passed(seen)
        seen = f"the service's clock is {abs(ahead):.0f} s {'ahead of' if ahead > 0 else 'behind'} this machine's"
        return warning(
            seen,
            f"Synchronize this machine's clock with NTP. With a difference of more than {LEEWAY} s, reader tokens and "
            "Retry-After dates from the service are misinterpreted.",
        )

    def _unanswered(self) -> Finding:
        where: dict[str | None, str] = {
            "tls": "tls",
            "fields": "tls",
            **dict.fromkeys(("key", "rate", "rights"), "key"),
        }
        return skipped(f"see {where.get(self._failed, 'host')}")


def ask(settings: ConnectionSettings, seconds: float) -> list[Finding]:
    """Read the team's credits in one attempt, and return the findings of `CHECKS`.

    :param seconds: time limit, without DNS lookups.
    """
    contact = _Contact()
    # Connecting and reading may each take the timeout, and the result must be reported within the limit.
    timeout = min(settings.client.timeout, max(seconds, 0.1) * 0.45)
    config = replace(settings.client, timeout=timeout, retry_budget=0)
    try:
        found = probe(config, contact.see)
        return ServiceAnswer(settings, found, found.problem, contact).findings()
    except WebDataError as error:
        # The CA bundle cannot be read.
        return ServiceAnswer(settings, failure=diagnosis_of(error), _contact=contact).findings()
