# SPDX-License-Identifier: Apache-2.0
"""One search."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow_provider_webdata.api.errors import error_text
from airflow_provider_webdata.api.models import SearchRequest, SearchResponse
from airflow_provider_webdata.api.prices import by_format, page_extras, search_price
from airflow_provider_webdata.api.servers import NO_SEARCH, lacks_search
from airflow_provider_webdata.common.clean_text import trimmed
from airflow_provider_webdata.common.item_urls import unfetched
from airflow_provider_webdata.hooks.task_metrics import count
from airflow_provider_webdata.results.columns import kind_of_source
from airflow_provider_webdata.results.tagged_items import tagged, untagged
from airflow_provider_webdata.runs.call import CallResult, CallRun, summary_of
from airflow_provider_webdata.runs.money.task_ledger import Cost
from airflow_provider_webdata.runs.pages.cached_pages import CachedPages
from airflow_provider_webdata.runs.publishing.step import Results

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from airflow_provider_webdata.operators.search import WebDataSearchOperator


class SearchRun(CallRun):
    """Searches, and publishes the results of all sources or one."""

    task: WebDataSearchOperator

    operation = "search"
    model = SearchRequest
    answer_model = SearchResponse

    def read(self, request: SearchRequest, answer: SearchResponse) -> CallResult:
        """Log and count the results."""
        fields = summary_of(answer)
        found = fields.pop("data")
        summary: dict[str, Any] = {"id": None, "creditsUsed": None, "warning": None, **fields}
        lists = {kind: given for kind, given in found.items() if isinstance(given, list)}
        counts = {kind: len(given) for kind, given in lists.items()}
        items = [tagged(item, source=kind) for kind, given in lists.items() for item in given]
        if lacks_search(self.hook.get_settings().client.server, {"data": found}):
            self.log.warning("%s", NO_SEARCH)
        self._report(request, answer, items, counts)
        counted: dict[str, Any] = {
            "cost": _cost(request.to_wire(), answer.credits_used, items),
            "pushed": dict(summary),
        }
        if self.publication.path is not None:
            summary["counts"] = counts
        returns, inputs = self.task.returns, [request.query]
        if returns is None:
            return CallResult(
                Results(items, "search", summary, inputs),
                value=lambda emitted, summary: {**_without_count(summary), **_by_source(emitted, found)},
                **counted,
            )
        others = [kind for kind in counts if counts[kind]]
        if not counts.get(returns) and others:
            self.log.warning(
                "returns=%r: the response has no such results, but results in %s",
                returns,
                ", ".join(map(repr, others)),
            )
        results = Results(found.get(returns) or [], kind_of_source(returns), summary, inputs)
        return CallResult(results, value=lambda emitted, _: emitted, **counted)

    def _report(
        self,
        request: SearchRequest,
        answer: SearchResponse,
        items: Sequence[Mapping[str, Any]],
        counts: Mapping[str, int],
    ) -> None:
        if answer.warning:
            self.log.warning("The service warns: %s", error_text(answer.warning))
        failed = unfetched(items)
        if failed:
            self.log.warning(
                "The pages of %d results could not be fetched: %s",
                len(failed),
                trimmed("; ".join(failed), 500),
            )
        cached = CachedPages()
        for item in items:
            cached.add(item)
        of_cache = f", {cached.count} of them from the service's cache, the oldest {cached.age()}"
        self.log.info(
            "Search for %r (%s) returned %s%s",
            request.query,
            answer.id or "without id",
            ", ".join(f"{number} {kind}" for kind, number in counts.items()) or "no results",
            of_cache if cached.count else "",
        )
        for kind, number in counts.items():
            count("webdata.search.results", number, self.context, source=kind)


def _cost(body: Mapping[str, Any], used: float | None, items: Sequence[Mapping[str, Any]]) -> Cost:
    options = body.get("scrapeOptions") or {}
    if not options.get("formats") or used is None:
        return Cost(used)
    pages = sum("metadata" in item for item in items)
    scraping = max(used - search_price(len(items), body.get("enterprise") or ()), 0)
    return Cost(used, by_format(scraping, pages, page_extras(options)), scraping)


def _by_source(items: list[dict[str, Any]], found: Mapping[str, Any]) -> dict[str, Any]:
    grouped: dict[str, Any] = {
        kind: [] if isinstance(given, list) else given for kind, given in found.items()
    }
    for item in items:
        grouped[item["source"]].append(untagged(item, "source"))
    return grouped


def _without_count(summary: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in summary.items() if name != "count"}
