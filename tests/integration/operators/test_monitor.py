# SPDX-License-Identifier: Apache-2.0
"""The monitor operators: one life of a monitor in a real Airflow, all else in this process, against the sandbox."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from datetime import datetime, timezone
from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowFailException

from airflow_provider_webdata.api.client import ClientConfig, WebDataClient
from airflow_provider_webdata.api.endpoints import CREATE_MONITOR
from airflow_provider_webdata.api.models import MonitorCreateRequest
from airflow_provider_webdata.hooks.webdata import WebDataHook
from airflow_provider_webdata.operators.monitor import (
    WebDataCreateMonitorOperator,
    WebDataDeleteMonitorOperator,
    WebDataRunMonitorOperator,
    WebDataUpdateMonitorOperator,
)
from airflow_provider_webdata.runs.failures import (
    CreditLimitError,
    MonitorConflictError,
    MonitorMissingError,
)
from tests.support import direct
from tests.support.direct import Outcome, StateStore, TaskInstance, context_of
from tests.support.service import NEVER, hourly
from webdata_sandbox.server import SandboxServer

TARGETS = [{"type": "scrape", "urls": ["https://example.com/"]}]
SECRET_URL = "https://h.example/?page=2&access_token=hush-three"
HUSH: dict[str, Any] = {"url": "https://h.example/", "headers": {"X-Key": "hush-one"}}

Log = Callable[[], str]


def create(**arguments: Any) -> Any:
    given = {"name": "prices", "schedule": NEVER, "targets": TARGETS, "retries": 1, **arguments}
    return WebDataCreateMonitorOperator(task_id="keep", **given)


def monitors(sandbox: SandboxServer, name: str = "prices") -> list[Any]:
    """Return the sandbox's monitors of this name that are not deleted."""
    return [m for m in sandbox.control.state()["monitors"] if m["name"] == name and m["status"] != "deleted"]


def writes(sandbox: SandboxServer) -> list[tuple[str, str, int]]:
    """Return method, path and status of the requests that are no reads."""
    return [(r["method"], r["path"], r["status"]) for r in sandbox.control.requests() if r["method"] != "GET"]


def value(operator: Any) -> Any:
    outcome = direct.run(operator, StateStore())
    assert outcome.state == "success", outcome.error
    return outcome.value


# In a real Airflow.


