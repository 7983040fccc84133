"""The operator for web searches."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Literal

from airflow_provider_webdata.coded_errors import ArgumentError
from airflow_provider_webdata.options import writes_file
from airflow_provider_webdata.tasks.changed_results import ChangedResults
from airflow_provider_webdata.tasks.operator import RequestFields
from airflow_provider_webdata.tasks.result_output import ResultOutput
from airflow_provider_webdata.tasks.tagged_items import tagged, untagged
from airflow_provider_webdata.tasks.validated_results import ValidatedResults

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from airflow.sdk import Context

    from airflow_provider_webdata.api.models import SearchRequest

_RESULT_KINDS = ("web", "images", "news")


class WebDataSearchOperator(
    ChangedResults, ValidatedResults, ResultOutput, fields=RequestFields("SearchRequest", own=("returns",))
):
    """Search the web, and scrape the results where `scrape_options` asks for it. Bills credits.

    Every argument up to `integration` is a field of POST /v2/search, templated; what is left out is not sent: the
    defaults below are the service's. In mappings inside, wire and Python names both work. As `tbs`,
    `{{ macros.webdata.tbs(dag_run) }}` is the run's data interval, or the day of a run that has none.

    XCom: a mapping with the wire names `id`, `creditsUsed`, `warning` and the arrays that came (`web`, `images`,
    `news`), each also under its own key. With `returns`, the return value is that one list, so that
    `process.expand(item=search.output)` maps over the results; the other keys hold `id`, `creditsUsed` and
    `warning` as before.

    With `output`, the results go to that file, and the return value is a mapping with `path`, `count`, `bytes`,
    `counts` (by source), `id`, `creditsUsed` and `warning`. With `returns`, these are that one list as it came;
    else the results of all sources, each with the key `source` in front.

    :param query: what to search, at most 500 characters; `airflow_provider_webdata.api.query` builds one with
        operators.
    :param limit: most results per source, 1 to 100. Default: 10.
    :param sources: `web`, `images`, `news`, or mappings with `type` (and `tbs`, `location` for web), all in one form.
        Default: web.
    :param categories: `codehost`, `research`, `pdf`, `gov`, `developer` (which stands alone), or mappings with `type`,
        all in one form. Default: no filter.
    :param include_domains: only these host names, without protocol or path; not together with `exclude_domains`.
    :param exclude_domains: none of these host names.
    :param tbs: time filter, such as `qdr:d`; `airflow_provider_webdata.api.query.tbs` builds one from dates.
    :param location: place to search from, such as `Berlin,Germany`; best together with `country`.
    :param country: two-letter ISO code. Default: US.
    :param safe: filter explicit content. Default: no filter.
    :param timeout: milliseconds that the service may search, at least 1. Default: 60,000.
    :param ignore_invalid_urls: leave out URLs that other operations of the service cannot take. Default: false.
    :param highlights: whether descriptions are highlights for the query. Default: true.
    :param enterprise: `anon` or `zdr`, kinds of zero data retention, for teams that have it.
    :param scrape_options: options for scraping the results; `formats` turns it on. Unless `max_age` says otherwise,
        pages may be up to 2 days old, from the service's cache.
    :param threat_protection: threat protection override, for teams that have it.
    :param origin: label of the caller, for the service's own statistics. Default: `api`.
    :param integration: another such label.
    :param returns: `web`, `images` or `news`: return this list alone.
    :param kwargs: arguments of `ChangedResults` (`changes`), `ValidatedResults` (`result_schema`),
        `ResultOutput` (`output`, `media`), `BillingOperator` (`credit_limit`), `WebDataOperator` and
        `BaseOperator`.
    """

    for_many: ClassVar[Mapping[str, str]] = {"query": "WebDataBatchSearchOperator(queries=[...])"}

    def __init__(
        self,
        *,
        # fields of SearchRequest, written by tools/operator_fields.py
        query: str,
        limit: int | str | None = None,
        sources: Sequence[str | Mapping[str, Any]] | None = None,
        categories: Sequence[str | Mapping[str, Any]] | None = None,
        include_domains: Sequence[str] | None = None,
        exclude_domains: Sequence[str] | None = None,
        tbs: str | None = None,
        location: str | None = None,
        country: str | None = None,
        safe: bool | str | None = None,
        timeout: int | str | None = None,
        ignore_invalid_urls: bool | str | None = None,
        highlights: bool | str | None = None,
        enterprise: Sequence[str] | None = None,
        scrape_options: Mapping[str, Any] | None = None,
        threat_protection: Mapping[str, Any] | None = None,
        origin: str | None = None,
        integration: str | None = None,
        # end of fields
        returns: Literal["web", "images", "news"] | None = None,
        **kwargs: Any,
    ) -> None:
        if returns is not None and returns not in _RESULT_KINDS:
            raise ArgumentError(f"returns must be one of {', '.join(_RESULT_KINDS)} (given: {returns!r})")
        makes_list = returns is not None and not writes_file(kwargs.get("output"))
        if makes_list and kwargs.get("multiple_outputs"):
            raise ArgumentError(f"multiple_outputs needs a mapping, but returns={returns!r} makes it a list")
        kwargs.setdefault("multiple_outputs", not makes_list)
        super().__init__(**kwargs)
        # fields of SearchRequest, written by tools/operator_fields.py
        self.query = query
        self.limit = limit
        self.sources = sources
        self.categories = categories
        self.include_domains = include_domains
        self.exclude_domains = exclude_domains
        self.tbs = tbs
        self.location = location
        self.country = country
        self.safe = safe
        self.timeout = timeout
        self.ignore_invalid_urls = ignore_invalid_urls
        self.highlights = highlights
        self.enterprise = enterprise
        self.scrape_options = scrape_options
        self.threat_protection = threat_protection
        self.origin = origin
        self.integration = integration
        # end of fields
        self.returns = returns

    def call_service(self, context: Context) -> Any:
        """Search, log and count what came, and deliver it with wire names."""
        from airflow_provider_webdata.api.models import SearchRequest

        request = self.checked_request(SearchRequest, "search")
        extra_body = self.checked_extra_body("search")
        answer = self.paid_answer(
            "search",
            request.to_wire(),
            context,
            lambda: self.hook.search(request, extra_body=extra_body),
            extra_body=extra_body,
        )
        results = answer.pop("data", None) or {}
        answer.pop("success", None)
        outcome: dict[str, Any] = {"id": None, "creditsUsed": None, "warning": None, **answer}
        self._report(request, outcome, results, context)
        if self.output_path is not None:
            outcome["counts"] = _counts(results)
        if self.returns is None:
            return self.deliver(
                _with_source(results),
                "search",
                context,
                outcome,
                inputs=[request.query],
                value=lambda items, facts: {**_without_count(facts), **_by_source(items, results)},
            )
        return self.deliver(
            results.get(self.returns) or [],
            f"search_{self.returns}",
            context,
            outcome,
            inputs=[request.query],
            value=lambda items, facts: self._list_alone(items, facts, context),
        )

    def _list_alone(self, items: list[Any], facts: dict[str, Any], context: Context) -> list[Any]:
        self.push(context, **_without_count(facts))
        return items

    def _report(
        self, request: SearchRequest, outcome: Mapping[str, Any], results: Mapping[str, Any], context: Context
    ) -> None:
        from airflow_provider_webdata.api.errors import trimmed
        from airflow_provider_webdata.tasks.cached_pages import CachedPages
        from airflow_provider_webdata.tasks.metrics import count
        from airflow_provider_webdata.tasks.searches.credit_parts import credit_parts

        counts = _counts(results)
        if outcome["warning"]:
            self.log.warning("The service warns: %s", outcome["warning"])
        cached = CachedPages()
        for item in _with_source(results):
            cached.add(item)
        self.log.info(
            "Search for %s (%s) brought %s%s; credits used: %s",
            repr(trimmed(request.query)),
            outcome["id"] or "without id",
            ", ".join(f"{number} {kind}" for kind, number in counts.items()) or "no results",
            f", {cached.count} of them from the service's cache, the oldest {cached.age()}"
            if cached.count
            else "",
            "unknown" if outcome["creditsUsed"] is None else outcome["creditsUsed"],
        )
        for kind, number in counts.items():
            count("webdata.search.results", number, context, source=kind)
        self.count_answer(
            outcome["creditsUsed"],
            context,
            "search",
            outcome["id"],
            **credit_parts(request.to_wire(), outcome["creditsUsed"], results),
        )


def _counts(results: Mapping[str, Any]) -> dict[str, int]:
    return {kind: len(items) for kind, items in results.items() if isinstance(items, list)}


def _with_source(results: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [
        tagged(item, source=kind)
        for kind, items in results.items()
        if isinstance(items, list)
        for item in items
    ]


def _by_source(items: list[dict[str, Any]], results: Mapping[str, Any]) -> dict[str, Any]:
    grouped: dict[str, Any] = {
        kind: [] if isinstance(found, list) else found for kind, found in results.items()
    }
    for item in items:
        grouped[item["source"]].append(untagged(item, "source"))
    return grouped


def _without_count(facts: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in facts.items() if name != "count"}
