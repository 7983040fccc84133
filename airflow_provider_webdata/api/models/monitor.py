# SPDX-License-Identifier: Apache-2.0
"""Requests to create and update monitors: targets, schedule, and notifications."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field

from airflow_provider_webdata.api.models.base import RequestModel, problem
from airflow_provider_webdata.api.models.crawl import CrawlScope
from airflow_provider_webdata.api.models.fields import (
    DomainFilter,
    Identifier,
    Integer,
    JsonObject,
    Listed,
    Query,
    String,
    Switch,
    Text,
    WebAddress,
    listed,
    one_of,
)
from airflow_provider_webdata.api.models.formats import RETURNED_BY_CHECKS, format_types
from airflow_provider_webdata.api.models.schedule import MonitorSchedule
from airflow_provider_webdata.api.models.scrape import MonitorScrapeOptions
from airflow_provider_webdata.api.models.webhook import MonitorWebhookConfig

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class CrawlOptions(CrawlScope):
    """The scope of a crawl target: `CrawlScope` with one more field.

    Without `limit`, the service reserves 10,000 credits for every check: the default number of pages.

    :param max_depth: the other documented depth option, at least 0.
    """

    max_depth: Annotated[Integer, Field(ge=0)] | None = None

    def _own_warnings(self) -> list[str]:
        found = super()._own_warnings()
        if self.max_depth is not None:
            found.append(
                "crawlOptions.maxDepth: stored, but the checks may then fail; set maxDiscoveryDepth instead"
            )
        if self.prompt is not None:
            found.append("crawlOptions.prompt: the checks of a monitor ignore it; set the options instead")
        return found


class ScrapeTarget(RequestModel):
    """Pages to watch, by URL.

    :param id: UUID of a stored target; include it in updates, or the target's history is lost.
    :param urls: at least one.
    :param scrape_options: scrape options of the pages.
    """

    parts = {"scrapeOptions": MonitorScrapeOptions}  # noqa: RUF012

    type: Literal["scrape"] = "scrape"
    id: Identifier | None = None
    urls: Annotated[Listed[WebAddress], Field(min_length=1)]
    scrape_options: MonitorScrapeOptions | None = None

    def _own_warnings(self) -> list[str]:
        return _unreturned(self.scrape_options)


class CrawlTarget(RequestModel):
    """A site to watch.

    :param id: UUID of a stored target; include it in updates, or the target's history is lost.
    :param url: start URL of the crawl.
    :param crawl_options: scope of the crawl; without `limit`, the service reserves 10,000 credits per check.
    :param scrape_options: scrape options of each page.
    """

    parts = {"crawlOptions": CrawlOptions, "scrapeOptions": MonitorScrapeOptions}  # noqa: RUF012

    type: Literal["crawl"] = "crawl"
    id: Identifier | None = None
    url: WebAddress
    crawl_options: CrawlOptions | None = None
    scrape_options: MonitorScrapeOptions | None = None

    def _own_warnings(self) -> list[str]:
        found = _unreturned(self.scrape_options)
        if self.crawl_options is None or self.crawl_options.limit is None:
            found.append(
                "crawlOptions.limit: not set, so the service reserves 10,000 credits for every check"
            )
        return found


class SearchTarget(RequestModel):
    """Searches to watch for new results. Has no scrape options; requires a goal.

    :param id: UUID of a stored target; include it in updates, or the target's history is lost.
    :param queries: 1 to 12, each 1 to 256 characters.
    :param search_window: maximum age of a result. Service default: 24h.
    :param max_results: 1 to 50, for all queries together. Service default: 10.
    :param include_domains: at most 50 host names; not together with exclude_domains.
    :param exclude_domains: at most 50 host names.
    """

    type: Literal["search"] = "search"
    id: Identifier | None = None
    queries: Annotated[Listed[Annotated[Query, Field(max_length=256)]], Field(min_length=1, max_length=12)]
    search_window: Literal["5m", "15m", "1h", "6h", "24h", "7d"] | None = None
    max_results: Annotated[Integer, Field(ge=1, le=50)] | None = None
    include_domains: Annotated[DomainFilter, Field(max_length=50)] | None = None
    exclude_domains: Annotated[DomainFilter, Field(max_length=50)] | None = None


MonitorTarget = Annotated[ScrapeTarget | CrawlTarget | SearchTarget, one_of("a target")]


def _email(value: str) -> str:
    if not re.fullmatch(r"[^@\s,;<>]+@[^@\s,;<>]+\.[^@\s,;<>.]+", value):
        raise problem("email", "must be an email address such as name@example.com")
    return value


class EmailNotification(RequestModel):
    """Email about changes; sent only for meaningful changes.

    :param enabled: service default: false.
    :param include_diffs: service default: false.
    :param recipients: at most 25 addresses; when omitted, eligible members of the team. Others must first confirm
        by email.
    """

    enabled: Switch | None = None
    include_diffs: Switch | None = None
    recipients: Annotated[Listed[Annotated[String, AfterValidator(_email)]], Field(max_length=25)] | None = (
        None
    )


class MonitorNotification(RequestModel):
    """Recipients of notifications, apart from the webhook.

    :param email: email settings.
    :param slack: the Slack channel, as the dashboard sets it. Not publicly documented; sent unchecked.
    """

    email: EmailNotification | None = None
    slack: JsonObject | None = None


_Name = Annotated[Text, Field(max_length=256)]


def _with_urls_as_target(given: Any) -> Any:
    """Replace plain URLs among the targets with one scrape target, at the position of the first one."""
    given = listed(given)
    if not isinstance(given, (list, tuple)):
        return given
    # A single word is probably not intended as a URL.
    urls = {n: item for n, item in enumerate(given) if isinstance(item, str) and re.search("[./:]", item)}
    if not urls:
        return given
    targets = [item for n, item in enumerate(given) if n not in urls]
    targets.insert(min(urls), {"type": "scrape", "urls": [*urls.values()]})
    return targets


_Targets = Annotated[
    Listed[MonitorTarget], BeforeValidator(_with_urls_as_target), Field(min_length=1, max_length=50)
]
_Goal = Annotated[String, Field(max_length=2000)]
_RetentionDays = Annotated[Integer, Field(ge=1, le=365)]

_SEARCH_NEEDS_GOAL = (
    "a search target needs a non-blank goal, unless judgeEnabled is false; "
    "add a goal that says which results matter"
)


class MonitorCreateRequest(RequestModel):
    """Body of `POST /v2/monitor`. The service lets several monitors share a name.

    A blank or null goal counts as no goal; any other goal enables judging if `judge_enabled` is omitted.

    :param name: name of the monitor, 1 to 256 characters.
    :param schedule: a cron expression, a phrase such as `daily at 9:00`, or a mapping with `cron` or `text`, and
        `timezone`.
    :param targets: 1 to 50 mappings with `type` `scrape`, `crawl`, or `search`, or URLs, which become one `scrape`
        target.
    :param goal: description of the changes that matter, at most 2000 characters; required for search targets.
    :param judge_enabled: judge changes against the goal. Default: true if a goal is set.
    :param notification: recipients of notifications: `email` with `enabled`, `includeDiffs`, `recipients`; `slack`.
    :param retention_days: retention in days, 1 to 365. Default: 30.
    :param webhook: endpoint that receives page and check events: `url`, `events`, `headers`, `metadata`.
    """

    nullable = frozenset({"goal"})

    name: _Name
    schedule: MonitorSchedule
    targets: _Targets
    goal: _Goal | None = None
    judge_enabled: Switch | None = None
    notification: MonitorNotification | None = None
    retention_days: _RetentionDays | None = None
    webhook: MonitorWebhookConfig | None = None

    def _check(self) -> None:
        if _has_search(self.targets) and _is_blank(self.goal) and self.judge_enabled is not False:
            raise problem("goal", _SEARCH_NEEDS_GOAL)

    def _own_warnings(self) -> list[str]:
        if self.judge_enabled and _is_blank(self.goal):
            return ["judgeEnabled: has no effect without a goal"]
        return []


class MonitorUpdateRequest(RequestModel):
    """Body of `PATCH /v2/monitor/{id}`: at least one field; omitted fields stay unchanged.

    Rules between fields are checked only if the body alone determines the outcome, because the goal may already be
    stored. To resume a monitor, include its schedule, or no next run is computed. Include the ids of targets, or their
    history is lost. Include `judge_enabled` with a goal: sources differ on whether a goal alone enables judging.

    :param name: a new name, 1 to 256 characters.
    :param status: new state: `active` or `paused`.
    :param schedule: a cron expression, a phrase such as `daily at 9:00`, or a mapping with `cron` or `text`, and
        `timezone`.
    :param targets: all targets of the monitor, 1 to 50, as mappings or URLs.
    :param goal: description of the changes that matter, at most 2000 characters; an empty text clears it.
    :param judge_enabled: judge changes against the goal.
    :param notification: recipients of notifications: `email` with `enabled`, `includeDiffs`, `recipients`; `slack`.
    :param retention_days: retention in days, 1 to 365.
    :param webhook: endpoint that receives page and check events; it can be changed, but not removed.
    """

    nullable = frozenset({"goal"})

    name: _Name | None = None
    status: Literal["active", "paused"] | None = None
    schedule: MonitorSchedule | None = None
    targets: _Targets | None = None
    goal: _Goal | None = None
    judge_enabled: Switch | None = None
    notification: MonitorNotification | None = None
    retention_days: _RetentionDays | None = None
    webhook: MonitorWebhookConfig | None = None

    @classmethod
    def _given(cls, data: Mapping[Any, Any]) -> dict[Any, Any]:
        given = super()._given(data)
        # In other fields, null means "not set"; here, the author expects that it removes the webhook.
        if "webhook" in data and "webhook" not in given:
            raise problem(
                "webhook", "webhook: the service cannot remove a webhook, only change it; omit the field"
            )
        return given

    def _check(self) -> None:
        if not self.to_wire():
            raise problem("empty_update", "an update needs at least one field")
        cleared = "goal" in self.model_fields_set and _is_blank(self.goal)
        if cleared and self.judge_enabled and _has_search(self.targets or ()):
            raise problem("goal", _SEARCH_NEEDS_GOAL)

    def _own_warnings(self) -> list[str]:
        found = []
        if self.status == "active" and self.schedule is None:
            found.append("status: include the schedule when resuming, or the service computes no next run")
        if self.targets and not all(target.id for target in self.targets):
            found.append("targets: a target without its id loses its history and reports all pages as new")
        if not _is_blank(self.goal) and self.judge_enabled is None:
            found.append("goal: also set judgeEnabled; sources differ on whether an update enables judging")
        return found


def _unreturned(options: MonitorScrapeOptions | None) -> list[str]:
    found = {*format_types(options.formats if options else None)} - RETURNED_BY_CHECKS
    return [f"scrapeOptions.formats: a check returns no {name}; omit it" for name in sorted(found)]


def _has_search(targets: Sequence[RequestModel]) -> bool:
    return any(isinstance(target, SearchTarget) for target in targets)


def _is_blank(goal: str | None) -> bool:
    return goal is None or not goal.strip()
