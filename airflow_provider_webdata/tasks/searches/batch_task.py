"""What the operator for many searches does with its arguments: run what is missing, then deliver the results of all."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

from airflow.sdk.exceptions import AirflowException

from airflow_provider_webdata.tasks.arguments import as_list, checked_number
from airflow_provider_webdata.tasks.changed_results import ChangedResults
from airflow_provider_webdata.tasks.result_output import ResultOutput
from airflow_provider_webdata.tasks.searches.batch_queries import OPERATION, checked_queries
from airflow_provider_webdata.tasks.searches.records import answered, by_search, items_of, with_items
from airflow_provider_webdata.tasks.validated_results import ValidatedResults

if TYPE_CHECKING:
    from airflow.sdk import Context

    from airflow_provider_webdata.api.models import SearchRequest
    from airflow_provider_webdata.hooks.budget import Budget
    from airflow_provider_webdata.results.media import MediaReport
    from airflow_provider_webdata.tasks.kept_records import KeptRecords, Record
    from airflow_provider_webdata.tasks.searches.batch_queries import BatchQuery
    from airflow_provider_webdata.tasks.searches.runner import SearchBatch, Tally

_SHOWN_FAILURES = 5
_MOST_MEDIA_ERRORS = 20


class BatchSearchTask(ChangedResults, ValidatedResults, ResultOutput):
    """Base of the operator for many searches.

    :param kwargs: arguments of the other base classes.
    """

    queries: Sequence[str | Mapping[str, Any]] | str
    max_concurrency: int
    max_error_ratio: float | str
    repeat_ambiguous: bool

    _batch: SearchBatch | None = None

    def call_service(self, context: Context) -> Any:
        """Make the searches that no earlier attempt has made, and deliver the results of all."""
        from airflow_provider_webdata.hooks.budget import Budget
        from airflow_provider_webdata.tasks.failures import TooManyFailuresError
        from airflow_provider_webdata.tasks.kept_records import RecordsOfAccount, records_of

        credit_limit = checked_number(OPERATION, "credit_limit", self.credit_limit)
        most_errors = checked_number(OPERATION, "max_error_ratio", self.max_error_ratio, 1) or 0.0
        extra_body = self.checked_extra_body(OPERATION)
        queries = checked_queries(as_list(self.queries), self._request_of, extra_body, self.log)
        if credit_limit is not None:
            self._refuse_unbounded(credit_limit, queries.values(), extra_body)
        account = self.hook.get_settings().client.account
        kept = RecordsOfAccount(records_of(self.output_path, context), account)
        budget = Budget(credit_limit, context, OPERATION, keeps_peak=True)
        batch = self._made_batch(kept, budget)
        settled = batch.count_earlier(kept.read(), queries, repeat_ambiguous=self.repeat_ambiguous)
        before = batch.tally.credits_used
        if settled:
            self.log.info("An earlier attempt made %d of the %d searches", len(settled), len(queries))
        try:
            self._run(batch, [query for key, query in queries.items() if key not in settled])
        finally:
            budget.close()
            self.count_credits(batch.tally.credits_used - before, context, "batch_search", saved=before)
            facts = _facts(batch.tally)
            self.push(context, **facts)
        if batch.rate_limit is not None:
            progressed = batch.tally.settled > len(settled)
            self._reschedule(batch.rate_limit, context, datetime.now(timezone.utc) if progressed else None)
            self._fail(batch.rate_limit)
        if batch.stopped:
            raise AirflowException("The task was ended; its next attempt goes on from the results so far")
        too_many = self._too_many(batch.tally, most_errors)
        if too_many and kept.lasts and self._can_be_mended(batch.tally, context):
            raise TooManyFailuresError(f"{too_many}; the next attempt makes these again, and no others")
        result = self._deliver(facts, kept, queries, context)
        if too_many:
            # A task that fails returns nothing: what was paid for goes to where the return value would be.
            self.push(context, return_value=result)
            no_retry = "" if kept.lasts else "; no retry is made, which would pay for all again: set output="
            self.refuse(
                TooManyFailuresError(f"{too_many}; the results are stored and in XCom all the same{no_retry}")
            )
        kept.forget()
        return result

    def request_body(self) -> Mapping[str, Any]:
        """Return the fields that all searches have in common, in wire form."""
        first, *others = (self._request_of(query).to_wire() for query in as_list(self.queries))
        return {name: value for name, value in first.items() if all(o.get(name) == value for o in others)}

    def on_kill(self) -> None:
        """Begin no further search: a user has ended the task."""
        if self._batch is not None:
            self._batch.stop()

    def _run(self, batch: SearchBatch, queries: Sequence[BatchQuery]) -> None:
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

    def _refuse_unbounded(
        self, credit_limit: float, queries: Iterable[BatchQuery], extra_body: Mapping[str, Any] | None
    ) -> None:
        """Fail the task where what a search may cost has no documented bound."""
        from airflow_provider_webdata.api.prices import price_bound
        from airflow_provider_webdata.tasks.failures import CreditLimitError

        for query in queries:
            bound = price_bound("search", self._request_of(query.given).to_wire(), extra_body)
            if not bound.is_known:
                raise CreditLimitError(
                    f"{OPERATION}: nothing was sent, because credit_limit={credit_limit:g} cannot be held: search "
                    f"{query.text!r}: {'; '.join(bound.unknown)}"
                )

    def _made_batch(self, kept: KeptRecords, budget: Budget) -> SearchBatch:
        from airflow_provider_webdata.tasks.searches.adaptive_limit import AdaptiveLimit
        from airflow_provider_webdata.tasks.searches.runner import SearchBatch

        settings = self.hook.get_settings()
        shared = settings.client.max_concurrency or self.max_concurrency
        # Where nothing is kept, a rescheduled task would pay for everything again: the worker waits instead.
        patience = settings.client.retry_budget if kept.lasts else self.rate_limit_timeout
        return SearchBatch(
            settings,
            AdaptiveLimit(min(self.max_concurrency, shared)),
            lambda records: kept.save(self._with_media_kept(records)),
            lambda query: self._request_of(query.given),
            extra_body=self.checked_extra_body(OPERATION),
            budget=budget,
            patience=patience,
        )

    def _request_of(self, given: str | Mapping[str, Any]) -> SearchRequest:
        from airflow_provider_webdata.api.models import SearchRequest
        from airflow_provider_webdata.hooks.calls import body_for

        own: dict[str, Any] = {"query": given}
        if isinstance(given, Mapping):
            # Read once by itself: it may name a field otherwise than the arguments do.
            alone = body_for(SearchRequest, given, OPERATION)
            own = {name: getattr(alone, name) for name in alone.model_fields_set}
        return body_for(SearchRequest, {**self.given(), **own}, OPERATION)

    # What failed.

    def _too_many(self, tally: Tally, most: float) -> str | None:
        """Return what to say where more searches failed than may, or None."""
        failed = len(tally.failed)
        if failed <= most * tally.settled:
            return None
        shown = "; ".join(
            f"{failure.query.text!r}: {failure.error}" for failure in tally.failed[:_SHOWN_FAILURES]
        )
        ambiguous = sum(failure.ambiguous for failure in tally.failed)
        hint = (
            f" {ambiguous} of them may have been billed, and are made again with repeat_ambiguous=True only."
            if ambiguous and not self.repeat_ambiguous
            else ""
        )
        return (
            f"{failed} of {tally.settled} searches failed, more than max_error_ratio={most:g} allows.{hint} "
            f"The first: {shown}"
        )

    def _can_be_mended(self, tally: Tally, context: Context) -> bool:
        """Return whether there will be another attempt, and a failed search that may succeed in it."""
        ti = context.get("ti")
        if ti is None or ti.try_number > (ti.max_tries or 0):
            return False
        return any(
            not failure.hopeless and (self.repeat_ambiguous or not failure.ambiguous)
            for failure in tally.failed
        )

    # Results and media.

    def _with_media_kept(self, records: list[Record]) -> list[Record]:
        """Return records with their media kept: links of audio and video would not outlive a long batch."""
        if self.media is None:
            return records
        from airflow_provider_webdata.results.media import MediaReport

        items = super().with_media(list(items_of(records)), MediaReport())
        return [with_items(record, items) for record in records]

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

    def _deliver(
        self,
        facts: dict[str, Any],
        kept: KeptRecords,
        queries: Mapping[str, BatchQuery],
        context: Context,
    ) -> Any:
        inputs = [query.text for query in queries.values()]
        records = (record for record in answered(kept.read()) if record["key"] in queries)
        if self.output_path is not None:
            result = self.deliver(items_of(records), self._kind(queries), context, facts, inputs=inputs)
            self.push(context, **{name: result[name] for name in ("path", "count", "bytes")})
            return result
        by_key = {record["key"]: record for record in records}
        ordered = [by_key[key] for key in queries if key in by_key]
        return self.deliver(
            items_of(ordered),
            self._kind(queries),
            context,
            facts,
            inputs=inputs,
            value=lambda items, counted: {**counted, "results": by_search(ordered, self.in_place(items))},
        )

    def _kind(self, queries: Mapping[str, BatchQuery]) -> str:
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
