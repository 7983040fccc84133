# SPDX-License-Identifier: Apache-2.0
"""The webhook that monitors get by themselves, against the sandbox over HTTP."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

from airflow_provider_webdata.hooks.webdata import WebDataHook
from airflow_provider_webdata.operators.monitor import (
    WebDataCreateMonitorOperator,
    WebDataRunMonitorOperator,
)
from tests.support import direct
from tests.support.direct import Outcome, StateStore
from tests.support.inbox_server import InboxServer
from tests.support.service import connection_text
from webdata_sandbox.server import SandboxServer

TARGETS = [{"type": "scrape", "urls": ["https://example.com/"]}]
CAN_RECEIVE = {"webhook_url": "https://hooks.example/airflow", "webhook_secret": "hush-secret"}
SIGNED_ONLY = {"webhook_url": "https://hooks.example/airflow", "signing_secret": "hush-signing"}
OURS = re.compile(r"https://hooks\.example/airflow/webdata/inbox/webdata_default/([\w-]{32})")
HEADERS = {"X-WebData-Webhook-Secret": "hush-secret"}
FOREIGN = {"url": "https://elsewhere.example/hook", "headers": {"X-Key": "hush-foreign"}}
LAPTOP = {"webhook_url": "https://laptop.example", "webhook_secret": "hush-secret"}
OTHER_AIRFLOW = {
    "url": "https://staging.example/webdata/inbox/webdata_default/k",
    "headers": {"X-WebData-Webhook-Secret": "hush-staging"},
}


@pytest.fixture(scope="module")
def inbox_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with InboxServer(tmp_path_factory.mktemp("inbox")) as inbox:
        inbox.others = ("hush-secret", "hush-new", "hush-signing")
        yield inbox.url


@pytest.fixture
def keep(here: SandboxServer, connect: Any, inbox_url: str) -> Any:
    """Run a task that declares a monitor, with extras of its connection."""

    def run(extra: dict[str, str] | None = None, **arguments: Any) -> Outcome:
        connect(here, **{"inbox_url": inbox_url, **(extra or {})})
        given = {"name": "prices", "schedule": {"cron": "0 * * * *"}, "targets": TARGETS, **arguments}
        return direct.run(
            WebDataCreateMonitorOperator(**{"task_id": "keep", "retries": 2, **given}), StateStore()
        )

    return run


def webhook(sandbox: SandboxServer) -> Any:
    """Return the webhook of the one monitor, as the service stores it."""
    (monitor,) = [m for m in sandbox.control.state()["monitors"] if m["status"] != "deleted"]
    return monitor["webhook"]


def key(sandbox: SandboxServer) -> str:
    found = OURS.fullmatch(webhook(sandbox)["url"])
    assert found is not None
    return found[1]


def patches(sandbox: SandboxServer) -> list[Any]:
    return [request["body"] for request in sandbox.control.requests(method="PATCH")]


@pytest.mark.rule("monitor-webhook", "webhook-headers", "webhook-events-monitor")
def test_attached_by_itself(run_dag: Any, sandbox: SandboxServer, inbox_url: str) -> None:
    """A random key in the address, the secret in a header, and nothing of it in XCom, log or rendered fields."""
    done = run_dag(
        """
        WebDataCreateMonitorOperator(
            task_id="keep", name="prices", schedule={"cron": "0 * * * *"}, targets=TARGETS
        )
        """,
        **CAN_RECEIVE,
        inbox_url=inbox_url,
    )
    assert done.state("keep") == "success", done.log[-3000:]
    stored = webhook(sandbox)
    assert OURS.fullmatch(stored["url"])
    assert stored["headers"] == HEADERS
    assert stored["events"] == ["monitor.check.completed"]
    assert stored["metadata"]["task_id"] == "keep"
    assert stored["metadata"]["monitor"] == "prices"
    assert set(stored["metadata"]) == {"environment", "dag_id", "task_id", "monitor"}
    assert "hush" not in done.log
    assert "hush" not in str(done.run)
    assert done.xcom["keep.return_value"]["webhook"]["url"] == stored["url"]


@pytest.mark.parametrize(
    ("extra", "headers"),
    [(SIGNED_ONLY, None), ({**CAN_RECEIVE, **SIGNED_ONLY}, HEADERS)],
    ids=["signature", "both"],
)
def test_secrets(keep: Any, here: SandboxServer, extra: dict[str, str], headers: Any) -> None:
    """A signature needs no header."""
    assert "hush" not in str(keep(extra).value)
    assert OURS.fullmatch(webhook(here)["url"])
    assert webhook(here).get("headers") == headers


def test_the_key_stays(keep: Any, here: SandboxServer) -> None:
    """A second run changes nothing: tasks that wait for the monitor wait for the same key."""
    keep(CAN_RECEIVE)
    first = key(here)
    keep(CAN_RECEIVE)
    assert key(here) == first
    assert patches(here) == []


CHANGES: dict[str, tuple[dict[str, str], dict[str, Any], str]] = {
    "new secret": ({"webhook_secret": "hush-new"}, {}, "headers"),
    "other address": ({"webhook_url": "https://moved.example"}, {}, "url"),
    "other events": ({}, {"webhook_events": ["monitor.page", "monitor.check.completed"]}, "events"),
}


@pytest.mark.rule("monitor-webhook")
@pytest.mark.parametrize(("extra", "more", "field"), CHANGES.values(), ids=CHANGES.keys())
def test_only_the_difference_is_patched(
    keep: Any, here: SandboxServer, log: Any, extra: dict[str, str], more: dict[str, Any], field: str
) -> None:
    """The address, the secret or the events change; the key does not."""
    keep(CAN_RECEIVE)
    before, first = webhook(here), key(here)
    keep({**CAN_RECEIVE, **extra}, **more)
    after = webhook(here)
    assert {name for name in after if after[name] != before[name]} == {field}
    assert after["url"].endswith(f"/webdata/inbox/webdata_default/{first}")
    (patch,) = patches(here)
    assert set(patch) == {"webhook"}
    logged = log()
    assert f"differs in webhook.{field}" in logged
    assert "hush" not in logged


def test_added_to_a_monitor_without_one(keep: Any, here: SandboxServer) -> None:
    keep()
    assert webhook(here) is None
    keep(CAN_RECEIVE)
    assert key(here)
    assert [set(patch) for patch in patches(here)] == [{"webhook"}]


@pytest.mark.rule("monitor-webhook-stays")
@pytest.mark.parametrize(("attach", "ours"), [(None, False), (True, True)])
def test_a_webhook_of_somebody_else(
    keep: Any, here: SandboxServer, log: Any, attach: bool | None, ours: bool
) -> None:
    """It is replaced on request only."""
    keep(CAN_RECEIVE, webhook=FOREIGN)
    keep(CAN_RECEIVE, attach_webhook=attach)
    assert bool(OURS.fullmatch(webhook(here)["url"])) is ours
    logged = log()
    assert ("reports to an address other than" in logged) is (attach is None)
    assert "hush" not in logged


# Whose monitor it is.


@pytest.mark.rule("monitor-name-not-unique")
def test_a_monitor_that_was_renamed_in_the_dashboard_is_renamed(keep: Any, here: SandboxServer) -> None:
    first = keep(CAN_RECEIVE).value["id"]
    with WebDataHook() as hook:
        hook.update_monitor(first, name="renamed by a colleague")
    again = keep(CAN_RECEIVE).value
    assert (again["id"], again["name"]) == (first, "prices")
    assert webhook(here)


def test_mapped_tasks_declare_a_monitor_each(keep: Any, here: SandboxServer) -> None:
    """Their marks differ in the name only, so one that was renamed is told from the others."""
    ids = {name: keep(CAN_RECEIVE, name=name).value["id"] for name in ("a", "b")}
    with WebDataHook() as hook:
        hook.update_monitor(ids["a"], name="renamed")
    assert {name: keep(CAN_RECEIVE, name=name).value["id"] for name in ("b", "a")} == ids
    assert {m["name"] for m in here.control.state()["monitors"]} == {"a", "b"}


def test_another_airflow_with_the_same_key(
    keep: Any, here: SandboxServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It changes nothing without `adopt`; with it, the first one is refused."""
    monkeypatch.setenv("AIRFLOW__WEBDATA__ENVIRONMENT", "production")
    keep(CAN_RECEIVE)
    here.control.clear_requests()
    monkeypatch.setenv("AIRFLOW__WEBDATA__ENVIRONMENT", "laptop")
    for arguments in ({}, {"attach_webhook": False}, {"webhook": FOREIGN}):
        outcome = keep(LAPTOP, **arguments)
        assert outcome.ended == ("failed", 1)
        text = " ".join(str(outcome.error).split())
        assert "https://hooks.example/airflow, environment 'production'" in text
        assert "https://laptop.example, environment 'laptop'" in text
        assert all(word in text for word in ("another name", "adopt=True", "its former value, production"))
    assert {request["method"] for request in here.control.requests()} == {"GET"}
    first = webhook(here)
    assert keep(LAPTOP, adopt=True).state == "success"
    assert webhook(here)["url"].startswith("https://laptop.example/webdata/inbox/webdata_default/")
    assert webhook(here)["url"][-32:] != first["url"][-32:]
    monkeypatch.setenv("AIRFLOW__WEBDATA__ENVIRONMENT", "production")
    assert "https://laptop.example" in str(keep(CAN_RECEIVE).error)