@pytest.mark.rule("monitor-status", "monitor-update-goal", "monitor-resume", "monitor-delete", "monitor-run")
@pytest.mark.rule("webhook-headers")
def test_life_of_a_monitor(run_dag: Any, sandbox: SandboxServer) -> None:
    """Create, pause, resume, rename, run, list, delete: by id from XCom, and by name."""
    sandbox.control.configure(queue_seconds=3600)
    done = run_dag(
        f"""
keep = WebDataCreateMonitorOperator(task_id="keep", name="prices", schedule={NEVER!r}, targets=TARGETS)
WebDataCreateMonitorOperator(
    task_id="other", name="other", schedule={{"text": "daily"}}, webhook={HUSH!r},
    targets=[{{"type": "scrape", "urls": ["{SECRET_URL}"]}}],
) >> [
    WebDataListMonitorsOperator(task_id="list_other", name_pattern="oth*"),
    WebDataListMonitorsOperator(task_id="list_one", limit="{{{{ 1 }}}}"),
]
by_id = {{"monitor_id": "{{{{ ti.xcom_pull('keep')['id'] }}}}"}}
by_name = {{"monitor_name": "prices"}}
(
    keep
    >> WebDataUpdateMonitorOperator(task_id="pause", status="paused", **by_id)
    >> WebDataUpdateMonitorOperator(task_id="pause_again", status="paused", **by_name)
    >> WebDataListMonitorsOperator(task_id="list_paused", status="paused")
    >> WebDataRunMonitorOperator(task_id="run_paused", retries=2, **by_id)
    >> WebDataUpdateMonitorOperator(task_id="resume", status="active", trigger_rule="all_done", **by_id)
    >> WebDataUpdateMonitorOperator(task_id="change", name="costs", goal="cheaper", **by_name)
    >> WebDataRunMonitorOperator(task_id="run", **by_id)
    >> WebDataDeleteMonitorOperator(task_id="delete", **by_id)
    >> WebDataDeleteMonitorOperator(task_id="delete_again", **by_id)
    >> WebDataDeleteMonitorOperator(task_id="delete_strictly", ignore_missing=False, **by_id)
)
"""
    )
    names = [name for name in done.run["tasks"] if not name.startswith(("delete_strictly", "run_paused"))]
    assert {name: done.state(name) for name in names} == dict.fromkeys(names, "success")
    found = {name: done.xcom.get(f"{name}.return_value") for name in done.run["tasks"]}
    monitor_id = found["keep"]["id"]
    assert [monitor["name"] for monitor in found["list_other"]] == ["other"]
    assert [monitor["id"] for monitor in found["list_paused"]] == [monitor_id]
    assert len(found["list_one"]) == 1
    assert found["pause"]["status"] == found["pause_again"]["status"] == "paused"
    assert done.ended("run_paused") == ("failed", 1)
    assert found["resume"]["status"] == "active"
    assert (found["change"]["name"], found["change"]["judgeEnabled"]) == ("costs", True)
    assert found["run"]["monitorId"] == monitor_id
    assert found["run"]["trigger"] == "manual"
    assert found["delete"] == {"id": monitor_id, "deleted": True}
    assert found["delete_again"] == {"id": monitor_id, "deleted": False}
    assert done.state("delete_strictly") == "failed"
    patches = [request["body"] for request in sandbox.control.requests("/v2/monitor", method="PATCH")]
    assert patches == [
        {"status": "paused"},
        {"status": "paused"},
        {"status": "active", "schedule": {**NEVER, "timezone": "UTC"}},
        {"name": "costs", "goal": "cheaper", "judgeEnabled": True},
    ]
    assert found["other"]["webhook"]["headers"] == {"X-Key": "***"}
    assert done.run["rendered"]["other"]["webhook"]["headers"] == {"X-Key": "***"}
    # The result has the URL unchanged.
    assert found["other"]["targets"][0]["urls"] == [SECRET_URL]
    assert done.run["rendered"]["other"]["targets"][0]["urls"] == [
        "https://h.example/?page=2&access_token=***"
    ]
    assert "hush" not in done.log


@pytest.mark.rule("schedule-stored")
def test_a_schedule_as_text_over_the_runs_of_a_dag(run_dag: Any, sandbox: SandboxServer) -> None:
    """The service moves a schedule; a later run reads from XCom what an earlier one applied."""
    sandbox.control.set_quirks(["schedule-spread"])
    done = run_dag(
        """
        WebDataCreateMonitorOperator(
            task_id="keep", name="prices", schedule={"text": "daily at 9:30 am"}, targets=TARGETS
        )
        """,
        "logical_dates = ['2026-01-01T00:00:00+00:00', '2026-01-02T00:00:00+00:00']",
    )
    assert [run["state"] for run in done.runs] == ["success"] * 2
    assert writes(sandbox) == [("POST", "/v2/monitor", 200)]
    (monitor,) = monitors(sandbox)
    applied = {"text": "daily at 9:30 am", "cron": monitor["schedule"]["cron"]}
    assert [run["xcom"]["keep.applied_schedule"] for run in done.runs] == [applied] * 2


# In this process.


@pytest.mark.rule("monitor-normalised")
@pytest.mark.says("the log says that the monitor `matches the declaration`")
def test_created_then_kept(here: SandboxServer, log: Log) -> None:
    """The first run creates, the second finds nothing to do; both return the monitor."""
    first, second = (value(create(goal="cheaper")) for _ in range(2))
    (monitor,) = monitors(here)
    assert first["id"] == second["id"] == monitor["id"]
    assert second["judgeEnabled"] is True
    assert writes(here) == [("POST", "/v2/monitor", 200)]
    assert "matches the declaration" in log()
    (post,) = here.control.requests("/v2/monitor", method="POST")
    assert post["body"] == {"name": "prices", "schedule": NEVER, "targets": TARGETS, "goal": "cheaper"}


