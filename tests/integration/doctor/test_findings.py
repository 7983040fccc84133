# SPDX-License-Identifier: Apache-2.0
"""The doctor's findings: a test breaks one thing, and only that is reported."""

from __future__ import annotations

import json
import re
import socket
import ssl
import tempfile
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from email.utils import format_datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import airflow
import pytest
from airflow import plugins_manager, settings
from airflow.models.asset import AssetActive, AssetModel
from airflow.models.connection import Connection
from airflow.models.team import Team
from cryptography.fernet import Fernet
from sqlalchemy import Engine, create_engine
from sqlalchemy.orm import Session, scoped_session, sessionmaker

from airflow_provider_webdata.airflow_db.errors import StoreUnavailableError
from airflow_provider_webdata.assets.uri import monitor_uri
from airflow_provider_webdata.commands.doctor import checks, inbox_answer, installation, service_answer
from airflow_provider_webdata.commands.doctor.finding import Finding, passed
from airflow_provider_webdata.hooks import connection
from airflow_provider_webdata.inbox import probe
from airflow_provider_webdata.inbox.wire import INBOX_PATH, REFUSED, SECRET_HEADER
from airflow_provider_webdata.inbox_server import application, db_manager
from airflow_provider_webdata.inbox_server.http import receive
from airflow_provider_webdata.inbox_server.http.connections import CACHE_SECONDS
from tests.integration.doctor.conftest import SECRETS, SIGNING_SECRET, World
from tests.support.airflow_rows import add_task
from tests.support.certificates import self_signed
from tests.support.fault_server import answer, never_answer
from tests.support.ports import free_port
from tests.support.service import (
    CHECK_COMPLETED,
    CONNECTION_ID,
    SANDBOX_KEY,
    SIGNATURE_HEADER,
    WEBHOOK_SECRET,
    signature,
)
from tests.support.waiting import PATIENCE, wait_until

ALL_CHECKS = [
    *("versions", "plugin", "tables", "triggerer"),
    *(
        "fields",
        "host",
        "tls",
        "key",
        "server",
        "credits",
        "clock",
        "inbox",
        "webhook",
        "monitors",
        "deliveries",
    ),
]

NO_ROUTE = '{"detail": "Not Found"}'

Arrange = Callable[[World], object]
# By check: its state, and a part of the report and of the advice.
Expected = dict[str, tuple[str, str, str]]


def findings(world: World, **options: object) -> list[Finding]:
    return [*checks.findings([world.conn_id], seconds=PATIENCE, **options)]


def _start_by_meaningful_check(world: World) -> None:
    """The only delivery is a check that has started a DAG; its monitor has sent no page."""
    world.execute("UPDATE webdata_inbox_delivery SET job_id = 'check'")
    with Session(world.engine) as session:
        uri = monitor_uri("Prices, all", only_if_meaningful=True)
        asset = AssetModel(name=uri, uri=uri)
        session.add(asset)
        session.flush()
        session.add(AssetActive.for_asset(asset))
        asset_id = asset.id
        session.commit()
    world.execute(
        f"INSERT INTO webdata_asset_event VALUES ({asset_id}, 'check', 'webdata_default', 1, 'registered')"
    )


def test_a_connection_of_a_team(world: World) -> None:
    """It is found by the team to which Airflow's database assigns it."""
    extra = json.dumps({**world.deliveries_here})
    world.has_changed_database = True
    with Session(world.engine) as session:
        session.add(Team(name="retail"))
        session.flush()
        fields = {"conn_type": "webdata", "host": world.sandbox.url, "password": SANDBOX_KEY, "extra": extra}
        session.add(Connection(conn_id="stock", team_name="retail", **fields))
        session.commit()
    world.patch.setenv("AIRFLOW__CORE__MULTI_TEAM", "True")
    (found,) = [one for one in checks.findings(["stock"], offline=True) if one.check == "fields"]
    assert found.state in {"passed", "warning"}, found
    assert application._gate("stock").open


def test_a_connection_in_a_variable_of_a_team(world: World) -> None:
    world.patch.setenv("AIRFLOW_CONN__RETAIL___STOCK", "webdata://")
    (found,) = [one for one in checks.findings(["stock"], offline=True) if one.check == "fields"]
    assert found.state == "failed"
    assert found.seen.startswith("only AIRFLOW_CONN__RETAIL___STOCK defines it")


def _usage(**data: float) -> str:
    return json.dumps({"success": True, "data": data})


def _dated(seconds: float) -> str:
    return format_datetime(datetime.now(timezone.utc) + timedelta(seconds=seconds), usegmt=True)


def _answering(world: World, status: int = 200, body: str = "{}", **headers: str) -> str:
    """Return the URL of a service or an inbox with one answer, which has the right date by default."""
    return world.serve(answer(status, body, headers={"date": _dated(0), **headers})).url


def _without_balance(world: World) -> str:
    free = json.dumps({"success": True, "concurrency": 0, "maxConcurrency": 2})
    steps = [
        answer(500, _error("x"), headers={"date": _dated(0)}),
        answer(body=free, headers={"date": _dated(0)}),
    ]
    return world.serve(*steps).url


def _other_implementation(world: World) -> str:
    """Return the URL of a server with little else than scrapes."""
    missing = answer(404, NO_ROUTE, headers={"date": _dated(0)})
    return world.serve(*[missing] * 3, answer(422, json.dumps({"detail": [{"loc": ["body", "url"]}]}))).url


