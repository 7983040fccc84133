# SPDX-License-Identifier: Apache-2.0
"""Checks of the webhook URL: it receives deliveries, and a triggerer can read them."""

from __future__ import annotations

import hashlib
import hmac
import socket
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from airflow_provider_webdata import __version__
from airflow_provider_webdata.api.errors import ConfigurationError
from airflow_provider_webdata.api.http_clients import http_client
from airflow_provider_webdata.api.servers import private_webhook_note
from airflow_provider_webdata.common.clean_text import trimmed
from airflow_provider_webdata.common.hosts import is_public
from airflow_provider_webdata.common.http_library import httpx
from airflow_provider_webdata.common.links import docs_link
from airflow_provider_webdata.common.plain_errors import plain_reason
from airflow_provider_webdata.common.remedies import sentence
from airflow_provider_webdata.hooks.webhooks import can_receive, inbox_address, new_key
from airflow_provider_webdata.inbox.probe import is_proven, new_probe
from airflow_provider_webdata.inbox.reader import (
    InboxError,
    InboxMissingError,
    InboxReader,
    InboxUnreachableError,
)
from airflow_provider_webdata.inbox.reader.protocol import client_options
from airflow_provider_webdata.inbox.wire import (
    NOT_JSON,
    REFUSED,
    SECRET_HEADER,
    SIGNATURE_PREFIX,
    delivery_url,
)
from airflow_provider_webdata.inbox_server.options import inbox_enabled

from .finding import failed, passed, warning

if TYPE_CHECKING:
    from airflow_provider_webdata.hooks.connection import ConnectionSettings

    from .finding import Finding

_OUTSIDE = f"To try it from outside, see {docs_link('managed.md#check-that-deliveries-arrive')}."
_SECRETS_AGE = "a server notices a changed secret after up to 30 seconds"
_TURN_ON = (
    "Set `inbox = True` in section [webdata] of airflow.cfg, or AIRFLOW__WEBDATA__INBOX=True, for all of Airflow's "
    "components. Then run `airflow db migrate`, and restart the API server."
)


def webhook_set(settings: ConnectionSettings) -> Finding:
    """Check that the connection is configured for deliveries, without sending a request."""
    webhook = settings.webhook
    if webhook.url is None:
        return passed("no Webhook URL: tasks wait by polling")
    if can_receive(settings):
        return passed(f"deliveries arrive at {delivery_url(webhook.url, settings.conn_id)}/...")
    return failed(
        "the Webhook URL is set, but neither Webhook secret nor Signing secret: tasks wait by polling",
        'Set "Webhook secret" to the output of `openssl rand -hex 32`, or clear "Webhook URL".',
    )


def webhook(settings: ConnectionSettings, seconds: float) -> Finding:
    """Check that the webhook URL belongs to an inbox that knows the connection's secret.

    The inbox must first refuse a request without the secret, so that no other server receives it. The second request is
    a probe, which is never stored.

    :param seconds: time limit of both requests.
    """
    if settings.webhook.url is None or not can_receive(settings):
        return webhook_set(settings)
    url = delivery_url(settings.webhook.url, settings.conn_id, new_key())
    shown = delivery_url(settings.webhook.url, settings.conn_id)
    there = replace(settings.webhook, inbox_url=settings.webhook.url)
    options = client_options(inbox_address(replace(settings, webhook=there)))
    try:
        with http_client(**options, timeout=max(seconds, 0.1) * 0.2) as client:
            stranger = _not_an_inbox(client.post(url))
            if stranger:
                return failed(f"{shown}: {stranger[0]}", stranger[1])
            return _probed(settings, shown, client, url)
    except httpx.HTTPError as error:
        return failed(
            f"{shown} is unreachable from here: {plain_reason(error)}",
            f'Check "Webhook URL", its certificate, and the proxy in front of Airflow. {_OUTSIDE}',
        )


def _not_an_inbox(response: httpx.Response) -> tuple[str, str] | None:
    """Return the problem and the next step if another server responded; None if the inbox did."""
    status, error = response.status_code, _body(response).get("error")
    if (status, error) == (401, REFUSED):
        return None
    answer = f"HTTP {status}" + (f" ({trimmed(error, 100)})" if isinstance(error, str) else "")
    if 300 <= status < 400:
        where = trimmed(response.headers.get("location", ""), 200)
        return (
            f"redirects to {where}, and deliveries do not follow redirects",
            "Allow POST requests to /webdata/inbox/ without a login.",
        )
    if status in {401, 403, 407}:
        return (
            f"a proxy in front of Airflow refuses requests ({answer})",
            "Allow POST requests to /webdata/inbox/ without a login.",
        )
    if status in {404, 405}:
        return (
            f"no inbox at this URL ({answer})",
            "Set [webdata] inbox = True on the API server, run `airflow db migrate`, and restart it. Configure the "
            "proxy to pass POST requests to /webdata/inbox/ with an unchanged path.",
        )
    if status == 429 or status >= 500:
        return (
            f"the inbox currently accepts no deliveries ({answer})",
            "Check the logs of the API server and of the proxy in front of it.",
        )
    return (f"another server responded ({answer})", 'Correct "Webhook URL".')