@pytest.mark.rule("monitor-list")
def test_a_list_that_a_gateway_cuts_creates_nothing(here: SandboxServer) -> None:
    """It drops `offset`, so that each page is the first one, and the declared monitor is on none."""
    page = {"success": True, "data": [{"id": f"m{number}", "name": "other"} for number in range(25)]}
    here.control.add_fault("status", method="GET", path="/v2/monitor$", status=200, body=page, times=None)
    outcome = direct.run(create(), StateStore())
    assert outcome.ended == ("failed", 1)
    assert "a gateway on the way drops the query" in " ".join(str(outcome.error).split())
    assert writes(here) == []


@pytest.mark.rule("target-ids", "monitor-update", "webhook-headers")
def test_only_differences_are_patched(here: SandboxServer, log: Log) -> None:
    """Targets keep their ids; the log names fields, no values."""
    before = value(create(goal="cheaper", webhook=HUSH))
    here.control.clear_requests()
    webhook = {"url": "https://h.example/", "headers": {"X-Key": "hush-two"}}
    targets = [*TARGETS, {"type": "search", "queries": ["price"]}]
    value(create(goal="dearer", retention_days="{{ '7' }}", webhook=webhook, targets=targets))
    (patch,) = here.control.requests("/v2/monitor", method="PATCH")
    assert patch["body"] == {
        "goal": "dearer",
        "judgeEnabled": True,
        "retentionDays": 7,
        "webhook": webhook,
        "targets": [{**TARGETS[0], "id": before["targets"][0]["id"]}, targets[1]],
    }
    logged = log()
    assert "differs in targets[1] (new), goal, retentionDays, webhook.headers; updating it" in logged
    assert "hush" not in logged
    assert [method for method, _, _ in writes(here)] == ["PATCH"]


@pytest.mark.rule("schedule-stored")
@pytest.mark.parametrize(
    ("text", "quirks"),
    [
        ("every 30 minutes", ["schedule-spread"]),
        ("daily at 9:30 am", []),
        ("hourly at :05", ["schedule-spread"]),
    ],
)
def test_a_schedule_as_text_settles(here: SandboxServer, text: str, quirks: list[str]) -> None:
    """A moved schedule is no difference."""
    here.control.set_quirks(quirks)
    earlier: dict[str, Any] = {}
    for _ in range(3):
        outcome = direct.run(create(schedule={"text": text}), StateStore(), earlier=earlier)
        earlier = outcome.xcom
        (monitor,) = monitors(here)
        assert earlier["applied_schedule"] == {"text": text, "cron": monitor["schedule"]["cron"]}
    assert writes(here) == [("POST", "/v2/monitor", 200)]


def test_reuse_changes_nothing(here: SandboxServer) -> None:
    value(create())
    here.control.clear_requests()
    assert value(create(retention_days=7, if_exists="reuse"))["retentionDays"] == 30
    assert writes(here) == []


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda hook, monitor: hook.delete_monitor(monitor), "does not exist: it may have been deleted"),
        (
            lambda hook, monitor: hook.update_monitor(monitor, extra_body={"name": "other"}),
            "is named 'other'. It continues",
        ),
    ],
    ids=["deleted", "renamed"],
)
def test_a_declared_monitor_that_vanished_is_a_warning(
    here: SandboxServer, log: Log, change: Any, words: str
) -> None:
    earlier = value(create())["id"]
    with WebDataHook() as hook:
        change(hook, earlier)
    created = direct.run(create(), StateStore(), earlier={"monitor_id": earlier}).value["id"]
    assert f"Monitor {earlier}, which this task declared earlier, {words}" in log()
    assert f"Monitor {created} replaces it" in log()


