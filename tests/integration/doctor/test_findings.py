"""One thing is put out of order, and the doctor names that and nothing else."""

from __future__ import annotations

import json
import socket
import tempfile
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from email.utils import format_datetime
from pathlib import Path
from types import SimpleNamespace

import airflow
import pytest
from airflow import plugins_manager
from cryptography.fernet import Fernet

from airflow_provider_webdata.doctor import examination
from airflow_provider_webdata.doctor.finding import Finding
from airflow_provider_webdata.inbox import probe
from airflow_provider_webdata.inbox.server.http import receive
from airflow_provider_webdata.inbox.server.storage.errors import StoreUnavailableError
from airflow_provider_webdata.inbox.wire import REFUSED
from tests.integration.doctor.certificates import certificate
from tests.integration.doctor.conftest import SECRETS, SIGNING_SECRET, World
from tests.support.fault_server import answer, never_answer
from tests.support.service import CONNECTION_ID
from tests.support.waiting import PATIENCE

ALL_CHECKS = [
    *("versions", "plugin", "tables", "triggerer"),
    *("fields", "host", "tls", "key", "credits", "clock", "entitlements", "webhook", "deliveries", "reader"),
]

Arrange = Callable[[World], object]
# check: state, part of what was seen, part of the advice
Expected = dict[str, tuple[str, str, str]]


def findings(world: World, **options: object) -> list[Finding]:
    return examination.findings([world.conn_id], seconds=PATIENCE, **options)


def test_all_is_right(world: World) -> None:
    found = findings(world)
    assert [finding.check for finding in found] == ALL_CHECKS
    assert {finding.check: finding.state for finding in found if finding.state != "ok"} == {
        "entitlements": "unknown"
    }
    assert [finding.conn_id for finding in found] == [None] * 4 + [CONNECTION_ID] * 10


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


def _usage(**data: float) -> str:
    return json.dumps({"success": True, "data": data})


def _dated(seconds: float) -> str:
    return format_datetime(datetime.now(timezone.utc) + timedelta(seconds=seconds), usegmt=True)


def _answering(world: World, status: int = 200, body: str = "{}", **headers: str) -> str:
    """A service or an inbox that always answers the same, with the right date unless told otherwise."""
    return world.serve(answer(status, body, headers={"date": _dated(0), **headers})).url


def _error(text: str) -> str:
    return json.dumps({"success": False, "error": text})


def _over_tls(world: World, days: float, **extra: object) -> None:
    path, context = certificate(
        Path(tempfile.mkdtemp(dir=Path(world.engine.url.database or "").parent)), days
    )
    steps = [answer(body=_usage(remainingCredits=5), headers={"date": _dated(0)})]
    world.connect(world.serve(*steps, tls=context).url, **{"ca_file": path, **extra})


def _other_plugin(world: World, apps: list[dict[str, object]], *, before: bool = False) -> None:
    ours, middlewares = plugins_manager.get_fastapi_plugins()
    mounted = [*apps, *ours] if before else apps
    world.patch.setattr(plugins_manager, "get_fastapi_plugins", lambda: (mounted, middlewares))


def _locked(world: World) -> None:
    """A connection that another Fernet key has encrypted."""
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


def _without_webhooks(world: World) -> None:
    world.connect(webhook_url=None, webhook_secret=None)


