"""Checks of the webhook URL: deliveries can arrive there, and a triggerer can read them."""

from __future__ import annotations

import hashlib
import hmac
import socket
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from airflow_provider_webdata import __version__
from airflow_provider_webdata.api.errors import ConfigurationError, trimmed
from airflow_provider_webdata.common.hosts import is_public
from airflow_provider_webdata.common.http_library import httpx
from airflow_provider_webdata.hooks.inbox import inbox_address
from airflow_provider_webdata.hooks.webhooks import can_receive, new_key
from airflow_provider_webdata.inbox.probe import is_proven, new_probe
from airflow_provider_webdata.inbox.reader import DeliveryGoneError, InboxError, InboxReader
from airflow_provider_webdata.inbox.reader.protocol import client_options
from airflow_provider_webdata.inbox.wire import (
    NOT_JSON,
    REFUSED,
    SECRET_HEADER,
    SIGNATURE_PREFIX,
    delivery_url,
)

from .finding import Finding

if TYPE_CHECKING:
    from airflow_provider_webdata.hooks.connection import ConnectionSettings

    from .finding import State

_OUTSIDE = "To try it from outside, see docs/managed.md#check-that-deliveries-arrive."
_NO_DELIVERY = 0
"""An id that the inbox never gives."""


def webhook_set(settings: ConnectionSettings) -> Finding:
    """Check that the connection has what deliveries need; nothing is sent."""
    webhook = settings.webhook
    if webhook.url is None:
        return _of(settings, "ok", "no Webhook URL: tasks wait by polling")
    if can_receive(settings):
        return _of(settings, "ok", f"deliveries come to {delivery_url(webhook.url, settings.conn_id)}/...")
    return _of(
        settings,
        "wrong",
        "there is a Webhook URL, but neither Webhook secret nor Signing secret: tasks wait by polling",
        'Fill in "Webhook secret", with what `openssl rand -hex 32` prints, or clear "Webhook URL".',
    )


def webhook(settings: ConnectionSettings, seconds: float) -> Finding:
    """Check that the webhook URL leads to an inbox that knows the connection's secret.

    A first request without the secret must be refused as the inbox refuses it: no other server is sent the secret. Then
    comes a probe, which is never stored.

    :param seconds: for how long to wait for each answer.
    """
    if settings.webhook.url is None or not can_receive(settings):
        return webhook_set(settings)
    url = delivery_url(settings.webhook.url, settings.conn_id, new_key())
    shown = delivery_url(settings.webhook.url, settings.conn_id)
    there = replace(settings.webhook, inbox_url=settings.webhook.url)
    options = client_options(inbox_address(replace(settings, webhook=there)))
    try:
        with httpx.Client(**options, timeout=max(seconds, 0.1) * 0.2) as client:
            stranger = _not_an_inbox(client.post(url))
            if stranger:
                return _of(settings, "wrong", f"{shown}: {stranger[0]}", stranger[1])
            return _probed(settings, shown, client, url)
    except httpx.HTTPError as error:
        return _of(
            settings,
            "wrong",
            f"{shown} cannot be reached from here: {trimmed(str(error), 200) or type(error).__name__}",
            f'Check "Webhook URL", its certificate and the proxy in front of Airflow. {_OUTSIDE}',
        )


def _not_an_inbox(response: httpx.Response) -> tuple[str, str] | None:
    """Return what answered in place of the inbox, and what to do; None where it was the inbox."""
    status, error = response.status_code, _body(response).get("error")
    if (status, error) == (401, REFUSED):
        return None
    answer = f"HTTP {status}" + (f" ({trimmed(error, 100)})" if isinstance(error, str) else "")
    if 300 <= status < 400:
        where = trimmed(response.headers.get("location", ""), 200)
        return (
            f"redirects to {where}, where no delivery gets",
            "Let POST requests to /webdata/inbox/ pass without a login.",
        )
    if status in {401, 403, 407}:
        return (
            f"something in front of Airflow refuses requests ({answer})",
            "Let POST requests to /webdata/inbox/ pass without a login.",
        )
    if status in {404, 405}:
        return (
            f"there is no inbox ({answer})",
            "Install this package on the API server and restart it; let the proxy pass POST requests to "
            "/webdata/inbox/, path and all.",
        )
    if status == 429 or status >= 500:
        return (
            f"no delivery is taken now ({answer})",
            "Look into the log of the API server, and of the proxy in front of it.",
        )
    return (f"somebody else's server answers ({answer})", 'Correct "Webhook URL".')


