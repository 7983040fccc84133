# SPDX-License-Identifier: Apache-2.0
"""Settings of an Airflow connection of type `webdata`, validated.

A connection may be defined in the form, as JSON, or as a URI, which has only text extras. All are parsed alike.
"""

from __future__ import annotations

import ipaddress
import json
import math
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, Protocol
from urllib.parse import SplitResult, unquote, urlsplit

from airflow.sdk.exceptions import AirflowNotFoundException

from airflow_provider_webdata.api.config import TOKEN, ClientConfig
from airflow_provider_webdata.api.errors import ConfigurationError
from airflow_provider_webdata.api.servers import KINDS, server_of
from airflow_provider_webdata.common.coded_errors import CodedError
from airflow_provider_webdata.common.hosts import is_loopback, normal_host
from airflow_provider_webdata.common.logs import logger
from airflow_provider_webdata.common.spelling import nearest

if TYPE_CHECKING:
    from airflow_provider_webdata.api.servers import Kind

log = logger(__name__)

CONN_TYPE = "webdata"
DEFAULT_SIGNATURE_HEADER = "X-Firecrawl-Signature"

_HOST = "host (Base URL)"
_MEGABYTE = 2**20
_SHORTEST_SECRET = 16


@lru_cache(maxsize=1000)
def _log_warning(text: str) -> None:
    """Log a warning once per process: a task and a triggerer read the same connection many times."""
    log.warning("%s", text)


class ConnectionMissingError(CodedError, AirflowNotFoundException):
    """The connection does not exist, or none is named."""

    help_code = "WD-008"


class AirflowConnection(Protocol):
    """The attributes used here, which the connection classes of Airflow's SDK and core share."""

    conn_id: Any
    host: Any
    schema: Any
    port: Any
    password: Any
    extra: Any


@dataclass(frozen=True)
class WebhookSettings:
    """Webhook settings of a connection.

    :param url: public URL that receives the deliveries.
    :param secret: secret that each delivery must carry.
    :param previous_secret: previous value of `secret`; still accepted, no longer sent.
    :param signing_secret: key that signs the deliveries.
    :param previous_signing_secret: previous value of `signing_secret`; still accepted.
    :param signature_header: name of the header with the signature.
    :param inbox_url: URL at which this Airflow's own processes read the deliveries.
    """

    url: str | None = None
    secret: str | None = field(default=None, repr=False)
    previous_secret: str | None = field(default=None, repr=False)
    signing_secret: str | None = field(default=None, repr=False)
    previous_signing_secret: str | None = field(default=None, repr=False)
    signature_header: str = DEFAULT_SIGNATURE_HEADER
    inbox_url: str | None = None

    @property
    def secrets(self) -> tuple[str, ...]:
        """The accepted webhook secrets, the current one first; empty if unset."""
        return tuple(filter(None, (self.secret, self.previous_secret)))

    @property
    def signing_secrets(self) -> tuple[str, ...]:
        """The accepted signing keys, the current one first; empty if unset."""
        return tuple(filter(None, (self.signing_secret, self.previous_signing_secret)))


@dataclass(frozen=True)
class ConnectionSettings:
    """All settings of a connection.

    :param media_hosts: private host names and addresses (`hosts.normal_host`) from which media may be downloaded.
    :param dashboard_url: URL of the service's own dashboard, for links.
    """

    conn_id: str
    client: ClientConfig
    webhook: WebhookSettings
    media_hosts: frozenset[str] = frozenset()
    dashboard_url: str | None = None

    def secrets(self) -> Iterator[str]:
        """Yield every secret value, for Airflow's secrets masker."""
        if self.client.has_api_key:
            yield self.client.api_key
        yield from self.client.headers.values()
        if self.client.client_key_password:
            yield self.client.client_key_password
        yield from self.webhook.secrets
        yield from self.webhook.signing_secrets
        if self.client.proxy:
            parts = urlsplit(self.client.proxy)
            for secret in filter(None, (parts.username, parts.password)):
                yield secret
                yield unquote(secret)


def existing(find: Callable[[str], Any], conn_id: str) -> Any:
    """Return a connection.

    :raises ConnectionMissingError: it does not exist; the message says how to create it.
    """
    if not conn_id:
        raise ConnectionMissingError("webdata_conn_id is empty; name a connection, such as 'webdata_default'")
    try:
        return find(conn_id)
    except AirflowNotFoundException:
        text = (
            f"Connection {conn_id!r} does not exist. Create it: airflow webdata init --conn-id {conn_id}, or in "
            f"Airflow under Admin, Connections, with the type {CONN_TYPE!r}"
        )
        if _is_script():
            text += (
                ". Outside of tasks, Airflow finds only connections of the environment "
                f"(AIRFLOW_CONN_{conn_id.upper()}) and of secrets backends"
            )
        raise ConnectionMissingError(text) from None


