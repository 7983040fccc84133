# SPDX-License-Identifier: Apache-2.0
"""XCom keys of the provider's tasks. Values of the service keep its field names, and are not listed."""

from __future__ import annotations

from typing import NamedTuple


class XComKey(NamedTuple):
    """An XCom.

    :param shape: the value.
    :param pushed_by: the tasks that push it, and when.
    :param in_result: whether it is a value of a returned mapping, without a separate key.
    """

    shape: str
    pushed_by: str
    in_result: bool = False


APPLIED_SCHEDULE = "applied_schedule"
CREDITS = "credits"
FAILURE = "failure"
INCOMPLETE = "incomplete"
MISSING = "missing_pages"
PLAN = "plan"
PREVIEW = "preview"
QUALITY = "quality"
QUALITY_REJECTED = "quality_rejected"
SKIPPED = "skipped_entries"
UNPUBLISHED = "unpublished"

SCALARS = ("path", "count", "id", "creditsUsed", "credits_used", MISSING, SKIPPED)
"""Keys of a returned mapping that are separate XComs, in snake_case: `crawl.output["path"]`."""

_FILES = "tasks with `save_to`"
_BATCH = "batch search"

XCOM_KEYS: dict[str, XComKey] = {
    FAILURE: XComKey(
        (
            "`message`, `code`, `fix`, `link` of the error; where known, `reasons` (the first 5 failed pages, "
            "searches, or calls), `accepted_with` (arguments that would have accepted it), and `inspect_first` "
            "(true: follow `fix` before you clear the task)"
        ),
        "each task that fails",
    ),
    CREDITS: XComKey(
        "`used`, `saved`, `unknown` (calls of unknown cost), `by_operation`, `by_format`, `by_connection`, and `jobs`",
        "each task with billed calls, also TaskFlow tasks that call a guarded hook",
    ),
    INCOMPLETE: XComKey(
        "list of `kind`, `number`, `of`: what the results lack",
        "tasks that succeed without some of the results",
    ),
    "return_value": XComKey(
        "the results", "each task that succeeds, and tasks whose published results are rejected"
    ),
    "unmapped": XComKey("the results", "tasks whose results Airflow cannot map over"),
    UNPUBLISHED: XComKey(
        "the service's response",
        "tasks with one call whose billed response could neither be published nor stored",
    ),
    "path": XComKey("URL of the written file", _FILES),
    "count": XComKey("number of results", "tasks that return a mapping with results"),
    "id": XComKey("the service's id of the job, search, monitor, or check", "tasks whose result has one"),
    "bytes": XComKey("size of the written file", _FILES, in_result=True),
    "data": XComKey("the results", "jobs and data providers, without `save_to`", in_result=True),
    PREVIEW: XComKey("the first 5 rows, shortened", _FILES),
    "changes": XComKey(
        "`emit`, and counts: `new`, `changed`, `same`, `removed`, `failed`, `emitted_again`",
        "tasks with `changes`",
    ),
    PLAN: XComKey(
        "`read` and `listed` (numbers of pages), `reasons` (number of pages to read by reason), `is_whole`, "
        "`sitemaps`, `sitemaps_not_read`, `credits`",
        "incremental crawl, once it has listed the site",
    ),
    "validation": XComKey(
        "`checked`, `invalid`, `failed`, and `items`, the first 100 invalid results",
        "tasks with a result schema",
    ),
    QUALITY: XComKey(
        "`items`, `pages`, `blocked`, `coverage`, `credits_per_item`, `min_items`, `failed`",
        "tasks with `quality`",
    ),
    QUALITY_REJECTED: XComKey("as `quality`", "tasks whose results `quality` rejected"),
    "media": XComKey(
        "`kept`, `bytes`, `failed`, and `errors`, the first 20", "tasks with `media_to`", in_result=True
    ),
    SKIPPED: XComKey("number of entries that could not be read", "tasks that list results"),
    MISSING: XComKey(
        "number of pages that were neither returned nor reported as failed",
        "crawl, batch scrape, and the job sensor",
    ),
    "job_id": XComKey("id of the job", "crawl, batch scrape, and agent, before they wait"),
    "invalid_urls": XComKey("list of the URLs that the service dropped", "batch scrape"),
    "over_credit_limit": XComKey("`True`", "jobs that were canceled at `credit_limit`"),
    "partial": XComKey("the agent's results until it stopped", "agent, if the run fails"),
    "errors": XComKey(
        "`count`, `robots_blocked`, and `pages`, the first 100 failed pages",
        "crawl, batch scrape, and the job sensor",
        in_result=True,
    ),
    "counts": XComKey("number of results by source", "search with `save_to`", in_result=True),
    "done": XComKey("number of successful searches", _BATCH),
    "failed": XComKey(
        "batch search: list of `query`, `error`, `ambiguous`; data providers: number of failed calls",
        f"{_BATCH} and data providers",
    ),
    "left": XComKey("the queries that were not sent", _BATCH),
    "not_begun": XComKey("number of queries that were not sent", _BATCH),
    "credits_used": XComKey(
        "credits of the call, or of the agent in a task",
        "tasks with one billed call, and tasks with a toolset",
    ),
    "sources": XComKey(
        "list of `tool`, `url`, `title` of the pages that an agent read", "tasks with a toolset"
    ),
    "scrape_id": XComKey(
        "id of the scrape, or of the call", "scrape, parse, interact with `scrape_id`, and data providers"
    ),
    "status_code": XComKey("status of the page's site", "scrape and parse"),
    "warning": XComKey("the service's warning, or None", "search, scrape, parse, and map"),
    "request_id": XComKey("idempotency key of the request", "data providers"),
    "session_id": XComKey("id of the browser session", "interact, if the task fails"),
    "steps": XComKey(
        "list of the steps' `stdout`, `stderr`, `exitCode`, `killed`, `error`", "interact, if the task fails"
    ),
    "credits_billed": XComKey("credits of the browser session", "interact, if the task fails"),
    "session_duration_ms": XComKey("lifetime of the browser in milliseconds", "interact, if the task fails"),
    "remaining_credits": XComKey("credits left", "credit usage"),
    "plan_credits": XComKey("credits of the plan", "credit usage"),
    "billing_period_start": XComKey("ISO 8601 time, or None", "credit usage"),
    "billing_period_end": XComKey("ISO 8601 time, or None", "credit usage"),
    "monitor_id": XComKey("id of the monitor", "creating and running a monitor, before they wait"),
    "check_id": XComKey("id of the check", "running a monitor, before it waits"),
    "monitor": XComKey("the monitor", "creating a monitor with `wait_for_completion`"),
    APPLIED_SCHEDULE: XComKey(
        "`text` and the `cron` that the service derived from it", "creating a monitor with a text schedule"
    ),
    "webdata_page": XComKey("URL of the page of the monitor, check, or delivery", "tasks with one"),
    "webdata_dashboard": XComKey("URL of the service's dashboard", "all, if the connection has its URL"),
}
"""The keys by name, the most common ones first."""
