"""The trigger that waits for the end of a job."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from asgiref.sync import sync_to_async

from airflow_provider_webdata.common.job_kinds import checked_kind
from airflow_provider_webdata.states.jobs import name_of
from airflow_provider_webdata.triggers.base.wait_trigger import WaitTrigger
from airflow_provider_webdata.waiting.hub import Hub
from airflow_provider_webdata.waiting.job_target import JobTarget
from airflow_provider_webdata.waiting.policy import PollingPolicy

if TYPE_CHECKING:
    from collections.abc import Mapping

    from airflow_provider_webdata.common.job_kinds import JobKind
    from airflow_provider_webdata.waiting.target import Target


class WebDataJobTrigger(WaitTrigger):
    """Waits until a crawl, batch scrape, extract job or agent run has ended, by webhook, by polling, or both.

    The one event has a `status`: `done` (completed), `failed` (with `error`; `job_status` says whether it failed or
    was cancelled): with `kind`, `job_id`, `job_status` and `via` (`webhook` or `polling`); `timeout`, with a
    `message` that says what was seen, `kind` and `job_id`; `error`, with `error` and its `verdict`. How far the job
    is shows in the task's log after each poll that brings something new.

    When a user ends the waiting task, the job is cancelled too, if `cancel_on_kill` (Airflow 3.3 and later).

    :param webdata_conn_id: id of a connection of type `webdata`.
    :param kind: `crawl`, `batch_scrape`, `extract` or `agent`.
    :param job_id: id of the job.
    :param policy: how the end is learned, as `PollingPolicy.serialize` returns it. With `auto`, deliveries count
        wherever the connection can receive them, and the service is polled every `safety_poll` only where the job
        reports to it.
    :param reports: whether the job was started with the managed webhook, which reports to this Airflow's inbox.
    :param cancel_on_kill: whether to cancel the job when a user ends the task.
    :param deadline: seconds since the epoch; None: a minute before Airflow's own timeout of the deferral.
    :param credit_limit: the wait ends once the job has used more credits; its event is `done` with `over_limit`, what
        it has used. None: no limit.
    """

    def __init__(
        self,
        webdata_conn_id: str,
        kind: JobKind,
        job_id: str,
        policy: Mapping[str, Any],
        reports: bool = False,
        cancel_on_kill: bool = False,
        deadline: float | None = None,
        credit_limit: float | None = None,
    ) -> None:
        super().__init__(webdata_conn_id, None, deadline)
        self.kind = kind
        self.job_id = job_id
        self.policy = policy
        self.reports = reports
        self.cancel_on_kill = cancel_on_kill
        self.credit_limit = credit_limit

    def _target(self) -> Target:
        return JobTarget(
            checked_kind(self.kind),
            self.job_id,
            PollingPolicy.deserialize(self.policy),
            self.logger(),
            reports=self.reports,
            credit_limit=self.credit_limit,
        )

    async def on_kill(self) -> None:
        """Cancel the job if a user has ended the task that waits for it.

        Airflow (3.3.2) calls this also for triggers that another triggerer has taken over, because this one's heartbeat
        was late: their tasks are still deferred.
        """
        if not self.cancel_on_kill:
            return
        if await self._is_deferred():
            self.log.info("Another triggerer waits for job %s from now on", self.job_id)
            return
        kind = checked_kind(self.kind)
        if kind == "extract":
            self.log.warning(
                "Extract job %s continues and bills: the service cannot cancel extract jobs", self.job_id
            )
            return
        hub = Hub.of(self.webdata_conn_id)
        with hub.mailbox():
            cancelled = await hub.connection.call(lambda hook: hook.cancel_job(kind, self.job_id))
        what = name_of(kind).capitalize()
        self.log.info("%s %s %s", what, self.job_id, "was cancelled" if cancelled else "was over already")

    async def _is_deferred(self) -> bool:
        """Return whether the task is deferred in Airflow's database; False without a task."""
        from airflow.sdk.execution_time.task_runner import RuntimeTaskInstance

        ti: Any = self.task_instance
        if ti is None:
            return False
        found = await sync_to_async(RuntimeTaskInstance.get_task_states)(
            dag_id=ti.dag_id, task_ids=[ti.task_id], run_ids=[ti.run_id], map_index=ti.map_index
        )
        # The one task goes by its name, or, where it is mapped, by its name and index.
        return any(state == "deferred" for tasks in found.values() for state in tasks.values())