@pytest.mark.rule("monitor-name-not-unique")
def test_two_of_a_name(here: SandboxServer) -> None:
    """An error that names both ids; `monitor_id` chooses one."""
    with WebDataHook() as hook:
        ids = {hook.create_monitor(name="prices", schedule=NEVER, targets=TARGETS).id for _ in range(2)}
    outcome = direct.run(create())
    assert outcome.ended == ("failed", 1)
    assert isinstance(outcome.error, MonitorConflictError)
    assert "2 monitors are named 'prices'" in str(outcome.error)
    assert all(monitor_id in str(outcome.error) for monitor_id in ids)
    chosen = min(ids)
    assert value(create(monitor_id=f"{{{{ {chosen!r} }}}}", retention_days=7))["id"] == chosen
    kept = {monitor["id"]: monitor["retentionDays"] for monitor in monitors(here)}
    assert kept == {monitor_id: 7 if monitor_id == chosen else 30 for monitor_id in ids}


# Crashes and lost answers.


def dies_once(monkeypatch: pytest.MonkeyPatch, method: str, *, after: bool = True) -> None:
    """Let the worker die at a call of the hook: after the service has acted, or before."""
    real = getattr(WebDataHook, method)
    left = [1]

    def act(self: Any, *args: Any, **kwargs: Any) -> Any:
        answer = None if left and not after else real(self, *args, **kwargs)
        if left:
            left.clear()
            raise RuntimeError("the worker dies here")
        return answer

    monkeypatch.setattr(WebDataHook, method, act)


@pytest.mark.rule("late-reads", "repeat-unsafe")
@pytest.mark.parametrize("if_exists", ["update", "reuse"])
def test_crash_after_the_request(
    here: SandboxServer, monkeypatch: pytest.MonkeyPatch, if_exists: str
) -> None:
    """Between the service's answer and the end: the retry finds the monitor, though the replica is late."""
    here.control.set_quirks(["late-replica=2"])
    dies_once(monkeypatch, "create_monitor")
    outcome = direct.run(create(if_exists=if_exists, replica_wait=5), StateStore())
    assert outcome.ended == ("success", 2)
    assert [method for method, _, _ in writes(here)] == ["POST"]
    (monitor,) = monitors(here)
    assert outcome.value["id"] == monitor["id"]


