"""The operator that returns the team's account as results."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from airflow_provider_webdata.base.operator import WebDataOperator
from airflow_provider_webdata.options import Output, Quality, one_of

if TYPE_CHECKING:
    from collections.abc import Sequence


class WebDataAccountOperator(WebDataOperator):
    """Return the team's calls, its credits by billing period, or the checks of its monitors. Free.

    The results are those of the run's partition or data interval, so each run adds new rows to a table. A run without
    either returns everything that the service lists. See docs/service.md#team.

    XCom: a mapping with `what`, `since` and `until` (ISO 8601, or null for a run without an interval), `count`, and the
    results under `data`, with wire names; with `output`, `path` and `bytes` in place of `data`.

    :param what: kind of rows: `activity`, the calls that began in the interval; `credits`, the billing periods that
        overlap it, each with its credits so far; or `checks`, the checks of all monitors that ended in it, each with
        `monitorName`. The service lists the calls of the last 24 hours, and the task warns if the interval begins
        earlier.
    :param output: path or URL of a file for the results, or `Output` (templated). Default: XCom.
    :param quality: conditions that the results must meet before they replace those of earlier runs: minimum number of
        results, or `Quality`. Default: no conditions.
    :param kwargs: arguments of `WebDataOperator` and `BaseOperator`.
    :raises ArgumentError: `what` is invalid.
    """

    run = "airflow_provider_webdata.runs.account:AccountRun"
    template_fields: Sequence[str] = (*WebDataOperator.template_fields, "output_to")

    def __init__(
        self,
        *,
        what: Literal["activity", "credits", "checks"],
        output: Output | str | None = None,
        quality: Quality | int | None = None,
        **kwargs: Any,
    ) -> None:
        one_of("what", what, ("activity", "credits", "checks"))
        super().__init__(**kwargs)
        self.what = what
        self.output_to = Output.of(output)
        self.quality = Quality.of(quality)