def _error(text: str) -> str:
    return json.dumps({"success": False, "error": text})


def _over_tls(world: World, days: float, **extra: object) -> None:
    public, private = self_signed(
        Path(tempfile.mkdtemp(dir=Path(world.engine.url.database or "").parent)), days
    )
    path, context = str(public), ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(public, private)
    steps = [answer(body=_usage(remainingCredits=5), headers={"date": _dated(0)})]
    world.connect(world.serve(*steps, tls=context).url, **{"ca_file": path, **extra})


def _other_plugin(world: World, apps: list[dict[str, object]], *, before: bool = False) -> None:
    ours, middlewares = plugins_manager.get_fastapi_plugins()
    mounted = [*apps, *ours] if before else apps
    world.patch.setattr(plugins_manager, "get_fastapi_plugins", lambda: (mounted, middlewares))


def _defer(world: World) -> None:
    world.has_changed_database = True
    with Session(world.engine) as session:
        add_task(session, "news", "wait", operator="S", state="deferred", trigger=["job.JobTrigger", {}])
        session.commit()


def _locked(world: World) -> None:
    """Add a connection that another Fernet key has encrypted."""
    world.conn_id = "locked"
    fernet = SimpleNamespace(is_encrypted=True, decrypt=Fernet(Fernet.generate_key()).decrypt)
    for module in ("connection", "crypto"):
        world.patch.setattr(f"airflow.models.{module}.get_fernet", lambda: fernet)
    world.execute(
        "INSERT INTO connection (conn_id, conn_type, host, password, is_encrypted, is_extra_encrypted) "
        "VALUES ('locked', 'webdata', 'https://api.example.com', 'gAAAAA', 1, 0)"
    )


def _inbox_fails(world: World) -> None:
    def fail(_: str) -> None:
        raise StoreUnavailableError("connections cannot be read")

    gates = world.inbox.application._receiver._connections
    gates._known.clear()
    world.patch.setattr(gates, "_read", fail)


def _claims_to_be_an_inbox(world: World, status: int, body: dict[str, object]) -> None:
    url = world.serve(answer(401, json.dumps({"error": REFUSED})), answer(status, json.dumps(body))).url
    world.connect(webhook_url=url)


def _nowhere() -> Engine:
    return create_engine(f"postgresql+psycopg2://nobody:{WEBHOOK_SECRET}@127.0.0.1:{free_port()}/nothing")


def _drop_tables(world: World) -> None:
    world.execute("DROP TABLE webdata_inbox_delivery")
    world.execute("DROP TABLE webdata_inbox_counter")
    world.execute("DROP TABLE alembic_version_webdata")


def _turn_off_the_inbox(world: World) -> None:
    world.patch.setenv("AIRFLOW__WEBDATA__INBOX", "False")


def _without_webhooks(world: World) -> None:
    world.connect(webhook_url=None, webhook_secret=None)


