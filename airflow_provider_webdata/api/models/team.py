# SPDX-License-Identifier: Apache-2.0
"""The team that owns the API key."""

from __future__ import annotations

from pydantic import AliasChoices, Field

from airflow_provider_webdata.api.models.base import Answer, Entries, OrNone, ResponseModel


class CreditUsage(ResponseModel):
    """Remaining credits in the billing period. `plan_credits` excludes packs and coupons."""

    remaining_credits: OrNone[int | float] = None
    plan_credits: OrNone[int | float] = None
    billing_period_start: OrNone[str] = None
    billing_period_end: OrNone[str] = None


class CreditUsageResponse(Answer):
    """Response of `GET /v2/team/credit-usage`."""

    data: CreditUsage


class CreditPeriod(ResponseModel):
    """Credits used in a period, in total or per API key.

    :ivar api_key: name of the key, or null.
    :ivar total_credits: the documented field.
    :ivar credits_used: the same value, in the field that the official client reads; see `used`.
    """

    start_date: OrNone[str] = None
    end_date: OrNone[str] = None
    api_key: OrNone[str] = Field(None, repr=False)
    total_credits: OrNone[int | float] = None
    credits_used: OrNone[int | float] = None

    @property
    def used(self) -> int | float | None:
        """Credits used in the period, from either field."""
        return self.credits_used if self.total_credits is None else self.total_credits


class CreditHistory(Answer):
    """Response of `GET /v2/team/credit-usage/historical`."""

    periods: Entries[CreditPeriod]


class TokenUsage(ResponseModel):
    """Remaining extract tokens in the billing period; 15 tokens are 1 credit."""

    remaining_tokens: OrNone[int | float] = None
    plan_tokens: OrNone[int | float] = None
    billing_period_start: OrNone[str] = None
    billing_period_end: OrNone[str] = None


class TokenUsageResponse(Answer):
    """Response of `GET /v2/team/token-usage`."""

    data: TokenUsage


class TokenPeriod(ResponseModel):
    """Tokens used in a period, in total or per API key.

    :ivar total_tokens: the documented field.
    :ivar tokens_used: the same value, in the field that the official client reads; see `used`.
    """

    start_date: OrNone[str] = None
    end_date: OrNone[str] = None
    api_key: OrNone[str] = Field(None, repr=False)
    total_tokens: OrNone[int | float] = None
    tokens_used: OrNone[int | float] = None

    @property
    def used(self) -> int | float | None:
        """Tokens used in the period, from either field."""
        return self.tokens_used if self.total_tokens is None else self.total_tokens


class TokenHistory(Answer):
    """Response of `GET /v2/team/token-usage/historical`."""

    periods: Entries[TokenPeriod]


class QueueStatus(Answer):
    """Response of `GET /v2/team/queue-status`: waiting and running scrape jobs, and the concurrency limit."""

    jobs_in_queue: OrNone[int | float] = None
    active_jobs_in_queue: OrNone[int | float] = None
    waiting_jobs_in_queue: OrNone[int | float] = None
    max_concurrency: OrNone[int | float] = None
    most_recent_success: OrNone[str] = None


class Concurrency(Answer):
    """Response of `GET /v2/concurrency-check`: the team's running jobs, and the concurrency limit."""

    concurrency: OrNone[int | float] = None
    max_concurrency: OrNone[int | float] = None


class ActivityItem(ResponseModel):
    """A call of the last 24 hours, without status and metadata. Monitors are not listed.

    :ivar id: the job's UUID.
    :ivar endpoint: `scrape`, `crawl`, `batch_scrape`, `search`, `extract`, `map`, `agent`, `interact`, ...
    :ivar api_version: on the wire `api_version`.
    :ivar created_at: ISO 8601; on the wire `created_at`.
    :ivar target: URL or query, or null.
    """

    id: OrNone[str] = None
    endpoint: OrNone[str] = None
    api_version: OrNone[str] = Field(
        None, validation_alias=AliasChoices("api_version", "apiVersion"), serialization_alias="api_version"
    )
    created_at: OrNone[str] = Field(
        None, validation_alias=AliasChoices("created_at", "createdAt"), serialization_alias="created_at"
    )
    target: OrNone[str] = None


class Activity(Answer):
    """Response of `GET /v2/team/activity`: one page. If `has_more` is true, `cursor` returns the next."""

    data: Entries[ActivityItem]
    cursor: str | None = None
    has_more: OrNone[bool] = Field(
        None, validation_alias=AliasChoices("has_more", "hasMore"), serialization_alias="has_more"
    )