def _probed(settings: ConnectionSettings, shown: str, client: httpx.Client, url: str) -> Finding:
    probe = new_probe()
    response = client.post(url, content=probe, headers=_headers(settings, probe))
    status, body = response.status_code, _body(response)
    error = body.get("error")
    if status == 200:
        return _answered(settings, shown, probe, body)
    if (status, error) == (401, REFUSED):
        return _of(
            settings,
            "wrong",
            f"{shown}: the inbox refuses this connection's secret or signature",
            'The API server must read the same connection, with the same "Webhook secret", "Signing secret" and '
            f'"Signature header", and the proxy must pass {SECRET_HEADER} on. A changed secret counts after half a '
            "minute.",
        )
    if (status, error) == (400, NOT_JSON):
        return _of(
            settings,
            "warning",
            f"{shown}: an inbox that takes the secret, of an older version of this package",
            f"Install airflow-provider-webdata {__version__} on the API server too, and restart it.",
        )
    words = f"HTTP {status}" + (f" ({trimmed(error, 100)})" if isinstance(error, str) else "")
    return _of(settings, "wrong", f"{shown}: a probe is answered {words}", "Look into the API server's log.")


def _answered(settings: ConnectionSettings, shown: str, probe: bytes, body: dict[str, Any]) -> Finding:
    webhook = settings.webhook
    keys = webhook.signing_secrets or webhook.secrets
    if not is_proven(body.get("proofs"), probe, settings.conn_id, keys):
        return _of(
            settings,
            "wrong",
            f"{shown}: somebody else's server answers, which does not know the secret",
            'Correct "Webhook URL".',
        )
    if (version := body.get("version")) != __version__:
        return _of(
            settings,
            "warning",
            f"{shown}: our inbox answers, but of version {trimmed(str(version), 50)}; here is {__version__}",
            "Install the same version of airflow-provider-webdata everywhere.",
        )
    if _is_public(settings.client.base_url) and _is_public(webhook.url or "") is False:
        return _of(
            settings,
            "warning",
            f"{shown}: our inbox answers, but its address is a private one",
            f"The service sends nothing to private addresses: give it a public one. {_OUTSIDE}",
        )
    return _of(settings, "ok", f"{shown}: our inbox answers and knows the secret")


def _headers(settings: ConnectionSettings, probe: bytes) -> dict[str, str]:
    webhook = settings.webhook
    headers = {SECRET_HEADER: webhook.secret} if webhook.secret else {}
    if webhook.signing_secret:
        digest = hmac.new(webhook.signing_secret.encode(), probe, hashlib.sha256).hexdigest()
        headers[webhook.signature_header] = SIGNATURE_PREFIX + digest
    return headers


def _is_public(url: str) -> bool | None:
    """Return whether a name leads to a public address; None where it does not resolve.

    The service leaves out private addresses without a word (docs/service.md#delivery-private).
    """
    try:
        found = socket.getaddrinfo(urlsplit(url).hostname, None, type=socket.SOCK_STREAM)
    except OSError:
        return None
    return any(is_public(str(one[4][0])) for one in found)


def reader(settings: ConnectionSettings) -> Finding:
    """Check that a triggerer can read the deliveries: the inbox takes a token of the connection."""
    if not can_receive(settings):
        return Finding("reader", "ok", "nothing is read: tasks wait by polling", conn_id=settings.conn_id)
    try:
        address = inbox_address(settings)
        with InboxReader(address) as inbox:
            inbox.fetch(_NO_DELIVERY)
    except DeliveryGoneError:
        seen = f"the inbox at {address.url} takes this connection's tokens"
        return Finding("reader", "ok", seen, conn_id=settings.conn_id)
    except (InboxError, ConfigurationError) as error:
        seen, _, advice = error.text().partition("; ")
        return Finding("reader", "wrong", seen, _sentence(advice), settings.conn_id)
    return Finding(
        "reader", "wrong", f"the inbox at {address.url} gives what it cannot have", None, settings.conn_id
    )


def _sentence(words: str) -> str | None:
    return f"{words[:1].upper()}{words[1:]}." if words else None


def _body(response: httpx.Response) -> dict[str, Any]:
    try:
        body = response.json()
    except ValueError:
        return {}
    return body if isinstance(body, dict) else {}


def _of(settings: ConnectionSettings, state: State, seen: str, advice: str | None = None) -> Finding:
    return Finding("webhook", state, seen, advice, settings.conn_id)
