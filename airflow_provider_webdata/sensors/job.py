# SPDX-License-Identifier: Apache-2.0
"""Sensor for the end of a job."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from airflow_provider_webdata.base.arguments.result_options import check_result_options
from airflow_provider_webdata.base.links import DashboardLink
from airflow_provider_webdata.base.sensor import WebDataSensor
from airflow_provider_webdata.common.arguments import checked_text, number
from airflow_provider_webdata.common.coded_errors import ArgumentError
from airflow_provider_webdata.common.job_kinds import checked_kind
from airflow_provider_webdata.common.literals import is_literal

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from airflow.sdk import BaseOperatorLink

    from airflow_provider_webdata.common.job_kinds import JobKind
    from airflow_provider_webdata.options import Quality


class WebDataJobSensor(WebDataSensor):
    """Wait for a crawl, batch scrape, or agent run, and return its result.

    The job may have been started anywhere: by an operator with `wait_for_completion=False`, by another DAG, or
    manually. Waiting is free. The service keeps a result for 24 hours.

    XCom: same as the operator that starts such a job; see `WebDataJobOperator`. A failed job fails the task, and so
    does a canceled one unless `accept_canceled` is True. Killing the task leaves the job running.

    :param kind: `crawl`, `batch_scrape`, or `agent` (templated).
    :param job_id: id of the job (templated).
    :param accept_canceled: return the pages of a canceled crawl or batch scrape, instead of failing. Default: False.
    :param save_to: path or URL of a file for the results (templated); `*` in its name becomes a name of the task
        instance. See `docs/results.md`. Default: XCom.
    :param documents: flat rows for retrieval instead of the pages. Default: false.
    :param media_to: path or URL of a folder for screenshots and other media (templated). Default: they are not kept.
    :param max_media_mb: maximum size of such a file in MiB, more than 0; larger ones are not kept. Default: 500.
    :param result_schema: JSON Schema as a mapping, pydantic model, or the model's import path. Default: none.
    :param result_rows: of an agent: path of the list in `data` whose elements are the results, such as `companies`.
        Default: `data`, or its elements if it is a list.
    :param on_invalid_result: `keep`, or `fail`: fail the task, without a retry, after all results are published.
    :param quality: conditions that the results must meet before they replace those of earlier runs: minimum number of
        results, or `Quality`. Default: no conditions.
    :param max_error_ratio: fail the task if more than this fraction of the pages, from 0 to 1, failed (templated). None
        (default): only if all pages failed; 1: never. The result is stored and pushed anyway.
    :param kwargs: arguments of `WebDataSensor` and `BaseSensorOperator`, such as `deferrable`, `timeout`, `mode`, and
        `soft_fail`. `poke_interval` is also the time between polls of the triggerer, at least 1 s there. A delivery
        to the inbox ends the wait earlier.
    """

    operator_extra_links: Collection[BaseOperatorLink] = (DashboardLink(),)
    _run_path = "airflow_provider_webdata.runs.sensors:JobSensorRun"
    _trigger_class = "airflow_provider_webdata.triggers.job.WebDataJobTrigger"
    template_fields: Sequence[str] = (
        *WebDataSensor.template_fields,
        "kind",
        "job_id",
        "save_to",
        "media_to",
        "max_error_ratio",
    )

    def __init__(
        self,
        *,
        kind: JobKind,
        job_id: str,
        accept_canceled: bool = False,
        save_to: str | None = None,
        documents: bool = False,
        media_to: str | None = None,
        max_media_mb: float = 500,
        result_schema: Mapping[str, Any] | type | str | None = None,
        result_rows: str | None = None,
        on_invalid_result: Literal["keep", "fail"] = "keep",
        quality: Quality | int | None = None,
        max_error_ratio: float | str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.kind = kind
        self.job_id = job_id
        self.accept_canceled = accept_canceled
        self.save_to = save_to
        self.documents = documents
        self.media_to = media_to
        self.max_media_mb = max_media_mb
        self.result_schema = result_schema
        self.result_rows = result_rows
        self.on_invalid_result = on_invalid_result
        self.quality = quality
        self.max_error_ratio = max_error_ratio
        self._check_arguments()
        self._start_in_triggerer(knows_when=True)

    def _check_values(self) -> None:
        """Check the arguments; see `ServiceTask._check_values`."""
        super()._check_values()
        if is_literal(self.job_id) and checked_text(self.job_id) is None:
            raise ArgumentError(f"job_id must name a job (given: {self.job_id!r})")
        if is_literal(self.kind):
            checked_kind(self.kind)
            if self.accept_canceled and self.kind == "agent":
                raise ArgumentError(
                    "accept_canceled applies to crawls and batch scrapes: a canceled agent run has no result"
                )
            if self.result_rows is not None and self.kind != "agent":
                raise ArgumentError(
                    f"result_rows applies to agents: the results of a {self.kind} are its pages; remove it"
                )
        if is_literal(self.max_error_ratio):
            number("max_error_ratio", self.max_error_ratio, 1)
        check_result_options(self)

    def _trigger_kwargs(self) -> dict[str, Any]:
        """Return the trigger's arguments except `deadline`."""
        return {
            "webdata_conn_id": self.webdata_conn_id,
            "kind": self.kind,
            "job_id": checked_text(self.job_id),
            "poll_interval": max(float(self.poke_interval), 1.0),
        }

    def _show_page(self) -> None:
        """Record the id of the job."""
        self._webdata_job_id = str(checked_text(self.job_id))
