"""This version loads the data that earlier versions have stored."""

from __future__ import annotations

import asyncio
import json
import time
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from airflow.sdk.exceptions import (
    AirflowException,
    AirflowFailException,
    AirflowSensorTimeout,
    AirflowSkipException,
    TaskDeferred,
)

from airflow_provider_webdata.api.models import ProviderRequest
from airflow_provider_webdata.hooks.ledger import Ledger
from airflow_provider_webdata.hooks.webdata import WebDataHook
from airflow_provider_webdata.hooks.webhooks import key_of
from airflow_provider_webdata.inbox_server.http.parameters import query_of
from airflow_provider_webdata.inbox_server.storage.records import NewDelivery
from airflow_provider_webdata.operators.crawl import WebDataCrawlOperator
from airflow_provider_webdata.operators.monitor import WebDataRunMonitorOperator
from airflow_provider_webdata.operators.provider import WebDataProviderOperator
from airflow_provider_webdata.runs.intent import Intent
from airflow_provider_webdata.runs.jobs.state import NOT_STARTED, StartState
from airflow_provider_webdata.runs.money.paid_records import FileRecords, StoreRecords
from airflow_provider_webdata.runs.searches.records import answered
from airflow_provider_webdata.runs.state import TaskState
from airflow_provider_webdata.sensors.job import WebDataJobSensor
from airflow_provider_webdata.sensors.monitor import WebDataMonitorCheckSensor
from airflow_provider_webdata.sensors.webhook import WebDataWebhookSensor
from airflow_provider_webdata.states.checks import CheckCriteria
from airflow_provider_webdata.states.deadline import WaitDeadline
from airflow_provider_webdata.toolsets.sources import AgentSources
from airflow_provider_webdata.triggers.base.stream_trigger import StreamTrigger
from airflow_provider_webdata.waiting.policy import PollingPolicy
from airflow_provider_webdata.waiting.streams.check_stream import is_new
from airflow_provider_webdata.waiting.streams.checkpoint import Checkpoint
from tests.support.direct import StateStore, TaskInstance, context_of
from tools.stored import attempts, connections
from tools.stored.examples import CONNECTION_ID, NOON, delivery
from tools.stored.triggers import attributes

Stored = dict[str, Any]
DAY = 86400.0


def imported(path: str) -> Any:
    module, _, name = path.rpartition(".")
    return getattr(import_module(module), name)


# Triggers


def test_triggers(stored: Stored) -> None:
    """A stored trigger keeps its meaning and serializes to the same data."""
    assert stored["triggers"]
    for path, forms in stored["triggers"].items():
        for form in forms.values():
            trigger = imported(path)(**form["arguments"])
            now = attributes(trigger)
            assert {name: now[name] for name in form["means"]} == form["means"], path
            assert trigger.serialize() == (path, form["arguments"])


def test_mappings_in_trigger_arguments(stored: Stored) -> None:
    for path, mapping in stored["mappings"].items():
        assert imported(path).deserialize(mapping).serialize() == mapping
    for forms in stored["triggers"].values():
        for form in forms.values():
            PollingPolicy.deserialize(
                form["arguments"].get("policy", {"wait_by": "auto", "poll_interval": 1, "safety_poll": 1})
            )
            CheckCriteria.deserialize(form["arguments"].get("criteria", {}))


class CalledError(Exception):
    """The first call of a task to the service or the inbox."""


class Service:
    """A stand-in for a hook: each call raises `CalledError` with its name and arguments."""

    def __enter__(self) -> Service:
        return self

    def __exit__(self, *_: object) -> None: ...

    def close(self) -> None: ...

    def inbox(self) -> Service:
        return self

    def __getattr__(self, name: str) -> Any:
        def call(*arguments: Any, **_: Any) -> Any:
            raise CalledError(name, *arguments)

        return call


WAITERS: dict[str, tuple[Any, dict[str, Any], tuple[Any, ...]]] = {
    "check, sensor": (WebDataMonitorCheckSensor, {"monitor_id": "m"}, ("get_monitor_check", "monitor", "check")),
    "check, operator": (WebDataRunMonitorOperator, {"monitor_id": "m"}, ("get_monitor_check", "monitor", "check")),
    "job, sensor": (WebDataJobSensor, {"kind": "crawl", "job_id": "j"}, ("job_status", "crawl", "job")),
    "job, operator": (WebDataCrawlOperator, {"url": "https://river.example/"}, ("job_status", "crawl", "job")),
    "delivery, sensor": (WebDataWebhookSensor, {"key": "k"}, ("fetch", 7)),
}  # fmt: skip
"""Tasks that wait, their arguments, and the call with which they read the result."""
ENDS = {
    "skip": AirflowSkipException,
    "failed": AirflowException,
    "cancelled": AirflowException,
    "timeout": (AirflowSensorTimeout, AirflowFailException, CalledError),
    "error": (AirflowFailException, CalledError),
}