ROWS: dict[str, tuple[Arrange, Expected]] = {
    "nothing": (lambda _: None, {}),
    # Installation
    "an old Airflow": (
        lambda w: w.patch.setattr(airflow, "__version__", "3.1.7"),
        {"versions": ("failed", "Airflow 3.2.1 or newer, but this is Airflow 3.1.7", "Upgrade Airflow")},
    ),
    "a release candidate": (lambda w: w.patch.setattr(airflow, "__version__", "3.2.1rc1"), {}),
    "no plugin": (
        lambda w: _other_plugin(w, []),
        {"plugin": ("failed", "has not loaded the plugin", "airflow plugins")},
    ),
    "another plugin in front": (
        lambda w: _other_plugin(
            w, [{"app": object(), "url_prefix": "/webdata/", "name": "Shadow"}], before=True
        ),
        {"plugin": ("failed", "'Shadow' of another plugin", "Mount that application elsewhere")},
    ),
    "another plugin elsewhere": (
        lambda w: _other_plugin(w, [{"app": object(), "url_prefix": "/web", "name": "Other"}], before=True),
        {},
    ),
    # The database
    "tables of a newer version": (
        lambda w: w.execute("UPDATE alembic_version_webdata SET version_num = 'ffffffffffff'"),
        {"tables": ("failed", "ffffffffffff, created by a newer", "first downgrade the tables with it")},
    ),
    "no tables": (
        _drop_tables,
        {
            "tables": (
                "failed",
                "missing, so the inbox cannot store deliveries",
                "Run `airflow db migrate`",
            ),
            "inbox": (
                "failed",
                "is unavailable (HTTP 503: the inbox's tables are missing",
                "Start the inbox",
            ),
        },
    ),
    "no tables, and the inbox is off": (
        lambda w: (_drop_tables(w), _without_webhooks(w), _turn_off_the_inbox(w)),
        {},
    ),
    "tables that the inbox will create": (
        lambda w: (
            _drop_tables(w),
            _without_webhooks(w),
            w.patch.setenv("AIRFLOW__WEBDATA__INBOX_CREATE_TABLES", "True"),
        ),
        {},
    ),
    "tables of an older version": (
        lambda w: (
            w.execute("UPDATE alembic_version_webdata SET version_num = '000000000000'"),
            w.patch.setattr(db_manager, "revisions", lambda: ("111111111111", "000000000000")),
        ),
        {"tables": ("failed", "at the old revision 000000000000", "Run `airflow db migrate`")},
    ),
    "a database that is down": (
        lambda w: w.patch.setattr(settings, "engine", _nowhere()),
        {
            "tables": ("failed", "the database cannot be reached", "sql_alchemy_conn"),
            "triggerer": ("failed", "the database cannot be reached", "sql_alchemy_conn"),
        },
    ),
    "a database without Airflow's tables": (
        lambda w: w.execute("DROP TABLE job"),
        {"triggerer": ("failed", "Airflow's own tables are missing", "Run `airflow db migrate`")},
    ),
    "a process without the database": (lambda w: w.patch.setattr(settings, "engine", None), {}),
    "a delivery whose asset event failed": (
        lambda w: w.execute(
            "INSERT INTO webdata_asset_event VALUES (1, 'c', 'webdata_default', 1, 'failed')"
        ),
        {
            "deliveries": (
                "failed",
                "the asset events of 1 could not be registered",
                "`airflow webdata inbox replay 1`.",
            )
        },
    ),
    "deliveries whose asset events failed": (
        lambda w: w.execute(
            "INSERT INTO webdata_asset_event WITH RECURSIVE n(i) AS "
            "(SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 21) "
            "SELECT 1, 'c' || i, 'webdata_default', i, 'failed' FROM n"
        ),
        {"deliveries": ("failed", "the asset events of 21 could not", " 19 20`. Then run the doctor again")},
    ),
    "meaningful checks of a monitor that reports no pages": (
        lambda w: _start_by_meaningful_check(w),
        {
            "deliveries": (
                "warning",
                "so DAGs on only_if_meaningful run after each change: 'Prices, all'",
                "webhook_events=['monitor.check.completed', 'monitor.page']",
            )
        },
    ),
    "meaningful checks with judged pages": (
        lambda w: (
            _start_by_meaningful_check(w),
            w.execute("UPDATE webdata_inbox_delivery SET is_meaningful = 0"),
        ),
        {},
    ),
    "no triggerer yet": (
        lambda w: w.execute("DELETE FROM job"),
        {
            "triggerer": (
                "warning",
                "no triggerer is running, and nothing needs one yet",
                "airflow triggerer",
            )
        },
    ),
    "no triggerer for a deferred task": (
        lambda w: (w.execute("DELETE FROM job"), _defer(w)),
        {
            "triggerer": (
                "failed",
                "no triggerer is running, but needed by: 1 deferred task",
                "airflow triggerer",
            )
        },
    ),
    "no triggerer where tasks defer by default": (
        lambda w: (
            w.execute("DELETE FROM job"),
            w.patch.setenv("AIRFLOW__OPERATORS__DEFAULT_DEFERRABLE", "True"),
        ),
        {"triggerer": ("failed", "needed by: [operators] default_deferrable = True", "airflow triggerer")},
    ),
    "a triggerer that died": (
        lambda w: w.run_triggerer(datetime.now(timezone.utc) - timedelta(hours=3, minutes=1)),
        {
            "triggerer": (
                "failed",
                "no triggerer is running; the last heartbeat was 3 hours ago",
                "airflow triggerer",
            )
        },
    ),
    # Fields
    "no such connection": (
        lambda w: setattr(w, "conn_id", "nowhere"),
        {"fields": ("failed", "the connection does not exist", "airflow webdata init")},
    ),
    "a connection of another type": (
        lambda w: w.set_environment("http://x.example"),
        {"fields": ("failed", "its type is 'http'", "'webdata'")},
    ),
    "another Fernet key": (
        _locked,
        {"fields": ("failed", "'locked' cannot be decrypted (InvalidToken)", "the Fernet key")},
    ),
    "an invalid environment variable": (
        lambda w: w.set_environment("{"),
        {"fields": ("failed", "EnvironmentVariablesBackend failed", "variable AIRFLOW_CONN_WEBDATA_DEFAULT")},
    ),
    "no address": (
        lambda w: w.connect(url=""),
        {"fields": ("failed", "host (Base URL) is empty; enter the service's address", "form")},
    ),
    "no key": (lambda w: w.connect(key=""), {"fields": ("failed", "password (API Key) is empty", "form")}),
    "a bad webhook URL": (
        lambda w: w.connect(webhook_url="http://airflow.example"),
        {"fields": ("failed", "webhook_url must be an https address", "form")},
    ),
    "an unknown extra": (
        lambda w: w.connect(webhook_secert="x" * 20),
        {"fields": ("warning", "did you mean 'webhook_secret'?", "form")},
    ),
    "a short secret": (
        lambda w: w.connect(webhook_secret="short-one"),
        {"fields": ("warning", "webhook_secret has fewer than 16 characters", "form")},
    ),
    # The kind of server
    "a server of unknown kind": (
        lambda w: w.connect(server=None),
        {
            "server": (
                "warning",
                "the server reports a balance, but no kind is set",
                'Set "Server" to hosted.',
            )
        },
    ),
    "a hosted server that is declared self-hosted": (
        lambda w: w.connect(server="self-hosted"),
        {"server": ("failed", "the server reports a balance, so it bills calls", 'Set "Server" to hosted: ')},
    ),
    "a server without a balance": (
        lambda w: w.connect(_without_balance(w), server="self-hosted"),
        {},
    ),
    "a server without a balance that is declared hosted": (
        lambda w: w.connect(_without_balance(w)),
        {
            "server": (
                "failed",
                "the server reports no credits and accepts any API key",
                "if it bills no calls",
            )
        },
    ),
    # Host and TLS
    "a name that does not resolve": (
        lambda w: w.connect("https://no-such-host.invalid"),
        {"host": ("failed", "The host is unreachable: ", 'Check "Base URL" and "Proxy"')},
    ),
    "a port without a server": (
        lambda w: w.connect(f"http://127.0.0.1:{free_port()}"),
        {"host": ("failed", " (connection refused: no server listens there)", "Start the server, or check")},
    ),
    "an https port without a server": (
        lambda w: w.connect(f"https://127.0.0.1:{free_port()}"),
        {"host": ("failed", "The host is unreachable: ", 'check "Base URL" and "Proxy"')},
    ),
    "a proxy": (lambda w: w.connect(proxy=_answering(w, body=_usage(remainingCredits=5))), {}),
    "a host that does not answer": (
        lambda w: w.connect(w.serve(never_answer).url, timeout=0.2),
        {"host": ("failed", "no response from http://127.0.0.1", 'Check "Base URL" and "Proxy"')},
    ),
    "another server": (
        lambda w: w.connect(w.serve(answer(body="<html>", content_type="text/html")).url),
        {"host": ("failed", "nothing shows that it has this API", 'Check "Base URL"')},
    ),
    "an API that nothing shows to be this one": (
        lambda w: w.connect(w.serve(answer(404, NO_ROUTE)).url, server=None),
        {
            "host": (
                "failed",
                "(tried GET /v2/team/credit-usage: 404; ",
                'set "Server" (--server) to its kind',
            )
        },
    ),
    "a declared server that nothing shows to have the API": (
        lambda w: w.connect(w.serve(answer(404, NO_ROUTE)).url, server="self-hosted"),
        {"host": ("warning", "nothing shows that it has this API", 'The declared "Server" is believed')},
    ),
    "a server that is recognized by its refusal of a scrape": (
        lambda w: w.connect(_other_implementation(w), key="", server="gateway"),
        {},
    ),
    "a server that is recognized and not declared": (
        lambda w: w.connect(_other_implementation(w), server=None),
        {"server": ("warning", "no kind is set, so calls count as billed", 'Set "Server" to self-hosted if')},
    ),
    "a service that fails": (
        lambda w: w.connect(_answering(w, 500, _error("out of order"))),
        {"host": ("failed", "responds with an error: ", "Try again later")},
    ),
    "https to plain http": (
        lambda w: w.connect(w.sandbox.url.replace("http:", "https:")),
        {
            "tls": (
                "failed",
                "The TLS connection fails",
                'Check the host name and the scheme (http or https) in "Base URL"',
            )
        },
    ),
    "plain http to another machine": (
        lambda w: (
            _without_webhooks(w),
            w.patch.setattr(connection, "is_loopback", lambda _: False),
            w.patch.setattr(service_answer, "is_loopback", lambda _: False),
        ),
        {
            "fields": ("warning", "host (Base URL) uses plain http", "form"),
            "tls": ("warning", "plain http exposes the API key", 'Use https in "Base URL"'),
        },
    ),
    "a certificate of an unknown issuer": (
        lambda w: _over_tls(w, 300, ca_file=None),
        {"tls": ("failed", "The TLS connection fails", 'set "CA bundle"')},
    ),
    "a good certificate": (lambda w: _over_tls(w, 300), {}),
    "a certificate that ends soon": (
        lambda w: _over_tls(w, 13),
        {"tls": ("warning", "the certificate expires on 20", "renew")},
    ),
    "no verification": (
        lambda w: _over_tls(w, 300, ca_file=None, verify=False),
        {"tls": ("warning", "not verified", 'Turn on "Verify TLS certificate"')},
    ),
    "an invalid CA bundle": (
        lambda w: _over_tls(w, 300, ca_file=__file__),
        {
            "tls": ("failed", "cannot be loaded", ""),
        },
    ),
    "certificates of the environment that are missing": (
        lambda w: (_over_tls(w, 300, ca_file=None), w.patch.setenv("SSL_CERT_FILE", "/no-cert-file.crt")),
        {"tls": ("failed", "environment variable SSL_CERT_FILE must name a PEM file", "")},
    ),
    # Key, credits, rights
    "a wrong key": (
        lambda w: w.connect(key="wd-some-other-key"),
        {"key": ("failed", "The service rejects the API key", 'Check "API Key"')},
    ),
    "too many requests": (lambda w: w.connect(_answering(w, 429, _error("slow down"))), {}),
    "a forbidden call": (
        lambda w: w.connect(_answering(w, 403, _error("your plan ends here"))),
        {"key": ("failed", "forbids the call: your plan ends here", "")},
    ),
    "no credits": (
        lambda w: w.connect(_answering(w, body=_usage(remainingCredits=0, planCredits=100))),
        {
            "credits": (
                "failed",
                "0 credits are left of 100 in the plan: billed calls fail",
                "Buy credits",
            )
        },
    ),
    "few credits": (
        lambda w: w.connect(_answering(w, body=_usage(remainingCredits=4.5, planCredits=100))),
        {"credits": ("warning", "4.5 credits are left of 100 in the plan", "Buy credits")},
    ),
    "no figures": (
        lambda w: w.connect(_answering(w, 404, _error("Could not find credit usage information"))),
        {},
    ),
    "no number of credits": (lambda w: w.connect(_answering(w, body=_usage())), {}),
    "a service that repeats secrets": (
        lambda w: w.connect(_answering(w, 403, _error(f"not with {WEBHOOK_SECRET}"))),
        {"key": ("failed", "forbids the call: not with ***", "")},
    ),
    # Clocks
    "a clock that is behind the service's": (
        lambda w: w.connect(_answering(w, body=_usage(remainingCredits=5), date=_dated(1000))),
        {"clock": ("warning", "ahead of this machine's", "NTP")},
    ),
    "a clock that is ahead of the service's": (
        lambda w: w.connect(_answering(w, 401, _error("no"), date=_dated(-1000))),
        {
            "clock": ("warning", "behind this machine's", "NTP"),
            "key": ("failed", "rejects the API key: no", 'Check "API Key"'),
        },
    ),
    "an invalid date": (
        lambda w: w.connect(_answering(w, body=_usage(remainingCredits=5), date="today")),
        {},
    ),
    # Webhooks
    "no webhooks": (_without_webhooks, {}),
    "a webhook URL without a secret": (
        lambda w: w.connect(webhook_secret=None),
        {"webhook": ("failed", "neither Webhook secret nor Signing secret", 'Set "Webhook secret"')},
    ),
    "a webhook URL without a server": (
        lambda w: w.connect(webhook_url=f"http://127.0.0.1:{free_port()}"),
        {"webhook": ("failed", "is unreachable from here: ", 'Check "Webhook URL"')},
    ),
    "a server that accepts anything": (
        lambda w: w.connect(webhook_url=_answering(w)),
        {"webhook": ("failed", "another server responded (HTTP 200)", 'Correct "Webhook URL"')},
    ),
    "a login": (
        lambda w: w.connect(webhook_url=_answering(w, 302, location="https://login.example/x")),
        {"webhook": ("failed", "redirects to https://login.example/x", "without a login")},
    ),
    "a proxy that requires a login": (
        lambda w: w.connect(webhook_url=_answering(w, 401, '{"error": "who are you?"}')),
        {"webhook": ("failed", "refuses requests (HTTP 401 (who are you?))", "without a login")},
    ),
    "an API server without an inbox": (
        lambda w: w.connect(webhook_url=_answering(w, 404, NO_ROUTE)),
        {
            "webhook": (
                "failed",
                "no inbox at this URL (HTTP 404)",
                "Set [webdata] inbox = True on the API server",
            )
        },
    ),
    "a proxy without a server": (
        lambda w: w.connect(webhook_url=_answering(w, 502, "<html>")),
        {"webhook": ("failed", "accepts no deliveries (HTTP 502)", "logs of the API server")},
    ),
    "an inbox that cannot read connections": (
        _inbox_fails,
        {
            "webhook": ("failed", "accepts no deliveries (HTTP 503 ", "logs of the API server"),
            "inbox": ("failed", "is unavailable (HTTP 503", "Start the inbox"),
        },
    ),
    "an inbox of an older version": (
        lambda w: w.patch.setattr(probe, "is_probe", lambda _: False),
        {"webhook": ("warning", "runs an older version", "on the API server too")},
    ),
    "an inbox of another version": (
        lambda w: w.patch.setattr(receive, "__version__", "9.9"),
        {"webhook": ("warning", "runs version 9.9; this is ", "the same version")},
    ),
    "an impostor": (
        lambda w: _claims_to_be_an_inbox(
            w, 200, {"status": "probe", "version": "0.1.0", "proofs": ["0" * 64]}
        ),
        {"webhook": ("failed", "the server that responded does not know the secret", "Correct")},
    ),
    "an impostor without a proof": (
        lambda w: _claims_to_be_an_inbox(w, 200, {"status": "stored"}),
        {"webhook": ("failed", "the server that responded does not know the secret", "Correct")},
    ),
    "an inbox that fails at the probe": (
        lambda w: _claims_to_be_an_inbox(w, 503, {"error": "not now"}),
        {"webhook": ("failed", "responded to a probe with HTTP 503 (not now)", "log")},
    ),
    "another secret": (
        lambda w: _claims_to_be_an_inbox(w, 401, {"error": REFUSED}),
        {"webhook": ("failed", "the inbox refuses this connection's secret", 'the same "Webhook secret"')},
    ),
    "signed deliveries": (lambda w: w.connect(signing_secret=SIGNING_SECRET), {}),
    "deliveries that are signed only": (
        lambda w: w.connect(
            webhook_secret=None, signing_secret=SIGNING_SECRET, signature_header="X-Sign-Here"
        ),
        {},
    ),
    "no delivery yet": (lambda w: w.execute("DELETE FROM webdata_inbox_delivery"), {}),
    # The inbox
    "an inbox that is on, elsewhere": (
        lambda w: w.connect(inbox_url=_answering(w, 404, NO_ROUTE)),
        {"inbox": ("failed", "has no inbox (HTTP 404", "inbox = True on the API server")},
    ),
    "an inbox that is off": (
        lambda w: (_turn_off_the_inbox(w), w.connect(inbox_url=_answering(w, 404, NO_ROUTE))),
        {
            "inbox": (
                "failed",
                "tasks wait by polling: http",
                "Set `inbox = True` in section [webdata] of airflow.cfg, or AIRFLOW__WEBDATA__INBOX=True, for all of "
                "Airflow's components. Then run `airflow db migrate`, and restart the API server.",
            )
        },
    ),
    "an inbox that is off on an API server that is down": (
        lambda w: (_turn_off_the_inbox(w), w.connect(inbox_url=f"http://127.0.0.1:{free_port()}")),
        {"inbox": ("failed", "does not respond", "Set `inbox = True`")},
    ),
    "an inbox that is off here and answers elsewhere": (_turn_off_the_inbox, {}),
    "an API server that is down": (
        lambda w: w.connect(inbox_url=f"http://127.0.0.1:{free_port()}"),
        {"inbox": ("failed", "does not respond", "Inbox URL")},
    ),
    "an inbox that refuses the token": (
        lambda w: w.connect(inbox_url=_answering(w, 401, '{"error": "no"}')),
        {
            "inbox": (
                "failed",
                "rejects the token for connection 'webdata_default'",
                f"notices a change after up to {CACHE_SECONDS:g} seconds, and the clocks of both machines",
            )
        },
    ),
    "another server in place of the inbox": (
        lambda w: w.connect(inbox_url=_answering(w, 200, '{"id": 0}')),
        {"inbox": ("failed", "cannot be parsed", "")},
    ),
}