ROWS: dict[str, tuple[Arrange, Expected]] = {
    # What is installed
    "an old Airflow": (
        lambda w: w.patch.setattr(airflow, "__version__", "3.1.7"),
        {"versions": ("wrong", "Airflow 3.1.7", "Upgrade Airflow to 3.2.1 or newer")},
    ),
    "a release candidate": (lambda w: w.patch.setattr(airflow, "__version__", "3.2.1rc1"), {}),
    "no plugin": (
        lambda w: _other_plugin(w, []),
        {"plugin": ("wrong", "does not have it", "airflow plugins")},
    ),
    "another plugin in front": (
        lambda w: _other_plugin(
            w, [{"app": object(), "url_prefix": "/webdata/", "name": "Shadow"}], before=True
        ),
        {"plugin": ("wrong", "'Shadow' of another plugin", "Mount that application elsewhere")},
    ),
    "another plugin elsewhere": (
        lambda w: _other_plugin(w, [{"app": object(), "url_prefix": "/web", "name": "Other"}], before=True),
        {},
    ),
    # The database
    "tables of a newer version": (
        lambda w: w.execute("UPDATE alembic_version_webdata SET version_num = 'ffffffffffff'"),
        {"tables": ("wrong", "ffffffffffff, which a newer", "go back with it first")},
    ),
    "no triggerer": (
        lambda w: w.execute("DELETE FROM job"),
        {"triggerer": ("wrong", "none runs, so that deferred tasks wait for ever", "airflow triggerer")},
    ),
    "a triggerer that died": (
        lambda w: w.run_triggerer(datetime.now(timezone.utc) - timedelta(hours=3, minutes=1)),
        {"triggerer": ("wrong", "none runs; the last heartbeat was 3 hours ago", "airflow triggerer")},
    ),
    # Fields
    "no such connection": (
        lambda w: setattr(w, "conn_id", "nowhere"),
        {"fields": ("wrong", "there is no such connection", "airflow webdata init")},
    ),
    "a connection of another type": (
        lambda w: w.set_environment("http://x.example"),
        {"fields": ("wrong", "its type is 'http'", "'webdata'")},
    ),
    "another Fernet key": (
        _locked,
        {"fields": ("wrong", "'locked' cannot be decrypted (InvalidToken)", "the Fernet key")},
    ),
    "no address": (
        lambda w: w.connect(url=""),
        {"fields": ("wrong", "host (Base URL) is empty; enter the service's address", "form")},
    ),
    "no key": (lambda w: w.connect(key=""), {"fields": ("wrong", "password (API Key) is empty", "form")}),
    "a bad webhook URL": (
        lambda w: w.connect(webhook_url="http://airflow.example"),
        {"fields": ("wrong", "webhook_url must be an https address", "form")},
    ),
    "an extra that nobody knows": (
        lambda w: w.connect(webhook_secert="x" * 20),
        {"fields": ("warning", "did you mean 'webhook_secret'?", "form")},
    ),
    "a short secret": (
        lambda w: w.connect(webhook_secret="short-one"),
        {"fields": ("warning", "webhook_secret has fewer than 16 characters", "form")},
    ),
    # Host and TLS
    "a name that does not resolve": (
        lambda w: w.connect("https://no-such-host.invalid"),
        {"host": ("wrong", "The host is not reachable: ", "Check the Base URL")},
    ),
    "a port where nobody listens": (
        lambda w: w.connect(f"http://127.0.0.1:{_free_port()}"),
        {"host": ("wrong", "The host is not reachable: ", "Check the Base URL")},
    ),
    "a host that does not answer": (
        lambda w: w.connect(w.serve(never_answer).url, timeout=0.2),
        {"host": ("wrong", "no answer from http://127.0.0.1", "Check the Base URL")},
    ),
    "another server": (
        lambda w: w.connect(_answering(w, body="<html>", **{"content-type": "text/html"})),
        {"host": ("wrong", "is not this service", "Correct the Base URL")},
    ),
    "a service that fails": (
        lambda w: w.connect(_answering(w, 500, _error("out of order"))),
        {"host": ("wrong", "an error of its own: ", "Try again later")},
    ),
    "https to plain http": (
        lambda w: w.connect(w.sandbox.url.replace("http:", "https:")),
        {"tls": ("wrong", "The TLS connection fails", "correct http against https in the Base URL")},
    ),
    "a certificate of nobody known": (
        lambda w: _over_tls(w, 300, ca_file=None),
        {"tls": ("wrong", "The TLS connection fails", "set the CA bundle")},
    ),
    "a good certificate": (lambda w: _over_tls(w, 300), {}),
    "a certificate that ends soon": (
        lambda w: _over_tls(w, 13),
        {"tls": ("warning", "the certificate ends on 20", "renewed")},
    ),
    "no verification": (
        lambda w: _over_tls(w, 300, ca_file=None, verify=False),
        {"tls": ("warning", "not verified", "Turn on Verify TLS certificate")},
    ),
    "a CA bundle that is none": (
        lambda w: _over_tls(w, 300, ca_file=__file__),
        {
            "tls": ("wrong", "cannot be used", ""),
        },
    ),
    # Key, credits, rights
    "a wrong key": (
        lambda w: w.connect(key="wd-some-other-key"),
        {"key": ("wrong", "The service refuses the API key", "under API Key")},
    ),
    "too many requests": (lambda w: w.connect(_answering(w, 429, _error("slow down"))), {}),
    "a forbidden call": (
        lambda w: w.connect(_answering(w, 403, _error("your plan ends here"))),
        {"entitlements": ("wrong", "forbids the call: your plan ends here", "")},
    ),
    "no credits": (
        lambda w: w.connect(_answering(w, body=_usage(remainingCredits=0, planCredits=100))),
        {
            "credits": (
                "wrong",
                "0 credits are left of 100 in the plan: whatever is billed fails",
                "Buy credits",
            )
        },
    ),
    "few credits": (
        lambda w: w.connect(_answering(w, body=_usage(remainingCredits=4.5, planCredits=100))),
        {"credits": ("warning", "4.5 credits are left of 100 in the plan", "Buy credits")},
    ),
    "no figures": (lambda w: w.connect(_answering(w, 404, _error("No credit usage"))), {}),
    "no number of credits": (lambda w: w.connect(_answering(w, body=_usage())), {}),
    # Clocks
    "a clock that is behind the service's": (
        lambda w: w.connect(_answering(w, body=_usage(remainingCredits=5), date=_dated(1000))),
        {"clock": ("warning", "ahead of this machine's", "NTP")},
    ),
    "a clock that is ahead of the service's": (
        lambda w: w.connect(_answering(w, 401, _error("no"), date=_dated(-1000))),
        {
            "clock": ("warning", "behind this machine's", "NTP"),
            "key": ("wrong", "refuses the API key: no", "under API Key"),
        },
    ),
    "a date that is none": (
        lambda w: w.connect(_answering(w, body=_usage(remainingCredits=5), date="today")),
        {},
    ),
    # Webhooks
    "no webhooks": (_without_webhooks, {}),
    "a webhook URL without a secret": (
        lambda w: w.connect(webhook_secret=None),
        {"webhook": ("wrong", "neither Webhook secret nor Signing secret", "Enter a Webhook secret")},
    ),
    "nobody at the webhook URL": (
        lambda w: w.connect(webhook_url=f"http://127.0.0.1:{_free_port()}"),
        {"webhook": ("wrong", "cannot be reached from here: ", "Check the Webhook URL")},
    ),
    "a server that takes anything": (
        lambda w: w.connect(webhook_url=_answering(w)),
        {"webhook": ("wrong", "somebody else's server answers (HTTP 200)", "Correct the Webhook URL")},
    ),
    "a login": (
        lambda w: w.connect(webhook_url=_answering(w, 302, location="https://login.example/x")),
        {"webhook": ("wrong", "redirects to https://login.example/x", "without a login")},
    ),
    "a proxy that asks for a login": (
        lambda w: w.connect(webhook_url=_answering(w, 401, '{"error": "who are you?"}')),
        {"webhook": ("wrong", "refuses requests (HTTP 401 (who are you?))", "without a login")},
    ),
    "an Airflow without this package": (
        lambda w: w.connect(webhook_url=_answering(w, 404, '{"detail": "Not Found"}')),
        {"webhook": ("wrong", "there is no inbox (HTTP 404)", "Install this package on the API server")},
    ),
    "a proxy without a server": (
        lambda w: w.connect(webhook_url=_answering(w, 502, "<html>")),
        {"webhook": ("wrong", "no delivery is taken now (HTTP 502)", "log of the API server")},
    ),
    "an inbox that cannot read connections": (
        _inbox_fails,
        {
            "webhook": ("wrong", "no delivery is taken now (HTTP 503 ", "log of the API server"),
            "reader": ("wrong", "cannot answer now (HTTP 503", ""),
        },
    ),
    "an inbox of an older version": (
        lambda w: w.patch.setattr(probe, "is_probe", lambda _: False),
        {"webhook": ("warning", "of an older version", "on the API server too")},
    ),
    "an inbox of another version": (
        lambda w: w.patch.setattr(receive, "__version__", "9.9"),
        {"webhook": ("warning", "of version 9.9; here is ", "the same version")},
    ),
    "an impostor": (
        lambda w: _claims_to_be_an_inbox(
            w, 200, {"status": "probe", "version": "0.1.0", "proofs": ["0" * 64]}
        ),
        {"webhook": ("wrong", "somebody else's server answers, which does not know the secret", "Correct")},
    ),
    "an impostor without a proof": (
        lambda w: _claims_to_be_an_inbox(w, 200, {"status": "stored"}),
        {"webhook": ("wrong", "somebody else's server answers, which does not know the secret", "Correct")},
    ),
    "an inbox that fails at the probe": (
        lambda w: _claims_to_be_an_inbox(w, 503, {"error": "not now"}),
        {"webhook": ("wrong", "a probe is answered HTTP 503 (not now)", "log")},
    ),
    "another secret": (
        lambda w: _claims_to_be_an_inbox(w, 401, {"error": REFUSED}),
        {"webhook": ("wrong", "the inbox refuses this connection's secret", "the same Webhook secret")},
    ),
    "signed deliveries": (lambda w: w.connect(signing_secret=SIGNING_SECRET), {}),
    "deliveries that are signed only": (
        lambda w: w.connect(
            webhook_secret=None, signing_secret=SIGNING_SECRET, signature_header="X-Sign-Here"
        ),
        {},
    ),
    "a private webhook URL of a public service": (
        lambda w: w.patch.setattr(
            "airflow_provider_webdata.doctor.inbox_answer._is_public", lambda url: url == w.sandbox.url
        ),
        {"webhook": ("warning", "its address is a private one", "give it a public one")},
    ),
    "no delivery yet": (lambda w: w.execute("DELETE FROM webdata_inbox_delivery"), {}),
    # Readers
    "readers that ask at the wrong place": (
        lambda w: w.connect(inbox_url=_answering(w, 404, '{"detail": "Not Found"}')),
        {
            "reader": (
                "wrong",
                "there is no inbox at http://127.0.0.1",
                "The API server must have this provider",
            )
        },
    ),
    "readers that reach nobody": (
        lambda w: w.connect(inbox_url=f"http://127.0.0.1:{_free_port()}"),
        {"reader": ("wrong", "does not answer", "")},
    ),
    "readers whose token is refused": (
        lambda w: w.connect(inbox_url=_answering(w, 401, '{"error": "no"}')),
        {
            "reader": (
                "wrong",
                "refuses the token for connection 'webdata_default'",
                "clocks of both machines",
            )
        },
    ),
    "readers that are given what there is not": (
        lambda w: w.connect(inbox_url=_answering(w, 200, '{"id": 0, "size": 0, "received_at": "x"}')),
        {"reader": ("wrong", "gives what it cannot have", "")},
    ),
}


@pytest.mark.parametrize(("arrange", "expected"), ROWS.values(), ids=ROWS.keys())
def test_what_is_wrong_is_named_and_nothing_else(world: World, arrange: Arrange, expected: Expected) -> None:
    arrange(world)
    before = world.count_deliveries()
    found = {finding.check: finding for finding in findings(world)}
    told = {check: finding for check, finding in found.items() if finding.state in {"warning", "wrong"}}
    assert told.keys() == expected.keys(), found
    for check, (state, seen, advice) in expected.items():
        finding = told[check]
        assert (finding.state, seen in finding.seen, advice in (finding.advice or "")) == (
            state,
            True,
            True,
        ), finding
    for finding in found.values():
        assert not any(secret in f"{finding.seen}{finding.advice}" for secret in SECRETS), finding
        assert "\n" not in f"{finding.seen}{finding.advice}"
        assert not (finding.advice or ".").endswith((",", ":", "..")), finding
    assert world.count_deliveries() == before
