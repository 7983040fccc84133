"""Tasks that wait for the service on a real Airflow: nothing lost, nothing resumed twice, nothing forged."""

from __future__ import annotations

import json
from typing import Any

import pytest

from airflow_provider_webdata.sandbox.control import SandboxControl
from tests.e2e import conftest
from tests.e2e.conftest import MAX_BODY_MB, SIGNED_CONNECTION, SIGNING_SECRET, WEBHOOK_SECRET, Run
from tests.e2e.outside import InboxTable, Monitors, Sender, body_of, new_key
from tests.support.service import (
    CHECK_COMPLETED,
    MONITOR_PAGE,
    SECRET_HEADER,
    SIGNATURE_HEADER,
    signature,
)
from tests.support.stack import Stack

DATABASES = conftest.DATABASES

ONE_MINUTE = 60
LONG_AGO = "2020-01-01T00:00:00Z"


def test_a_check_is_learned_of_by_webhook_by_polling_and_by_the_safety_poll(
    stack: Stack, sandbox: SandboxControl, monitors: Monitors, inbox: InboxTable
) -> None:
    # how, what happens to the delivery, what the task says of it, rows in the inbox
    ways = [
        ("webhook", None, "learned by webhook", 1),
        ("polling", "lose_delivery", "learned by polling", 0),
        ("safety", "lose_delivery", "learned by polling", 0),
    ]
    runs = {}
    for how, *_ in ways:
        key = new_key()
        monitor = monitors.make(f"learned by {how}", key=key)
        runs[how] = (Run(stack, f"e2e_check_by_{how}", {"monitor": monitor}), monitor, key)
    checks = {}
    for how, fault, *_ in ways:
        run, monitor, key = runs[how]
        run.wait_for("wait", "deferred")
        monitors.wait_until_watched(monitor)
        if fault:
            sandbox.add_fault(fault, path=f".*/{key}")
        checks[how] = monitors.run(monitor)

    for how, fault, words, rows in ways:
        run, monitor, _ = runs[how]
        assert words in run.resumed_once("is over:")
        assert run.xcom("wait")["id"] == checks[how]
        assert len(inbox.rows(job_id=checks[how])) == rows
        assert monitors.deliveries(checks[how])[CHECK_COMPLETED]["status"] == (
            "lost" if fault else "delivered"
        )


@pytest.mark.rule("delivery-order")
def test_what_came_early_is_found(
    stack: Stack, monitors: Monitors, sender: Sender, inbox: InboxTable
) -> None:
    monitor, key = monitors.make("early"), new_key()
    check = monitors.run(monitor)
    assert sender.deliver(key, body_of("crawl.completed")) == "stored"

    of_check = Run(stack, "e2e_check_by_webhook", {"monitor": monitor, "check": check})
    of_delivery = Run(stack, "e2e_delivery_to_webdata_default", {"key": key, "after": LONG_AGO})

    of_check.resumed_once("is over:")
    assert of_check.xcom("wait")["id"] == check
    (row,) = inbox.rows(correlation_key=key)
    of_delivery.resumed_once(f"Delivery {row['id']}:")
    assert of_delivery.xcom("wait")["event"] == "crawl.completed"


BODY = body_of("crawl.completed", number=1)
RIGHT_SECRET = {SECRET_HEADER: WEBHOOK_SECRET}
HOSTILE: list[tuple[str, str, dict[str, str], bytes, int]] = [
    # what, connection, headers, body, answer
    ("no secret", "webdata_default", {}, BODY, 401),
    ("wrong secret", "webdata_default", {SECRET_HEADER: WEBHOOK_SECRET[:-1] + "x"}, BODY, 401),
    (
        "signature for a secret",
        "webdata_default",
        {SIGNATURE_HEADER: signature(SIGNING_SECRET, BODY)},
        BODY,
        401,
    ),
    ("no signature", SIGNED_CONNECTION, {}, BODY, 401),
    ("forged signature", SIGNED_CONNECTION, {SIGNATURE_HEADER: signature("guessed", BODY)}, BODY, 401),
    (
        "signature of another body",
        SIGNED_CONNECTION,
        {SIGNATURE_HEADER: signature(SIGNING_SECRET, BODY + b" ")},
        BODY,
        401,
    ),
    ("secret for a signature", SIGNED_CONNECTION, RIGHT_SECRET, BODY, 401),
    ("unknown connection", "webdata_nowhere", RIGHT_SECRET, BODY, 401),
    ("connection of another type", "webdata_other", RIGHT_SECRET, BODY, 401),
    ("oversized", "webdata_default", RIGHT_SECRET, b" " * (MAX_BODY_MB * 2**20) + BODY, 413),
    ("no JSON", "webdata_default", RIGHT_SECRET, b"{" + BODY, 400),
]


