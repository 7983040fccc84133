# SPDX-License-Identifier: Apache-2.0
"""The billed calls that list a site: its map and its sitemaps."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any
from urllib.parse import urljoin

from airflow_provider_webdata.api import prices
from airflow_provider_webdata.api.endpoints import MAP, SCRAPE
from airflow_provider_webdata.api.errors import WebDataError
from airflow_provider_webdata.common.numbers import credits_text
from airflow_provider_webdata.hooks.calls import checked_body
from airflow_provider_webdata.results.pages.sitemap import (
    is_sitemap,
    listed_pages,
    nested_sitemaps,
    text_of,
)
from airflow_provider_webdata.runs.money.task_ledger import Cost

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from airflow_provider_webdata.api.endpoints import Endpoint
    from airflow_provider_webdata.runs.jobs.site_plan import SitePlan
    from airflow_provider_webdata.runs.run import Run

_LAST = datetime.max.replace(tzinfo=timezone.utc)
# If the URL is a PDF instead of a sitemap, pay for one page only.
_ONE_PAGE = {"type": "pdf", "maxPages": 1}


class PlanCalls:
    """The billed calls of one attempt; each is sent once.

    :ivar credits: their cost so far; calls of unknown cost count 0.
    """

    def __init__(self, run: Run) -> None:
        self.credits = 0.0
        self._run, self._hook = run, run.hook

    def links(self, request: Mapping[str, Any]) -> list[str]:
        """Return the URLs of a map."""

        def call(body: Any) -> tuple[list[str], float | None]:
            response = self._hook.map(body)
            links = [link.url for link in response.links or () if link.url]
            return links, prices.MAP.cost(response, body.to_wire())

        links: list[str] = self._billed(MAP, request, call)
        return links

    def sitemap(self, url: str) -> str:
        """Return the text of a page that may be a sitemap."""
        request = {"url": url, "formats": ["rawHtml"], "max_age": 0, "parsers": [_ONE_PAGE]}

        def call(body: Any) -> tuple[str, float | None]:
            response = self._hook.scrape(body)
            text = response.data.raw_html
            return text if isinstance(text, str) else "", prices.reported_credits(response)

        return text_of(self._billed(SCRAPE, request, call))

    def _billed(
        self,
        endpoint: Endpoint[Any],
        request: Mapping[str, Any],
        call: Callable[[Any], tuple[Any, float | None]],
    ) -> Any:
        operation, body = endpoint.name, checked_body(endpoint, request)
        ledger = self._run.ledger
        with ledger.sending(operation, body.to_wire()):
            response, credits = call(body)
        ledger.settle(Cost(credits), operation)
        self.credits += credits or 0
        return response


class Sitemaps:
    """The sitemaps of a site: the first, and all nested ones.

    :param site: URL of the site.
    :param given: URL of the first sitemap; None: `/sitemap.xml`; empty: no sitemap.
    :param most: maximum number of sitemaps to read.
    :ivar changed: number of sitemaps that may have changed, or that were read for unknown links.
    :ivar not_read: number of these that were not read. The default `/sitemap.xml` does not count: a site
        need not have one.
    """

    def __init__(self, site: str, given: str | None, most: int, calls: PlanCalls, log: Any) -> None:
        self.changed = self.not_read = 0
        self._first = urljoin(site, "/sitemap.xml") if given is None else given
        self._is_given, self._most = given is not None, most
        self._calls, self._log = calls, log

    def read(self, plan: SitePlan, since: float | None) -> None:
        """Read the sitemaps that changed since a time, the most recently changed first, and add their pages to a plan.

        Others are read while a link is unknown: the sitemap may have its URL.

        :param since: in seconds since the epoch; None: read all.
        """
        if not self._first:
            return
        # A sitemap without a date may have changed just now.
        waiting, unchanged = {self._first: _LAST}, dict[str, datetime]()
        named, count, before = {self._first}, 0, self._calls.credits
        plan.exclude(named)
        while count < self._most and (urls := waiting or (unchanged if plan.has_unknown else None)):
            url = max(urls, key=urls.__getitem__)
            del urls[url]
            text = self._text_of(url)
            count += 1
            self.not_read += not is_sitemap(text) and (self._is_given or url != self._first)
            for page, changed in listed_pages(text):
                plan.add(page, changed)
            for nested, dated in nested_sitemaps(text):
                if nested not in named:
                    is_news = dated is None or since is None or dated.timestamp() > since
                    (waiting if is_news else unchanged)[nested] = dated or _LAST
                    named.add(nested)
                    plan.exclude([nested])
        self.changed = count + len(waiting)
        self.not_read += len(waiting)
        if count > 1 or waiting:
            spent = credits_text(self._calls.credits - before)
            self._log.info("Read %d of %d sitemaps for %s credits", count, len(named), spent)
        if waiting:
            self._log.warning(
                "%d sitemaps that may have changed were not read, such as %s; raise max_sitemaps (%d)",
                len(waiting),
                max(waiting, key=waiting.__getitem__),
                self._most,
            )

    def _text_of(self, url: str) -> str:
        try:
            text = self._calls.sitemap(url)
        except WebDataError as error:
            if error.verdict != "never":
                raise
            self._log.info(
                "The sitemap %s could not be read. Its pages are dated only by their last scrape: %s",
                url,
                error.brief(),
            )
            return ""
        if not is_sitemap(text):
            self._log.info("%s is not a sitemap, or is compressed, which the service does not support", url)
        return text