@pytest.mark.parametrize("waiter", WAITERS)
def test_a_deferred_task_resumes(stored: Stored, waiter: str) -> None:
    """Airflow calls the stored method with an event of the older version's trigger."""
    cls, arguments, call = WAITERS[waiter]
    for name, event in stored["events"][waiter.partition(",")[0]].items():
        task = cls(task_id="t", **arguments)
        task.hook = Service()
        resume = getattr(task, stored["paths"]["resume_method"])
        # A task reads the cost of a job that it lost, and of a check that it does not return.
        lost = {"job": ("failed", "cancelled"), "check": ("failed", "skip")}
        calls = {"done", "resumed", *lost.get(waiter.partition(",")[0], ())}
        with pytest.raises(CalledError if name in calls else ENDS.get(name, CalledError)) as raised:
            resume(context_of(TaskInstance()), event)
        if name in calls:
            assert raised.value.args == call


# Connections, options, and everything stored by name alone


def test_paths(stored: Stored) -> None:
    paths = stored["paths"]
    policy = imported(paths["retry_policy"])
    assert isinstance(policy.deserialize({"__type": paths["retry_policy"]}), policy)
    assert [imported(path) for path in paths["db_managers"]]
    for kind, hook in paths["connection_type"].items():
        assert imported(hook).conn_type == kind


@pytest.mark.parametrize("form", ["json", "texts"])
def test_connections(stored: Stored, form: str) -> None:
    """Every field keeps its meaning."""
    settings = json.loads(json.dumps(connections.settings(stored["connection"][form]["stored"])))
    for part, before in stored["connection"][form]["means"].items():
        now = {name: settings[part][name] for name in before} if isinstance(before, dict) else settings[part]
        assert now == before


# The inbox


def test_a_redelivery_is_recognized(stored: Stored) -> None:
    for known in stored["deliveries"].values():
        assert (
            NewDelivery.from_body(CONNECTION_ID, "key", known["body"].encode(), NOON).dedupe
            == known["dedupe"]
        )


@pytest.mark.usefixtures("connected")
def test_a_webhook_at_the_service_keeps_its_address(stored: Stored) -> None:
    assert attempts.managed_webhook() == stored["managed_webhook"]
    assert key_of(WebDataHook(CONNECTION_ID).get_settings(), stored["managed_webhook"]["url"]) == "key"


# Records that attempts leave for later ones


def later_context(stored: Stored, key: str, form: str) -> Any:
    store = StateStore()
    store.set(key, stored["task_state"][key][form])
    return context_of(TaskInstance(max_tries=attempts.MAX_TRIES, try_number=2), store)


def intent_of(stored: Stored, key: str, form: str) -> Intent:
    return Intent(later_context(stored, key, form), key)


@pytest.mark.parametrize("key", ["webdata_monitor", "webdata_check", "webdata_session"])
def test_records_of_a_monitor_check_or_session(stored: Stored, key: str) -> None:
    begun, started = intent_of(stored, key, "begun"), intent_of(stored, key, "started")
    assert begun.began
    assert begun.started_id is None
    assert begun.record.known == ("a", "b")
    assert not begun.is_own("a", None)
    assert begun.is_own("c", None)
    assert started.started_id == "c"


def start_of(stored: Stored, form: str) -> StartState:
    return TaskState(later_context(stored, "webdata_job", form), "webdata_job", NOT_STARTED).record


def test_records_of_a_job(stored: Stored) -> None:
    requested = start_of(stored, "requested")
    assert requested.is_begun
    assert requested.known == ("other",)
    started = start_of(stored, "started")
    assert started.job_id is not None
    now = json.loads(msgspec.json.encode(started))
    recorded = {**stored["task_state"]["webdata_job"]["started"]}
    assert recorded.pop("maxTries") == attempts.MAX_TRIES
    recorded.pop("writer", None)
    assert {name: now[name] for name in recorded} == recorded


def test_the_sources_of_an_agent(stored: Stored) -> None:
    store = StateStore()
    store.set("webdata_agent", stored["task_state"]["webdata_agent"]["read"])
    context: Any = context_of(TaskInstance(max_tries=attempts.MAX_TRIES, try_number=2), store)
    AgentSources(context).push()
    assert context["ti"].xcom["sources"] == [
        {"tool": "read_page", "url": "https://river.example/", "title": "River"}
    ]


