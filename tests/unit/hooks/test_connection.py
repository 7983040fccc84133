# SPDX-License-Identifier: Apache-2.0
"""An Airflow connection in any form becomes checked settings; invalid ones are refused."""

from __future__ import annotations

import json
import logging

import pytest
from airflow.sdk import Connection
from airflow.sdk.exceptions import AirflowNotFoundException
from airflow.sdk.execution_time import task_runner

from airflow_provider_webdata.api.errors import ConfigurationError
from airflow_provider_webdata.hooks.connection import (
    DEFAULT_SIGNATURE_HEADER,
    ConnectionMissingError,
    _log_warning,
    existing,
    settings_of,
    webhook_settings_of,
)
from airflow_provider_webdata.hooks.webdata import WebDataHook

KEY = "wd-key-0123456789"


def connection(host="https://api.example.com", password=KEY, extra=None, **fields) -> Connection:
    text = extra if isinstance(extra, str) else json.dumps(extra) if extra is not None else None
    fields = {"conn_type": "webdata", **fields}
    return Connection(conn_id="web", host=host, password=password, extra=text, **fields)


BASE_URLS = [
    ({"host": "https://api.example.com/"}, "https://api.example.com"),
    ({"host": " https://api.example.com/v2/ "}, "https://api.example.com"),
    ({"host": "api.example.com"}, "https://api.example.com"),
    ({"host": "api.example.com", "port": 8443}, "https://api.example.com:8443"),
    ({"host": "api.example.com:8443", "port": 8443}, "https://api.example.com:8443"),
    ({"host": "https://api.example.com/v2", "port": 8443}, "https://api.example.com:8443"),
    ({"host": "https://gate.example.com/webdata/v2"}, "https://gate.example.com/webdata"),
    ({"host": "gate.example.com", "schema": "webdata/v2"}, "https://gate.example.com/webdata"),
    ({"host": "localhost", "schema": "http", "port": 8000}, "http://localhost:8000"),
    ({"host": "http://127.0.0.1:8000"}, "http://127.0.0.1:8000"),
    ({"host": "::1", "schema": "http", "port": 8000}, "http://[::1]:8000"),
]


@pytest.mark.rule("base-address")
@pytest.mark.parametrize(("fields", "url"), BASE_URLS)
def test_base_url(fields, url, caplog):
    """Host with or without scheme, port and path; `/v2` belongs to the paths, not to the base."""
    assert settings_of(connection(**fields)).client.base_url == url
    assert caplog.records == []


URIS = [
    (f"webdata://:{KEY}@api.example.com", "https://api.example.com", {}),
    (f"webdata://:{KEY}@api.example.com:8443/v2", "https://api.example.com:8443", {}),
    (f"webdata://:{KEY}@https%3A%2F%2Fapi.example.com%2Fv2/", "https://api.example.com", {}),
    (f"webdata://https://:{KEY}@api.example.com:8443/v2", "https://api.example.com:8443", {}),
    (f"webdata://:{KEY}@127.0.0.1:8000/http", "http://127.0.0.1:8000", {}),
    (
        f"webdata://:{KEY}@api.example.com/?timeout=12.5&retry_budget=0&max_concurrency=4&max_response_mb=2"
        "&verify=false&proxy=http%3A%2F%2Fproxy.example%3A3128&secret_headers=%7B%22X-Tenant%22%3A+%22data%22%7D",
        "https://api.example.com",
        {
            "timeout": 12.5,
            "retry_budget": 0.0,
            "max_concurrency": 4,
            "max_response_bytes": 2 * 2**20,
            "verify": False,
            "proxy": "http://proxy.example:3128",
            "headers": {"X-Tenant": "data"},
        },
    ),
]


@pytest.mark.parametrize(("uri", "url", "options"), URIS)
def test_uri_form(uri, url, options):
    """In a URI every extra is text."""
    settings = settings_of(Connection(conn_id="web", uri=uri))
    assert settings.client.base_url == url
    assert settings.client.api_key == KEY
    assert {name: getattr(settings.client, name) for name in options} == options