def _is_script() -> bool:
    """Return whether this process is neither a task nor one of Airflow's processes."""
    runner = sys.modules.get("airflow.sdk.execution_time.task_runner")
    is_task = getattr(runner, "SUPERVISOR_COMMS", None) is not None
    return not is_task and not os.environ.get("_AIRFLOW_PROCESS_CONTEXT")


def settings_of(
    connection: AirflowConnection, warn: Callable[[str], None] = _log_warning
) -> ConnectionSettings:
    """Parse and validate a connection.

    :param warn: receives warnings about settings that are valid but probably unintended; the log by default.
    :raises ConfigurationError: a field is invalid. The message names the connection, the field, the rule, and
        the remedy, and never contains a secret.
    """
    reader = _Reader(connection, warn)
    reader.check_type()
    options = reader.client_options()
    try:
        client = ClientConfig(**options)
    except ConfigurationError as error:
        # Use the form's field names: the message is about a connection.
        text = error.text().replace("the base URL", _HOST).replace("the API key", "password (API Key)", 1)
        for option, name in (("max_response_bytes", "max_response_mb"), ("headers", "secret_headers")):
            text = re.sub(rf"\b{option}\b", name, text)
        raise ConfigurationError(f"connection {reader.conn_id!r}: {text}") from None
    return ConnectionSettings(
        reader.conn_id,
        client,
        reader.webhook(),
        reader.media_hosts(),
        reader.dashboard_url(),
    )


def webhook_settings_of(connection: AirflowConnection) -> WebhookSettings:
    """Parse only the webhook settings of a connection. Base URL and API key are optional.

    :raises ConfigurationError: a webhook field is invalid; the message is like that of `settings_of`.
    """
    return _Reader(connection, _log_warning).webhook()


