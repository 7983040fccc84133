"""Base of the tasks that wait."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow.sdk.configuration import conf

from airflow_provider_webdata.tasks.links import LINKS
from airflow_provider_webdata.tasks.service_task import ServiceTask

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from airflow.sdk import BaseOperatorLink, Context

    from airflow_provider_webdata.runs.wait import WaitRun

CHECK_TRIGGER = "airflow_provider_webdata.triggers.monitor.WebDataMonitorCheckTrigger"
JOB_TRIGGER = "airflow_provider_webdata.triggers.job.WebDataJobTrigger"
WEBHOOK_TRIGGER = "airflow_provider_webdata.triggers.webhook.WebDataWebhookTrigger"
"""Paths, for importing a trigger takes time that reading a DAG file should not."""


def is_deferrable(given: bool | None) -> bool:
    """Return whether a task waits in the triggerer.

    :param given: what the author says; None: as Airflow's `[operators] default_deferrable` does.
    """
    return conf.getboolean("operators", "default_deferrable", fallback=False) if given is None else given


class WaitingTask(ServiceTask):
    """Base of the tasks that can wait in the triggerer; see `runs.wait`."""

    operator_extra_links: Collection[BaseOperatorLink] = LINKS

    def wait_run(self, context: Context) -> WaitRun:
        """Return what waits.

        :param context: the task's context.
        """
        from airflow_provider_webdata.runs.wait import WaitRun

        return WaitRun(self, context)

    def result_of(self, event: Mapping[str, Any], context: Context) -> Any:
        """Return what the task returns once its wait is done.

        :param event: the event whose `status` is `done`.
        :param context: the task's context.
        """
        raise NotImplementedError

    def execute_complete(self, context: Context, event: Mapping[str, Any] | None = None) -> Any:
        """Resume after the wait; see `WaitRun.resume`.

        :param context: the task's context.
        :param event: of the trigger.
        """
        return self.wait_run(context).resume(event or {})
