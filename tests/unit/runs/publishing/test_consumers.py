# SPDX-License-Identifier: Apache-2.0
"""The tasks that consume a run's file."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

import pytest
from airflow.sdk import DAG, task, task_group, teardown

from airflow_provider_webdata.results.changes.snapshots import Emitter
from airflow_provider_webdata.runs.publishing.consumers import (
    Consumers,
    has_consumed,
    may_consume,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

NIGHT = "scheduled__2026-11-28"


class Instance:
    """A task instance, with the states that Airflow has of a run: by task and map index."""

    def __init__(
        self,
        operator: Any,
        states: Mapping[tuple[str, int], str | None],
        map_index: int = -1,
        run: str | None = "failed",
    ) -> None:
        self.task = operator
        self.dag_id, self.task_id, self.run_id, self.map_index = "shop", operator.task_id, NIGHT, map_index
        self.states = states
        self.run = run

    def get_task_states(
        self, dag_id: str, task_ids: list[str], run_ids: list[str], map_index: int | None = None
    ) -> dict[str, dict[str, str | None]]:
        assert dag_id == self.dag_id
        found = {
            name if index < 0 else f"{name}_{index}": state
            for (name, index), state in self.states.items()
            if name in task_ids and map_index in {None, index}
        }
        return {run_ids[0]: found} if found else {}

    def get_dr_count(self, dag_id: str, *, run_ids: list[str], states: list[str]) -> int:
        assert (dag_id, run_ids) == (self.dag_id, [NIGHT])
        return int(self.run in states)


def consumers(instance: Instance, loads: tuple[str, ...] = ()) -> Consumers:
    return Consumers({"ti": instance}, loads)  # type: ignore[arg-type, typeddict-item]


@pytest.fixture
def dag() -> DAG:
    with DAG("shop", schedule=None, start_date=datetime(2026, 1, 1, tzinfo=timezone.utc)) as made:

        @task
        def crawl() -> None: ...

        @task
        def load() -> None: ...

        @task
        def load_1() -> None: ...

        @task
        def chunk(number: int) -> None: ...

        @teardown
        def clean() -> None: ...

        @task
        def report() -> None: ...

        crawled, loaded = crawl(), load()
        crawled >> loaded >> clean()
        crawled >> load_1()
        crawled >> chunk.expand(number=[1, 2])
        report()
    return made


ALL = {("load", -1): None, ("load_1", -1): "scheduled", ("chunk", 0): "queued", ("chunk", 1): None}


@pytest.mark.parametrize(
    ("states", "tasks"),
    [
        ({}, ["chunk", "load", "load_1"]),
        (ALL, ["chunk", "load", "load_1"]),
        ({**ALL, ("load", -1): "up_for_retry"}, ["chunk", "load", "load_1"]),
        ({**ALL, ("load", -1): "success"}, ["chunk", "load_1"]),
        ({**ALL, ("load_1", -1): "failed"}, ["chunk", "load"]),
        ({**ALL, ("chunk", 1): "running"}, ["load", "load_1"]),
    ],
)
def test_tasks_that_have_not_started_consume(
    dag: DAG, states: dict[tuple[str, int], str | None], tasks: list[str]
) -> None:
    found = consumers(Instance(dag.get_task("crawl"), states)).emitter()
    assert found is not None
    assert (sorted(found.tasks), found.run_id, found.map_index) == (tasks, NIGHT, -1)


def test_a_task_that_is_cleared_alone_is_never_consumed(dag: DAG) -> None:
    done = dict.fromkeys(ALL, "success")
    assert consumers(Instance(dag.get_task("crawl"), done)).emitter() is None


def consumed(
    dag: DAG, states: Mapping[tuple[str, int], str | None], run: str | None = "failed", **given: Any
) -> bool:
    emitter = Emitter(**{"run_id": NIGHT, "map_index": -1, **given})
    return bool(
        consumers(Instance(dag.get_task("crawl"), states, run=run), ("load",)).consumed({"it": emitter})
    )


@pytest.mark.parametrize(
    ("state", "is_consumed"),
    [
        ("success", True),
        ("removed", True),
        ("skipped", True),
        ("upstream_failed", False),
        ("failed", False),
        (None, False),
    ],
)
def test_every_waiting_task_must_have_consumed(dag: DAG, state: str | None, is_consumed: bool) -> None:
    states = {("load", -1): "success", ("load_1", -1): state, ("chunk", 0): "failed"}
    assert consumed(dag, states, tasks=["load", "load_1"]) is is_consumed


def test_a_skipped_load_has_not_consumed(dag: DAG) -> None:
    assert not consumed(dag, {("load", -1): "skipped"}, tasks=["load"])


def test_every_instance_must_have_consumed(dag: DAG) -> None:
    assert consumed(dag, {("chunk", 0): "success", ("chunk", 1): "success"}, tasks=["chunk"])
    assert not consumed(dag, {("chunk", 0): "success", ("chunk", 1): "failed"}, tasks=["chunk"])


def test_a_run_without_tasks_downstream_is_consumed_by_its_own_success(dag: DAG) -> None:
    def states(state: str) -> Instance:
        return Instance(dag.get_task("report"), {("report", -1): state})

    emitter = consumers(states("running")).emitter()
    assert emitter is not None
    assert emitter.tasks == ["report"]
    assert consumers(states("success")).consumed({"it": emitter}) == {"it"}
    assert consumers(states("failed")).consumed({"it": emitter}) == set()


def test_the_run_counts_once_airflow_has_deleted_its_tasks(dag: DAG) -> None:
    assert consumed(dag, {}, run="success", tasks=["load"])
    assert not consumed(dag, {}, run="failed", tasks=["load"])
    # Deleting a failed run does not lose its pages.
    assert not consumed(dag, {}, run=None, tasks=["load"])
    # A task that its author has removed never had an instance.
    assert consumed(dag, {("load", -1): "success"}, tasks=["load", "gone"])


def test_tasks_of_the_same_group_instance_consume() -> None:
    with DAG("shop", schedule=None, start_date=datetime(2026, 1, 1, tzinfo=timezone.utc)) as dag:

        @task_group
        def shop(number: int) -> None:
            @task
            def crawl(number: int) -> None: ...

            @task
            def load() -> None: ...

            crawl(number) >> load()

        shop.expand(number=[1, 2])
    states = {("shop.load", 0): None, ("shop.load", 1): "success"}
    operator = dag.get_task("shop.crawl")
    assert consumers(Instance(operator, states, map_index=1)).emitter() is None
    found = consumers(Instance(operator, states, map_index=0))
    emitter = found.emitter()
    assert emitter is not None
    assert (emitter.tasks, emitter.map_index) == (["shop.load"], 0)
    assert found.consumed({"it": emitter}) == set()
    assert found.consumed({"it": Emitter(NIGHT, 1, emitter.tasks)}) == {"it"}


def test_states() -> None:
    assert may_consume([])
    assert not may_consume(["deferred"])
    assert not has_consumed(["success", None], is_load=False)