def test_the_ledger_of_a_task(stored: Stored) -> None:
    store = StateStore()
    store.set("webdata_credits", stored["task_state"]["webdata_credits"]["reserved"])
    context: Any = context_of(TaskInstance(max_tries=attempts.MAX_TRIES, try_number=2), store)
    ledger = Ledger(context, limit=9)
    assert (ledger.spent, ledger.is_reserved("search")) == (5 + 3 + 2, True)
    told = ledger.to_wire()
    assert (told["used"], told["saved"], told["unknown"]) == (5, 5, 2)


def test_the_failed_requests_of_data_providers(stored: Stored) -> None:
    """The next request has another id than the one that failed as a whole."""
    store = StateStore()
    store.set("webdata_provider", stored["task_state"]["webdata_provider"]["failed"])
    request = ProviderRequest.model_validate({"calls": [{"provider": "p", "capability": "c"}]})

    def request_id(known: StateStore) -> str:
        context: Any = context_of(TaskInstance(max_tries=attempts.MAX_TRIES, try_number=2), known)
        task = WebDataProviderOperator(task_id="t", provider="p", capability="c")
        return str(task.new_run(context)._request_id(request, None))

    assert request_id(store) != request_id(StateStore())


def test_the_keys_of_a_job(stored: Stored) -> None:
    """Later attempts find its deliveries and its request by these keys alone."""
    assert attempts.job_identity() == stored["job_identity"]


def test_a_wait_keeps_its_deadline(stored: Stored) -> None:
    # One that has passed would be extended for a last look.
    recorded = {**stored["task_state"]["webdata_wait"]["waiting"], "deadline": time.time() + DAY}
    store = StateStore()
    store.set("webdata_wait", recorded)
    context: Any = context_of(TaskInstance(max_tries=attempts.MAX_TRIES, try_number=2), store)
    run = WebDataRunMonitorOperator(task_id="t", monitor_id="m", deferrable=True).new_run(context)
    with pytest.raises(TaskDeferred) as deferred:
        run.wait_for_check("m", None)
    _, arguments = deferred.value.trigger.serialize()
    assert arguments["after"] == recorded["after"]
    assert WaitDeadline.of(arguments["deadline"]).at == recorded["deadline"]


def test_billed_results(stored: Stored, tmp_path: Path) -> None:
    store = StateStore()
    for key, value in stored["paid_records"]["store"].items():
        store.set(key, value)
    for name, text in stored["paid_records"]["file"].items():
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).write_text(text)
    context: Any = context_of(TaskInstance())
    for kept in (StoreRecords(store), FileRecords(str(tmp_path / "out.jsonl"), context)):
        assert [*kept.read()] == attempts.RECORDS
        assert [record["key"] for record in answered(kept.read())] == ["k"]
        kept.forget()
    assert store.values == {}
    assert [*tmp_path.iterdir()] == []


@pytest.mark.usefixtures("connected")
def test_billed_results_are_found_by_their_request(stored: Stored) -> None:
    calls = dict(stored["requests"])
    batch = calls.pop("batch")
    for operator, call in calls.items():
        request = attempts.paid_request(operator, call["arguments"])
        assert request == call["request"], operator
        assert attempts.kept_under(request) == call["key"], operator
    assert attempts.batch_keys(batch["queries"]) == batch["keys"]


# Asset watchers


class AssetState:
    """Airflow's state store of one asset."""

    def __init__(self) -> None:
        self.values: dict[str, Any] = {}

    async def aset(self, key: str, value: Any) -> None:
        self.values[key] = value


def test_the_keys_of_cursors(stored: Stored) -> None:
    for path, keys in stored["asset_state"]["keys"].items():
        for form, key in keys.items():
            trigger: StreamTrigger = imported(path)(**stored["triggers"][path][form]["arguments"])
            asset = AssetState()
            store = SimpleNamespace(_by_name={"asset": asset})
            asyncio.run(Checkpoint(store, trigger.serialize()).write({}))
            assert [*asset.values] == [key]


def test_cursors_tell_seen_from_new(stored: Stored) -> None:
    cursor = stored["asset_state"]["delivery"]
    assert query_of(f"after={cursor['after']}".encode()).after == delivery().position
    for check_id, is_seen in (("check", True), ("another", False)):
        assert is_new(stored["asset_state"]["check"], check_id, NOON) is not is_seen
