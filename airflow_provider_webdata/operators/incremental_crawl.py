"""The operator that reads of a site what is new or old, and nothing else."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from airflow_provider_webdata.coded_errors import ArgumentError
from airflow_provider_webdata.operators.batch_scrape import WebDataBatchScrapeOperator
from airflow_provider_webdata.tasks.arguments import seconds

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from airflow.sdk import Context

    from airflow_provider_webdata.results.manifest.plan import Plan


class WebDataIncrementalCrawlOperator(WebDataBatchScrapeOperator):
    """Read of a site the pages that are new, old, or changed by its sitemap, in one job. Bills credits.

    One call of map lists the site (1 credit), one scrape reads the `lastmod` of its sitemap (1 credit), and a batch
    scrape reads the pages that the manifest does not know, that were read `refresh_after` ago, or that changed since.
    A page from the service's cache costs as much as any: only what is not asked for saves. The log says what was
    saved. All that is said in `ChangedResults` holds: pages that were left count as `known`, those that the site does
    not list any more as missing.

    What is to be read is written into the manifest's folder first, so that a retry pays for the listing once and finds
    the job of the attempt before.

    :param url: the site.
    :param refresh_after: how long after it was read a page is read again: seconds, or a `timedelta`.
    :param manifest: folder of what was seen; see `ChangedResults`. It is required here.
    :param map_options: further fields of POST /v2/map, such as `{"limit": 20000, "include_paths": ["/docs/.*"]}`
        (templated); `limit` is 5,000 unless given, and the sitemap is read anew.
    :param sitemap_url: where the sitemap with the dates is (templated). Default: `/sitemap.xml` of the site; an empty
        text reads none.
    :param kwargs: arguments of `WebDataBatchScrapeOperator`, all but `urls`.
    """

    template_fields: Sequence[str] = (
        *WebDataBatchScrapeOperator.template_fields,
        "url",
        "map_options",
        "sitemap_url",
    )

    _plan: Plan | None = None

    def __init__(
        self,
        *,
        url: str,
        refresh_after: float | timedelta,
        manifest: str,
        map_options: Mapping[str, Any] | None = None,
        sitemap_url: str | None = None,
        **kwargs: Any,
    ) -> None:
        if "urls" in kwargs:
            raise ArgumentError(
                "urls are found by this operator: give url, or use WebDataBatchScrapeOperator"
            )
        super().__init__(urls=[url], manifest=manifest, **kwargs)
        self.url = url
        self.refresh_after = timedelta(seconds=seconds("refresh_after", refresh_after, zero=True))
        self.map_options = map_options
        self.sitemap_url = sitemap_url

    def call_service(self, context: Context) -> Any:
        """Find out what is to be read, read it, and return it."""
        plan = self._made_plan(context)
        if plan.read:
            self.urls = plan.read
            return super().call_service(context)
        return self.deliver([], "document", context, {"id": None, "creditsUsed": 0}, inputs=[self.url])

    def covers_all(self, count: int) -> bool:  # noqa: ARG002
        """Return whether the site was listed whole."""
        return self._plan is None or self._plan.is_whole

    def known_pages(self, context: Context) -> Sequence[str]:
        """Return the keys of the pages that were left as they are known."""
        return self._made_plan(context).known

    def _made_plan(self, context: Context) -> Plan:
        from airflow_provider_webdata.tasks.jobs.site_plan import Site

        if self._plan is None:
            folder, run, known = self.read_manifest(context)
            self._plan = folder.plan_of(run)
            if self._plan is None:
                site = Site(
                    self.url, self.map_options or {}, self.sitemap_url, self.refresh_after, self.ignore_query
                )
                self._plan = site.plan(self.hook, known.entries, run.moment, self.log)
                folder.write_plan(run, self._plan)
            left = len(self._plan.known)
            self.log.info(
                "%d pages: %d to read, %d known; at least %g credits saved",
                left + len(self._plan.read),
                len(self._plan.read),
                left,
                max(0, left - self._plan.credits),
            )
        return self._plan
