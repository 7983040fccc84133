# SPDX-License-Identifier: Apache-2.0
"""Trigger that waits for the end of a job."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from airflow_provider_webdata.common.coded_errors import CodedError, brief, traceback_of
from airflow_provider_webdata.common.job_kinds import checked_kind
from airflow_provider_webdata.common.logs import logger
from airflow_provider_webdata.states.jobs import name_of
from airflow_provider_webdata.triggers.base.wait_trigger import WaitTrigger
from airflow_provider_webdata.waiting.hub import Hub
from airflow_provider_webdata.waiting.job_target import JobTarget
from airflow_provider_webdata.waiting.policy import JOB_POLL_INTERVAL, poll_seconds

if TYPE_CHECKING:
    from airflow_provider_webdata.common.job_kinds import JobKind
    from airflow_provider_webdata.waiting.target import Target

log = logger(__name__)

_CANCELING: set[asyncio.Task[None]] = set()


class WebDataJobTrigger(WaitTrigger):
    """Waits until a crawl, batch scrape, or agent run has ended, by webhook, by polling, or both.

    Emits one event, a stored `JobOutcome`. Its `status` is `done` (completed), `failed` (`job_status` distinguishes
    failed from canceled), `timeout`, or `error`. After each poll that shows progress, the trigger logs it in the
    task's log.

    With `cancel_on_kill`, the job is canceled if a user ends the waiting task (Airflow 3.3 and later).

    :param webdata_conn_id: id of a connection of type `webdata`.
    :param kind: `crawl`, `batch_scrape`, or `agent`.
    :param job_id: id of the job.
    :param poll_interval: seconds between polls if no delivery is expected. If one is, the job is polled every 300 s, or
        60 s with a self-hosted server, in case it is lost.
    :param reports: whether the job was started with the managed webhook, which reports to this Airflow's inbox. None:
        unknown; the trigger polls every `poll_interval`, and a delivery ends the wait earlier.
    :param cancel_on_kill: whether to cancel the job when a user ends the task.
    :param deadline: end of the wait, in seconds since the epoch. None: a minute before Airflow's own timeout of the
        deferral.
    :param credit_limit: end the wait once the job has used more credits than this. The event is then `done` with
        `over_limit`, the credits used. None: no limit.
    """

    def __init__(
        self,
        webdata_conn_id: str,
        kind: JobKind,
        job_id: str,
        poll_interval: float,
        reports: bool | None = None,
        cancel_on_kill: bool = False,
        deadline: float | None = None,
        credit_limit: float | None = None,
    ) -> None:
        super().__init__(webdata_conn_id, None, deadline)
        self.kind = kind
        self.job_id = job_id
        self.poll_interval = poll_interval
        self.reports = reports
        self.cancel_on_kill = cancel_on_kill
        self.credit_limit = credit_limit

    def _target(self) -> Target[Any]:
        return JobTarget(
            checked_kind(self.kind),
            self.job_id,
            poll_seconds(self.poll_interval, JOB_POLL_INTERVAL),
            log,
            reports=self.reports,
            credit_limit=self.credit_limit,
        )

    async def on_kill(self) -> None:
        """Cancel the job if a user has ended the waiting task.

        Airflow also calls this for triggers that another triggerer has taken over because this one's heartbeat was
        late; the tasks of such triggers still wait for the same job.
        """
        if not self.cancel_on_kill:
            return
        canceling = asyncio.create_task(self._cancel_job())
        _CANCELING.add(canceling)
        canceling.add_done_callback(_CANCELING.discard)
        # Airflow cancels this method, too, about a second later: docs/contributing/upstream/on_kill_canceled.md
        await asyncio.shield(canceling)

    async def _cancel_job(self) -> None:
        kind = checked_kind(self.kind)
        try:
            # docs/contributing/upstream/on_kill_after_takeover.md
            if await self._still_waits():
                log.info("Another triggerer has taken over the wait for job %s", self.job_id)
                return
            hub = Hub.of(self.webdata_conn_id)
            with hub.mailbox():
                cancelled = await hub.connection.call(lambda hook: hook.cancel_job(kind, self.job_id))
        except Exception as error:  # noqa: BLE001 - a lookup raises any error
            # If Airflow has canceled `on_kill`, no caller sees the error.
            log.warning(
                "%s %s may continue: it could not be canceled (%s)%s",
                name_of(kind).capitalize(),
                self.job_id,
                brief(error),
                "" if isinstance(error, CodedError) else traceback_of(error),
            )
            return
        what = name_of(kind).capitalize()
        log.info("%s %s %s", what, self.job_id, "was canceled" if cancelled else "had already ended")

    async def _still_waits(self) -> bool:
        """Return whether the task is deferred in Airflow's database and waits for this job; False without a task.

        A cleared task may already be deferred again, for its next job. Without XComs, it counts as still waiting.
        """
        from airflow.sdk.execution_time.task_runner import RuntimeTaskInstance
        from airflow.sdk.execution_time.xcom import XCom

        ti: Any = self.task_instance
        if ti is None:
            return False
        found = await asyncio.to_thread(
            RuntimeTaskInstance.get_task_states,
            dag_id=ti.dag_id,
            task_ids=[ti.task_id],
            run_ids=[ti.run_id],
            map_index=ti.map_index,
        )
        # The key is the task's id or, for a mapped task, its id and map index.
        if not any(state == "deferred" for tasks in found.values() for state in tasks.values()):
            return False
        pushed = await asyncio.to_thread(
            XCom.get_one,
            key="job_id",
            dag_id=ti.dag_id,
            task_id=ti.task_id,
            run_id=ti.run_id,
            map_index=ti.map_index,
        )
        return pushed in (None, self.job_id)