class _Reader:
    def __init__(self, connection: AirflowConnection, warn: Callable[[str], None]) -> None:
        self.conn_id = str(connection.conn_id)
        self._connection = connection
        self._on_warning = warn
        extra = connection.extra or {}
        # Airflow 3.2 has a mapping for a URI: docs/contributing/upstream/uri_extras_as_mapping.md
        if isinstance(extra, str):
            try:
                extra = json.loads(extra)
            except ValueError:
                self._refuse("extra", "is not valid JSON", "write a JSON object, or clear it")
        if not isinstance(extra, dict):
            self._refuse("extra", f"is a JSON {type(extra).__name__}", "write a JSON object, or clear it")
        # Older Airflow forms prefix the names of their fields.
        named = {key.removeprefix("extra__webdata__"): value for key, value in extra.items()}
        known = [*_CLIENT_EXTRAS, *_WEBHOOK_EXTRAS, _MEDIA_HOSTS, _DASHBOARD_URL]
        for name in named.keys() - set(known):
            near = nearest(name, known)
            hint = f"did you mean {near!r}?" if near else f"known extras: {', '.join(known)}"
            self._warn(f"extra {name!r} is unknown and has no effect; {hint}")
        self._extra = {
            name: value
            for name, value in named.items()
            if not (value is None or (isinstance(value, str) and not value.strip()))
        }

    def _refuse(self, name: str, rule: str, remedy: str) -> NoReturn:
        raise ConfigurationError(f"connection {self.conn_id!r}: {name} {rule}; {remedy}")

    def check_type(self) -> None:
        given = getattr(self._connection, "conn_type", None)
        if given not in (None, "", CONN_TYPE):
            self._refuse(
                "type",
                f"is {given!r}, not {CONN_TYPE!r}",
                "change it, or create another connection (airflow webdata init --conn-id NAME) and name it in "
                "webdata_conn_id",
            )

    def _warn(self, text: str) -> None:
        self._on_warning(f"connection {self.conn_id!r}: {text}")

    def client_options(self) -> dict[str, Any]:
        options: dict[str, Any] = {"base_url": self._base_url(), "api_key": self._api_key()}
        for name, (option, read) in _CLIENT_EXTRAS.items():
            if name in self._extra:
                options[option] = read(self, name, self._extra[name])
        return options

    def webhook(self) -> WebhookSettings:
        given = {
            option: self._text(name, self._extra[name])
            for name, option in _WEBHOOK_EXTRAS.items()
            if name in self._extra
        }
        if url := given.get("url"):
            self._check_webhook_url(url)
            given["url"] = url.rstrip("/")
        if url := given.get("inbox_url"):
            given["inbox_url"] = self._http_address("inbox_url", url, "tokens authenticate readers").rstrip(
                "/"
            )
        self._check_webhook_secrets(given)
        if (header := given.get("signature_header")) and not TOKEN.fullmatch(header):
            self._refuse(
                "signature_header",
                f"is not a valid header name (given: {header!r})",
                f"write a name such as {DEFAULT_SIGNATURE_HEADER}",
            )
        return WebhookSettings(**given)

    def _declared(self) -> Kind | None:
        return self._kind("server", self._extra["server"]) if "server" in self._extra else None

    def _check_webhook_url(self, url: str) -> None:
        parts = self._address("webhook_url", url, "webhook_secret authenticates deliveries")
        if parts.scheme == "https" or (parts.scheme == "http" and is_loopback(parts.hostname)):
            return
        server = server_of(str(self._connection.host or ""), self._declared())
        if parts.scheme != "http" or not server.allows_plain_webhooks:
            self._refuse(
                "webhook_url",
                "must be an https address (http only for a loopback address, or for a self-hosted server)",
                "give the https address of the Airflow API server, or, if you run the server yourself, set server to "
                "self-hosted",
            )
        self._warn("webhook_url uses plain http, which exposes the webhook secret on the network; use https")

    def media_hosts(self) -> frozenset[str]:
        given = self._extra.get(_MEDIA_HOSTS) or ()
        hosts = given.split(",") if isinstance(given, str) else given
        if not isinstance(hosts, (list, tuple)) or not all(isinstance(host, str) for host in hosts):
            self._refuse(_MEDIA_HOSTS, "must be comma-separated host names", "write media.example, 10.0.0.5")
        named = set()
        for given_host in filter(None, map(str.strip, hosts)):
            host = normal_host(given_host)
            if host is None:
                self._refuse(
                    _MEDIA_HOSTS,
                    f"accepts host names and addresses without scheme, port, or wildcard (given: {given_host!r})",
                    "write media.example, 10.0.0.5",
                )
            named.add(host)
        return frozenset(named)

    def dashboard_url(self) -> str | None:
        if _DASHBOARD_URL not in self._extra:
            return None
        url = self._text(_DASHBOARD_URL, self._extra[_DASHBOARD_URL])
        if (key := self._api_key()) and key in url:
            self._refuse(
                _DASHBOARD_URL, "must not contain the API key", "remove it: Airflow's UI shows the links"
            )
        return self._http_address(_DASHBOARD_URL, url, "users sign in on the dashboard")

    def _http_address(self, name: str, url: str, without_login: str) -> str:
        parts = self._address(name, url, without_login)
        if parts.scheme not in {"http", "https"} or not parts.hostname:
            self._refuse(name, f"must be an http address (given: {url!r})", "write one, or clear it")
        return url

    def _parts(self, name: str, url: str) -> SplitResult:
        try:
            parts = urlsplit(url)
            _ = parts.port
        except ValueError:
            self._refuse(name, "is not a URL", "write one like https://host or https://host:port/path")
        return parts

    def _address(self, name: str, url: str, without_login: str) -> SplitResult:
        parts = self._parts(name, url)
        # Both would appear in monitors, logs, and XCom.
        if "@" in parts.netloc:
            self._refuse(name, "must not contain credentials", f"remove them: {without_login}")
        if "?" in url or "#" in url:
            self._refuse(name, "must have no query or fragment", "write one like https://host:port/path")
        return parts

    def _check_webhook_secrets(self, given: Mapping[str, str]) -> None:
        for name, current in (("secret", "webhook_secret"), ("signing_secret", "signing_secret")):
            if given.get(f"previous_{name}") and not given.get(name):
                self._refuse(
                    f"previous_{current}", f"is set without {current}", f"set {current}, or clear it"
                )
        for option in ("secret", "previous_secret"):
            secret = given.get(option, "")
            name = option.replace("secret", "webhook_secret")
            # It is sent as a header value.
            if not (secret.isascii() and secret.isprintable()):
                self._refuse(name, "must be plain ASCII without line breaks", "write letters and digits")
            if 0 < len(secret) < _SHORTEST_SECRET:
                self._warn(
                    f"{name} has fewer than {_SHORTEST_SECRET} characters and can be guessed; use a longer one"
                )

    def _api_key(self) -> str:
        # Secret stores and copied text often add a line break, which a key never contains.
        key = str(self._connection.password or "").strip()
        if key.lower().startswith("bearer "):
            self._refuse("password (API Key)", "starts with 'Bearer'", "enter the key alone")
        return key

    def _base_url(self) -> str:
        host = str(self._connection.host or "").strip().rstrip("/")
        if not host or host.endswith(":"):
            self._refuse(_HOST, "is empty", "enter the service's address, such as https://host")
        if "?" in host or "#" in host:
            # The query may contain the key.
            self._refuse(
                _HOST,
                "must have no query or fragment",
                "enter https://host or https://host:port/path; the key goes into password (API Key)",
            )
        scheme, path = "https", ""
        schema = str(self._connection.schema or "").strip().strip("/")
        if schema.lower() in {"http", "https"}:
            scheme = schema.lower()
        elif schema:
            # Airflow parses the path of a connection URI as its schema.
            path = f"/{schema}"
        if "://" not in host:
            if ":" in host and _is_ipv6(host):
                host = f"[{host}]"
            host = f"{scheme}://{host}"
        url = self._with_port(host) + path
        parts = self._parts(_HOST, url)
        if parts.scheme.lower() == "http" and not is_loopback(parts.hostname) and self._api_key():
            self._warn(f"{_HOST} uses plain http, which exposes the API key on the network; use https")
        return url

    def _with_port(self, url: str) -> str:
        if not (port := self._connection.port):
            return url
        parts = self._parts(_HOST, url)
        own = parts.port
        if own is None:
            return parts._replace(netloc=f"{parts.netloc}:{port}").geturl()
        if own != int(port):
            self._refuse("port", f"is {port}, but host (Base URL) has port {own}", "clear one of them")
        return url

    def _text(self, name: str, value: Any) -> str:
        if not isinstance(value, str):
            self._refuse(name, f"must be text, not {type(value).__name__}", "write it in quotes")
        return value.strip()

    def _number(self, name: str, value: Any) -> float:
        try:
            number = math.nan if isinstance(value, bool) else float(value)
        except (TypeError, ValueError, OverflowError):
            number = math.nan
        if not math.isfinite(number):
            self._refuse(name, f"must be a number (given: {value!r})", "write a number such as 30")
        return number

    def _megabytes(self, name: str, value: Any) -> int:
        number = self._number(name, value)
        if number <= 0:
            self._refuse(name, f"must be more than 0 (given: {value!r})", "write a number such as 64")
        return max(1, int(number * _MEGABYTE))

    def _count(self, name: str, value: Any) -> int:
        number = self._number(name, value)
        if not number.is_integer() or number < 1:
            self._refuse(
                name, f"must be a whole number of at least 1 (given: {value!r})", "write one, or clear it"
            )
        return int(number)

    def _switch(self, name: str, value: Any) -> bool:
        if isinstance(value, bool):
            return value
        switch = _SWITCHES.get(str(value).strip().lower())
        if switch is None:
            self._refuse(name, f"must be true or false (given: {value!r})", "write true or false")
        return switch

    def _kind(self, name: str, value: Any) -> Kind:
        given = self._text(name, value).lower().replace("_", "-")
        kind = next((kind for kind in KINDS if kind == given), None)
        if kind is None:
            self._refuse(
                name, f"must be one of {', '.join(KINDS)} (given: {value!r})", "choose one, or clear it"
            )
        return kind

    def _file(self, name: str, value: Any) -> str:
        path = self._text(name, value)
        try:
            here = Path(path).is_file()
        except OSError:
            # For example, the name is too long.
            here = False
        if not here:
            self._refuse(
                name,
                f"names a file that does not exist here (given: {path!r})",
                "copy it to this machine too",
            )
        return path

    def _headers(self, name: str, value: Any) -> dict[str, str]:
        if isinstance(value, str):
            try:
                value = json.loads(value)
            except ValueError:
                value = None
        if not isinstance(value, Mapping) or not all(isinstance(text, str) for text in value.values()):
            self._refuse(
                name, "must be a JSON object of strings", 'write it like {"X-Tenant": "data"}, or clear it'
            )
        return dict(value)


