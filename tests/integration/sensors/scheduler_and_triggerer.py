# SPDX-License-Identifier: Apache-2.0
"""Runs a task as far as Airflow does without a worker: its scheduling code, then its triggerer code.

A separate process, whose Airflow home and connection come from the environment. Arguments: the name of the DAG, the
monitor's id, and optionally an address for a POST request, with its API key, that starts a check before the trigger
runs. It prints the outcome as JSON.
"""

from __future__ import annotations

import asyncio
import json
import sys
from datetime import datetime, timezone
from types import SimpleNamespace
from typing import Any
from urllib.request import Request, urlopen

from airflow.jobs.triggerer_job_runner import TriggerRunner, TriggerRunnerSupervisor
from airflow.models.dag import DagModel
from airflow.models.dagbag import DBDagBag
from airflow.models.dagbundle import DagBundleModel
from airflow.models.serialized_dag import SerializedDagModel
from airflow.models.trigger import Trigger
from airflow.sdk import DAG
from airflow.serialization.serialized_objects import LazyDeserializedDAG
from airflow.utils.helpers import log_filename_template_renderer
from airflow.utils.session import create_session
from airflow.utils.state import DagRunState
from airflow.utils.types import DagRunTriggeredByType, DagRunType

from airflow_provider_webdata.sensors.monitor import WebDataMonitorCheckSensor
from tests.support.waiting import PATIENCE


def scheduled(dag: DAG) -> dict[str, Any]:
    """Store the DAG, create a run, and schedule its task."""
    now = datetime.now(timezone.utc)
    with create_session() as session:
        session.add(DagBundleModel(name=dag.dag_id))
    with create_session() as session:
        session.add(DagModel(dag_id=dag.dag_id, bundle_name=dag.dag_id, fileloc="none"))
        session.flush()
        SerializedDagModel.write_dag(
            LazyDeserializedDAG.from_dag(dag), bundle_name=dag.dag_id, session=session
        )
    with create_session() as session:
        stored = SerializedDagModel.get(dag.dag_id, session=session).dag
        run = stored.create_dagrun(
            run_id="run",
            run_after=now,
            run_type=DagRunType.MANUAL,
            triggered_by=DagRunTriggeredByType.TEST,
            state=DagRunState.RUNNING,
            start_date=now,
            session=session,
        )
        session.flush()
        run.dag = stored
        instances, _ = run.update_state(session=session, execute_callbacks=False)
        for instance in instances:
            instance.task = stored.get_task(instance.task_id)
        run.schedule_tis(instances, session=session)
        session.flush()
        (instance,) = instances
        session.refresh(instance)
        return {
            "state": str(instance.state),
            "hostname": instance.hostname,
            "pid": instance.pid,
            "next_method": instance.next_method,
            "trigger": instance.trigger_id,
        }


async def triggered(trigger_id: int) -> Any:
    """Run the trigger as the triggerer does, and return its event."""
    supervisor = SimpleNamespace(job=None, id=1, logger_cache={})
    with create_session() as session:
        workload = TriggerRunnerSupervisor._create_workload(
            supervisor,
            trigger=Trigger.bulk_fetch({trigger_id}, session=session)[trigger_id],
            dag_bag=DBDagBag(),
            render_log_fname=log_filename_template_renderer(),
            session=session,
        )
    runner = TriggerRunner()
    runner.to_create.append(workload)
    await runner.create_triggers()
    await asyncio.wait_for(runner.triggers[trigger_id]["task"], PATIENCE)
    (entry,) = runner.events
    return entry.event.payload


def main(name: str, monitor: str, *early_check: str) -> dict[str, Any]:
    with DAG(name, schedule=None) as dag:
        WebDataMonitorCheckSensor(
            task_id="wait", monitor_id=monitor, deferrable=True, poke_interval=1, timeout=120
        )
    outcome = scheduled(dag)
    if early_check:
        address, key = early_check
        with urlopen(Request(address, b"", {"Authorization": f"Bearer {key}"}, method="POST")) as answer:
            outcome["check"] = json.loads(answer.read())["id"]
    outcome["event"] = asyncio.run(triggered(outcome["trigger"]))
    return outcome


if __name__ == "__main__":
    print("OUTCOME", json.dumps(main(*sys.argv[1:])))