@pytest.mark.parametrize("way", ["environment", "adopt"])
def test_after_airflow_has_moved(
    keep: Any, here: SandboxServer, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    monkeypatch.setenv("AIRFLOW__API__BASE_URL", "https://old.example")
    first = keep(CAN_RECEIVE).value["id"]
    monkeypatch.setenv("AIRFLOW__API__BASE_URL", "https://new.example")
    outcome = keep(CAN_RECEIVE)
    assert "set [webdata] environment to its former value, old.example" in " ".join(
        str(outcome.error).split()
    )
    assert "set adopt=True" in str(outcome.error)
    if way == "environment":
        monkeypatch.setenv("AIRFLOW__WEBDATA__ENVIRONMENT", "old.example")
    assert keep(CAN_RECEIVE, adopt=way == "adopt").value["id"] == first
    assert keep(CAN_RECEIVE).state == "success"


def test_another_task_with_the_same_name(keep: Any, here: SandboxServer) -> None:
    keep(CAN_RECEIVE)
    here.control.clear_requests()
    outcome = keep(CAN_RECEIVE, task_id="copy")
    assert outcome.ended == ("failed", 1)
    assert "belongs to task 'keep' of DAG 'd', which declares it as 'prices'" in str(outcome.error)
    assert "set adopt=True" in str(outcome.error)
    assert {request["method"] for request in here.control.requests()} == {"GET"}


def test_an_address_of_another_airflow_without_a_mark(keep: Any, here: SandboxServer) -> None:
    """Its author has set the webhook, and may go on; a managed one is not attached."""
    for _ in range(2):
        assert keep(CAN_RECEIVE, webhook=OTHER_AIRFLOW).state == "success"
    for attach in (None, True, False):
        assert keep(CAN_RECEIVE, attach_webhook=attach).ended == ("failed", 1)
    assert webhook(here)["url"] == OTHER_AIRFLOW["url"]
    assert keep(CAN_RECEIVE, adopt=True).state == "success"
    assert OURS.fullmatch(webhook(here)["url"])


@pytest.mark.parametrize("is_running", [True, False])
def test_deliveries_after_a_change_of_the_connection(
    keep: Any, here: SandboxServer, monkeypatch: pytest.MonkeyPatch, inbox_url: str, is_running: bool
) -> None:
    """It was renamed, and its secret and its address changed: the webhook is ours by its mark, and keeps its key."""
    keep(CAN_RECEIVE)
    first = key(here)
    extra = {"webhook_url": "https://moved.example", "webhook_secret": "hush-new"}
    address = inbox_url if is_running else "http://127.0.0.1:9"
    monkeypatch.setenv(
        "AIRFLOW_CONN_RENAMED", connection_text(here.url, here.api_key, inbox_url=address, **extra)
    )
    assert keep(CAN_RECEIVE, webdata_conn_id="renamed").state == "success"
    assert webhook(here)["url"] == f"https://moved.example/webdata/inbox/renamed/{first}"
    assert webhook(here)["headers"] == {"X-WebData-Webhook-Secret": "hush-new"}


def test_a_run_attaches_to_no_monitor_of_another_airflow(
    keep: Any, here: SandboxServer, connect: Any, monkeypatch: pytest.MonkeyPatch, inbox_url: str
) -> None:
    monkeypatch.setenv("AIRFLOW__WEBDATA__ENVIRONMENT", "production")
    keep(CAN_RECEIVE)
    first = webhook(here)
    monkeypatch.setenv("AIRFLOW__WEBDATA__ENVIRONMENT", "laptop")
    connect(here, **LAPTOP, inbox_url=inbox_url)
    task = WebDataRunMonitorOperator(task_id="run", monitor_name="prices", attach_webhook=True)
    outcome = direct.run(task, StateStore())
    assert outcome.ended == ("failed", 1)
    assert "reports to another Airflow: https://hooks.example/airflow" in str(outcome.error)
    assert webhook(here) == first


LEFT_ALONE: dict[str, tuple[dict[str, Any], dict[str, str]]] = {
    "not wanted": ({"attach_webhook": False}, CAN_RECEIVE),
    "no secret": ({}, {"webhook_url": "https://hooks.example"}),
    "no address": ({}, {"webhook_secret": "hush-secret"}),
    "no inbox": ({}, {**CAN_RECEIVE, "inbox_url": "http://127.0.0.1:9"}),
    "no inbox, requested": ({"attach_webhook": True}, {**CAN_RECEIVE, "inbox_url": "http://127.0.0.1:9"}),
}


@pytest.mark.parametrize(("more", "extra"), LEFT_ALONE.values(), ids=LEFT_ALONE.keys())
def test_none_is_attached(keep: Any, here: SandboxServer, log: Any, more: Any, extra: dict[str, str]) -> None:
    """The log says why if the connection has an address, but no secret or no inbox."""
    assert keep(extra, **more).state == "success"
    assert webhook(here) is None
    logged = log()
    assert logged.count("No webhook is attached, and waits poll: ") == (
        "webhook_url" in extra and more.get("attach_webhook") is not False
    )
    reason = "No webhook is attached, and waits poll: the inbox at http://127.0.0.1:9 does not respond"
    assert logged.count(reason) == ("inbox_url" in extra)


def test_a_silent_inbox_leaves_an_attached_webhook(keep: Any, here: SandboxServer) -> None:
    keep(CAN_RECEIVE)
    first = key(here)
    assert keep({**CAN_RECEIVE, "inbox_url": "http://127.0.0.1:9"}).state == "success"
    assert (key(here), patches(here)) == (first, [])


@pytest.mark.parametrize(
    ("more", "extra", "words"),
    [
        ({"attach_webhook": True}, {}, "webhook_url is not set"),
        (
            {"attach_webhook": True},
            {"webhook_url": "https://h.example"},
            "webhook_secret (or signing_secret) is not set",
        ),
        (
            {"attach_webhook": True, "extra_body": {"webhook": "https://x.example"}},
            CAN_RECEIVE,
            "remove one of them",
        ),
    ],
    ids=["address", "secret", "two"],
)
def test_impossible_webhooks_fail_before_any_request(
    keep: Any, here: SandboxServer, more: dict[str, Any], extra: dict[str, str], words: str
) -> None:
    outcome = keep(extra, **more)
    assert outcome.ended == ("failed", 1)
    assert words in str(outcome.error)
    assert here.control.requests() == []


def test_reuse_changes_nothing(keep: Any, here: SandboxServer) -> None:
    keep()
    keep(CAN_RECEIVE, if_exists="reuse")
    assert webhook(here) is None


@pytest.mark.rule("repeat-unsafe")
@pytest.mark.parametrize("kind", ["drop_after_work", "truncate"])
def test_a_lost_answer_keeps_the_key(keep: Any, here: SandboxServer, kind: str) -> None:
    """The monitor was made with a key that was stored nowhere; it is the one that stays."""
    here.control.add_fault(kind, method="POST", path="/v2/monitor")
    found = OURS.fullmatch(keep(CAN_RECEIVE).value["webhook"]["url"])
    first = key(here)
    assert found is not None
    assert found[1] == first
    keep(CAN_RECEIVE)
    assert key(here) == first
    assert patches(here) == []


@pytest.mark.rule("late-reads", "repeat-unsafe")
def test_a_list_that_lags_longer_than_the_task_looks(keep: Any, here: SandboxServer) -> None:
    """The limit: the monitor is created twice, and the next run names both. Once one is deleted, it succeeds."""
    here.control.set_quirks(["late-replica=3"])
    here.control.add_fault("drop_after_work", method="POST", path="/v2/monitor")
    assert keep(CAN_RECEIVE, replica_wait=0).ended == ("success", 2)
    here.control.set_quirks([])
    ids = {monitor["id"] for monitor in here.control.state()["monitors"]}
    assert len(ids) == 2
    outcome = keep(CAN_RECEIVE)
    assert outcome.ended == ("failed", 1)
    assert all(monitor_id in str(outcome.error) for monitor_id in ids)
    assert "Delete all but one" in str(outcome.error)
    with WebDataHook() as hook:
        hook.delete_monitor(ids.pop())
    assert keep(CAN_RECEIVE).value["id"] in ids


@pytest.mark.rule("monitor-webhook-stays")
def test_too_expensive_to_attach(keep: Any) -> None:
    """The limit holds for an existing monitor, and the error says what cannot be undone."""
    keep()
    outcome = keep(CAN_RECEIVE, max_credits_per_month=1)
    assert outcome.state == "failed"
    told = "the task restored its previous values, except webhook, which the service cannot remove"
    assert told in str(outcome.error)


@pytest.mark.parametrize("attach", [None, True])
def test_a_run_attaches_on_request_only(
    keep: Any, here: SandboxServer, connect: Any, inbox_url: str, attach: bool | None
) -> None:
    keep()

    def run(url: str = inbox_url) -> None:
        connect(here, **CAN_RECEIVE, inbox_url=url)
        task = WebDataRunMonitorOperator(task_id="run", monitor_name="prices", attach_webhook=attach)
        assert direct.run(task, StateStore()).state == "success"

    run("http://127.0.0.1:9")
    assert webhook(here) is None
    run()
    assert (webhook(here) is not None) is (attach is True)
    if attach:
        first = key(here)
        run()
        assert key(here) == first
        assert len(patches(here)) == 1
