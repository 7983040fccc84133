# SPDX-License-Identifier: Apache-2.0
"""The webhook that the service is sent, and the address of the inbox."""

from __future__ import annotations

import json

import pytest
from airflow.sdk import Connection
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_webdata.api.errors import ConfigurationError
from airflow_provider_webdata.api.models import MonitorWebhookConfig
from airflow_provider_webdata.hooks import connection
from airflow_provider_webdata.hooks.connection import settings_of
from airflow_provider_webdata.hooks.webhooks import can_receive, inbox_url, new_key, webhook_for
from airflow_provider_webdata.inbox.wire import is_key, place_of

SECRET = "webhook-secret-0123456789"
PUBLIC = {"webhook_url": "https://airflow.example.com", "webhook_secret": SECRET}


def settings(conn_id="web", **extra):
    return settings_of(
        Connection(
            conn_id=conn_id,
            conn_type="webdata",
            host="https://api.example.com",
            password="k",
            extra=json.dumps(extra),
        )
    )


@pytest.mark.rule("webhook-url", "webhook-headers", "webhook-metadata")
def test_webhook_object():
    made = webhook_for(settings(**PUBLIC), "key-1", ["monitor.check.completed"], {"dag": "d"})
    assert made == {
        "url": "https://airflow.example.com/webdata/inbox/web/key-1",
        "headers": {"X-WebData-Webhook-Secret": SECRET},
        "events": ["monitor.check.completed"],
        "metadata": {"dag": "d"},
    }
    assert MonitorWebhookConfig.model_validate(made).to_wire() == made


def test_only_what_is_asked():
    """With a signature alone no secret travels; without events the service reports all."""
    made = webhook_for(settings(webhook_url="https://a.example", signing_secret="s" * 16), "k")
    assert made == {"url": "https://a.example/webdata/inbox/web/k"}


@pytest.mark.parametrize(
    ("extra", "missing"),
    [
        ({}, "webhook_url"),
        ({"webhook_secret": SECRET}, "webhook_url"),
        ({"webhook_url": "https://a.b"}, "webhook_secret"),
    ],
)
def test_cannot_receive(extra, missing):
    assert not can_receive(settings(**extra))
    with pytest.raises(
        ConfigurationError, match=f"(?s)connection 'web': {missing}.*wait by polling"
    ) as caught:
        webhook_for(settings(**extra), "k")
    assert SECRET not in str(caught.value)


def test_rotation_sends_the_current_secret_only():
    rotating = settings(**PUBLIC, previous_webhook_secret="old-secret-0123456789")
    assert rotating.webhook.secrets == (SECRET, "old-secret-0123456789")
    assert webhook_for(rotating, "k")["headers"] == {"X-WebData-Webhook-Secret": SECRET}
    assert {"old-secret-0123456789", SECRET} <= set(rotating.secrets())


def test_keys_fit_and_come_back():
    ours = settings(**PUBLIC)
    keys = [new_key() for _ in range(200)]
    assert len(set(keys)) == 200
    assert all(is_key(key) for key in keys)
    assert [place_of(webhook_for(ours, key)["url"]).key for key in keys] == keys


@given(st.text(min_size=1, max_size=50))
def test_any_connection_id(conn_id):
    ours = settings(conn_id, **PUBLIC)
    assert place_of(webhook_for(ours, "key")["url"])[1:] == (conn_id, "key")


API_URL = "AIRFLOW__API__BASE_URL"
EXECUTION_URL = "AIRFLOW__CORE__EXECUTION_API_SERVER_URL"
INBOX_URLS = [
    ({"inbox_url": "http://inbox:9000/"}, {"AIRFLOW__WEBDATA__INBOX_URL": "http://x"}, "http://inbox:9000"),
    ({}, {"AIRFLOW__WEBDATA__INBOX_URL": "http://dmz:8800/"}, "http://dmz:8800"),
    ({}, {EXECUTION_URL: "http://api:8080/execution/"}, "http://api:8080"),
    ({}, {EXECUTION_URL: "http://api:8080/af/execution"}, "http://api:8080/af"),
    ({}, {API_URL: "https://airflow.example.com/"}, "https://airflow.example.com"),
    # The defaults, as of `airflow standalone`: the API server is on this machine.
    ({}, {}, "http://localhost:8080"),
    ({}, {API_URL: "", EXECUTION_URL: "", "AIRFLOW__API__PORT": "8123"}, "http://localhost:8123"),
    ({}, {API_URL: "/"}, "http://localhost:8080"),
    ({}, {API_URL: "/af/"}, "http://localhost:8080/af"),
    ({}, {"AIRFLOW__API__SSL_CERT": "/etc/airflow.pem"}, "https://localhost:8080"),
]


@pytest.mark.parametrize(("extra", "environment", "url"), INBOX_URLS)
def test_inbox_url(extra, environment, url, monkeypatch):
    for name in ("AIRFLOW__WEBDATA__INBOX_URL", EXECUTION_URL, API_URL, "AIRFLOW__API__PORT"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert inbox_url(settings(**extra)) == url


BAD = [
    ({"previous_webhook_secret": "x" * 16}, "previous_webhook_secret is set without webhook_secret"),
    ({"previous_signing_secret": "x" * 16}, "previous_signing_secret is set without signing_secret"),
    ({"webhook_secret": "schlüssel-mit-umlaut"}, "webhook_secret must be plain ASCII"),
    (
        {"webhook_secret": SECRET, "previous_webhook_secret": "a\nb"},
        "previous_webhook_secret must be plain ASCII",
    ),
    ({"inbox_url": "ftp://x"}, "inbox_url must be an http address"),
    ({"inbox_url": "http://"}, "inbox_url must be an http address"),
]


@pytest.mark.parametrize(("extra", "message"), BAD)
def test_bad_settings(extra, message):
    with pytest.raises(ConfigurationError, match=f"connection 'web': {message}") as caught:
        settings(**extra)
    assert not any(value in str(caught.value) for name, value in extra.items() if "secret" in name)


def test_short_secret_is_told_once(caplog):
    connection._log_warning.cache_clear()
    for _ in range(3):
        settings(webhook_secret="short")
    assert len(caplog.records) == 1
    assert "webhook_secret has fewer than 16 characters" in caplog.text
    assert "short" not in caplog.text.replace("shorter", "")
