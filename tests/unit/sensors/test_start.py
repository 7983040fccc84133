# SPDX-License-Identifier: Apache-2.0
"""A sensor starts in the triggerer only if none of its arguments must be rendered."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from importlib import import_module
from typing import Any
from uuid import uuid4

import pytest
from airflow.sdk import DAG, XComArg, task

from airflow_provider_webdata.base.service_task import HAS_RETRY_POLICIES
from airflow_provider_webdata.common.literals import is_literal
from airflow_provider_webdata.operators.monitor import WebDataRunMonitorOperator
from airflow_provider_webdata.sensors.job import WebDataJobSensor
from airflow_provider_webdata.sensors.monitor import WebDataMonitorCheckSensor
from airflow_provider_webdata.sensors.webhook import WebDataWebhookSensor

NOON = datetime(2026, 1, 1, 12, tzinfo=timezone.utc)


def xcom() -> XComArg:
    return WebDataRunMonitorOperator(task_id="upstream", monitor_id="m").output


class Resolved:
    """Becomes text when it is rendered, like the builders of `api.query`."""

    def resolve(self, context: Any) -> str:
        return "x"


VALUES = {
    "nothing": (lambda: None, True),
    "text": (lambda: "0b9c1f4e", True),
    "braces that are no template": (lambda: '{"a": {"b": 1}}', True),
    "number": (lambda: 3, True),
    "datetime": (lambda: NOON, True),
    "mapping of lists": (lambda: {"a": [{"b": ("c", 1.5)}]}, True),
    "expression": (lambda: "{{ ds }}", False),
    "statement": (lambda: "{% if True %}a{% endif %}", False),
    "comment": (lambda: "a{# nothing #}", False),
    "expression deep in a mapping": (lambda: {"a": [{"b": ("c", "{{ ds }}")}]}, False),
    "expression as a key": (lambda: {"{{ ds }}": 1}, False),
    "expression in a set": (lambda: {"{{ ds }}"}, False),
    "XCom": (xcom, False),
    "part of an XCom": (lambda: xcom()["id"], False),
    "callable": (lambda: lambda: "a", False),
    "resolves itself": (Resolved, False),
}


@pytest.mark.parametrize(("make", "literal"), VALUES.values(), ids=VALUES.keys())
def test_is_literal(make, literal):
    with DAG("d", schedule=None):
        assert is_literal(make()) is literal


def check_sensor(**given: Any) -> WebDataMonitorCheckSensor:
    return WebDataMonitorCheckSensor(**{"task_id": "s", "monitor_id": "m", "deferrable": True, **given})


def webhook_sensor(**given: Any) -> WebDataWebhookSensor:
    return WebDataWebhookSensor(**{"task_id": "s", "deferrable": True, **given})


def job_sensor(**given: Any) -> WebDataJobSensor:
    return WebDataJobSensor(**{"task_id": "s", "kind": "crawl", "job_id": "j", "deferrable": True, **given})


def nothing(*_: Any) -> None:
    pass


STARTS = {
    "all literal": (check_sensor, dict, HAS_RETRY_POLICIES),
    "all literal, after given": (check_sensor, lambda: {"after": "2026-01-01T00:00:00Z"}, True),
    "all literal, check given": (check_sensor, lambda: {"check_id": "c"}, True),
    "not deferrable": (check_sensor, lambda: {"after": NOON, "deferrable": False}, False),
    "template": (check_sensor, lambda: {"after": "{{ data_interval_start }}"}, False),
    "template in the connection's id": (check_sensor, lambda: {"after": NOON, "webdata_conn_id": "{{ ds }}"}, False),
    "monitor from XCom": (check_sensor, lambda: {"after": NOON, "monitor_id": xcom()["monitorId"]}, False),
    "code that must run before": (check_sensor, lambda: {"after": NOON, "pre_execute": nothing}, False),
    "callback that must run before": (check_sensor, lambda: {"after": NOON, "on_execute_callback": nothing}, False),
    "any delivery": (webhook_sensor, dict, HAS_RETRY_POLICIES),
    "any delivery, after given": (webhook_sensor, lambda: {"after": NOON, "events": ["page"]}, True),
    "key of a webhook, for which earlier deliveries are there": (webhook_sensor, lambda: {"key": "k"}, False),
    "key of a webhook, after given": (webhook_sensor, lambda: {"key": "k", "after": NOON}, True),
    "event from a template": (webhook_sensor, lambda: {"after": NOON, "events": ["page", "{{ ds }}"]}, False),
    "job": (job_sensor, dict, True),
    "job of a template": (job_sensor, lambda: {"job_id": "{{ ds }}"}, False),
    "job whose result goes where a template says": (job_sensor, lambda: {"save_to": "/x/{{ ds }}.jsonl"}, False),
    "job, not deferrable": (job_sensor, lambda: {"deferrable": False}, False),
}  # fmt: skip


@pytest.mark.parametrize(("sensor", "given", "starts"), STARTS.values(), ids=STARTS.keys())
def test_where_a_sensor_starts(sensor, given, starts):
    """On Airflow 3.2, a trigger without a worker does not know its DAG run: there the author must say from when on."""
    with DAG("d", schedule=None):
        made = sensor(**given())
    assert made.start_from_trigger is starts
    assert (made.start_trigger_args is not None) is starts


@pytest.mark.parametrize("deferrable", [True, False])
def test_a_subclass_may_have_a_template_field_of_its_own(deferrable):
    class Sensor(WebDataMonitorCheckSensor):
        template_fields = (*WebDataMonitorCheckSensor.template_fields, "flavor")

        def __init__(self, *, flavor: str, **kwargs: Any) -> None:
            super().__init__(**kwargs)
            self.flavor = flavor

    with DAG("d", schedule=None):
        made = Sensor(task_id="s", monitor_id="m", after=NOON, deferrable=deferrable, flavor="{{ ds }}")
    assert made.start_from_trigger is False


def test_a_subclass_with_code_of_its_own_runs_it():
    class Sensor(WebDataMonitorCheckSensor):
        def execute(self, context: Any) -> Any:
            return super().execute(context)

    class Prepared(WebDataMonitorCheckSensor):
        def pre_execute(self, context: Any) -> None: ...

    class Plain(WebDataMonitorCheckSensor):
        pass

    with DAG("d", schedule=None):
        starts = [
            sensor(task_id=sensor.__name__, monitor_id="m", after=NOON, deferrable=True).start_from_trigger
            for sensor in (Sensor, Prepared, Plain)
        ]
    assert starts == [False, False, True]


def test_default_is_airflows_own():
    with DAG("d", schedule=None):
        assert WebDataMonitorCheckSensor(task_id="s", monitor_id="m").deferrable is False


def test_a_mapped_sensor_does_not_start_in_the_triggerer():
    """Airflow cannot expand there."""
    with DAG("d", schedule=None):
        mapped = WebDataMonitorCheckSensor.partial(task_id="s", deferrable=True, after=NOON).expand(
            monitor_id=["a", "b"]
        )
        plain = check_sensor(task_id="p", after=NOON)
    assert mapped.start_from_trigger is False
    assert plain.start_from_trigger is True


def test_a_sensor_in_a_loop_of_tasks_is_not_shared():
    """What one sensor starts with is its own, not its class's."""
    with DAG("d", schedule=None):
        one, other = (
            check_sensor(task_id="a", after=NOON),
            check_sensor(task_id="b", monitor_id="n", after=NOON),
        )
    assert one.start_trigger_args.trigger_kwargs["monitor_id"] == "m"
    assert other.start_trigger_args.trigger_kwargs["monitor_id"] == "n"
    assert WebDataMonitorCheckSensor.start_from_trigger is False
    assert WebDataMonitorCheckSensor.start_trigger_args is None