UNKNOWN: dict[str, dict[str, str]] = {
    "a process without the database": dict.fromkeys(
        ("tables", "triggerer", "deliveries"), "this process has no access"
    ),
    "a database that is down": {"deliveries": "the database cannot be reached"},
    "no tables": {"deliveries": "see tables"},
    "no delivery yet": {"deliveries": "the inbox has no deliveries yet"},
    "a port without a server": {
        **dict.fromkeys(("key", "server", "credits", "clock"), "see host"),
        "monitors": "list monitors: ",
    },
    "an https port without a server": {
        **dict.fromkeys(("tls", "key", "server", "credits", "clock"), "see host"),
        "monitors": "list monitors: ",
    },
    "https to plain http": {
        **dict.fromkeys(("key", "server", "credits", "clock"), "see tls"),
        "monitors": "list monitors: ",
    },
    "an invalid CA bundle": {
        **dict.fromkeys(("host", "key", "server", "credits", "clock"), "see tls"),
        "monitors": "cannot be loaded",
    },
    "a wrong key": {
        **dict.fromkeys(("server", "credits"), "see key"),
        "monitors": "list monitors: HTTP 401",
    },
    "too many requests": {
        "key": "limits the request rate, so the key could not be checked",
        **dict.fromkeys(("server", "credits"), "see key"),
        "monitors": "list monitors: HTTP 429",
    },
    "a forbidden call": {
        **dict.fromkeys(("server", "credits"), "see key"),
        "monitors": "list monitors: HTTP 403",
    },
    "no figures": {
        "credits": "the service has no credit figures for its team",
        "monitors": "list monitors: HTTP 404",
    },
    "no number of credits": {
        "credits": "does not report how many credits are left",
        "monitors": "list monitors: the response (HTTP 200) is invalid",
    },
    "an invalid date": {
        "clock": "the service's response has no Date header",
        "monitors": "list monitors: the response (HTTP 200) is invalid",
    },
}
"""By row: the checks without a result, and their reasons."""

