# SPDX-License-Identifier: Apache-2.0
"""The remaining credits, and a guard for downstream tasks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow.sdk.exceptions import AirflowSkipException

from airflow_provider_webdata.api.errors import InvalidResponseError
from airflow_provider_webdata.common.clean_text import cleaned
from airflow_provider_webdata.common.numbers import credits_text
from airflow_provider_webdata.hooks.task_metrics import gauge
from airflow_provider_webdata.runs.failures import FewCreditsError
from airflow_provider_webdata.runs.request import checked_number
from airflow_provider_webdata.runs.run import Run

if TYPE_CHECKING:
    from airflow_provider_webdata.operators.credit_usage import WebDataCreditUsageOperator


class CreditUsageRun(Run):
    """One attempt of a task that reads the remaining credits."""

    task: WebDataCreditUsageOperator

    def call(self) -> dict[str, Any]:
        """Read the remaining credits; fail or skip the task if they are too few."""
        least = checked_number("credit usage", "min_remaining", self.task.min_remaining)
        percent = checked_number(
            "credit usage", "min_remaining_percent", self.task.min_remaining_percent, 100
        )
        usage = self.hook.credit_usage()
        outcome = {
            "remainingCredits": None,
            "planCredits": None,
            "billingPeriodStart": None,
            "billingPeriodEnd": None,
            **usage.to_wire(),
        }
        left, plan = usage.remaining_credits, usage.plan_credits
        self.log.info(
            "Credits left: %s of a plan of %s; the billing period ends %s",
            credits_text(left),
            credits_text(plan),
            usage.billing_period_end or "at an unknown time",
        )
        if left is not None:
            gauge("webdata.credits_remaining", left, self.context)
        self.push(**outcome)
        if least is not None:
            self._guard(left, least, f"min_remaining={credits_text(least)}")
        if percent is not None:
            needed = None if plan is None else plan * percent / 100
            self._guard(left, needed, f"min_remaining_percent={percent:g}")
        return outcome

    def _guard(self, left: float | None, needed: float | None, rule: str) -> None:
        if left is None or needed is None:
            # The guard fails closed when it cannot read the credits; a retry may succeed.
            raise InvalidResponseError(
                "credit usage", f"the fields that {rule} needs are missing", status=200
            )
        if left >= needed:
            return
        reason = f"{credits_text(left)} credits are left, fewer than {credits_text(needed)} ({rule})"
        if self.task.on_low == "skip":
            raise AirflowSkipException(cleaned(reason))
        raise FewCreditsError(reason)
