"""The webhook that monitors get by themselves, in a real Airflow, against the sandbox over HTTP."""

from __future__ import annotations

import re

import pytest

CREATE = """
WebDataCreateMonitorOperator(
    task_id="keep", name="prices", schedule={"cron": "0 * * * *"}, targets=TARGETS, MORE
)
"""
CAN_RECEIVE = {"webhook_url": "https://hooks.example/airflow", "webhook_secret": "hush-secret"}
SIGNED_ONLY = {"webhook_url": "https://hooks.example/airflow", "signing_secret": "hush-signing"}
OURS = re.compile(r"https://hooks\.example/airflow/webdata/inbox/webdata_default/([\w-]{32})")
HEADERS = {"X-WebData-Webhook-Secret": "hush-secret"}
FOREIGN = {"url": "https://elsewhere.example/hook", "headers": {"X-Key": "hush-foreign"}}
OTHER_AIRFLOW = {
    "url": "https://staging.example/webdata/inbox/webdata_default/k",
    "headers": {"X-WebData-Webhook-Secret": "hush-staging"},
}


def create(more: str = "") -> str:
    return CREATE.replace("MORE", more)


def webhook(sandbox):
    """Return the webhook of the one monitor, as the service stores it."""
    (monitor,) = [m for m in sandbox.control.state()["monitors"] if m["status"] != "deleted"]
    return monitor["webhook"]


def key(sandbox) -> str:
    return OURS.fullmatch(webhook(sandbox)["url"])[1]


def patches(sandbox):
    return [request["body"] for request in sandbox.control.requests(method="PATCH")]


@pytest.mark.rule("monitor-webhook", "webhook-headers", "webhook-events-monitor")
@pytest.mark.parametrize(
    ("extra", "headers"),
    [(CAN_RECEIVE, HEADERS), (SIGNED_ONLY, None), ({**CAN_RECEIVE, **SIGNED_ONLY}, HEADERS)],
    ids=["secret", "signature", "both"],
)
def test_attached_by_itself(run_dag, sandbox, extra, headers):
    """A random key in the address, the secret in a header, and nothing of it in XCom, log or rendered fields."""
    done = run_dag(create(), **extra)
    assert done.state("keep") == "success", done.log[-3000:]
    stored = webhook(sandbox)
    assert OURS.fullmatch(stored["url"])
    assert stored.get("headers") == headers
    assert stored["events"] == ["monitor.check.completed"]
    assert stored["metadata"]["task_id"] == "keep"
    assert set(stored["metadata"]) == {"dag_id", "task_id"}
    assert "hush" not in done.log
    assert "hush" not in str(done.run)
    assert done.xcom["keep.return_value"]["webhook"]["url"] == stored["url"]


def test_key_stays(run_dag, sandbox):
    """What waits for a monitor goes on waiting for the same key: a second run changes nothing."""
    run_dag(create(), **CAN_RECEIVE)
    first = key(sandbox)
    run_dag(create(), **CAN_RECEIVE)
    assert key(sandbox) == first
    assert patches(sandbox) == []


CHANGES = {
    "new secret": ({"webhook_secret": "hush-new"}, "", "headers"),
    "other address": ({"webhook_url": "https://moved.example"}, "", "url"),
    "other events": ({}, "webhook_events=['monitor.page', 'monitor.check.completed']", "events"),
}


@pytest.mark.rule("monitor-webhook")
@pytest.mark.parametrize(("extra", "more", "field"), CHANGES.values(), ids=CHANGES.keys())
def test_only_what_differs_is_patched(run_dag, sandbox, extra, more, field):
    """The address, the secret or the events change; the key does not."""
    run_dag(create(), **CAN_RECEIVE)
    before, first = webhook(sandbox), key(sandbox)
    done = run_dag(create(more), **{**CAN_RECEIVE, **extra})
    after = webhook(sandbox)
    assert {name for name in after if after[name] != before[name]} == {field}
    assert after["url"].endswith(f"/webdata/inbox/webdata_default/{first}")
    (patch,) = patches(sandbox)
    assert set(patch) == {"webhook"}
    assert f"differs in webhook.{field}" in done.log
    assert "hush" not in done.log


def test_added_to_a_monitor_without_one(run_dag, sandbox):
    run_dag(create())
    assert webhook(sandbox) is None
    run_dag(create(), **CAN_RECEIVE)
    assert key(sandbox)
    assert [set(patch) for patch in patches(sandbox)] == [{"webhook"}]