SEEN: dict[str, dict[str, str]] = {
    "nothing": {
        "host": " responds (127.0.0.1)",
        "tls": "within this machine",
        "deliveries": "the last one arrived ",
    },
    "a proxy": {"host": " responds through the proxy"},
    "a server that is recognized by its refusal of a scrape": {
        "key": "the server responds without an API key",
        "server": "gateway, as declared: no response shows its kind",
    },
    "a good certificate": {"tls": "TLSv1.3, the certificate expires on 20"},
    "no webhooks": {
        "webhook": "no Webhook URL: tasks wait by polling",
        "inbox": "not needed: tasks wait by polling",
        "deliveries": "none expected: tasks wait by polling",
    },
    "no tables, and the inbox is off": {"tables": "none needed: the inbox is off"},
    "tables that the inbox will create": {"tables": "missing; the inbox creates them at its first request"},
}
"""By row: checks without a problem, and what they report."""


@pytest.mark.parametrize("name", ROWS)
def test_only_the_problem_is_reported(world: World, name: str) -> None:
    arrange, expected = ROWS[name]
    arrange(world)
    before = world.count_deliveries()
    found = {finding.check: finding for finding in findings(world)}
    problems = {check: finding for check, finding in found.items() if finding.state in {"warning", "failed"}}
    assert problems.keys() == expected.keys(), found
    for check, (state, seen, advice) in expected.items():
        finding = problems[check]
        assert (finding.state, seen in finding.seen, advice in (finding.advice or "")) == (
            state,
            True,
            True,
        ), finding
    if name in UNKNOWN:
        unknown = {check: finding.seen for check, finding in found.items() if finding.state == "skipped"}
        assert unknown.keys() == UNKNOWN[name].keys(), unknown
        assert [check for check, seen in UNKNOWN[name].items() if seen not in unknown[check]] == []
    for check, seen in SEEN.get(name, {}).items():
        assert seen in found[check].seen
        assert found[check].state in {"passed", "skipped"}, check
    for finding in found.values():
        assert not any(secret in f"{finding.seen}{finding.advice}" for secret in SECRETS), finding
        assert "\n" not in f"{finding.seen}{finding.advice}"
        assert not re.search(r"None|rrno|\dT\d", f"{finding.seen}{finding.advice or ''}"), finding
        assert not (finding.advice or ".").endswith((",", ":", "..")), finding
    assert world.count_deliveries() == before


