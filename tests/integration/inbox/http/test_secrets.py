# SPDX-License-Identifier: Apache-2.0
"""Secrets in Airflow: failing backends, another Fernet key, and masking."""

from __future__ import annotations

import logging
import secrets
from base64 import urlsafe_b64encode
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import pytest
from airflow.sdk import exceptions
from airflow.secrets import BaseSecretsBackend
from airflow.secrets.environment_variables import EnvironmentVariablesBackend
from sqlalchemy import Engine

from airflow_provider_webdata.airflow_db import connections as airflow_connections
from airflow_provider_webdata.inbox.wire import SECRET_HEADER
from airflow_provider_webdata.inbox_server import application
from airflow_provider_webdata.inbox_server.http import connections
from tests.integration.inbox.http.airflow_home import AirflowHome
from tests.integration.inbox.http.served_inbox import SECRET, ServedInbox, bearer, event
from tests.support.waiting import PATIENCE, wait_until

RIGHT = {SECRET_HEADER: SECRET}


class Vault(BaseSecretsBackend):
    """An empty backend, which fails with `error` if set."""

    error: Exception | None = None

    def get_conn_value(self, conn_id: str, **_: Any) -> str | None:
        if self.error:
            raise self.error
        return None


@pytest.fixture
def vault(monkeypatch: pytest.MonkeyPatch) -> Vault:
    """A backend before the environment, which has one connection."""
    found = Vault()
    backends = [found, EnvironmentVariablesBackend()]
    monkeypatch.setattr(airflow_connections, "ensure_secrets_loaded", lambda: backends)
    monkeypatch.setattr(connections, "CACHE_SECONDS", 0.0)
    return found


def connection_uri() -> str:
    return f"webdata://:wd-key-0123456789@api.service.example?webhook_secret={quote(SECRET)}"


def test_a_failing_backend(
    sqlite_engine: Engine, vault: Vault, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A known connection keeps its secrets. Others get 503, after which the service repeats, and never 401."""
    with ServedInbox(sqlite_engine, application._gate) as served:
        monkeypatch.setenv("AIRFLOW_CONN_WEB", connection_uri())
        assert served.deliver("web", event(webhookId="before")).status_code == 200
        monkeypatch.delenv("AIRFLOW_CONN_WEB")
        vault.error = ConnectionError(f"503 Service Unavailable: {SECRET}")
        assert served.deliver("web", event(webhookId="while")).status_code == 200
        assert served.deliver("web", event(webhookId="forged"), {SECRET_HEADER: "wrong"}).status_code == 401
        assert served.read("web").status_code == 200
        for answer in (served.deliver("other", event()), served.read("other", bearer("other"))):
            assert (answer.status_code, "retry-after" in answer.headers) == (503, True)
        vault.error = None
        assert served.deliver("web", event(webhookId="after")).status_code == 401
    assert "Vault failed (ConnectionError)" in caplog.text
    assert SECRET not in caplog.text


def test_other_backends_are_used(
    sqlite_engine: Engine, vault: Vault, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_WEB", connection_uri())
    with ServedInbox(sqlite_engine, application._gate) as served:
        vault.error = ConnectionError("refused")
        assert served.deliver("web", event(webhookId="1")).status_code == 200
        denied = getattr(exceptions, "AirflowSecretsBackendAccessDenied", None)
        if denied is not None:
            vault.error = denied("no")
            assert served.deliver("web", event(webhookId="2")).status_code == 200
            assert served.deliver("web2", event(webhookId="2")).status_code == 503


def test_another_fernet_key(airflow_home: AirflowHome, tmp_path: Path) -> None:
    """A connection that cannot be decrypted still exists."""
    key = urlsafe_b64encode(secrets.token_bytes(32)).decode()
    home = replace(airflow_home, env={**airflow_home.env, "AIRFLOW__CORE__FERNET_KEY": key})
    with home.serving() as process:
        process.warm_up()

        def refused_for_now() -> bool:
            address = f"{process.url}/webdata/inbox/secret"
            assert httpx.post(address, content=b"{}", headers=RIGHT, timeout=PATIENCE).status_code == 503
            return "(InvalidToken)" in process.output

        assert wait_until(refused_for_now), process.output


def test_the_maskers_know_the_secrets(
    vault: Vault, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    from airflow._shared.secrets_masker import redact as core_redact
    from airflow.sdk._shared.secrets_masker import redact as sdk_redact

    given = {
        name: secrets.token_urlsafe(16)
        for name in ("webhook_secret", "previous_webhook_secret", "signing_secret", "previous_signing_secret")
    }
    query = "&".join(f"{name}={value}" for name, value in given.items())
    monkeypatch.setenv("AIRFLOW_CONN_WEB", f"webdata://:{given['signing_secret']}k@host?{query}")
    with caplog.at_level(logging.DEBUG):
        assert application._gate("web").open
    for secret in given.values():
        assert secret not in caplog.text
        assert core_redact(f"a {secret} b") == sdk_redact(f"a {secret} b") == "a *** b"
