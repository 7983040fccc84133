"""Sensor for the end of a job."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow_provider_webdata.base.links import DashboardLink
from airflow_provider_webdata.base.sensor import WebDataSensor
from airflow_provider_webdata.common.arguments import checked_text, number
from airflow_provider_webdata.common.coded_errors import ArgumentError
from airflow_provider_webdata.common.job_kinds import checked_kind
from airflow_provider_webdata.common.literals import is_literal
from airflow_provider_webdata.options import Media, Output, Quality, Schema, Wait
from airflow_provider_webdata.waiting.policy import JOB_POLL_INTERVAL, JOB_SAFETY_POLL

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from airflow.sdk import BaseOperatorLink

    from airflow_provider_webdata.common.job_kinds import JobKind


class WebDataJobSensor(WebDataSensor):
    """Wait for a crawl, batch scrape, or agent run, and return its result.

    The job may have been started anywhere: by an operator with `wait_for_completion=False`, by another DAG, or
    manually. Waiting is free. The service keeps a result for 24 hours.

    XCom: same as the operator that starts such a job; see `WebDataJobOperator`. A failed job fails the task, and so
    does a canceled one unless `accept_canceled` is True. Killing the task leaves the job running.

    :param kind: `crawl`, `batch_scrape`, or `agent` (templated).
    :param job_id: id of the job (templated).
    :param accept_canceled: return the pages of a canceled crawl or batch scrape, instead of failing. Default: False.
    :param wait: how to wait, see `Wait`. With `by="webhook"`, the job must report to this Airflow. Default: the
        triggerer polls every 30 s, or every 300 s (60 s with a self-hosted server) while it expects a delivery. A
        sensor that is not deferrable polls every `poke_interval`.
    :param output: path or URL of a file for the results, or `Output` (templated). Default: XCom.
    :param media: path or URL of a folder for screenshots and other media, or `Media` (templated). Default: they are not
        kept.
    :param result_schema: JSON Schema as a mapping, pydantic model, the model's import path, or `Schema`. Default: none.
    :param quality: conditions that the results must meet before they replace those of earlier runs: minimum number of
        results, or `Quality`. Default: no conditions.
    :param max_error_ratio: fail the task if a larger part of the pages than this, from 0 to 1, failed (templated). None
        (default): never. The result is stored and pushed anyway.
    :param kwargs: arguments of `WebDataSensor` and `BaseSensorOperator`, such as `deferrable`, `timeout`, `mode`, and
        `soft_fail`.
    """

    operator_extra_links: Collection[BaseOperatorLink] = (DashboardLink(),)
    run = "airflow_provider_webdata.runs.sensors:JobSensorRun"
    trigger_class = "airflow_provider_webdata.triggers.job.WebDataJobTrigger"
    template_fields: Sequence[str] = (
        *WebDataSensor.template_fields,
        "kind",
        "job_id",
        "output_to",
        "media",
        "max_error_ratio",
    )

    def __init__(
        self,
        *,
        kind: JobKind,
        job_id: str,
        accept_canceled: bool = False,
        wait: Wait | None = None,
        output: Output | str | None = None,
        media: Media | str | None = None,
        result_schema: Schema | Mapping[str, Any] | type | str | None = None,
        quality: Quality | int | None = None,
        max_error_ratio: float | str | None = None,
        **kwargs: Any,
    ) -> None:
        if is_literal(kind):
            checked_kind(kind)
        if is_literal(job_id) and checked_text(job_id) is None:
            raise ArgumentError(f"job_id must name a job (given: {job_id!r})")
        if not isinstance(max_error_ratio, str):
            number("max_error_ratio", max_error_ratio, 1)
        super().__init__(**kwargs)
        self.kind = kind
        self.job_id = job_id
        self.accept_canceled = accept_canceled
        if is_literal(kind):
            self.check_accepted()
        self.output_to = Output.of(output)
        self.media = Media.of(media)
        self.result_schema = Schema.of(result_schema)
        self.quality = Quality.of(quality)
        self.polling_policy = Wait.of_sensor(wait).policy(JOB_POLL_INTERVAL, JOB_SAFETY_POLL)
        self.max_error_ratio = max_error_ratio
        self.start_in_triggerer(knows_when=True)

    def check_accepted(self) -> None:
        """Check that `accept_canceled` applies to the kind of job.

        :raises ArgumentError: jobs of this kind have no pages.
        """
        if self.accept_canceled and self.kind == "agent":
            raise ArgumentError(
                "accept_canceled applies to crawls and batch scrapes: a canceled agent run has no result"
            )

    def trigger_kwargs(self) -> dict[str, Any]:
        """Return the trigger's arguments except `deadline`."""
        return {
            "webdata_conn_id": self.webdata_conn_id,
            "kind": self.kind,
            "job_id": checked_text(self.job_id),
            "policy": self.polling_policy.serialize(),
        }

    def show_page(self) -> None:
        """Record the id of the job."""
        self.webdata_job_id = str(checked_text(self.job_id))
