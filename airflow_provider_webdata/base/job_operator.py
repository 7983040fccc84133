"""Base class of the operators that start a job and wait for it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow_provider_webdata.base.operator import WebDataOperator
from airflow_provider_webdata.base.service_task import is_deferrable
from airflow_provider_webdata.common.arguments import number
from airflow_provider_webdata.common.coded_errors import ArgumentError
from airflow_provider_webdata.options import Wait
from airflow_provider_webdata.waiting.policy import JOB_POLL_INTERVAL, JOB_SAFETY_POLL

if TYPE_CHECKING:
    from collections.abc import Sequence

    from airflow.sdk import Context
    from airflow.sdk.exceptions import AirflowException

    from airflow_provider_webdata.common.job_kinds import JobKind
    from airflow_provider_webdata.options import Schema


class WebDataJobOperator(WebDataOperator):
    """Base class of the operators that start a job and wait for it.

    The task starts one job for all its attempts. A retry finds the job of an earlier attempt: it waits for a running
    job, uses the result of a completed one, and starts another only if the job failed, was canceled, or has expired.
    `airflow_provider_webdata.runs.jobs.start` documents how the job is found. If it is unknown whether a request
    arrived, the task fails with the next step. Clearing the task starts another job. So does a retry with different
    arguments or another account (3.3), which cancels the earlier job with `Wait.cancel_on_kill` and logs it.

    The waiting time is wall-clock time from the start of the job. With Airflow's task state store (3.3), it includes
    retries and resumes; on 3.2, it starts again with each attempt.

    XCom of a crawl or batch scrape: a mapping with `id`, `status`, `total`, `completed`, `creditsUsed`, `expiresAt`,
    `errors` (`count`, `robotsBlocked`, and the first 100 under `pages`; the counts are None if the service does not
    list them), and `data`, the pages with wire names in order of completion. With `output`, a description of the
    written file replaces `data`. XCom of an agent run: the service's response, with `id` and `data`, or
    `message` if the service's agent answers with text only. The XCom key `job_id` contains the job's id, even while
    the task waits.

    :param wait_for_completion: whether to wait until the job has ended and return its result (default). False: return
        the job's id, for `WebDataJobSensor`.
    :param wait: how to wait, see `Wait`. Default: poll every 30 s, or every 300 s (60 s with a self-hosted server)
        while a delivery is expected, for at most one day.
    :param deferrable: whether to wait in the triggerer, without occupying a worker slot. Default: Airflow's own
        setting. Otherwise, the worker polls.
    :param attach_webhook: make the job report to this Airflow. None (default): if the connection has a webhook URL, the
        inbox answers, and `webhook` is not given. True: fail if it has no webhook URL. False: never.
    :param max_error_ratio: fail the task if more than this fraction of the pages, from 0 to 1, failed (templated). None
        (default): never. The result is stored and pushed anyway, and the task is not retried, because the result would
        be the same.
    :param kwargs: arguments of `WebDataOperator` and `BaseOperator`.
    """

    run = "airflow_provider_webdata.runs.jobs.job:JobRun"
    job_kind: JobKind
    result_schema: Schema | None
    credit_limit: float | str | None
    template_fields: Sequence[str] = (
        *WebDataOperator.template_fields,
        "max_error_ratio",
    )

    def __init__(
        self,
        *,
        wait_for_completion: bool = True,
        wait: Wait | None = None,
        deferrable: bool | None = None,
        attach_webhook: bool | None = None,
        max_error_ratio: float | str | None = None,
        **kwargs: Any,
    ) -> None:
        if not isinstance(max_error_ratio, str):
            number("max_error_ratio", max_error_ratio, 1)
        super().__init__(**kwargs)
        self.wait_for_completion = wait_for_completion
        self.wait = Wait.of(wait) or Wait()
        self.polling_policy = self.wait.policy(JOB_POLL_INTERVAL, JOB_SAFETY_POLL)
        self.deferrable = is_deferrable(deferrable)
        self.attach_webhook = attach_webhook
        self.max_error_ratio = max_error_ratio

    def check_literals(self) -> None:
        """Check the literal arguments while the DAG file is parsed."""
        super().check_literals()
        rows_path = None if self.result_schema is None else self.result_schema.rows_path
        if rows_path and self.job_kind in ("crawl", "batch_scrape"):
            raise ArgumentError(
                f"Schema(rows=) is unsupported for a {self.job_kind.replace('_', ' ')}, whose results are its pages; "
                "remove it"
            )

    def resume_failed(self, context: Context, error: AirflowException) -> Any:
        """Resume after a trigger that failed, or that no triggerer ran: the job may have ended, or still run."""
        run = self.new_run(context)
        run.is_resumed = True
        return self.finished(lambda: run.resume_failed(error))
