"""What the service says about the team that owns the API key."""

from __future__ import annotations

from airflow_provider_webdata.api.models.base import ResponseModel


class CreditUsage(ResponseModel):
    """Credits left in the billing period. `plan_credits` leaves packs and coupons out."""

    remaining_credits: int | float | None = None
    plan_credits: int | float | None = None
    billing_period_start: str | None = None
    billing_period_end: str | None = None


class CreditUsageResponse(ResponseModel):
    """Answer of `GET /v2/team/credit-usage`."""

    success: bool | None = None
    data: CreditUsage
