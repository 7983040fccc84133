"""An incremental crawl: scrapes only the new and stale pages of a site."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

from airflow_provider_webdata.api.models import BatchScrapeRequest
from airflow_provider_webdata.api.servers import NO_LINKS
from airflow_provider_webdata.common.arguments import seconds
from airflow_provider_webdata.common.numbers import credits_text
from airflow_provider_webdata.runs.jobs.job import JobRun
from airflow_provider_webdata.runs.jobs.plan_calls import PlanCalls
from airflow_provider_webdata.runs.jobs.site_plan import Site
from airflow_provider_webdata.runs.request import valid_request

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from airflow_provider_webdata.api.models.base import RequestModel
    from airflow_provider_webdata.operators.incremental_crawl import WebDataIncrementalCrawlOperator
    from airflow_provider_webdata.results.manifest.plan import Plan
    from airflow_provider_webdata.runs.publishing.publication import Value
    from airflow_provider_webdata.runs.publishing.step import Results


class IncrementalCrawlRun(JobRun):
    """One attempt of a task that plans which pages of a site to scrape, and scrapes them in one batch."""

    task: WebDataIncrementalCrawlOperator

    def check(self) -> None:
        """Fail the task before any call is billed; the map is billed before the batch."""
        super().check()
        valid_request(self.task, BatchScrapeRequest, self.start_name, self._fields([self.task.url]))

    def start_and_wait(self) -> Any:
        """Plan the crawl, scrape its pages, and return the results."""
        return super().start_and_wait() if self.plan.read else self.publish_nothing()

    def publish(self, results: Results, value: Value | None = None) -> Any:
        """Publish results, and push that sitemaps were not read; see `Publication.publish`."""
        result = super().publish(results, value)
        self.lacks("sitemaps_not_read", self.plan.sitemaps_not_read, self.plan.sitemaps)
        return result

    def request(self) -> tuple[type[RequestModel], Mapping[str, Any]]:
        """Return the model of the request, and its fields without a managed webhook."""
        return BatchScrapeRequest, self._fields(self.plan.read or [self.task.url])

    @property
    def site(self) -> str:
        """The site whose pages a complete job covers."""
        return self.task.url

    def covers_all(self, count: int) -> bool:  # noqa: ARG002
        """Return whether the map listed the whole site."""
        return self.plan.is_whole

    def known_pages(self) -> Sequence[str]:
        """Return the keys of the skipped pages, whose known content remains valid."""
        return self.plan.known

    @cached_property
    def plan(self) -> Plan:
        """The crawl plan: an earlier attempt's, or a new one."""
        seen = self.publication.seen
        self.leftovers.append(partial(seen.folder.delete_plan, seen.run))
        plan = seen.folder.plan_of(seen.run)
        # A resumed task reads the result of the job that it started by this plan.
        if plan is None or (plan.site != self._site.digest and not self.is_resumed):
            plan = self._new_plan()
        if plan.has_no_links:
            known = len(seen.known_for(self.site).entries)
            # The first page is read even if no map ever has links.
            self.lacks("no_results", known if known > 1 else 0)
        return plan

    @cached_property
    def _site(self) -> Site:
        task = self.task
        return Site(
            task.url,
            task.map_options or {},
            task.sitemap_url,
            task.max_sitemaps,
            timedelta(seconds=seconds("refresh_after", task.refresh_after, least=0)),
            self.publication.seen.changes.ignore_query,
        )

    def _fields(self, urls: Sequence[str]) -> dict[str, Any]:
        return {**self.task._field_values(), "urls": urls}

    def _new_plan(self) -> Plan:
        site, seen = self._site, self.publication.seen
        calls = PlanCalls(self, seen.folder.url)
        links = calls.links(site.request)
        if not links and self.hook.get_settings().client.server.is_self_hosted:
            self.log.warning("%s", NO_LINKS)
        entries = seen.known_for(self.site).entries
        plan = site.plan(links, entries, seen.run.moment, calls.text, self.log)
        plan = replace(plan, has_no_links=not links)
        seen.folder.write_plan(seen.run, plan)
        calls.forget()
        left = len(plan.known)
        self.ledger.save(left + calls.saved, "batch_scrape")
        self.log.info(
            "%d pages: %d to scrape, %d known; at least %s credits saved",
            left + len(plan.read),
            len(plan.read),
            left,
            credits_text(max(0, left - plan.credits)),
        )
        return plan