def test_without_access_to_airflows_database(world: World) -> None:
    world.patch.setattr(settings, "engine", None)
    found = [one for one in findings(world) if one.check in {"tables", "triggerer", "deliveries"}]
    assert len(found) == 3
    assert {one.advice for one in found} == {
        "The doctor needs Airflow's database: run it on a scheduler or the API server."
    }


def test_every_row_is_in_the_table() -> None:
    assert (UNKNOWN.keys() | SEEN.keys()) - ROWS.keys() == set()


def test_an_unreadable_connection_does_not_affect_others(world: World) -> None:
    down = _nowhere()
    world.patch.setattr(settings, "Session", scoped_session(sessionmaker(bind=down)))
    found = [*checks.findings(["elsewhere", world.conn_id, "elsewhere"], seconds=PATIENCE)]
    [lost] = [finding for finding in found if finding.conn_id == "elsewhere"]
    assert (lost.check, lost.state) == ("fields", "skipped")
    assert "connection 'elsewhere' cannot be read: MetastoreBackend failed" in lost.seen
    assert {finding.check for finding in found if finding.conn_id == world.conn_id} == set(ALL_CHECKS[4:])


def test_nothing_is_changed(world: World) -> None:
    def stored() -> list[str]:
        with world.engine.connect() as link:
            return list(link.connection.driver_connection.iterdump())  # type: ignore[union-attr]

    world.sandbox.control.reset()
    before, state = stored(), world.sandbox.control.state()
    findings(world)
    assert stored() == before
    assert {request["method"] for request in world.sandbox.control.requests()} == {"GET"}
    assert world.sandbox.control.state()["credits"] == state["credits"]


