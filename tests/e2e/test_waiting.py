# SPDX-License-Identifier: Apache-2.0
"""Tasks that wait for the service on a real Airflow: nothing lost, nothing resumed twice, nothing forged."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from tests.e2e.conftest import DATABASES, MAX_BODY_MB, SIGNED_CONNECTION, SIGNING_SECRET, WEBHOOK_SECRET, on
from tests.e2e.outside import InboxTable, Monitors, Sender, body_of, new_key
from tests.e2e.run import Run
from tests.support.service import (
    CHECK_COMPLETED,
    MONITOR_PAGE,
    SECRET_HEADER,
    SIGNATURE_HEADER,
    signature,
)
from tests.support.stack import Stack
from webdata_sandbox.control import SandboxControl

ONE_MINUTE = 60
LONG_AGO = "2020-01-01T00:00:00Z"


@dataclass(frozen=True)
class Wait:
    """A task that waits.

    :ivar key: of its deliveries.
    :ivar monitor: whose check it waits for, if any.
    :ivar check: the check, if it was over before the task started.
    """

    run: Run
    key: str
    monitor: str = ""
    check: str = ""


# How a check is reported: whether its monitor has a webhook, what the task logs, and rows in the inbox.
WAYS = {"webhook": (True, "reported by webhook", 1), "polling": (False, "reported by polling", 0)}


@pytest.fixture(scope="module")
def waits(stack: Stack, start: Callable[..., Run], monitors: Monitors, sender: Sender) -> dict[str, Wait]:
    """The tasks of all tests of a database, started together."""

    def for_check(name: str, **options: Any) -> Wait:
        key = new_key()
        monitor = monitors.create(name, key=key, **options)
        return Wait(start("e2e_check", {"monitor": monitor}), key, monitor)

    def for_delivery(key: str, connection: str = "webdata_default") -> Wait:
        return Wait(start(f"e2e_delivery_to_{connection}", {"key": key}), key)

    waits = {
        how: for_check(f"reported by {how}", webhook=has_webhook) for how, (has_webhook, *_) in WAYS.items()
    }
    if stack.database_url:
        waits["replay"] = for_delivery(new_key())
        waits["replay without id"] = for_delivery(new_key())
        waits["disorder"] = for_check("disorder", events=(MONITOR_PAGE, CHECK_COMPLETED))
    else:
        key = new_key()
        waits["forged secret"] = for_delivery(key)
        waits["forged signature"] = for_delivery(key, SIGNED_CONNECTION)
        waits["early check"] = _early_check(start, monitors)
        waits["early delivery"] = _early_delivery(start, sender)
    return waits


def _early_check(start: Callable[..., Run], monitors: Monitors) -> Wait:
    key = new_key()
    monitor = monitors.create("early", key=key)
    check = monitors.run(monitor)
    return Wait(start("e2e_check", {"monitor": monitor, "check": check}), key, monitor, check)


def _early_delivery(start: Callable[..., Run], sender: Sender) -> Wait:
    key = new_key()
    assert sender.deliver(key, body_of("crawl.completed")) == "stored"
    return Wait(start("e2e_delivery_to_webdata_default", {"key": key, "after": LONG_AGO}), key)


@on(*DATABASES)
def test_a_check_is_learned_of_by_webhook_and_without_one_by_polling(
    waits: dict[str, Wait], monitors: Monitors, inbox: InboxTable
) -> None:
    checks = {}
    for how in WAYS:
        wait = waits[how]
        wait.run.wait_for("wait", "deferred")
        monitors.wait_until_watched(wait.monitor)
        checks[how] = monitors.run(wait.monitor)

    for how, (_, words, rows) in WAYS.items():
        run = waits[how].run
        assert words in run.resumed_once(" (reported by ")
        assert run.xcom("wait")["id"] == checks[how]
        assert len(inbox.rows(job_id=checks[how])) == rows
    assert monitors.deliveries(checks["webhook"])[CHECK_COMPLETED]["status"] == "delivered"


@pytest.mark.rule("delivery-order")
def test_what_came_early_is_found(waits: dict[str, Wait], inbox: InboxTable) -> None:
    of_check, of_delivery = waits["early check"], waits["early delivery"]

    of_check.run.resumed_once(" (reported by ")
    assert of_check.run.xcom("wait")["id"] == of_check.check
    (row,) = inbox.rows(correlation_key=of_delivery.key)
    of_delivery.run.resumed_once(f"Delivery {row['id']}:")
    assert of_delivery.run.xcom("wait")["event"] == "crawl.completed"


BODY = body_of("crawl.completed", number=1)
RIGHT_SECRET = {SECRET_HEADER: WEBHOOK_SECRET}
# What is wrong: connection, headers, body, and the answer's status.
HOSTILE: dict[str, tuple[str, dict[str, str], bytes, int]] = {
    "no secret": ("webdata_default", {}, BODY, 401),
    "wrong secret": ("webdata_default", {SECRET_HEADER: WEBHOOK_SECRET[:-1] + "x"}, BODY, 401),
    "signature for a secret": (
        "webdata_default",
        {SIGNATURE_HEADER: signature(SIGNING_SECRET, BODY)},
        BODY,
        401,
    ),
    "no signature": (SIGNED_CONNECTION, {}, BODY, 401),
    "forged signature": (SIGNED_CONNECTION, {SIGNATURE_HEADER: signature("guessed", BODY)}, BODY, 401),
    "signature of another body": (
        SIGNED_CONNECTION,
        {SIGNATURE_HEADER: signature(SIGNING_SECRET, BODY + b" ")},
        BODY,
        401,
    ),
    "secret for a signature": (SIGNED_CONNECTION, RIGHT_SECRET, BODY, 401),
    "unknown connection": ("webdata_nowhere", RIGHT_SECRET, BODY, 401),
    "connection of another type": ("webdata_other", RIGHT_SECRET, BODY, 401),
    "oversized": ("webdata_default", RIGHT_SECRET, b" " * (MAX_BODY_MB * 2**20) + BODY, 413),
    "no JSON": ("webdata_default", RIGHT_SECRET, b"{" + BODY, 400),
}


@pytest.mark.rule("delivery-signature")
def test_the_forged_and_the_malformed_wake_nobody(
    stack: Stack, waits: dict[str, Wait], sender: Sender, inbox: InboxTable
) -> None:
    stack.api.add_connection(
        {"connection_id": "webdata_other", "conn_type": "http", "password": WEBHOOK_SECRET}
    )
    runs = [waits[name].run for name in ("forged secret", "forged signature")]
    key = waits["forged secret"].key
    for run in runs:
        run.wait_for("wait", "deferred")

    answers = {
        what: sender.send(key, body, headers, connection).status_code
        for what, (connection, headers, body, _) in HOSTILE.items()
    }

    assert answers == {what: status for what, (*_, status) in HOSTILE.items()}
    assert inbox.rows(correlation_key=key) == []
    # Both tasks get what is right and sent to the same address afterwards.
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


@on("postgresql")
@pytest.mark.rule("delivery-replay")
def test_a_replay_is_stored_once_and_wakes_nobody(
    start: Callable[..., Run], waits: dict[str, Wait], sender: Sender, inbox: InboxTable
) -> None:
    # With the service's id of the event, and without, as older servers send it.
    first_waits = {waits[name].key: waits[name].run for name in ("replay", "replay without id")}
    bodies = {
        waits[name].key: [body_of("page", number=number, webhook_id=webhook_id) for number in (1, 2, 3)]
        for name, webhook_id in (("replay", True), ("replay without id", False))
    }
    for key, (first, second, _) in bodies.items():
        first_waits[key].wait_for("wait", "deferred")
        answers = [sender.deliver(key, body) for body in (first, second, first, second, first)]
        assert answers == ["stored", "stored", "duplicate", "duplicate", "duplicate"]

    for key, (first, second, _) in bodies.items():
        first_waits[key].resumed_once("page, received at")
        assert first_waits[key].xcom("wait")["payload"] == json.loads(first)
        assert [bytes(row["body"]) for row in inbox.rows(correlation_key=key)] == [first, second]

    # Nor does the replay of a delivery that was consumed before count for a task that waits from now on.
    later = {key: start("e2e_delivery_to_webdata_default", {"key": key}) for key in bodies}
    for key, (first, _, third) in bodies.items():
        later[key].wait_for("wait", "deferred")
        assert [sender.deliver(key, body) for body in (first, third)] == ["duplicate", "stored"]
    for key, (_, _, third) in bodies.items():
        later[key].resumed_once("page, received at")
        assert later[key].xcom("wait")["payload"] == json.loads(third)


@on("postgresql")
@pytest.mark.rule("delivery-replay", "delivery-order")
def test_repeated_and_out_of_order(
    waits: dict[str, Wait], control: SandboxControl, monitors: Monitors, inbox: InboxTable
) -> None:
    wait = waits["disorder"]
    wait.run.wait_for("wait", "deferred")
    monitors.wait_until_watched(wait.monitor)
    # The page's event comes after that of the whole check, whose answer the service does not receive three times.
    control.add_fault("late_delivery", event=MONITOR_PAGE, path=f".*/{wait.key}", seconds=30)
    control.add_fault("lose_answer", event=CHECK_COMPLETED, path=f".*/{wait.key}", times=3)
    check = monitors.run(wait.monitor)
    wait.run.resumed_once(" (reported by ")
    for minutes in (1, 5, 15):
        control.advance(minutes * ONE_MINUTE)

    sent = monitors.deliveries(check)
    statuses: dict[str, list[Any]] = {
        event: [attempt["statusCode"] for attempt in delivery["attempts"]] for event, delivery in sent.items()
    }
    assert statuses == {CHECK_COMPLETED: [None, None, None, 200], MONITOR_PAGE: [200]}
    assert [row["event"] for row in inbox.rows(correlation_key=wait.key)] == [CHECK_COMPLETED, MONITOR_PAGE]
    wait.run.resumed_once(" (reported by ")