def test_json_form(tmp_path):
    """In JSON the extras have their types."""
    bundle = tmp_path / "ca.pem"
    bundle.touch()
    extra = {
        "timeout": 10, "retry_budget": 5, "max_concurrency": 2, "max_response_mb": 0.5, "verify": True,
        "ca_file": str(bundle), "proxy": "http://user:pa%24s@proxy.example:3128",
        "secret_headers": {"X-Tenant": "data"}, "webhook_url": "https://airflow.example.com/",
        "webhook_secret": "hush-webhook", "signing_secret": "hush-signing", "signature_header": "X-Signature",
    }  # fmt: skip
    text = json.dumps({"conn_type": "webdata", "host": "api.example.com", "password": KEY, "extra": extra})
    settings = settings_of(Connection.from_json(text, conn_id="web"))
    client, webhook = settings.client, settings.webhook
    assert (client.timeout, client.retry_budget, client.max_concurrency) == (10, 5, 2)
    assert (client.max_response_bytes, client.verify, client.ca_file) == (2**19, True, str(bundle))
    assert (webhook.url, webhook.secret) == ("https://airflow.example.com", "hush-webhook")
    assert (webhook.signing_secret, webhook.signature_header) == ("hush-signing", "X-Signature")
    assert set(settings.secrets()) == {
        KEY, "data", "hush-webhook", "hush-signing", "user", "pa%24s", "pa$s",
    }  # fmt: skip


@pytest.mark.parametrize(
    "given",
    ["Media.internal, 0xa.5,[::1] ,", ["media\u3002internal.", "10.0.0.5", "::1"]],
    ids=["text", "list"],
)
def test_media_hosts(given):
    found = settings_of(connection(extra={"media_hosts": given})).media_hosts
    assert found == {"media.internal", "10.0.0.5", "::1"}


@pytest.mark.parametrize("given", ["https://service.example/app", "http://10.0.0.5:3000/"])
def test_dashboard(given):
    """As it is written: it is a link for a reader."""
    assert settings_of(connection(extra={"dashboard_url": given})).dashboard_url == given


def test_what_is_left_out_keeps_the_defaults():
    """Empty fields of the form count as not given."""
    plain = settings_of(connection())
    blank = settings_of(
        connection(extra={"timeout": None, "proxy": "", "secret_headers": " ", "verify": None})
    )
    assert blank == plain
    assert (plain.client.timeout, plain.client.verify, plain.client.proxy) == (30.0, True, None)
    assert plain.webhook.url is None
    assert plain.webhook.signature_header == DEFAULT_SIGNATURE_HEADER


def test_names_of_older_forms():
    """Airflow once prefixed the names of form fields."""
    assert settings_of(connection(extra={"extra__webdata__timeout": "7"})).client.timeout == 7


def test_switches():
    for value in (True, "true", "True", "1", "yes", "on"):
        assert settings_of(connection(extra={"verify": value})).client.verify is True, value
    for value in (False, "false", "FALSE", "0", "no", "off"):
        assert settings_of(connection(extra={"verify": value})).client.verify is False, value


