"""One poll of a job."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_provider_webdata.states.jobs import JobView

if TYPE_CHECKING:
    from airflow_provider_webdata.common.job_kinds import JobKind
    from airflow_provider_webdata.hooks.webdata import WebDataHook


def poll_job(hook: WebDataHook, kind: JobKind, job_id: str) -> JobView:
    """Return how a job stands now; raises what the hook raises."""
    # The answer holds a part of the result: one page is the least.
    return JobView.of(kind, job_id, hook.job_status(kind, job_id, limit=1))
