"""An incremental crawl: scrapes only the new and stale pages of a site."""

from __future__ import annotations

import hashlib
import json
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

from airflow_provider_webdata.api.models import BatchScrapeRequest
from airflow_provider_webdata.api.prices import MAP_CREDITS, reported_credits
from airflow_provider_webdata.common.numbers import credits_text
from airflow_provider_webdata.runs.jobs.job import JobRun
from airflow_provider_webdata.runs.jobs.site_plan import Site
from airflow_provider_webdata.runs.money.paid_records import FileRecords
from airflow_provider_webdata.runs.money.task_ledger import Cost
from airflow_provider_webdata.runs.publishing.step import Results
from airflow_provider_webdata.runs.request import valid_request

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from airflow_provider_webdata.api.models.base import RequestModel
    from airflow_provider_webdata.operators.incremental_crawl import WebDataIncrementalCrawlOperator
    from airflow_provider_webdata.results.manifest.plan import Plan
    from airflow_provider_webdata.runs.publishing.publication import Value


class IncrementalCrawlRun(JobRun):
    """One attempt of a task that plans which pages of a site to scrape, and scrapes them in one batch."""

    task: WebDataIncrementalCrawlOperator

    def check(self) -> None:
        """Fail the task before any call is billed; the map is billed before the batch."""
        super().check()
        valid_request(self.task, BatchScrapeRequest, self.start_name, self._fields([self.task.url]))

    def start_and_wait(self) -> Any:
        """Plan the crawl, scrape its pages, and return the results."""
        if self.plan.read:
            return super().start_and_wait()
        results = Results(
            [],
            "document",
            {"id": None, "creditsUsed": 0},
            [self.task.url],
            self.plan.known,
            site=self.site,
            covers_all=self.covers_all,
        )
        return self.publish(results)

    def publish(self, results: Results, value: Value | None = None) -> Any:
        """Publish results, and push that sitemaps were not read; see `Publication.publish`."""
        result = super().publish(results, value)
        self.lacks("sitemapsNotRead", self.plan.sitemaps_not_read, self.plan.sitemaps)
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
        return plan

    @cached_property
    def _site(self) -> Site:
        task = self.task
        return Site(
            task.url,
            task.map_options or {},
            task.sitemap_url,
            task.max_sitemaps,
            task.refresh_after,
            self.publication.seen.changes.ignore_query,
        )

    def _fields(self, urls: Sequence[str]) -> dict[str, Any]:
        return {**self.task.field_values(), "urls": urls}

    def _new_plan(self) -> Plan:
        """Return a new plan. Its calls are kept until it is complete: after a rate limit, it is continued."""
        site, seen = self._site, self.publication.seen
        account = self.hook.get_settings().client.account
        kept = FileRecords(f"{seen.folder.url}/plan", self.context, account)
        earlier = {record["key"]: record["answer"] for record in kept.read()}
        reused = 0.0

        def once(
            operation: str, request: dict[str, Any], call: Callable[[], dict[str, Any]]
        ) -> dict[str, Any]:
            nonlocal reused
            key = hashlib.sha256(json.dumps([operation, request], sort_keys=True).encode()).hexdigest()
            if (found := earlier.pop(key, None)) is not None:
                reused += found["credits"]
                return found
            with self.ledger.sending(operation, request):
                answer = call()
            try:
                kept.save([{"key": key, "answer": answer}])
            finally:
                self.ledger.settle(Cost(answer["credits"]), operation)
            return answer

        def listed() -> dict[str, Any]:
            links = self.hook.map(site.request).links or ()
            return {"links": [link.url for link in links if link.url], "credits": MAP_CREDITS}

        def scraped(request: dict[str, Any]) -> dict[str, Any]:
            response = self.hook.scrape(request)
            text = response.data.raw_html
            return {
                "text": text if isinstance(text, str) else "",
                "credits": reported_credits(response) or 1.0,
            }

        def scrape(request: dict[str, Any]) -> tuple[str, float]:
            answer = once("scrape", request, partial(scraped, request))
            return answer["text"], answer["credits"]

        links = once("map", site.request, listed)["links"]
        plan = site.plan(links, seen.known_for(self.site).entries, seen.run.moment, scrape, self.log)
        seen.folder.write_plan(seen.run, plan)
        kept.forget()
        left = len(plan.known)
        self.ledger.save(left + reused, "batch_scrape")
        self.log.info(
            "%d pages: %d to scrape, %d known; at least %s credits saved",
            left + len(plan.read),
            len(plan.read),
            left,
            credits_text(max(0, left - plan.credits)),
        )
        return plan
