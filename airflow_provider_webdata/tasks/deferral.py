"""Base of the tasks that wait."""

from __future__ import annotations

from airflow.sdk.configuration import conf

CHECK_TRIGGER = "airflow_provider_webdata.triggers.monitor.WebDataMonitorCheckTrigger"
JOB_TRIGGER = "airflow_provider_webdata.triggers.job.WebDataJobTrigger"
WEBHOOK_TRIGGER = "airflow_provider_webdata.triggers.webhook.WebDataWebhookTrigger"
"""Paths, for importing a trigger takes time that reading a DAG file should not."""


def is_deferrable(given: bool | None) -> bool:
    """Return whether a task waits in the triggerer.

    :param given: what the author says; None: as Airflow's `[operators] default_deferrable` does.
    """
    return conf.getboolean("operators", "default_deferrable", fallback=False) if given is None else given
