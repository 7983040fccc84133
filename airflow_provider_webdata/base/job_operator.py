# SPDX-License-Identifier: Apache-2.0
"""Base class of the operators that start a job and wait for it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow.sdk import conf

from airflow_provider_webdata.base.arguments.waits import check_wait
from airflow_provider_webdata.base.operator import WebDataOperator
from airflow_provider_webdata.common.arguments import number
from airflow_provider_webdata.common.literals import is_literal

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import timedelta

    from airflow.sdk import Context
    from airflow.sdk.exceptions import AirflowException

    from airflow_provider_webdata.common.job_kinds import JobKind


class WebDataJobOperator(WebDataOperator):
    """Base class of the operators that start a job and wait for it.

    The task starts one job for all its attempts. A retry finds the job of an earlier attempt: it waits for a running
    job, uses the result of a completed one, and starts another only if the job failed, was canceled, or has expired.
    `airflow_provider_webdata.runs.jobs.start` documents how the job is found. If it is unknown whether a request
    arrived, the task fails with the next step. Clearing the task starts another job. So does a retry with different
    arguments or another account (3.3), which cancels the earlier job with `cancel_on_kill` and logs it.

    The waiting time is wall-clock time from the start of the job, and includes retries and resumes.

    XCom of a crawl or batch scrape: a mapping with `id`, `status`, `total`, `completed`, `creditsUsed`, `expiresAt`,
    `errors` (`count`, `robots_blocked`, and the first 100 under `pages`; the counts are None if the service does not
    list them), and `data`, the pages with wire names in order of completion. With `save_to`, a description of the
    written file replaces `data`, and all keys are in snake_case. XCom of an agent run: the service's response, with
    `id` and `data`, or `message` if the service's agent answers with text only. The XCom key `job_id` contains the
    job's id, even while the task waits.

    :param wait_for_completion: whether to wait until the job has ended and return its result (default). False: return
        the job's id, for `WebDataJobSensor`.
    :param deferrable: whether to wait in the triggerer, without occupying a worker slot. Default: Airflow's
        `[operators] default_deferrable`. Otherwise, the worker polls.
    :param poll_interval: seconds between polls, or a timedelta, at least 1. While a delivery to the inbox is expected,
        the triggerer polls every 300 s (60 s with a self-hosted server) in case it is lost. Default: 30.
    :param wait_timeout: seconds to wait for the job, or a timedelta, more than 0. Then the task cancels the job and
        fails without a retry; if the job ended just then, its result is used. Default: one day.
    :param cancel_on_kill: cancel the job when a user ends the task; in the triggerer this needs Airflow 3.3. Default:
        true.
    :param attach_webhook: make the job report to this Airflow. None (default): if the connection has a webhook URL, the
        inbox answers, and `webhook` is not given. True: fail if it has no webhook URL. False: never.
    :param max_error_ratio: fail the task if more than this fraction of the pages, from 0 to 1, failed (templated). None
        (default): only if all pages failed; 1: never. The result is stored and pushed anyway, and the task is not
        retried, because the result would be the same.
    :param kwargs: arguments of `WebDataOperator` and `BaseOperator`.
    """

    _run_path = "airflow_provider_webdata.runs.jobs.job:JobRun"
    _job_kind: JobKind
    credit_limit: float | str | None
    template_fields: Sequence[str] = (
        *WebDataOperator.template_fields,
        "max_error_ratio",
    )

    def __init__(
        self,
        *,
        wait_for_completion: bool = True,
        deferrable: bool = conf.getboolean("operators", "default_deferrable", fallback=False),
        poll_interval: float | timedelta | None = None,
        wait_timeout: float | timedelta | None = None,
        cancel_on_kill: bool = True,
        attach_webhook: bool | None = None,
        max_error_ratio: float | str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.wait_for_completion = wait_for_completion
        self.deferrable = deferrable
        self.poll_interval = poll_interval
        self.wait_timeout = wait_timeout
        self.cancel_on_kill = cancel_on_kill
        self.attach_webhook = attach_webhook
        self.max_error_ratio = max_error_ratio

    def _check_values(self) -> None:
        """Check the arguments that are not fields of the request; see `ServiceTask._check_values`."""
        super()._check_values()
        check_wait(self.poll_interval, self.wait_timeout)
        if is_literal(self.max_error_ratio):
            number("max_error_ratio", self.max_error_ratio, 1)

    def _resume_failed(self, context: Context, error: AirflowException) -> Any:
        """Resume after a trigger that failed, or that no triggerer ran: the job may have ended, or still run."""
        run = self._new_run(context)
        run.is_resumed = True
        return self._finished(lambda: run.resume_failed(error))