REFUSED = {
    "another type": ({"conn_type": "http"}, "type is 'http', not 'webdata'; change it, or create another connection"),
    "no host": ({"host": None}, "host (Base URL) is empty"),
    "scheme alone": ({"host": "https://"}, "host (Base URL) is empty"),
    "not a URL": ({"host": "https://a b"}, "host (Base URL) must have the form"),
    "other scheme": ({"host": "ftp://api.example.com"}, "host (Base URL) must have the form https://host"),
    "login in the URL": ({"host": "https://u:hunter22@api.example.com"}, "without credentials"),
    "key in the query": ({"host": f"https://api.example.com/?api_key={KEY}"}, "host (Base URL) must have no query"),
    "key in the fragment": ({"host": f"api.example.com#{KEY}"}, "host (Base URL) must have no query or fragment"),
    "half an IPv6 address and a port": ({"host": "https://[abc", "port": 1}, "host (Base URL) is not a URL"),
    "port in words": ({"host": "https://api.example.com:https"}, "host (Base URL) is not a URL"),
    "two ports": ({"host": "https://api.example.com:1", "port": 2}, "port is 2, but host (Base URL) has port 1"),
    "no key": ({"password": None}, "password (API Key) is empty"),
    "blank key": ({"password": " \n"}, "password (API Key) is empty"),
    "scheme with the key": ({"password": f"Bearer {KEY}"}, "enter the key alone"),
    "key with a blank": ({"password": f"{KEY} x"}, "password (API Key) contains spaces"),
    "extra that is no JSON": ({"extra": "{timeout"}, "extra is not valid JSON"),
    "extra that is a list": ({"extra": [1]}, "extra is a JSON list"),
    "timeout in words": ({"extra": {"timeout": "soon"}}, "timeout must be a number (given: 'soon')"),
    "timeout that is a switch": ({"extra": {"timeout": True}}, "timeout must be a number (given: True)"),
    "timeout zero": ({"extra": {"timeout": 0}}, "timeout must be a number of at least 0.001"),
    "endless timeout": ({"extra": {"timeout": "inf"}}, "timeout must be a number (given: 'inf')"),
    "timeout of 400 digits": ({"extra": {"timeout": 10**400}}, "timeout must be a number"),
    "concurrency in words": ({"extra": {"max_concurrency": "many"}}, "max_concurrency must be a number"),
    "size in words": ({"extra": {"max_response_mb": "64 MB"}}, "max_response_mb must be a number (given: '64 MB')"),
    "negative budget": ({"extra": {"retry_budget": "-1"}}, "retry_budget must be a number of at least 0"),
    "no concurrency": ({"extra": {"max_concurrency": 0}}, "max_concurrency must be a whole number"),
    "half concurrency": ({"extra": {"max_concurrency": 1.5}}, "max_concurrency must be a whole number"),
    "no size": ({"extra": {"max_response_mb": 0}}, "max_response_mb must be more than 0"),
    "verify in words": ({"extra": {"verify": "maybe"}}, "verify must be true or false (given: 'maybe')"),
    "bundle that is no path": ({"extra": {"ca_file": "x" * 5000}}, "ca_file names a file that does not exist here"),
    "media host with a port": ({"extra": {"media_hosts": "a.example:80"}}, "media_hosts accepts host names"),
    "media host with a protocol": ({"extra": {"media_hosts": "http://a.example"}}, "without scheme, port"),
    "media host by number": ({"extra": {"media_hosts": [5]}}, "media_hosts must be comma-separated host names"),
    "missing bundle": ({"extra": {"ca_file": "/no/such.pem"}}, "ca_file names a file that does not exist here"),
    "proxy without scheme": ({"extra": {"proxy": "proxy.example:3128"}}, "proxy must be a URL"),
    "password that ends the host": ({"extra": {"proxy": "http://u:hunter22#x@p.example:3128"}}, "as %23 %2F %3F"),
    "proxy without host": ({"extra": {"proxy": "http://"}}, "names a host"),
    "webhook that is not a URL": ({"extra": {"webhook_url": "https://[x"}}, "webhook_url is not a URL"),
    "inbox that is not a URL": ({"extra": {"inbox_url": "http://a.example:x"}}, "inbox_url is not a URL"),
    "login in the webhook": (
        {"extra": {"webhook_url": "https://u:hunter22@airflow.example"}}, "webhook_url must not contain credentials",
    ),
    "login in the inbox": (
        {"extra": {"inbox_url": "http://u:hunter22@127.0.0.1:9"}}, "inbox_url must not contain credentials",
    ),
    "token in the webhook": (
        {"extra": {"webhook_url": "https://airflow.example/?token=hunter22"}}, "webhook_url must have no query",
    ),
    "token in the inbox": (
        {"extra": {"inbox_url": "ftp://127.0.0.1:9/#hunter22"}}, "inbox_url must have no query or fragment",
    ),
    "dashboard of another scheme": (
        {"extra": {"dashboard_url": "javascript:alert(1)"}}, "dashboard_url must be an http address",
    ),
    "dashboard without host": ({"extra": {"dashboard_url": "https:///app"}}, "dashboard_url must be an http"),
    "dashboard by number": ({"extra": {"dashboard_url": 5}}, "dashboard_url must be text"),
    "login in the dashboard": (
        {"extra": {"dashboard_url": "https://u:hunter22@a.example"}}, "dashboard_url must not contain credentials",
    ),
    "token in the dashboard": (
        {"extra": {"dashboard_url": "https://a.example/?t=hunter22"}}, "dashboard_url must have no query",
    ),
    "key in the dashboard": (
        {"extra": {"dashboard_url": f"https://a.example/{KEY}"}}, "dashboard_url must not contain the API key",
    ),
    "headers that are no object": ({"extra": {"secret_headers": "X: y"}}, "secret_headers must be a JSON object"),
    "header that is a number": ({"extra": {"secret_headers": {"X": 1}}}, "secret_headers must be a JSON object"),
    "header of our own": ({"extra": {"secret_headers": {"Authorization": "x"}}}, "'Authorization' cannot be set"),
    "header of two lines": ({"extra": {"secret_headers": {"X-A": "a\nb"}}}, "must be one line"),
    "plain http webhook": ({"extra": {"webhook_url": "http://airflow.example"}}, "webhook_url must be an https"),
    "signature header": ({"extra": {"signature_header": "a b"}}, "signature_header is not a valid header name"),
    "secret that is a number": ({"extra": {"webhook_secret": 5}}, "webhook_secret must be text"),
}  # fmt: skip