@pytest.mark.rule("delivery-signature")
def test_the_forged_and_the_malformed_wake_nobody(stack: Stack, sender: Sender, inbox: InboxTable) -> None:
    stack.api.add_connection(
        {"connection_id": "webdata_other", "conn_type": "http", "password": WEBHOOK_SECRET}
    )
    key = new_key()
    runs = [
        Run(stack, f"e2e_delivery_to_{name}", {"key": key}) for name in ("webdata_default", SIGNED_CONNECTION)
    ]
    for run in runs:
        run.wait_for("wait", "deferred")

    answers = {
        what: sender.send(key, body, headers, connection).status_code
        for what, connection, headers, body, _ in HOSTILE
    }

    assert answers == {what: status for what, *_, status in HOSTILE}
    assert inbox.rows(correlation_key=key) == []
    # What is right, sent to the same address afterwards, is what both tasks get.
    right = {"webdata_default": body_of("right", number=1), SIGNED_CONNECTION: body_of("right", number=2)}
    assert sender.deliver(key, right["webdata_default"]) == "stored"
    signed = right[SIGNED_CONNECTION]
    answer = sender.send(
        key, signed, {SIGNATURE_HEADER: signature(SIGNING_SECRET, signed)}, SIGNED_CONNECTION
    )
    assert answer.json() == {"status": "stored"}
    for number, run in enumerate(runs, 1):
        run.resumed_once("right, received at")
        assert run.xcom("wait")["payload"]["data"] == [{"number": number}]


@pytest.mark.rule("delivery-replay")
def test_a_replay_is_stored_once_and_wakes_nobody(stack: Stack, sender: Sender, inbox: InboxTable) -> None:
    # With the service's id of the event, and without, as older servers send it.
    bodies = {
        new_key(): [body_of("page", number=number, webhook_id=webhook_id) for number in (1, 2, 3)]
        for webhook_id in (True, False)
    }
    runs = {key: Run(stack, "e2e_delivery_to_webdata_default", {"key": key}) for key in bodies}
    for key, (first, second, _) in bodies.items():
        runs[key].wait_for("wait", "deferred")
        answers = [sender.deliver(key, body) for body in (first, second, first, second, first)]
        assert answers == ["stored", "stored", "duplicate", "duplicate", "duplicate"]

    for key, (first, second, _) in bodies.items():
        runs[key].resumed_once("page, received at")
        assert runs[key].xcom("wait")["payload"] == json.loads(first)
        assert [bytes(row["body"]) for row in inbox.rows(correlation_key=key)] == [first, second]

    # Nor does the replay of what was consumed long since count for whoever waits from now on.
    later = {key: Run(stack, "e2e_delivery_to_webdata_default", {"key": key}) for key in bodies}
    for key, (first, _, third) in bodies.items():
        later[key].wait_for("wait", "deferred")
        assert [sender.deliver(key, body) for body in (first, third)] == ["duplicate", "stored"]
    for key, (_, _, third) in bodies.items():
        later[key].resumed_once("page, received at")
        assert later[key].xcom("wait")["payload"] == json.loads(third)


@pytest.mark.rule("delivery-replay", "delivery-order")
def test_repeated_and_out_of_order(
    stack: Stack, sandbox: SandboxControl, monitors: Monitors, inbox: InboxTable
) -> None:
    key = new_key()
    monitor = monitors.make("disorder", key=key, events=(MONITOR_PAGE, CHECK_COMPLETED))
    run = Run(stack, "e2e_check_by_webhook", {"monitor": monitor})
    run.wait_for("wait", "deferred")
    monitors.wait_until_watched(monitor)
    # The page's event comes after that of the whole check, whose answer the service does not hear three times.
    sandbox.add_fault("late_delivery", event=MONITOR_PAGE, path=f".*/{key}", seconds=30)
    sandbox.add_fault("lose_answer", event=CHECK_COMPLETED, path=f".*/{key}", times=3)
    check = monitors.run(monitor)
    run.resumed_once("is over:")
    for minutes in (1, 5, 15):
        sandbox.advance(minutes * ONE_MINUTE)

    sent = monitors.deliveries(check)
    statuses: dict[str, list[Any]] = {
        event: [attempt["statusCode"] for attempt in delivery["attempts"]] for event, delivery in sent.items()
    }
    assert statuses == {CHECK_COMPLETED: [None, None, None, 200], MONITOR_PAGE: [200]}
    assert [row["event"] for row in inbox.rows(correlation_key=key)] == [CHECK_COMPLETED, MONITOR_PAGE]
    run.resumed_once("is over:")
