"""Connections, the options in `airflow.cfg`, and everything stored by path or name alone."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tools.stored.examples import CONNECTION_ID, environment, working_in

CA_FILE = "ca.pem"
EXTRAS: dict[str, Any] = {
    "server": "hosted",
    "timeout": 12.5,
    "retry_budget": 0,
    "max_concurrency": 7,
    "max_response_mb": 2.5,
    "verify": False,
    "ca_file": CA_FILE,
    "proxy": "http://login-of-the-example:password-of-the-example@proxy.example:3128",
    "secret_headers": {"X-Tenant": "tenant-of-the-example"},
    "media_hosts": "media.example, 10.0.0.5",
    "webhook_url": "https://airflow.example/base",
    "webhook_secret": "a-secret-of-the-example",
    "previous_webhook_secret": "an-older-secret-of-it",
    "signing_secret": "a-key-of-the-example",
    "previous_signing_secret": "an-older-key-of-it",
    "signature_header": "X-Signature",
    "inbox_url": "http://inbox.example:8080",
    "dashboard_url": "https://service.example/app",
}
SERVICE = {
    "conn_type": "webdata",
    "host": "https://service.example",
    "port": 8443,
    "password": "key-of-the-example",
}


def connection() -> dict[str, Any]:
    """Return a connection with every field, as JSON and with only string values as in a URI, and its settings."""
    from airflow_provider_webdata.get_provider_info import get_provider_info

    (kind,) = get_provider_info()["connection-types"]
    if missing := set(kind["conn-fields"]) ^ set(EXTRAS):
        raise LookupError(
            f"EXTRAS of tools/stored/connections.py and the connection form differ in {sorted(missing)}"
        )
    texts = {name: value if isinstance(value, str) else json.dumps(value) for name, value in EXTRAS.items()}
    found = {}
    for form, extras in (("json", EXTRAS), ("texts", texts)):
        stored = {**SERVICE, "extra": extras}
        found[form] = {"stored": stored, "means": settings(stored)}
    return found


def settings(stored: dict[str, Any]) -> dict[str, Any]:
    """Return the settings of a stored connection."""
    from airflow_provider_webdata.hooks.webdata import WebDataHook

    with tempfile.TemporaryDirectory() as folder, environment(connection=stored), working_in(Path(folder)):
        Path(CA_FILE).touch()
        found = WebDataHook(CONNECTION_ID).get_settings()
        return {**asdict(found), "media_hosts": sorted(found.media_hosts)}


def options() -> dict[str, Any]:
    """Return the options of `[webdata]` and their types."""
    from airflow_provider_webdata.get_provider_info import get_provider_info

    found = get_provider_info()["config"]["webdata"]["options"]
    return {name: option["type"] for name, option in found.items()}


@contextmanager
def own_connection() -> Iterator[None]:
    """Set a connection that receives deliveries."""
    extra = {"webhook_url": EXTRAS["webhook_url"], "webhook_secret": EXTRAS["webhook_secret"]}
    with environment(connection={**SERVICE, "extra": extra}):
        yield


def paths() -> dict[str, Any]:
    """Return everything stored or configured by path or name alone."""
    from airflow_provider_webdata.base.links import LINKS
    from airflow_provider_webdata.base.retry_policy import WebDataRetryPolicy
    from airflow_provider_webdata.get_provider_info import get_provider_info
    from airflow_provider_webdata.plugin import WebDataPlugin

    info = get_provider_info()
    (kind,) = info["connection-types"]
    return {
        "retry_policy": WebDataRetryPolicy().serialize()["__type"],
        "db_managers": dict.fromkeys(info["db-managers"], True),
        "connection_type": {kind["connection-type"]: kind["hook-class-name"]},
        "macros": {f"macros.{WebDataPlugin.name}.{macro.__name__}": True for macro in WebDataPlugin.macros},
        "resume_method": "execute_complete",
        "extra_links": {link.name: link.xcom_key for link in LINKS},
    }