def test_crash_before_the_request(here: SandboxServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing was made: the retry looks for a while, then makes it."""
    dies_once(monkeypatch, "create_monitor", after=False)
    assert direct.run(create(replica_wait=0.3), StateStore()).ended == ("success", 2)
    assert len(monitors(here)) == 1


@pytest.mark.rule("repeat-unsafe")
@pytest.mark.parametrize("kind", ["drop_after_work", "garbage"])
def test_lost_answer(here: SandboxServer, kind: str) -> None:
    """The monitor was created and the answer got lost: it is found in the same try, and nothing is repeated."""
    here.control.set_quirks(["late-replica=1"])
    here.control.add_fault(kind, method="POST", path="/v2/monitor")
    outcome = direct.run(create(), StateStore())
    (monitor,) = monitors(here)
    assert outcome.ended == ("success", 1)
    assert outcome.value["id"] == monitor["id"]
    assert len(here.control.requests("/v2/monitor", method="POST")) == 1


def test_fault_before_work(here: SandboxServer) -> None:
    """Nothing was created: nothing is found, the try fails, the retry creates."""
    here.control.add_fault("html", method="POST", path="/v2/monitor")
    assert direct.run(create(replica_wait=0.3), StateStore()).ended == ("success", 2)
    assert len(monitors(here)) == 1


@pytest.mark.rule("retry-after")
def test_rate_limited_write(here: SandboxServer, connect: Any) -> None:
    """Writes share two a minute on the smallest plan: the task comes back, with one monitor in the end."""
    connect(here, retry_budget=0)
    here.control.add_fault(
        "status", method="POST", path="/v2/monitor", status=429, headers={"Retry-After": "1"}
    )
    outcome = direct.run(create(), StateStore())
    assert (*outcome.ended, outcome.reschedules) == ("success", 1, 1)
    assert len(monitors(here)) == 1


# What a monitor may cost.


@pytest.mark.rule("monitor-estimate")
@pytest.mark.says("The message says what happened to the monitor")
def test_too_expensive_to_create(here: SandboxServer) -> None:
    """Over the limit, nothing new stays behind."""
    task = create(max_credits_per_month="{{ 10 }}", schedule={"cron": "*/5 * * * *"})
    outcome = direct.run(task, StateStore())
    assert outcome.ended == ("failed", 1)
    assert "over max_credits_per_month=10; the task deleted it" in str(outcome.error)
    assert outcome.xcom["failure"]["accepted_with"]["max_credits_per_month"] > 10
    assert monitors(here) == []
    (deleted,) = [m for m in here.control.state()["monitors"] if m["name"] == "prices"]
    assert deleted["status"] == "deleted"


@pytest.mark.rule("monitor-estimate")
def test_too_expensive_to_change(here: SandboxServer) -> None:
    """Over the limit, the former values are put back."""
    value(create(goal="cheaper", max_credits_per_month=2000))
    (before,) = monitors(here)
    # None of its checks falls due before the former schedule is back.
    often = {"cron": f"{(datetime.now(timezone.utc).minute + 3) % 5}-59/5 * * * *"}
    with pytest.raises(CreditLimitError, match="the task restored its previous values"):
        create(goal="dearer", max_credits_per_month=2000, schedule=often).execute(context_of(TaskInstance()))
    (after,) = monitors(here)
    changing = {"updatedAt", "nextRunAt"}
    assert {k: v for k, v in after.items() if k not in changing} == {
        k: v for k, v in before.items() if k not in changing
    }


def test_an_attempt_that_dies_before_it_has_changed_a_monitor_back(
    here: SandboxServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next one sees no difference, but the limit holds."""
    value(create())
    dies_once(monkeypatch, "update_monitor")
    outcome = direct.run(create(max_credits_per_month=10, schedule=hourly()), StateStore())
    assert outcome.ended == ("failed", 2)
    assert "the task paused it, because an earlier attempt may have created or changed it" in str(
        outcome.error
    )
    (monitor,) = monitors(here)
    assert monitor["status"] == "paused"


def test_a_monitor_that_an_earlier_attempt_may_have_created_is_not_deleted(
    here: SandboxServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A retry finds a new monitor of the same name, which an earlier attempt may have created."""
    expensive = {"max_credits_per_month": 10, "schedule": hourly()}
    dies_once(monkeypatch, "create_monitor", after=False)

    def by_another(number: int) -> None:
        if number == 2:
            value(create(schedule=hourly()))

    outcome = direct.run(create(**expensive), before_try=by_another)
    assert outcome.ended == ("failed", 2)
    assert "the task paused it, because an earlier attempt may have created or changed it" in str(
        outcome.error
    )
    (monitor,) = monitors(here)
    assert monitor["status"] == "paused"


def test_a_deletion_whose_answer_was_lost(here: SandboxServer) -> None:
    here.control.add_fault("drop_after_work", method="DELETE", path="/v2/monitor")
    outcome = direct.run(create(max_credits_per_month=10, schedule=hourly()), StateStore())
    assert outcome.ended == ("failed", 1)
    assert "the task deleted it" in str(outcome.error)
    assert monitors(here) == []


def test_a_monitor_that_cannot_be_deleted_is_named(here: SandboxServer, connect: Any, log: Log) -> None:
    connect(here, retry_budget=0)
    here.control.add_fault("status", method="DELETE", path="/v2/monitor", times=None)
    outcome = direct.run(create(max_credits_per_month=10, schedule=hourly(), retries=0), StateStore())
    (monitor,) = monitors(here)
    assert outcome.ended == ("failed", 1)
    assert f"Monitor {monitor['id']} could not be changed back and continues" in log()


def test_cheap_enough(here: SandboxServer) -> None:
    value(create(max_credits_per_month=100000))
    assert len(monitors(here)) == 1


BAD_INPUT: dict[str, tuple[dict[str, Any], list[str]]] = {
    "endless crawl": (
        {"targets": [{"type": "crawl", "url": "https://example.com"}]},
        ["targets[0].crawlOptions.limit", "10,000 credits", "allow_unlimited_crawl=True"],
    ),
    "search target without goal": ({"targets": [{"type": "search", "queries": ["q"]}]}, ["goal"]),
    "limit of credits": ({"max_credits_per_month": "few"}, ["max_credits_per_month", "'few'"]),
    "wrong scrape option": (
        {"targets": [
            {"type": "scrape", "urls": ["https://a.example"], "scrapeOptions": {"waitFor": "{{ 'x' }}"}}
        ]},
        ["targets[0].scrapeOptions.waitFor", "must be a whole number"],
    ),
}  # fmt: skip


@pytest.mark.rule("target-json", "check-json-mode")
def test_the_advice_on_json_of_a_monitor_yields_it(here: SandboxServer) -> None:
    url = "https://shop.example/offers"
    here.control.set_page(url, '<script type="application/ld+json">{"price": 12}</script><p>12 EUR</p>')
    schema = {"type": "object", "properties": {"price": {"type": "number"}}}

    def target(wanted: dict[str, Any]) -> dict[str, Any]:
        return {"type": "scrape", "urls": [url], "scrapeOptions": {"formats": [wanted]}}

    with pytest.raises(ValueError, match="no json, but bills it") as refusal:
        create(targets=[target({"type": "json", "schema": schema})])
    (advised,) = re.findall(r"use (\{.*?\})", " ".join(str(refusal.value).split()))
    kept = value(create(targets=[target({**ast.literal_eval(advised), "schema": schema})]))
    found = value(run_monitor(monitor_id=kept["id"], wait_for_completion=True, include_pages=True))
    assert [page["snapshot"] for page in found["pages"]] == [{"json": {"price": 12}}]


@pytest.mark.rule("target-crawl-limit")
@pytest.mark.parametrize(("arguments", "words"), BAD_INPUT.values(), ids=BAD_INPUT.keys())
def test_bad_input_fails_before_any_request(
    here: SandboxServer, arguments: dict[str, Any], words: list[str]
) -> None:
    with pytest.raises(AirflowFailException) as failure:
        direct.execute(create(**arguments), context_of(TaskInstance()))
    assert here.control.requests() == []
    assert all(word in str(failure.value) for word in words)


@pytest.mark.rule("target-crawl-limit")
def test_unlimited_crawl_on_request(here: SandboxServer, log: Log) -> None:
    """It is allowed where it is requested, and the log says what it costs."""
    value(create(allow_unlimited_crawl=True, targets=[{"type": "crawl", "url": "https://example.com"}]))
    assert "10,000 credits" in log()


# Monitors that exist.


def run_monitor(**arguments: Any) -> Any:
    return WebDataRunMonitorOperator(task_id="run", **{"retries": 1, **arguments})


@pytest.mark.rule("late-reads")
@pytest.mark.parametrize("by", ["monitor_id", "monitor_name"])
def test_late_replica(here: SandboxServer, by: str) -> None:
    """A monitor that was just created is missing at first; a stale read is not believed."""
    here.control.set_quirks(["late-replica=2"])
    monitor_id = value(create())["id"]
    which = {by: monitor_id if by == "monitor_id" else "prices"}
    for status in ("paused", "active"):
        value(WebDataUpdateMonitorOperator(task_id="t", status=status, **which))
    (monitor,) = monitors(here)
    assert monitor["status"] == "active"
    patches = here.control.requests("/v2/monitor", method="PATCH")
    assert [request["body"]["status"] for request in patches] == ["paused", "active"]


@pytest.mark.rule("monitor-run-conflict")
@pytest.mark.says("The message says which: use another name")
def test_run_when_one_is_running(here: SandboxServer) -> None:
    """Its id comes from the conflict; returning it or failing is a choice."""
    here.control.configure(check_seconds=3600)
    value(create())
    first = value(run_monitor(monitor_name="prices"))
    here.control.settle()
    second = value(run_monitor(monitor_name="prices"))
    assert second["id"] == first["id"]
    assert "pages" not in second
    third = direct.run(run_monitor(monitor_name="prices", if_running="error"), StateStore())
    assert third.ended == ("failed", 1)
    assert "is already running (if_running='error')" in str(third.error)
    assert len(here.control.state()["checks"]) == 1


def test_the_line_of_a_check_says_what_it_found(here: SandboxServer, log: Log) -> None:
    url = "https://river.example/"
    kept = value(create(targets=[{"type": "scrape", "urls": [url]}]))
    found = value(run_monitor(monitor_id=kept["id"], wait_for_completion=True, include_pages=True))
    line = rf"Check {found['id']} of monitor \S+ completed \(reported by polling\): "
    assert re.search(rf"{line}of 1 pages, 1 new \({url}\); 1 credits", log())


@pytest.mark.rule("late-reads", "monitor-run")
def test_run_of_a_monitor_just_created(here: SandboxServer) -> None:
    """The replica does not know the monitor yet: a 404 started nothing and is waited out."""
    here.control.configure(queue_seconds=3600)
    unknown = {"status": 404, "body": {"success": False, "error": "Monitor not found"}}
    here.control.add_fault("status", path="/v2/monitor/.*/checks", times=2, **unknown)
    here.control.add_fault("status", path="/v2/monitor/.*/run", **unknown)
    found = value(run_monitor(monitor_id=value(create())["id"]))
    (check,) = here.control.state()["checks"]
    assert found["id"] == check["id"]
    assert [request["status"] for request in here.control.requests("/v2/monitor/.*/run")] == [404, 200]


@pytest.mark.rule("repeat-unsafe", "monitor-run-twice")
@pytest.mark.parametrize("lost", ["the answer", "the worker"])
def test_the_check_of_a_lost_run_is_found(
    here: SandboxServer, monkeypatch: pytest.MonkeyPatch, lost: str
) -> None:
    """A run is never repeated blindly: this attempt or the next finds the check that was started."""
    here.control.configure(queue_seconds=3600)
    value(create())
    if lost == "the answer":
        here.control.add_fault("drop_after_work", method="POST", path="/v2/monitor/.*/run")
    else:
        dies_once(monkeypatch, "run_monitor")
    outcome: Outcome = direct.run(run_monitor(monitor_name="prices", replica_wait=5), StateStore())
    (check,) = here.control.state()["checks"]
    assert outcome.ended == ("success", 1 if lost == "the answer" else 2)
    assert outcome.value["id"] == check["id"]


def test_a_retry_with_a_corrected_monitor_runs_that_one(here: SandboxServer) -> None:
    here.control.configure(queue_seconds=3600)
    store = StateStore()
    ids = [value(create(name=name))["id"] for name in ("wrong", "right")]
    checks = [
        run_monitor(monitor_id=monitor_id).execute(context_of(TaskInstance(try_number=number), store))
        for number, monitor_id in enumerate(ids, 1)
    ]
    assert [check["monitorId"] for check in checks] == ids
    assert len({check["id"] for check in checks}) == 2


@pytest.mark.rule("monitor-get")
def test_missing_monitor(here: SandboxServer) -> None:
    """By id and by name, after looking as long as `replica_wait` says."""
    for which, words in (
        ({"monitor_name": "nobody"}, "The monitor named 'nobody' does not exist"),
        (
            {"monitor_id": "00000000-0000-4000-8000-000000000000"},
            "The monitor with the id '00000000-0000-4000-8000-000000000000' does not exist",
        ),
    ):
        task = WebDataUpdateMonitorOperator(task_id="t", status="paused", replica_wait=0, **which)
        with pytest.raises(MonitorMissingError, match=words):
            task.execute(context_of(TaskInstance()))
    deleted = value(WebDataDeleteMonitorOperator(task_id="t", monitor_name="nobody", replica_wait=0))
    assert deleted == {"id": None, "deleted": False}


@pytest.mark.rule("monitor-list")
def test_many_monitors(here: SandboxServer) -> None:
    """Names are looked for on every page of the list."""
    with WebDataClient(ClientConfig(here.url, here.api_key)) as client:
        for number in range(105):
            name = "prices" if number == 0 else f"m-{number}"
            body = {"name": name, "schedule": NEVER, "targets": TARGETS}
            client.call(CREATE_MONITOR, body=MonitorCreateRequest.model_validate(body))
    task = WebDataDeleteMonitorOperator(task_id="delete", monitor_name="prices")
    assert value(task)["deleted"] is True
    assert len([m for m in here.control.state()["monitors"] if m["status"] != "deleted"]) == 104