def test_what_the_scheduler_gets():
    """Through Airflow's serialization, into the arguments of a real trigger."""
    from airflow.serialization.encoders import encode_trigger
    from airflow.serialization.serialized_objects import BaseSerialization, DagSerialization

    with DAG("d", schedule=None) as dag:
        check_sensor(
            after=NOON,
            timeout=timedelta(hours=1),
            on_failed="wait",
            poke_interval=timedelta(minutes=2),
        )
        webhook_sensor(task_id="w", after=NOON, events="page", timeout=600)

        @task
        def use(check): ...

        use(dag.get_task("s").output)
    restored = DagSerialization.deserialize_dag(DagSerialization.serialize_dag(dag)).get_task("s")
    assert restored.start_from_trigger is True
    args = restored.start_trigger_args
    assert args.next_method == "execute_complete"
    assert args.timeout == timedelta(hours=1, seconds=60)
    kwargs = args.trigger_kwargs
    if "__var" in kwargs:  # Airflow 3.2 has decoded them already
        kwargs = BaseSerialization.deserialize(kwargs)
    assert kwargs == {
        "webdata_conn_id": "webdata_default",
        "monitor_id": "m",
        "check_id": None,
        "after": NOON.isoformat(),
        "poll_interval": 120.0,
        "criteria": {"on_failed": "wait"},
    }
    module, _, name = args.trigger_cls.rpartition(".")
    trigger = getattr(import_module(module), name)(**kwargs)
    assert encode_trigger(trigger)["classpath"] == args.trigger_cls