def test_no_other_server_receives_the_secret(world: World) -> None:
    others = [
        world.serve(answer(status, body))
        for status, body in [
            (200, "{}"),
            (401, "{}"),
            (302, ""),
            (404, "{}"),
            (503, "{}"),
            (400, '{"error": 1}'),
        ]
    ]
    for other in others:
        world.connect(webhook_url=other.url, signing_secret=SIGNING_SECRET)
        findings(world)
        [request] = other.requests
        sent = f"{request.headers}{request.body!r}"
        assert not any(secret in sent for secret in SECRETS), sent
        assert "signature" not in sent.lower()


# The addresses of the webhook URL and the service, and the state.
PRIVATE: list[tuple[str | None, str | None, str]] = [
    ("10.0.0.7", "93.184.215.14", "warning"),
    ("10.0.0.7", "192.168.0.9", "passed"),
    ("127.0.0.1", "127.0.0.1", "passed"),
    ("93.184.215.14", "93.184.215.14", "passed"),
    ("fd00::7", "2606:4700::1111", "warning"),
    ("fe80::1%lo", "2606:4700::1111", "warning"),
    ("2606:4700::1111", "2606:4700::1112", "passed"),
    ("10.0.0.7", None, "passed"),
    (None, "93.184.215.14", "passed"),
]


@pytest.mark.rule("delivery-private")
def test_a_private_webhook_url_of_a_public_service(world: World) -> None:
    """Both names lead to the loopback address; only their lookup is replaced."""
    addresses: dict[str, str | None] = {}
    resolve = socket.getaddrinfo

    def lookup(host: Any, port: Any, *args: Any, **options: Any) -> Any:
        if port is not None:
            return resolve(host, port, *args, **options)
        if addresses[host] is None:
            raise socket.gaierror
        return [(0, 0, 0, "", (addresses[host], 0))]

    world.connect(webhook_url=world.inbox.url.replace("127.0.0.1", "localhost"))
    world.patch.setattr(inbox_answer.socket, "getaddrinfo", lookup)
    for webhook, service, state in PRIVATE:
        addresses.update({"localhost": webhook, "127.0.0.1": service})
        [finding] = [finding for finding in findings(world) if finding.check == "webhook"]
        assert finding.state == state, finding
        assert (finding.advice or "").startswith("The service does not deliver to private addresses") is (
            state == "warning"
        )


@pytest.mark.rule("delivery-private")
def test_a_private_webhook_url_of_a_self_hosted_server(world: World) -> None:
    world.connect(server="self-hosted")
    [finding] = [finding for finding in findings(world) if finding.check == "webhook"]
    assert finding.state == "passed", finding
    assert "to which the server delivers only with ALLOW_LOCAL_WEBHOOKS=true" in finding.seen


def test_refused_deliveries(world: World) -> None:
    """A signing secret that differs from the service's: the last accepted delivery is no proof that they arrive."""
    world.has_changed_database = True
    world.connect(signing_secret=SIGNING_SECRET)
    body = json.dumps({"type": CHECK_COMPLETED, "id": "c", "webhookId": "w-1"}).encode()

    def deliver(secret: str) -> int:
        headers = {SECRET_HEADER: WEBHOOK_SECRET, SIGNATURE_HEADER: signature(secret, body)}
        return world.inbox.http.post(
            f"{INBOX_PATH}/{world.conn_id}", content=body, headers=headers
        ).status_code

    def found() -> Finding:
        [finding] = [finding for finding in findings(world) if finding.check == "deliveries"]
        return finding

    assert [deliver("another-signing-secret") for _ in range(3)] == [401] * 3
    assert wait_until(lambda: found().seen.startswith("3 refused since ")), found()
    assert found().state == "warning"
    assert ": 3 with a wrong signature, from 127.0.0.1; the last one " in found().seen
    assert "; the last accepted one arrived before it, " in found().seen
    assert found().advice == 'If the service sent them, enter its secret as "Signing secret".'
    assert deliver(SIGNING_SECRET) == 200
    assert found().state == "passed", found()


