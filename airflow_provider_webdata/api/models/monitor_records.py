# SPDX-License-Identifier: Apache-2.0
"""Monitors, their checks, and the pages of a check, as the service returns them."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from airflow_provider_webdata.api.models.base import Answer, Entries, Lenient, OrNone, ResponseModel


class StoredSchedule(ResponseModel):
    """A monitor's schedule; always cron, even if the request contained text."""

    cron: OrNone[str] = None
    timezone: OrNone[str] = None


class StoredTarget(ResponseModel):
    """A monitor's target; `type` determines the other fields."""

    id: OrNone[str] = None
    type: OrNone[str] = None
    urls: OrNone[list[str] | str] = None
    url: OrNone[str] = None
    scrape_options: OrNone[dict[str, Any]] = Field(None, repr=False)
    crawl_options: OrNone[dict[str, Any]] = None
    queries: OrNone[list[str] | str] = None
    search_window: OrNone[str] = None
    max_results: OrNone[int] = None
    include_domains: OrNone[list[str] | str] = None
    exclude_domains: OrNone[list[str] | str] = None


class StoredWebhook(ResponseModel):
    """A monitor's webhook."""

    url: OrNone[str] = None
    headers: OrNone[dict[str, Any]] = Field(None, repr=False)
    metadata: OrNone[dict[str, Any]] = None
    events: OrNone[list[str] | str] = None


class StoredEmail(ResponseModel):
    """A monitor's email settings."""

    enabled: OrNone[bool] = None
    include_diffs: OrNone[bool] = None
    recipients: OrNone[list[str] | str] = None


class StoredNotification(ResponseModel):
    """Recipients of a monitor's notifications."""

    email: OrNone[StoredEmail] = None
    slack: OrNone[dict[str, Any]] = None


class CheckSummary(ResponseModel):
    """Counts of pages by outcome; all zero after a skipped check."""

    changed: OrNone[int] = None
    error: OrNone[int] = None
    new: OrNone[int] = None
    removed: OrNone[int] = None
    same: OrNone[int] = None
    total_pages: OrNone[int] = None


class Monitor(ResponseModel):
    """A monitor. `status` is active, paused, or deleted; dates are ISO 8601 text."""

    id: str
    name: OrNone[str] = None
    status: OrNone[str] = None
    goal: OrNone[str] = None
    judge_enabled: OrNone[bool] = None
    schedule: OrNone[StoredSchedule] = None
    targets: OrNone[Entries[StoredTarget]] = None
    webhook: OrNone[StoredWebhook | str] = None
    notification: OrNone[StoredNotification] = None
    retention_days: OrNone[int] = None
    estimated_credits_per_month: OrNone[int | float] = None
    current_check_id: OrNone[str] = None
    last_check_summary: OrNone[CheckSummary] = None
    last_run_at: OrNone[str] = None
    next_run_at: OrNone[str] = None
    created_at: OrNone[str] = None
    updated_at: OrNone[str] = None


class MonitorResponse(Answer):
    """Response of create, get, and update."""

    data: Monitor


class MonitorListResponse(Answer):
    """One page of monitors, newest first. A page shorter than `limit` is the last; the response has no total."""

    data: Entries[Monitor]


class DeleteResponse(Answer):
    """Response of delete."""


class MonitorCheck(ResponseModel):
    """One run of a monitor.

    `status` is queued, running, completed, partial, failed, skipped_overlap, skipped_no_credits, or a newer value. A
    check with `finished_at` has ended. `trigger` is scheduled or manual.
    """

    id: str
    monitor_id: OrNone[str] = None
    status: OrNone[str] = None
    trigger: OrNone[str] = None
    scheduled_for: OrNone[str] = None
    started_at: OrNone[str] = None
    finished_at: OrNone[str] = None
    estimated_credits: OrNone[int | float] = None
    reserved_credits: OrNone[int | float] = None
    actual_credits: OrNone[int | float] = None
    billing_status: OrNone[str] = None
    summary: OrNone[CheckSummary] = None
    target_results: OrNone[list[Any] | dict[str, Any]] = None
    notification_status: OrNone[dict[str, Any]] = None
    error: Lenient[str | None] = None
    created_at: OrNone[str] = None
    updated_at: OrNone[str] = None


class Judgment(ResponseModel):
    """The judgment of a change against the goal. `confidence` is high, medium, or low."""

    meaningful: OrNone[bool] = None
    confidence: OrNone[str] = None
    reason: OrNone[str] = None
    meaningful_changes: OrNone[list[Any]] = None


class PageDiff(ResponseModel):
    """The changes of a page: a unified diff in `text`, and a tree or a mapping in `json_` (on the wire `json`).

    The tree has `files`; the mapping has `previous` and `current` for each JSON path.
    """

    text: OrNone[str] = None
    json_: Any = Field(None, alias="json")


class MonitorCheckPage(ResponseModel):
    """A page of a check; `status` is same, new, changed, removed, or error."""

    id: OrNone[str] = None
    target_id: OrNone[str] = None
    url: OrNone[str] = None
    status: OrNone[str] = None
    previous_scrape_id: OrNone[str] = None
    current_scrape_id: OrNone[str] = None
    status_code: OrNone[int] = None
    error: Lenient[str | None] = None
    metadata: OrNone[dict[str, Any]] = None
    judgment: OrNone[Judgment] = None
    diff: OrNone[PageDiff | str] = None
    snapshot: Any = None
    created_at: OrNone[str] = None


class MonitorCheckDetail(MonitorCheck):
    """A check with one batch of its pages; `next` is the URL of the next batch, whose host may be wrong."""

    pages: Entries[MonitorCheckPage] | None = None
    next: str | None = None


class MonitorRunResponse(Answer):
    """Response of run; `id` is the id of the check."""

    id: OrNone[str] = None
    data: MonitorCheck | None = None


class MonitorCheckResponse(Answer):
    """Response of get check."""

    next: str | None = None
    data: MonitorCheckDetail


class MonitorCheckListResponse(Answer):
    """One page of checks, newest first, without their pages."""

    data: Entries[MonitorCheck]
