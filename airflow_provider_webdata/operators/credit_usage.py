# SPDX-License-Identifier: Apache-2.0
"""The operator that reports how many credits are left, and guards the tasks after it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from airflow_provider_webdata.base.operator import WebDataOperator
from airflow_provider_webdata.options import one_of

if TYPE_CHECKING:
    from collections.abc import Sequence


class WebDataCreditUsageOperator(WebDataOperator):
    """Return the team's remaining credits. Free.

    With `min_remaining` or `min_remaining_percent`, the task is a guard: if fewer credits are left, it fails without a
    retry, or it is skipped and, by Airflow's default trigger rule, so are its downstream tasks. The service bills
    crawls and batches afterwards, so the figure may lag by minutes or hours.

    XCom: a mapping with the wire names `remainingCredits`, `planCredits`, `billingPeriodStart`, `billingPeriodEnd`,
    which are also separate XComs (`remaining_credits`, ...), even if the guard fails or skips the task.

    :param min_remaining: minimum number of credits that must be left (templated).
    :param min_remaining_percent: minimum percentage of the plan's credits that must be left, 0 to 100 (templated).
        Credits from packs and coupons count as remaining credits, but not as part of the plan.
    :param on_low: what to do if fewer credits are left: `fail` (default) or `skip`.
    :param kwargs: arguments of `WebDataOperator` and `BaseOperator`.
    """

    _run_path = "airflow_provider_webdata.runs.credit_usage:CreditUsageRun"
    template_fields: Sequence[str] = (
        *WebDataOperator.template_fields,
        "min_remaining",
        "min_remaining_percent",
    )

    def __init__(
        self,
        *,
        min_remaining: float | str | None = None,
        min_remaining_percent: float | str | None = None,
        on_low: Literal["fail", "skip"] = "fail",
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.min_remaining = min_remaining
        self.min_remaining_percent = min_remaining_percent
        self.on_low = on_low
        self._check_arguments()

    def _check_values(self) -> None:
        """Check the arguments that are not fields of the request; see `ServiceTask._check_values`."""
        super()._check_values()
        one_of("on_low", self.on_low, ("fail", "skip"))