@pytest.mark.skipif(not HAS_RETRY_POLICIES, reason="Airflow 3.2 tells a trigger nothing of its DAG run")
def test_what_the_triggerer_makes_of_it():
    """As Airflow's triggerer does it: the arguments are rendered there, and stay; the DAG run's start is known."""
    from airflow.executors.workloads import TaskInstanceDTO
    from airflow.jobs.triggerer_job_runner import TriggerRunner
    from airflow.serialization.serialized_objects import BaseSerialization, DagSerialization

    from airflow_provider_webdata.triggers.base.wait_trigger import start_of_run
    from airflow_provider_webdata.triggers.monitor import WebDataMonitorCheckTrigger

    with DAG("d", schedule=None) as dag:
        check_sensor()
    encoded = DagSerialization.to_dict(dag)
    run = {
        **dict.fromkeys(
            ("logical_date", "data_interval_start", "data_interval_end", "end_date", "partition_key")
        ),
        "dag_id": "d",
        "run_id": "r",
        "run_after": NOON,
        "start_date": NOON,
        "run_type": "manual",
        "state": "running",
        "conf": {},
        "consumed_asset_events": [],
        "clear_number": 0,
    }
    instance = TaskInstanceDTO(
        id=uuid4(),
        dag_version_id=uuid4(),
        task_id="s",
        dag_id="d",
        run_id="r",
        try_number=1,
        map_index=-1,
        pool_slots=1,
        queue="default",
        priority_weight=1,
    )
    args = DagSerialization.from_dict(encoded).get_task("s").start_trigger_args
    trigger = WebDataMonitorCheckTrigger(**BaseSerialization.deserialize(args.trigger_kwargs))
    before = trigger.serialize()
    trigger.task_instance = TriggerRunner.create_runtime_ti(instance, encoded, run)
    trigger.render_template_fields(context=trigger.task_instance.get_template_context())
    assert trigger.serialize() == before
    assert start_of_run(trigger.task_instance) == NOON


REFUSED = {
    "no monitor": (check_sensor, {"monitor_id": ""}, "monitor_id must name a monitor"),
    "on_failed": (check_sensor, {"on_failed": "skip"}, "on_failed must be one of fail, accept, wait"),
    "otherwise": (check_sensor, {"otherwise": "fail"}, "otherwise must be one of wait, skip"),
    "pages": (check_sensor, {"include_pages": "interesting"}, "include_pages must be"),
    "after": (check_sensor, {"after": "yesterday"}, "after must be a time in ISO 8601"),
    "kind of a job": (job_sensor, {"kind": "map"}, "kind must be one of crawl, batch_scrape, agent"),
    "no job": (job_sensor, {"job_id": ""}, "job_id must name a job"),
    "ratio": (
        job_sensor,
        {"max_error_ratio": 2},
        "max_error_ratio: must be a number of at least 0 and at most 1",
    ),
    "after of a delivery": (webhook_sensor, {"after": "12:00"}, "after must be a time in ISO 8601"),
}


@pytest.mark.parametrize(("sensor", "given", "words"), REFUSED.values(), ids=REFUSED.keys())
def test_contradictions_fail_while_the_dag_is_read(sensor, given, words):
    with pytest.raises(ValueError, match=words):
        sensor(**given)


def test_what_the_scheduler_gets_of_a_job():
    args = job_sensor(poke_interval=0.5, timeout=600).start_trigger_args
    module, _, name = args.trigger_cls.rpartition(".")
    trigger = getattr(import_module(module), name)(**args.trigger_kwargs)
    assert trigger.serialize()[1] == {
        "webdata_conn_id": "webdata_default",
        "kind": "crawl",
        "job_id": "j",
        "poll_interval": 1.0,
    }
    assert args.timeout == timedelta(seconds=660)