@pytest.mark.parametrize(("fields", "words"), REFUSED.values(), ids=REFUSED.keys())
def test_refused(fields, words):
    """The message names the connection, the field, the rule, and says what to do; it shows no secret."""
    with pytest.raises(ConfigurationError) as caught:
        settings_of(connection(**fields))
    message = str(caught.value)
    assert message.startswith("connection 'web': ")
    assert words in message
    assert KEY not in message
    assert "hunter22" not in message


def test_a_connection_that_does_not_exist():
    with pytest.raises(
        AirflowNotFoundException, match=r"'no_such' does not exist\. Create it: airflow webdata init"
    ) as caught:
        WebDataHook("no_such").get_settings()
    assert isinstance(caught.value, ConnectionMissingError)
    assert "(WD-008)" in str(caught.value)
    # As of a template that rendered to nothing.
    with pytest.raises(AirflowNotFoundException, match="webdata_conn_id is empty"):
        WebDataHook("").get_settings()


@pytest.mark.parametrize(("process", "is_outside"), [(None, True), ("server", False), ("client", False)])
def test_where_a_script_finds_its_connections(monkeypatch, process, is_outside):
    """Airflow reads its database in tasks and in its own processes only."""
    monkeypatch.delenv("_AIRFLOW_PROCESS_CONTEXT", raising=False)
    monkeypatch.setattr(task_runner, "SUPERVISOR_COMMS", None, raising=False)
    if process:
        monkeypatch.setenv("_AIRFLOW_PROCESS_CONTEXT", process)

    def find(conn_id: str):
        raise AirflowNotFoundException

    with pytest.raises(ConnectionMissingError) as caught:
        existing(find, "shop")
    assert ("Outside of tasks, Airflow finds only" in str(caught.value)) is is_outside
    assert ("AIRFLOW_CONN_SHOP" in str(caught.value)) is is_outside


def test_unknown_extra(caplog):
    """An extra that is misspelt has no effect, and says so with the nearest name."""
    settings_of(connection(extra={"retrybudget": 5, "colour": "red"}))
    messages = [record.getMessage() for record in caplog.records]
    assert any(
        "'retrybudget' is unknown" in text and "did you mean 'retry_budget'?" in text for text in messages
    )
    assert any("'colour' is unknown" in text and "known extras: timeout" in text for text in messages)


@pytest.mark.parametrize(
    ("host", "warns"),
    [
        ("http://api.example.com", True),
        ("http://10.0.0.5:80", True),
        ("http://127.0.0.1", False),
        ("http://localhost", False),
    ],
)
def test_plain_http(host, warns, caplog):
    """The key travels in the clear; on this machine that is fine."""
    _log_warning.cache_clear()
    with caplog.at_level(logging.WARNING):
        settings_of(connection(host=host))
    assert ["plain http" in record.getMessage() for record in caplog.records] == [True] * warns


def test_deliveries_need_neither_address_nor_key():
    """An inbox that stands alone has the secrets and nothing else; nor does a wrong timeout turn deliveries away."""
    extra = {"webhook_secret": "hush-hush-hush-hush", "timeout": "soon"}
    assert webhook_settings_of(connection(None, None, extra)).secret == extra["webhook_secret"]
    with pytest.raises(ConfigurationError, match="signature_header is not a valid header name"):
        webhook_settings_of(connection(None, None, {**extra, "signature_header": "a b"}))


@pytest.mark.rule("webhook-url")
def test_webhook_on_this_machine():
    """Plain http is for the sandbox."""
    settings = settings_of(connection(extra={"webhook_url": "http://127.0.0.1:8080"}))
    assert settings.webhook.url == "http://127.0.0.1:8080"


def test_repr_shows_no_secret():
    """Settings turn up in tracebacks and logs."""
    extra = {
        "secret_headers": {"X-Token": "hush-header"},
        "proxy": "http://user:hush-proxy@p.example",
        "webhook_secret": "hush-webhook",
        "signing_secret": "hush-signing",
    }
    settings = settings_of(connection(extra=extra))
    assert KEY not in repr(settings)
    assert "hush" not in repr(settings)
    assert "api.example.com" in repr(settings)