@pytest.mark.rule("monitor-webhook-stays")
@pytest.mark.parametrize("theirs", [FOREIGN, OTHER_AIRFLOW], ids=["foreign", "other Airflow"])
@pytest.mark.parametrize(
    ("more", "ours"), [("", False), ("attach_webhook=False", False), ("attach_webhook=True", True)]
)
def test_webhook_of_somebody_else(run_dag, sandbox, theirs, more, ours):
    """It is replaced on request only, though it be that of another Airflow, whose connection has the same name."""
    run_dag(create(f"webhook={theirs!r}"), **CAN_RECEIVE)
    assert webhook(sandbox)["url"] == theirs["url"]
    done = run_dag(create(more), **CAN_RECEIVE)
    assert bool(OURS.fullmatch(webhook(sandbox)["url"])) is ours
    assert ("reports to another address" in done.log) is (more == "")
    assert "hush" not in done.log


LEFT_ALONE = {
    "not wanted": ("attach_webhook=False", CAN_RECEIVE),
    "no secret": ("", {"webhook_url": "https://hooks.example"}),
    "no address": ("", {"webhook_secret": "hush-secret"}),
}


@pytest.mark.parametrize(("more", "extra"), LEFT_ALONE.values(), ids=LEFT_ALONE.keys())
def test_none_attached(run_dag, sandbox, more, extra):
    assert run_dag(create(more), **extra).state("keep") == "success"
    assert webhook(sandbox) is None


@pytest.mark.parametrize(
    ("more", "extra", "words"),
    [
        ("attach_webhook=True", {}, "webhook_url is not set"),
        ("attach_webhook=True", {"webhook_url": "https://h.example"}, "webhook_secret (or signing_secret) is not set"),
        ("attach_webhook=True, extra_body={'webhook': 'https://x.example'}", CAN_RECEIVE, "leave out one of them"),
        ("wait_for_completion=True, wait_by='webhook'", {}, "no delivery can arrive"),
    ],
)  # fmt: skip
def test_impossible_fails_before_any_request(run_dag, sandbox, more, extra, words):
    done = run_dag(create(f"{more}, retries=2"), **extra)
    assert done.run["tasks"]["keep"] == {"state": "failed", "try_number": 1}
    assert words in done.log
    assert sandbox.control.requests() == []


def test_reuse_changes_nothing(run_dag, sandbox):
    run_dag(create())
    run_dag(create("if_exists='reuse'"), **CAN_RECEIVE)
    assert webhook(sandbox) is None


@pytest.mark.rule("repeat-unsafe")
@pytest.mark.parametrize("kind", ["drop_after_work", "truncate"])
def test_lost_answer_keeps_the_key(run_dag, sandbox, kind):
    """The monitor was made with a key that nobody wrote down; it is the one that stays."""
    sandbox.control.add_fault(kind, method="POST", path="/v2/monitor")
    done = run_dag(create(), **CAN_RECEIVE)
    first = key(sandbox)
    assert OURS.fullmatch(done.xcom["keep.return_value"]["webhook"]["url"])[1] == first
    run_dag(create(), **CAN_RECEIVE)
    assert key(sandbox) == first
    assert patches(sandbox) == []


@pytest.mark.rule("monitor-webhook-stays")
def test_too_expensive_to_attach(run_dag, sandbox):
    """The limit holds for a monitor that was there before, and what cannot be undone is said."""
    run_dag(create())
    done = run_dag(create("max_credits_per_month=1"), **CAN_RECEIVE)
    assert done.state("keep") == "failed"
    assert "its former values were put back, but for webhook, which the service cannot remove" in done.log


RUN = "WebDataRunMonitorOperator(task_id='run', monitor_name='prices', MORE)"


@pytest.mark.parametrize(("more", "attached"), [("", False), ("attach_webhook=True", True)])
def test_run_attaches_on_request_only(run_dag, sandbox, more, attached):
    run_dag(create())
    run = RUN.replace("MORE", more)
    done = run_dag(run, **CAN_RECEIVE)
    assert done.state("run") == "success", done.log[-3000:]
    assert (webhook(sandbox) is not None) is attached
    if attached:
        first = key(sandbox)
        run_dag(run, **CAN_RECEIVE)
        assert key(sandbox) == first
        assert len(patches(sandbox)) == 1