def _probed(settings: ConnectionSettings, shown: str, client: httpx.Client, url: str) -> Finding:
    probe = new_probe()
    response = client.post(url, content=probe, headers=_headers(settings, probe))
    status, body = response.status_code, _body(response)
    error = body.get("error")
    if status == 200:
        return _answered(settings, shown, probe, body)
    if (status, error) == (401, REFUSED):
        return failed(
            f"{shown}: the inbox refuses this connection's secret or signature",
            'The API server must read the same connection, with the same "Webhook secret", "Signing secret" and '
            f'"Signature header", and the proxy must forward {SECRET_HEADER}. {sentence(_SECRETS_AGE)}.',
        )
    if (status, error) == (400, NOT_JSON):
        return warning(
            f"{shown}: the inbox accepts the secret, but runs an older version of this package",
            f"Install airflow-provider-webdata {__version__} on the API server too, and restart it.",
        )
    words = f"HTTP {status}" + (f" ({trimmed(error, 100)})" if isinstance(error, str) else "")
    return failed(f"{shown}: the inbox responded to a probe with {words}", "Check the API server's log.")


def _answered(settings: ConnectionSettings, shown: str, probe: bytes, body: dict[str, Any]) -> Finding:
    webhook = settings.webhook
    keys = webhook.signing_secrets or webhook.secrets
    if not is_proven(body.get("proofs"), probe, settings.conn_id, keys):
        return failed(
            f"{shown}: the server that responded does not know the secret",
            f'Correct "Webhook URL". If a secret was changed, run the command again: {_SECRETS_AGE}.',
        )
    if (version := body.get("version")) != __version__:
        return warning(
            f"{shown}: the inbox responds, but runs version {trimmed(str(version), 50)}; this is {__version__}",
            "Install the same version of airflow-provider-webdata everywhere.",
        )
    seen = f"{shown}: the inbox responds and knows the secret"
    if note := private_webhook_note(settings.client.server, webhook.url or ""):
        return passed(f"{seen}; {note}")
    if _is_public(settings.client.base_url) and _is_public(webhook.url or "") is False:
        return warning(
            f"{shown}: the inbox responds, but its address is private",
            f"The service does not deliver to private addresses: use a public URL. {_OUTSIDE}",
        )
    return passed(seen)


def _headers(settings: ConnectionSettings, probe: bytes) -> dict[str, str]:
    webhook = settings.webhook
    headers = {SECRET_HEADER: webhook.secret} if webhook.secret else {}
    if webhook.signing_secret:
        digest = hmac.new(webhook.signing_secret.encode(), probe, hashlib.sha256).hexdigest()
        headers[webhook.signature_header] = SIGNATURE_PREFIX + digest
    return headers


def _is_public(url: str) -> bool | None:
    """Return whether a host name resolves to a public address; None if it does not resolve.

    The service silently skips private addresses (sandbox/docs/service.md#delivery-private).
    """
    try:
        found = socket.getaddrinfo(urlsplit(url).hostname, None, type=socket.SOCK_STREAM)
    except OSError:
        return None
    return any(is_public(str(one[4][0])) for one in found)


def inbox(settings: ConnectionSettings) -> Finding:
    """Check that the inbox at `inbox_url` answers and accepts the connection's tokens. Otherwise tasks poll."""
    if not can_receive(settings):
        return passed("not needed: tasks wait by polling")
    try:
        address = inbox_address(settings)
        with InboxReader(address) as reader:
            reader.check()
    except (InboxError, ConfigurationError) as error:
        seen, _, advice = error.text().partition("; ")
        advice = f"{advice[:1].upper()}{advice[1:]}." if advice else ""
        if isinstance(error, InboxUnreachableError):
            advice = 'Start the inbox or the API server, or correct "Inbox URL" or [webdata] inbox_url.'
        if not inbox_enabled() and isinstance(error, (InboxMissingError, InboxUnreachableError)):
            advice = _TURN_ON
        return failed(f"tasks wait by polling: {seen}", advice or None)
    return passed(f"the inbox at {address.url} accepts this connection's tokens")


def _body(response: httpx.Response) -> dict[str, Any]:
    try:
        body = response.json()
    except ValueError:
        return {}
    return body if isinstance(body, dict) else {}
