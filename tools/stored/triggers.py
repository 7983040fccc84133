"""Triggers of deferred tasks and of asset watchers, and their events."""

from __future__ import annotations

import asyncio
import importlib
import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from tools.stored.examples import CONNECTION_ID, DEADLINE, NOON, delivery

CHECK = {"id": "check", "monitorId": "monitor", "status": "completed", "finishedAt": NOON.isoformat()}
POLICY = {"wait_by": "webhook", "poll_interval": 45.0, "safety_poll": 900.0}
CRITERIA = {
    "on_failed": "wait",
    "on_partial": "fail",
    "on_skipped": "accept",
    "only_if_changed": True,
    "only_if_meaningful": True,
    "otherwise": "skip",
}
_WAIT = {"deadline": DEADLINE}
_STREAM = {"start": "2026-01-31T12:00:00Z"}
TRIGGERS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "monitor.WebDataMonitorCheckTrigger": (
        {"monitor_id": "monitor", "policy": POLICY, "criteria": {}},
        {"criteria": CRITERIA, "check_id": "check", "after": "2026-01-31T12:00:00+00:00", **_WAIT},
    ),
    "job.WebDataJobTrigger": (
        {"kind": "crawl", "job_id": "job", "policy": POLICY},
        {"reports": True, "cancel_on_kill": True, "credit_limit": 500.0, **_WAIT},
    ),
    "webhook.WebDataWebhookTrigger": (
        {},
        {
            "key": "key",
            "events": ["crawl.completed"],
            "job_id": "job",
            "monitor_id": "monitor",
            "after": "2026-01-31T12:00:00+00:00",
            **_WAIT,
        },
    ),
    "resume.ResumeTrigger": ({"when": DEADLINE, "event": {"status": "done", "job_id": "job"}}, {}),
    "events.WebDataWebhookEventTrigger": (
        {},
        {"events": ["crawl.completed"], "key": "key", "monitor_id": "monitor", "job_id": "job", **_STREAM},
    ),
    "events.WebDataMonitorCheckEventTrigger": (
        {"monitor_id": "monitor"},
        {
            "wait_by": "webhook",
            "poll_interval": 45.0,
            "safety_poll": 900.0,
            "on_failed": "wait",
            "on_partial": "wait",
            "on_skipped": "accept",
            "only_if_changed": True,
            "only_if_meaningful": True,
            **_STREAM,
        },
    ),
}
"""By class: the required arguments, and all other arguments with values that differ from their defaults."""


def trigger_classes() -> dict[str, type]:
    """Return the triggers of the package by their names below `triggers`."""
    from airflow.triggers.base import BaseTrigger

    import airflow_provider_webdata.triggers as room

    found = {}
    for file in sorted(Path(room.__file__).parent.glob("[a-z]*.py")):
        module = importlib.import_module(f"{room.__name__}.{file.stem}")
        for name, item in vars(module).items():
            if inspect.isclass(item) and issubclass(item, BaseTrigger) and item.__module__ == module.__name__:
                found[f"{file.stem}.{name}"] = item
    return found


def example_triggers() -> Iterator[tuple[str, Any]]:
    """Yield each trigger twice: with the required arguments, and with all arguments.

    :raises LookupError: a trigger or an argument has no example in this file.
    """
    for name, cls in trigger_classes().items():
        if name not in TRIGGERS:
            raise LookupError(f"{name}: add its arguments to TRIGGERS of tools/stored/triggers.py")
        least, more = TRIGGERS[name]
        parameters = _parameters(cls)
        if "webdata_conn_id" in parameters:
            least = {"webdata_conn_id": CONNECTION_ID, **least}
        every = {**least, **more}
        for parameter in parameters.values():
            if every.get(parameter.name, parameter.default) == parameter.default:
                raise LookupError(
                    f"{parameter.name} of {name}: set a value other than its default in TRIGGERS of "
                    "tools/stored/triggers.py"
                )
        yield "least", cls(**least)
        yield "all", cls(**every)


