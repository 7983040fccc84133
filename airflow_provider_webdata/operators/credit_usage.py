"""The operator that reports how many credits are left, and guards the tasks after it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from airflow_provider_webdata.coded_errors import ArgumentError
from airflow_provider_webdata.runs.checked_number import checked_number
from airflow_provider_webdata.tasks.operator import WebDataOperator

if TYPE_CHECKING:
    from collections.abc import Sequence

    from airflow.sdk import Context

_CHOICES = ("fail", "skip")


class WebDataCreditUsageOperator(WebDataOperator):
    """Tell how many credits the team has left. Costs none.

    With `min_remaining` or `min_remaining_percent` it is a guard: with fewer credits left, the task fails without
    a retry, or it is skipped and, by Airflow's usual rule, all that comes after it. The service bills crawls and
    batches after the fact, so that the number may lag by minutes or hours.

    XCom: a mapping with the wire names `remainingCredits`, `planCredits`, `billingPeriodStart`, `billingPeriodEnd`;
    each also under its own key, also where the guard fails or skips the task.

    :param min_remaining: least number of credits that must be left (templated).
    :param min_remaining_percent: least part of the plan's credits that must be left, 0 to 100 (templated). Credits
        of packs and coupons count as left, but not into the plan.
    :param on_low: what happens with fewer: `fail` (default) or `skip`.
    :param kwargs: arguments of `WebDataOperator` and `BaseOperator`.
    """

    template_fields: Sequence[str] = (
        *(name for name in WebDataOperator.template_fields if name != "extra_body"),
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
        if on_low not in _CHOICES:
            raise ArgumentError(f"on_low must be one of {', '.join(_CHOICES)} (given: {on_low!r})")
        super().__init__(**kwargs)
        self.min_remaining = min_remaining
        self.min_remaining_percent = min_remaining_percent
        self.on_low = on_low

    def call_service(self, context: Context) -> dict[str, Any]:
        """Ask for the credits, and fail or skip the task where they are too few."""
        from airflow_provider_webdata.runs.metrics import gauge

        least = checked_number("credit usage", "min_remaining", self.min_remaining)
        percent = checked_number("credit usage", "min_remaining_percent", self.min_remaining_percent, 100)
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
            "unknown" if left is None else f"{left:g}",
            "unknown" if plan is None else f"{plan:g}",
            usage.billing_period_end or "at an unknown time",
        )
        if left is not None:
            gauge("webdata.credits_remaining", left, context)
        self.push(context, **outcome)
        if least is not None:
            self._guard(left, least, f"min_remaining={least:g}")
        if percent is not None:
            needed = None if plan is None else plan * percent / 100
            self._guard(left, needed, f"min_remaining_percent={percent:g}")
        return outcome

    def _guard(self, left: float | None, needed: float | None, rule: str) -> None:
        from airflow.sdk.exceptions import AirflowSkipException

        from airflow_provider_webdata.api.errors import InvalidResponseError
        from airflow_provider_webdata.runs.failures import CreditLimitError

        if left is None or needed is None:
            # A guard that cannot see lets nothing pass; a later attempt may see more.
            raise InvalidResponseError("credit usage", f"it does not say what {rule} needs", status=200)
        if left >= needed:
            return
        reason = f"{left:g} credits are left, fewer than {needed:g} ({rule})"
        if self.on_low == "skip":
            raise AirflowSkipException(reason)
        raise CreditLimitError(reason)
