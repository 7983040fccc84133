"""Monitors, their checks, and the pages of a check, as the service returns them."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from airflow_provider_webdata.api.models.base import Answer, Lenient, ResponseModel


class StoredSchedule(ResponseModel):
    """A monitor's schedule; always cron, even if the request contained text."""

    cron: str | None = None
    timezone: str | None = None


class StoredTarget(ResponseModel):
    """A monitor's target; `type` determines the other fields."""

    id: str | None = None
    type: str | None = None
    urls: list[str] | str | None = None
    url: str | None = None
    scrape_options: dict[str, Any] | None = Field(None, repr=False)
    crawl_options: dict[str, Any] | None = None
    queries: list[str] | str | None = None
    search_window: str | None = None
    max_results: int | None = None
    include_domains: list[str] | str | None = None
    exclude_domains: list[str] | str | None = None


class StoredWebhook(ResponseModel):
    """A monitor's webhook."""

    url: str | None = None
    headers: dict[str, Any] | None = Field(None, repr=False)
    metadata: dict[str, Any] | None = None
    events: list[str] | str | None = None


class StoredEmail(ResponseModel):
    """A monitor's email settings."""

    enabled: bool | None = None
    include_diffs: bool | None = None
    recipients: list[str] | str | None = None


class StoredNotification(ResponseModel):
    """Recipients of a monitor's notifications."""

    email: StoredEmail | None = None
    slack: dict[str, Any] | None = None


class CheckSummary(ResponseModel):
    """Counts of pages by outcome; all zero after a skipped check."""

    changed: int | None = None
    error: int | None = None
    new: int | None = None
    removed: int | None = None
    same: int | None = None
    total_pages: int | None = None


class Monitor(ResponseModel):
    """A monitor. `status` is active, paused, or deleted; dates are ISO 8601 text."""

    id: str
    name: str | None = None
    status: str | None = None
    goal: str | None = None
    judge_enabled: bool | None = None
    schedule: StoredSchedule | None = None
    targets: list[StoredTarget] | None = None
    webhook: StoredWebhook | str | None = None
    notification: StoredNotification | None = None
    retention_days: int | None = None
    estimated_credits_per_month: int | float | None = None
    current_check_id: str | None = None
    last_check_summary: CheckSummary | None = None
    last_run_at: str | None = None
    next_run_at: str | None = None
    created_at: str | None = None
    updated_at: str | None = None


class MonitorResponse(Answer):
    """Response of create, get, and update."""

    data: Monitor


class MonitorListResponse(Answer):
    """One page of monitors, newest first. A page shorter than `limit` is the last; the response has no total."""

    data: list[Monitor]


class DeleteResponse(Answer):
    """Response of delete."""


class MonitorCheck(ResponseModel):
    """One run of a monitor.

    `status` is queued, running, completed, partial, failed, skipped_overlap, skipped_no_credits, or a newer value. A
    check with `finished_at` has ended. `trigger` is scheduled or manual.
    """

    id: str
    monitor_id: str | None = None
    status: str | None = None
    trigger: str | None = None
    scheduled_for: str | None = None
    started_at: str | None = None
    finished_at: str | None = None
    estimated_credits: int | float | None = None
    reserved_credits: int | float | None = None
    actual_credits: int | float | None = None
    billing_status: str | None = None
    summary: CheckSummary | None = None
    target_results: list[Any] | dict[str, Any] | None = None
    notification_status: dict[str, Any] | None = None
    error: Lenient[str | None] = None
    created_at: str | None = None
    updated_at: str | None = None


class Judgment(ResponseModel):
    """The judgment of a change against the goal. `confidence` is high, medium, or low."""

    meaningful: bool | None = None
    confidence: str | None = None
    reason: str | None = None
    meaningful_changes: list[Any] | None = None


class PageDiff(ResponseModel):
    """The changes of a page: a unified diff in `text`, and a tree or a mapping in `json_` (on the wire `json`).

    The tree has `files`; the mapping has `previous` and `current` for each JSON path.
    """

    text: str | None = None
    json_: Any = Field(None, alias="json")


class MonitorCheckPage(ResponseModel):
    """A page of a check; `status` is same, new, changed, removed, or error."""

    id: str | None = None
    target_id: str | None = None
    url: str | None = None
    status: str | None = None
    previous_scrape_id: str | None = None
    current_scrape_id: str | None = None
    status_code: int | None = None
    error: Lenient[str | None] = None
    metadata: dict[str, Any] | None = None
    judgment: Judgment | None = None
    diff: PageDiff | str | None = None
    snapshot: Any = None
    created_at: str | None = None


class MonitorCheckDetail(MonitorCheck):
    """A check with one batch of its pages; `next` is the URL of the next batch, whose host may be wrong."""

    pages: list[MonitorCheckPage] | None = None
    next: str | None = None


class MonitorRunResponse(Answer):
    """Response of run; `id` is the id of the check."""

    id: str | None = None
    data: MonitorCheck | None = None


class MonitorCheckResponse(Answer):
    """Response of get check."""

    next: str | None = None
    data: MonitorCheckDetail


class MonitorCheckListResponse(Answer):
    """One page of checks, newest first, without their pages."""

    data: list[MonitorCheck]
