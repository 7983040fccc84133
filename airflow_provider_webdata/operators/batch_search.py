"""The operator for many web searches at once."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

from airflow.sdk.exceptions import AirflowException

from airflow_provider_webdata.tasks.arguments import checked_number, listed
from airflow_provider_webdata.tasks.operator import RequestFields
from airflow_provider_webdata.tasks.result_output import ResultOutput
from airflow_provider_webdata.tasks.searches.items import tagged, untagged

if TYPE_CHECKING:
    from airflow.sdk import Context

    from airflow_provider_webdata.api.models import SearchRequest
    from airflow_provider_webdata.results.media import MediaReport
    from airflow_provider_webdata.tasks.searches.progress import Progress, Record
    from airflow_provider_webdata.tasks.searches.runner import Query, SearchBatch, Tally

_MOST_INPUTS = 100
_SHOWN_FAILURES = 5
_MOST_PROBLEMS = 10
_MOST_MEDIA_ERRORS = 20
_KEY_LENGTH = 24


class WebDataBatchSearchOperator(
    ResultOutput,
    fields=RequestFields(
        "SearchRequest",
        without=("query",),
        own=("queries", "max_concurrency", "max_credits", "max_error_ratio", "repeat_ambiguous"),
    ),
):
    """Make many searches, thousands if need be, in one task. Bills credits.

    All requests are checked before the first is sent. Then as many as `max_concurrency` are in flight; where the
    service answers some with 429, that number is halved and grows again. A 429 that asks for a longer wait than the
    connection's retry budget gives the worker slot back: the task is rescheduled and goes on then.

    Each answer is kept as it comes, so that no later attempt pays for it again: with `output`, in a folder beside it
    (`<output>.partial`), until the output is complete; else in Airflow's task state store (3.3), up to 16 MiB. On
    Airflow 3.2 only `output` makes attempts remember. Clearing a task that failed goes on as well; clearing one that
    succeeded starts anew. A worker that dies without warning loses what was in flight, at most about twice
    `max_concurrency` searches.

    A search that fails does not stop the others. One that the service itself calls failed is made again by the next
    attempt. One whose answer was lost may have been billed: it is reported as `ambiguous` and only made again with
    `repeat_ambiguous`. A refused key, or credits that have run out, stop all.

    Equal requests are made once. The arguments from `limit` to `integration` are the fields of a search, templated, and
    hold for each search that does not say otherwise.

    XCom, each also under its own key: `done` (how many searches were answered), `failed` (mappings with `query`,
    `error`, `ambiguous`), `left` (the items of `queries` that were not begun, fit for the same argument of another
    task), `creditsUsed`; with `output` also `path`, `count` and `bytes`, else `results`: for each answered search, in
    the order of `queries`, `query`, `id`, `creditsUsed`, `warning` and the lists `web`, `images`, `news` that came.
    In the output each result carries `query` and `source`, in the order in which the searches were answered.

    :param queries: what to search: texts, or mappings with `query` and any fields of a search, which replace those
        of the task; or JSON text of such a list (templated).
    :param limit: most results per source, 1 to 100. Default: 10.
    :param sources: `web`, `images`, `news`, or mappings with `type` (and `tbs`, `location` for web), all in one form.
        Default: web.
    :param categories: `codehost`, `research`, `pdf`, `github`, `gov`, `developer` (which stands alone), or mappings
        with `type`, all in one form. Default: no filter.
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
    :param scrape_options: options for scraping the results; `formats` turns it on.
    :param threat_protection: threat protection override, for teams that have it.
    :param origin: label of the caller, for the service's own statistics. Default: `api`.
    :param integration: another such label.
    :param max_concurrency: most searches in flight, at least 1; default 10. The connection's `max_concurrency` holds
        as well.
    :param max_credits: stop, and succeed, before more credits than this are spent by all attempts together (templated).
        What a search costs is known afterwards only: the documented price, or the dearest search so far, is set
        aside for each one in flight.
    :param max_error_ratio: largest part of the searches, 0 to 1, that may fail (templated); default 0. Beyond it the
        attempt fails, and a retry makes those again that failed; without a retry left, the results are delivered all
        the same, and the task fails.
    :param repeat_ambiguous: make searches again that may have been billed, when a later attempt comes to them.
    :param kwargs: arguments of `ResultOutput` (`output`, `save_media`), `WebDataOperator` and `BaseOperator`.
    """

    template_fields: Sequence[str] = (
        *ResultOutput.template_fields,
        "queries",
        "max_credits",
        "max_error_ratio",
    )

    def __init__(
        self,
        *,
        queries: Sequence[str | Mapping[str, Any]] | str,
        # fields of SearchRequest, written by tools/operator_fields.py
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
        max_concurrency: int = 10,
        max_credits: float | str | None = None,
        max_error_ratio: float | str = 0.0,
        repeat_ambiguous: bool = False,
        **kwargs: Any,
    ) -> None:
        if isinstance(max_concurrency, bool) or not isinstance(max_concurrency, int) or max_concurrency < 1:
            raise ValueError(
                f"max_concurrency must be a whole number of at least 1 (given: {max_concurrency!r})"
            )
        super().__init__(**kwargs)
        self.queries = queries
        # fields of SearchRequest, written by tools/operator_fields.py
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
        self.max_concurrency = max_concurrency
        self.max_credits = max_credits
        self.max_error_ratio = max_error_ratio
        self.repeat_ambiguous = repeat_ambiguous
        self._batch: SearchBatch | None = None

    def call_service(self, context: Context) -> Any:
        """Make the searches that no earlier attempt has made, and deliver the results of all."""
        from airflow_provider_webdata.tasks.metrics import count
        from airflow_provider_webdata.tasks.searches.progress import progress_of

        most_credits = checked_number("batch search", "max_credits", self.max_credits)
        most_errors = checked_number("batch search", "max_error_ratio", self.max_error_ratio, 1) or 0.0
        queries = self._checked_queries()
        progress = progress_of(self.output_url, context)
        batch = self._made_batch(progress, most_credits)
        settled = batch.count_earlier(progress.read(), queries, repeat_ambiguous=self.repeat_ambiguous)
        before = batch.tally.credits_used
        if settled:
            self.log.info("%d of %d searches are settled by an earlier attempt", len(settled), len(queries))
        try:
            self._run(batch, [query for key, query in queries.items() if key not in settled])
        finally:
            count(
                "webdata.credits_used", batch.tally.credits_used - before, context, operation="batch_search"
            )
            facts = _facts(batch.tally)
            self.push(context, **facts)
        if batch.refusal is not None:
            progressed = batch.tally.done + len(batch.tally.failed) > len(settled)
            self._come_back_later(batch.refusal, context, datetime.now(timezone.utc) if progressed else None)
        if batch.stopped:
            raise AirflowException("The task was ended; what was found is kept for its next attempt")
        too_many = self._too_many(batch.tally, most_errors)
        if too_many and self._can_be_mended(batch.tally, context):
            raise AirflowException(f"{too_many}; the next attempt makes these again, and no others")
        result = self._deliver(facts, progress, queries, context)
        if too_many:
            # A task that fails returns nothing: what was paid for goes to where the return value would be.
            self.push(context, return_value=result)
            self.refuse(f"{too_many}; the results are stored and in XCom all the same")
        progress.forget()
        return result

    def on_kill(self) -> None:
        """Begin no further search: a user has ended the task."""
        if self._batch is not None:
            self._batch.stop()

    def _run(self, batch: SearchBatch, queries: Sequence[Query]) -> None:
        from airflow_provider_webdata.tasks.searches.event_loop import run_aside

        self._batch = batch
        try:
            run_aside(batch.run(queries))
        finally:
            self._batch = None
            tally = batch.tally
            self.log.info(
                "%d searches done, %d failed, %d not begun; %g credits",
                tally.done,
                len(tally.failed),
                len(tally.left),
                tally.credits_used,
            )

    def _made_batch(self, progress: Progress, max_credits: float | None) -> SearchBatch:
        from airflow_provider_webdata.tasks.searches.adaptive_limit import AdaptiveLimit
        from airflow_provider_webdata.tasks.searches.runner import SearchBatch

        settings = self.hook.get_settings()
        shared = settings.client.max_concurrency or self.max_concurrency
        # Without a memory, coming back would pay for everything again: then the worker waits.
        patience = settings.client.retry_budget if progress.lasts else self.rate_limit_timeout
        return SearchBatch(
            settings,
            AdaptiveLimit(min(self.max_concurrency, shared)),
            lambda records: progress.save(self._with_media_kept(records)),
            lambda query: self._request_of(query.given),
            extra_body=self.checked_extra_body("batch search"),
            max_credits=max_credits,
            patience=patience,
        )

    def _with_media_kept(self, records: list[Record]) -> list[Record]:
        """Return records with their media kept: links of audio and video would not outlive a long batch."""
        if self.save_media is None:
            return records
        from airflow_provider_webdata.results.media import MediaReport

        items = super().with_media(list(_items(records)), MediaReport())
        return [
            {**record, "results": _regrouped(record, items)} if "results" in record else record
            for record in records
        ]

    def with_media(self, items: Iterable[Any], report: MediaReport) -> Iterator[Any]:
        """Yield the items and count their media, which were kept as the answers came."""
        for item in items:
            for kept in item.get("keptMedia") or ():
                if "error" in kept:
                    report.failed += 1
                    report.errors = [*report.errors, str(kept["error"])][:_MOST_MEDIA_ERRORS]
                else:
                    report.kept += 1
                    report.bytes += kept.get("bytes") or 0
            yield item

    def _request_of(self, given: str | Mapping[str, Any]) -> SearchRequest:
        from airflow_provider_webdata.api.models import SearchRequest
        from airflow_provider_webdata.hooks.calls import body_for

        own: dict[str, Any] = {"query": given}
        if isinstance(given, Mapping):
            # Read once by itself: it may name a field otherwise than the arguments do.
            alone = body_for(SearchRequest, given, "batch search")
            own = {name: getattr(alone, name) for name in alone.model_fields_set}
        return body_for(SearchRequest, {**self.given(), **own}, "batch search")

    def _checked_queries(self) -> dict[str, Query]:
        """Return the searches by key, each once, in the given order.

        :raises InvalidRequestError: there are none, or some break a documented rule.
        """
        from airflow_provider_webdata.api.errors import InvalidRequestError
        from airflow_provider_webdata.tasks.searches.runner import Query

        given = listed(self.queries)
        extra_body = self.checked_extra_body("batch search")
        queries: dict[str, Query] = {}
        problems: list[str] = []
        warnings: dict[str, None] = {}
        for number, item in enumerate(given, 1):
            try:
                request = self._request_of(item)
            except InvalidRequestError as error:
                problems += [f"queries, item {number}: {problem}" for problem in error.problems]
                continue
            warnings.update(dict.fromkeys(request.warnings()))
            text = json.dumps([request.to_wire(), extra_body], sort_keys=True)
            key = hashlib.sha256(text.encode()).hexdigest()[:_KEY_LENGTH]
            queries.setdefault(key, Query(key, item, request.query))
        if not given:
            problems.append("queries: at least one is needed")
        if problems:
            more = len(problems) - _MOST_PROBLEMS
            shown = problems[:_MOST_PROBLEMS] + ([f"and {more} more"] if more > 0 else [])
            raise InvalidRequestError("batch search", shown)
        for warning in warnings:
            self.log.warning("batch search: %s", warning)
        if len(queries) < len(given):
            self.log.info("%d searches are equal to others and made once", len(given) - len(queries))
        return queries

    def _too_many(self, tally: Tally, most: float) -> str | None:
        """Return what to say where more searches failed than may, or None."""
        tried = tally.done + len(tally.failed)
        if not tally.failed or len(tally.failed) <= most * tried:
            return None
        shown = "; ".join(
            f"{failure.query.text!r}: {failure.error}" for failure in tally.failed[:_SHOWN_FAILURES]
        )
        in_doubt = sum(failure.ambiguous for failure in tally.failed)
        hint = (
            f" {in_doubt} of them may have been billed, and are made again with repeat_ambiguous=True only."
            if in_doubt and not self.repeat_ambiguous
            else ""
        )
        return (
            f"{len(tally.failed)} of {tried} searches failed, more than max_error_ratio={most:g} allows.{hint} "
            f"The first: {shown}"
        )

    def _can_be_mended(self, tally: Tally, context: Context) -> bool:
        """Return whether there will be a next attempt, and something in it for a failed search to gain."""
        ti = context.get("ti")
        if ti is None or ti.try_number > (ti.max_tries or 0):
            return False
        return any(
            not failure.hopeless and (self.repeat_ambiguous or not failure.ambiguous)
            for failure in tally.failed
        )

    def _deliver(
        self, facts: dict[str, Any], progress: Progress, queries: Mapping[str, Query], context: Context
    ) -> Any:
        from airflow_provider_webdata.tasks.searches.progress import finished

        inputs = [query.text for query in queries.values()][:_MOST_INPUTS]
        answered = (record for record in finished(progress.read()) if record["key"] in queries)
        if self.output_url is not None:
            result = self.deliver(_items(answered), self._kind(queries), context, facts, inputs=inputs)
            self.push(context, **{name: result[name] for name in ("path", "count", "bytes")})
            return result
        by_key = {record["key"]: record for record in answered}
        ordered = [by_key[key] for key in queries if key in by_key]
        return self.deliver(
            _items(ordered),
            self._kind(queries),
            context,
            facts,
            inputs=inputs,
            value=lambda items, facts: {**facts, "results": _grouped(ordered, items)},
        )

    def _kind(self, queries: Mapping[str, Query]) -> str:
        """Return what the results are: of one kind of source, or of several."""
        kinds = {
            source if isinstance(source, str) else source.type
            for query in queries.values()
            for source in self._request_of(query.given).sources or ("web",)
        }
        return f"search_{kinds.pop()}" if len(kinds) == 1 else "search"


def _facts(tally: Tally) -> dict[str, Any]:
    return {
        "done": tally.done,
        "failed": [
            {"query": failure.query.text, "error": failure.error, "ambiguous": failure.ambiguous}
            for failure in tally.failed
        ],
        "left": [query.given for query in tally.left],
        "creditsUsed": tally.credits_used,
    }


def _items(records: Iterable[Record]) -> Iterator[Any]:
    for record in records:
        for source, found in record.get("results", {}).items():
            for item in found:
                yield tagged(item, query=record["query"], source=source)


def _regrouped(record: Record, items: Iterator[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """Return a record's results by source again, from items that came in its order."""
    return {
        source: [untagged(next(items), "query", "source") for _ in found]
        for source, found in record["results"].items()
    }


def _grouped(records: Iterable[Record], items: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return items that came in the order of the records by search again."""
    rest = iter(items)
    names = ("query", "id", "creditsUsed", "warning")
    return [{**{name: record[name] for name in names}, **_regrouped(record, rest)} for record in records]