def attributes(trigger: Any) -> dict[str, Any]:
    """Return a trigger's arguments, including the defaults."""
    return {name: getattr(trigger, name) for name in _parameters(type(trigger))}


def _parameters(cls: type) -> dict[str, inspect.Parameter]:
    # From 3.4 on, Airflow stores the queue separately; older versions have none.
    return {name: one for name, one in inspect.signature(cls).parameters.items() if name != "queue"}


def triggers() -> dict[str, Any]:
    """Return each trigger's path, its arguments as Airflow stores them, and their values."""
    found: dict[str, Any] = {}
    for which, trigger in example_triggers():
        path, arguments = trigger.serialize()
        found.setdefault(path, {})[which] = {"arguments": arguments, "means": attributes(trigger)}
    return found


def mappings() -> dict[str, Any]:
    """Return trigger arguments that are mappings, with every field."""
    from airflow_provider_webdata.states.checks import CheckCriteria
    from airflow_provider_webdata.waiting.policy import PollingPolicy

    found = {}
    policy = {**POLICY, "keeps_safety_poll": True}
    for cls, given in ((PollingPolicy, policy), (CheckCriteria, CRITERIA)):
        stored = cls(**given).serialize()  # type: ignore[arg-type]
        if missing := set(cls.__struct_fields__) - set(stored):
            raise LookupError(
                f"{cls.__name__}: set {missing} to values other than the defaults in tools/stored/triggers.py"
            )
        found[f"{cls.__module__}.{cls.__qualname__}"] = stored
    return found


def events() -> dict[str, Any]:
    """Return the events with which triggers resume tasks."""
    from airflow_provider_webdata.api.models import MonitorCheck
    from airflow_provider_webdata.states.checks import Decision, outcome_of
    from airflow_provider_webdata.states.jobs import JobView
    from airflow_provider_webdata.states.outcomes import CheckOutcome, DeliveryOutcome, JobOutcome
    from airflow_provider_webdata.waiting.delivery_target import fields_of

    check = MonitorCheck.model_validate(CHECK)
    decisions = (Decision("done"), Decision("failed", "why"), Decision("skip", "why"))
    ended = {made.outcome: outcome_of(check, made, monitor_id="monitor", via="webhook") for made in decisions}
    states = {"done": "completed", "failed": "failed", "cancelled": "cancelled"}
    jobs = {name: JobView("crawl", "job", state).outcome("polling") for name, state in states.items()}
    error: dict[str, Any] = {"status": "error", "message": "why", "verdict": "never"}
    timeout: dict[str, Any] = {"status": "timeout", "message": "Timed out", "by": "timeout"}
    job: dict[str, Any] = {"kind": "crawl", "job_id": "job"}
    outcomes = {
        "check": {**ended, "error": CheckOutcome(**error), "timeout": CheckOutcome(**timeout)},
        "job": {
            **jobs,
            "error": JobOutcome(**error, **job),
            "timeout": JobOutcome(**timeout, **job),
            "over": JobOutcome(status="done", job_status="scraping", over_limit=12.0, **job),
            "resumed": replace(jobs["done"], limited_since=NOON.isoformat()),
        },
        "delivery": {
            "done": DeliveryOutcome(status="done", **fields_of(delivery())),
            "error": DeliveryOutcome(**error),
            "timeout": DeliveryOutcome(**timeout),
        },
    }
    return {
        what: {name: outcome.serialize() for name, outcome in named.items()}
        for what, named in outcomes.items()
    }


def asset_events() -> dict[str, Any]:
    """Return the payloads of asset events, whose field names DAGs use."""
    from airflow_provider_webdata.api.models import MonitorCheck
    from airflow_provider_webdata.triggers.events import WebDataMonitorCheckEventTrigger, payload_of

    found: Any = ("monitor", (MonitorCheck.model_validate(CHECK), None, "polling"))
    trigger = WebDataMonitorCheckEventTrigger(CONNECTION_ID, "monitor")
    check = asyncio.run(trigger._payload(found))
    return {"delivery": payload_of(CONNECTION_ID, delivery()), "check": check}