_SWITCHES = {
    **dict.fromkeys(("true", "1", "yes", "on"), True),
    **dict.fromkeys(("false", "0", "no", "off"), False),
}

_CLIENT_EXTRAS: dict[str, tuple[str, Callable[[_Reader, str, Any], Any]]] = {
    "timeout": ("timeout", _Reader._number),
    "retry_budget": ("retry_budget", _Reader._number),
    "max_concurrency": ("max_concurrency", _Reader._count),
    "max_response_mb": ("max_response_bytes", _Reader._megabytes),
    "verify": ("verify", _Reader._switch),
    "ca_file": ("ca_file", _Reader._file),
    "client_cert_file": ("client_cert_file", _Reader._file),
    "client_key_file": ("client_key_file", _Reader._file),
    "client_key_password": ("client_key_password", _Reader._text),
    "proxy": ("proxy", _Reader._text),
    "secret_headers": ("headers", _Reader._headers),
    "server": ("declared", _Reader._kind),
}

_MEDIA_HOSTS = "media_hosts"
_DASHBOARD_URL = "dashboard_url"

_WEBHOOK_EXTRAS = {
    "webhook_url": "url",
    "webhook_secret": "secret",
    "previous_webhook_secret": "previous_secret",
    "signing_secret": "signing_secret",
    "previous_signing_secret": "previous_signing_secret",
    "signature_header": "signature_header",
    "inbox_url": "inbox_url",
}


def _is_ipv6(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).version == 6
    except ValueError:
        return False