def test_offline_sends_nothing(world: World) -> None:
    service, webhook, reader = (world.serve(answer()) for _ in range(3))
    world.connect(service.url, webhook_url=webhook.url, inbox_url=reader.url)
    found = findings(world, offline=True)
    assert [finding.check for finding in found] == [*ALL_CHECKS[:5], "webhook", "deliveries"]
    assert [finding for finding in found if finding.state != "passed"] == []
    assert service.requests + webhook.requests + reader.requests == []


def test_checks_run_one_after_another(world: World) -> None:
    """A finding is known before the next check begins."""
    world.sandbox.control.reset()
    found = checks.findings([world.conn_id], seconds=PATIENCE)
    for name in ALL_CHECKS[:5]:
        assert next(found).check == name
    assert world.sandbox.control.requests() == []
    assert next(found).check == "host"
    assert [request["path"] for request in world.sandbox.control.requests()] == ["/v2/team/credit-usage"]


def test_one_time_limit_for_all_checks(world: World) -> None:
    clock = [1000.0]

    def slow() -> Finding:
        clock[0] += 61
        return passed("it took a minute")

    world.patch.setattr(checks, "time", SimpleNamespace(monotonic=lambda: clock[0]))
    world.patch.setattr(installation, "plugin", slow)
    world.sandbox.control.reset()
    found = [*checks.findings([world.conn_id], seconds=60)]
    assert [finding.check for finding in found] == ALL_CHECKS
    assert [finding.state for finding in found[:2]] == ["passed", "passed"]
    late = {(finding.state, finding.seen) for finding in found[2:]}
    assert late == {("skipped", "not run: all checks together took longer than 60 s")}
    assert world.sandbox.control.requests() == []


@pytest.mark.parametrize(
    ("error", "seen"),
    [
        (ValueError("with a secret"), "the check itself failed (ValueError)"),
        (StoreUnavailableError("the database is down"), "the database is down (WD-050)"),
    ],
)
def test_a_check_that_fails(world: World, error: Exception, seen: str) -> None:
    def fail() -> Finding:
        raise error

    world.patch.setattr(installation, "plugin", fail)
    first, second, *rest = findings(world)
    assert (first.state, second) == ("passed", Finding("plugin", "skipped", seen))
    assert {finding.state for finding in rest} == {"passed"}


def _connections(world: World) -> list[str | None]:
    found = [*checks.findings(offline=True, seconds=PATIENCE)]
    return list(dict.fromkeys(finding.conn_id for finding in found))


def test_by_default_all_connections_are_checked(world: World) -> None:
    insert = "INSERT INTO connection (conn_id, conn_type, host, is_encrypted, is_extra_encrypted) VALUES "
    world.execute(f"{insert} ('stored', 'webdata', 'https://x.example', 0, 0), ('other', 'http', 'x', 0, 0)")
    world.patch.setenv("AIRFLOW_CONN_ANOTHER", "http://x.example")
    world.patch.setenv("AIRFLOW_CONN_BROKEN", "{")
    world.patch.setenv("AIRFLOW_CONN_SECOND", "webdata://:key@x.example")
    assert _connections(world) == [None, "second", "stored", CONNECTION_ID]


def test_without_any_connection(world: World) -> None:
    world.patch.delenv(f"AIRFLOW_CONN_{CONNECTION_ID.upper()}")
    found = [*checks.findings(offline=True, seconds=PATIENCE)]
    [missing] = [finding for finding in found if finding.check == "connections"]
    assert (missing.state, missing.conn_id) == ("failed", None)
    assert "airflow webdata init" in (missing.advice or "")
    assert [finding.conn_id for finding in found if finding.conn_id] == []


def test_an_incomplete_list_of_connections(world: World) -> None:
    down = _nowhere()
    world.patch.setattr(settings, "engine", down)
    world.patch.setattr(settings, "Session", scoped_session(sessionmaker(bind=down)))
    found = [*checks.findings(offline=True, seconds=PATIENCE)]
    [some] = [finding for finding in found if finding.check == "connections"]
    assert (some.state, "the list may be incomplete: the database cannot be reached" in some.seen) == (
        "skipped",
        True,
    )
    assert "https://" not in some.seen
    assert CONNECTION_ID in [finding.conn_id for finding in found]
    assert not any(WEBHOOK_SECRET in finding.seen for finding in found)


def test_airflow_without_tables(world: World) -> None:
    empty = create_engine("sqlite://")
    world.patch.setattr(settings, "engine", empty)
    found = {finding.check: finding for finding in checks.findings(offline=True, seconds=PATIENCE)}
    for check in ("triggerer", "connections"):
        assert found[check].seen == "Airflow's own tables are missing"
        assert found[check].advice == "Run `airflow db migrate`."
