# SPDX-License-Identifier: Apache-2.0
"""An incremental crawl: scrapes only the pages of a site that are new, outdated, or not consumed yet."""

from __future__ import annotations

from collections import Counter
from functools import cached_property
from typing import TYPE_CHECKING, Any

import msgspec

from airflow_provider_webdata.api.endpoints import MAP, PRICES
from airflow_provider_webdata.api.models import BatchScrapeRequest
from airflow_provider_webdata.api.prices import DEFAULT_LINKS
from airflow_provider_webdata.api.servers import NO_LINKS
from airflow_provider_webdata.common.arguments import seconds
from airflow_provider_webdata.common.numbers import credits_text
from airflow_provider_webdata.common.xcom_keys import PLAN
from airflow_provider_webdata.hooks.calls import body_for, checked_body
from airflow_provider_webdata.results.pages.requested import CountedPages, RequestedPages
from airflow_provider_webdata.runs.jobs.job import JobRun
from airflow_provider_webdata.runs.jobs.plan_calls import PlanCalls, Sitemaps
from airflow_provider_webdata.runs.jobs.site_plan import PlanFacts, Reason, SitePlan
from airflow_provider_webdata.runs.request import checked_extra_body, valid_request
from airflow_provider_webdata.states.task_record import PlanSummary

if TYPE_CHECKING:
    from collections.abc import Mapping

    from airflow_provider_webdata.api.models.base import RequestModel
    from airflow_provider_webdata.operators.incremental_crawl import WebDataIncrementalCrawlOperator

_WHY: Mapping[Reason, str] = {
    "new": "new",
    "stale": "not read for refresh_after",
    "dated": "changed since, by their sitemap",
    "open": "not consumed yet by the tasks downstream",
    "request": "because the request or a load of the file changed",
}


class IncrementalCrawlRun(JobRun):
    """One attempt of a task that plans which pages of a site to scrape, and scrapes them in one batch.

    An attempt that finds the job of an earlier one plans nothing: the record has the plan of that job.
    """

    task: WebDataIncrementalCrawlOperator
    _urls: tuple[str, ...] = ()

    def check(self) -> None:
        """Fail the task before any call is billed; the map is billed before the batch."""
        super().check()
        valid_request(self.task, BatchScrapeRequest, self.start_name, self._fields())

    def request(self) -> tuple[type[RequestModel], Mapping[str, Any]]:
        """Return the model of the request, and its fields without a managed webhook, with one page for all."""
        return BatchScrapeRequest, self._fields()

    def _fields(self) -> dict[str, Any]:
        return {**self.task._field_values(), "urls": [self.task.url]}

    def comparable(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """Return what a later attempt compares with its own: instead of the pages, what decides which are read."""
        task = self.task
        return {
            **super().comparable(body),
            "urls": None,
            "map": self._map_request,
            "sitemaps": [task.sitemap_url, task.max_sitemaps],
            "refresh_after": self._refresh_after,
        }

    @cached_property
    def _map_request(self) -> Mapping[str, Any]:
        options = {"ignore_cache": True, **(self.task.map_options or {}), "url": self.task.url}
        return checked_body(MAP, options).to_wire()

    @property
    def _refresh_after(self) -> float:
        return seconds("refresh_after", self.task.refresh_after, least=0)

    def has_work(self) -> bool:
        """List the site, and return whether a page must be read."""
        self._make_plan()
        return bool(self._urls)

    def completed(self, request: RequestModel) -> RequestModel:
        """Return the request with the pages to read."""
        return body_for(type(request), {**request.to_wire(), "urls": [*self._urls]}, self.start_name)

    def inputs(self) -> list[str]:
        """Return the site."""
        return [self.task.url]

    def requested(self) -> RequestedPages:
        """Return the number of requested pages."""
        plan = self.memory.record.plan
        return RequestedPages() if plan is None else CountedPages(plan.read, self.dropped_urls())

    @property
    def site(self) -> str:
        """The site whose pages a complete job covers."""
        return self.task.url

    def covers_all(self, count: int) -> bool:  # noqa: ARG002
        """Return whether the map listed the whole site."""
        plan = self.memory.record.plan
        return plan is not None and plan.is_whole

    def known_pages(self) -> int:
        """Return the number of listed pages that were not requested."""
        plan = self.memory.record.plan
        return self.publication.detected.count_listed() if plan is None else plan.listed

    def _make_plan(self) -> None:
        task, calls, changes = self.task, PlanCalls(self), self.publication.detected
        links = calls.links(self._map_request)
        if not links:
            self.lacks("no_links", 1)
            if self.hook.get_settings().client.server.is_self_hosted:
                self.log.warning("%s", NO_LINKS)
        plan = SitePlan(links or [task.url], changes.key)
        with changes.known() as known:
            plan.survey(known.pages())
            sitemaps = Sitemaps(task.url, task.sitemap_url, task.max_sitemaps, calls, self.log)
            if links:
                # A page that was last read before this time is read again, regardless of its date.
                since = (
                    None if plan.oldest is None else max(plan.oldest, changes.moment - self._refresh_after)
                )
                sitemaps.read(plan, since)
            facts = PlanFacts(changes.moment, self._refresh_after, changes.request, known.is_open)
            listed = changes.record_listed(plan.listed(known.pages(), facts))
        self.lacks("sitemaps_not_read", sitemaps.not_read, sitemaps.changed)
        self._urls = tuple(due.url for due in plan.due.values())
        found = PlanSummary(
            len(self._urls),
            listed,
            # The service maps a site that it cannot read as one without links.
            0 < len(links) < self._map_request.get("limit", DEFAULT_LINKS),
            sitemaps.changed,
            sitemaps.not_read,
            calls.credits,
            dict(Counter(due.reason for due in plan.due.values())),
        )
        self._report(plan, found)
        self.ledger.save(listed, "batch_scrape")
        self.memory.stage(plan=found)
        self.push(**{PLAN: msgspec.to_builtins(found)})

    def _report(self, plan: SitePlan, found: PlanSummary) -> None:
        self.log.info(
            "%d pages: %d to scrape, %d known; at least %s credits saved",
            found.listed + found.read,
            found.read,
            found.listed,
            credits_text(max(0, found.listed - found.credits)),
        )
        for reason, why in _WHY.items():
            if number := found.reasons.get(reason):
                self.log.info("%d of the pages to scrape are %s", number, why)
        again = [due.url for due in plan.due.values() if due.reason == "request"]
        if again and self._bills():
            extra_body = checked_extra_body(self.task, self.start_name)
            most = PRICES[self.kind].most({**self.body, "urls": again}, extra_body)
            self.log.warning(
                "The changed request costs up to %s credits for these %d pages: %s",
                credits_text(most.credits),
                len(again),
                "; ".join([most.how, *most.unknown]),
            )
