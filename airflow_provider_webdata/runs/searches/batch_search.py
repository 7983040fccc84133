# SPDX-License-Identifier: Apache-2.0
"""Batch search: runs the searches that earlier attempts did not, then publishes all results."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timezone
from functools import cached_property
from typing import TYPE_CHECKING, Any

from airflow.sdk.exceptions import AirflowException

from airflow_provider_webdata.api.models import SearchRequest
from airflow_provider_webdata.api.prices import SEARCH
from airflow_provider_webdata.common.arguments import as_list, without_sets
from airflow_provider_webdata.common.coded_errors import brief
from airflow_provider_webdata.common.numbers import credits_text
from airflow_provider_webdata.hooks.calls import body_for
from airflow_provider_webdata.results.columns import kind_of_source
from airflow_provider_webdata.results.tagged_items import tagged
from airflow_provider_webdata.runs.event_loop import run_aside
from airflow_provider_webdata.runs.failures import (
    CreditLimitError,
    Excess,
    FailureGroups,
    TooManyFailuresError,
    too_many,
)
from airflow_provider_webdata.runs.money.task_ledger import bounded
from airflow_provider_webdata.runs.publishing.step import Results
from airflow_provider_webdata.runs.request import checked_extra_body, checked_number, valid_request
from airflow_provider_webdata.runs.run import Run
from airflow_provider_webdata.runs.searches.answer_files import AnswerFiles
from airflow_provider_webdata.runs.searches.batch_queries import (
    OPERATION,
    checked_queries,
    label_columns,
    labels_of,
)
from airflow_provider_webdata.runs.searches.runner import SearchBatch

if TYPE_CHECKING:
    from airflow_provider_webdata.operators.batch_search import WebDataBatchSearchOperator
    from airflow_provider_webdata.runs.searches.answer_files import Answer
    from airflow_provider_webdata.runs.searches.batch_queries import BatchQuery
    from airflow_provider_webdata.runs.searches.runner import Tally

_SHOWN_FAILURES = 5


class BatchSearchRun(Run):
    """Runs a batch of searches and publishes their results."""

    task: WebDataBatchSearchOperator

    operation = "batch_search"
    batch: SearchBatch | None = None

    def call(self) -> Any:
        """Run the searches that earlier attempts did not, and publish all results."""
        self.ledger.push_earlier()
        task = self.task
        limit = self.ledger.credits.limit
        most_errors = checked_number(OPERATION, "max_error_ratio", task.max_error_ratio, 1) or 0.0
        extra_body = checked_extra_body(task, OPERATION)
        queries: Mapping[str, BatchQuery] = self.queries
        if limit is not None:
            queries = self.queries = self._bounded(limit, queries, extra_body)
        account, ledger = self.hook.get_settings().client.account, self.ledger.credits
        files = AnswerFiles(str(self.publication.path), self.context, account, ledger)
        batch = self._new_batch(files, extra_body)
        earlier = files.earlier(queries)
        settled = batch.count_earlier(earlier, queries, repeat_ambiguous=task.repeat_ambiguous)
        before = batch.tally.credits_used
        if settled:
            self.log.info("Earlier attempts ran %d of the %d searches", len(settled), len(queries))
        if len(settled) < len(queries):
            self.ledger.warn_if_cleared()
        # An attempt that was killed may not have entered them.
        files.report()
        try:
            self._search(batch, [query for key, query in queries.items() if key not in settled])
        finally:
            files.report()
            self.ledger.save(before, self.operation)
            summary = _summary(batch.tally)
            self.push(**summary)
            self.lacks("searches_failed", len(batch.tally.failed), len(queries))
            self.lacks("searches_not_started", len(batch.tally.left), len(queries))
        if batch.rate_limit is not None:
            progressed = batch.tally.settled > len(settled)
            self.postpone(batch.rate_limit, datetime.now(timezone.utc) if progressed else None)
            self.fail(batch.rate_limit)
        if batch.stopped:
            raise AirflowException(
                "The task was terminated. Its next attempt continues from the results so far"
            )
        if batch.tally.left:
            self.log.warning(
                "%d of %d searches were not started, because the next one may exceed credit_limit=%s",
                len(batch.tally.left),
                len(queries),
                credits_text(limit),
            )
            self.log.warning(
                "They are in XCom 'left': pass them to queries= of another task, or raise the limit and clear this one"
            )
        excess = self._too_many(batch.tally, most_errors)
        if excess and self._can_be_mended(batch.tally):
            raise TooManyFailuresError(
                f"{excess.text}; the next attempt repeats only these",
                _reasons(batch.tally),
                ratio=excess.ratio,
            )
        result = self._published(summary, files, queries)
        if excess:
            self.refuse_published(
                TooManyFailuresError(
                    f"{excess.text}; the results are stored and in XCom anyway",
                    _reasons(batch.tally),
                    ratio=excess.ratio,
                ),
                result,
            )
        if self.publication.rejection is None or not batch.tally.left:
            self.leftovers.append(files.delete)
        return result

    @cached_property
    def queries(self) -> Mapping[str, BatchQuery]:
        """The searches by key, without duplicates.

        :raises InvalidRequestError: a search breaks a documented rule.
        """
        extra_body = checked_extra_body(self.task, OPERATION)
        queries = without_sets(as_list("queries", self.task.queries))
        return checked_queries(
            queries, self.request_of, extra_body, self.hook.get_settings().client.server, self.log
        )

    @cached_property
    def body(self) -> Mapping[str, Any]:
        """The fields that all searches share, in wire form."""
        if not self.queries:
            return {}
        first, *others = (query.request.to_wire() for query in self.queries.values())
        return {name: value for name, value in first.items() if all(o.get(name) == value for o in others)}

    def on_kill(self) -> None:
        """Start no more searches: the task was terminated."""
        if self.batch is not None:
            self.batch.stop()

    def _search(self, batch: SearchBatch, queries: Sequence[BatchQuery]) -> None:
        self.batch = batch
        try:
            run_aside(batch.run(queries))
        finally:
            self.batch = None
            tally = batch.tally
            self.log.info(
                "%d searches done, %d failed, %d not started; %s credits",
                tally.done,
                len(tally.failed),
                len(tally.left),
                credits_text(tally.credits_used),
            )

    def _bounded(
        self, limit: float, queries: Mapping[str, BatchQuery], extra_body: Mapping[str, Any] | None
    ) -> dict[str, BatchQuery]:
        """Return the searches with bounded prices, and log the bounds.

        :raises CreditLimitError: a search has no documented maximum price.
        """
        notes: dict[str | None, None] = {}
        found = {}
        for key, query in queries.items():
            request, note = bounded(SEARCH, query.request, limit / len(queries))
            notes[note] = None
            found[key] = replace(query, request=request)
            bound = SEARCH.most(request.to_wire(), extra_body)
            if not bound.is_known:
                raise CreditLimitError(
                    f"{OPERATION}: nothing was sent, because credit_limit={credits_text(limit)} cannot be "
                    f"enforced: search {query.text!r}: {'; '.join(bound.unknown)}"
                )
        for note in filter(None, notes):
            self.log.info("%s: %s", OPERATION, note)
        return found

    def _new_batch(self, files: AnswerFiles, extra_body: Mapping[str, Any] | None) -> SearchBatch:
        task, settings = self.task, self.hook.get_settings()
        media, in_turn = self.publication.media, threading.Lock()

        def save(query: BatchQuery, answer: Answer, reserved: float) -> None:
            files.save(query, answer, reserved)
            results = answer.get("results", {})
            if media is None:
                return
            try:
                # Now: the links to audio and video would expire during a long batch.
                with in_turn:
                    items = media.keep([item for found in results.values() for item in found])
                    kept = {source: [next(items) for _ in found] for source, found in results.items()}
                if kept != results:
                    files.save(query, {**answer, "results": kept}, reserved)
            except Exception as error:  # noqa: BLE001 - the answer is stored, and its publication tries again
                self.log.warning("Failed to keep the media of search %r: %s", query.text, brief(error))

        return SearchBatch(
            settings,
            min(task.max_concurrency, settings.client.max_concurrency or task.max_concurrency),
            save,
            extra_body=extra_body,
            ledger=self.ledger.credits,
            patience=settings.client.retry_budget,
        )

    def request_of(self, given: str | Mapping[str, Any]) -> SearchRequest:
        """Return the request of a search.

        :param given: its query, or the fields that override the task's.
        :raises InvalidRequestError: a field breaks a documented rule.
        """
        own: dict[str, Any] = {"query": given}
        if isinstance(given, Mapping):
            # Parsed alone first: it may spell a field name differently than the arguments do.
            alone = body_for(SearchRequest, given, OPERATION)
            own = {name: getattr(alone, name) for name in alone.model_fields_set}
        return valid_request(self.task, SearchRequest, OPERATION, {**self.task._field_values(), **own})

    def _too_many(self, tally: Tally, most: float) -> Excess | None:
        """Return the excess, with the first failures, if more searches failed than allowed, or None."""
        excess = too_many(len(tally.failed), tally.done, 0, most, "searches")
        if excess is None:
            return None
        groups = FailureGroups()
        for failure in tally.failed:
            groups.add(repr(failure.query.text), failure.error)
        for line in groups.lines("search"):
            self.log.error("%s", line)
        shown = "; ".join(
            f"{failure.query.text!r}: {failure.error}" for failure in tally.failed[:_SHOWN_FAILURES]
        )
        ambiguous = sum(failure.ambiguous for failure in tally.failed)
        hint = (
            f" {ambiguous} of them may have been billed, and are repeated only with repeat_ambiguous=True."
            if ambiguous and not self.task.repeat_ambiguous
            else ""
        )
        return excess._replace(text=f"{excess.text}.{hint} The first: {shown}")

    def _can_be_mended(self, tally: Tally) -> bool:
        """Return whether a failed search may succeed in another attempt."""
        return not self.attempt.is_last and any(
            not failure.hopeless and (self.task.repeat_ambiguous or not failure.ambiguous)
            for failure in tally.failed
        )

    def _published(
        self, summary: dict[str, Any], files: AnswerFiles, queries: Mapping[str, BatchQuery]
    ) -> Any:
        kind, inputs = _kind(queries), [query.text for query in queries.values()]
        columns = label_columns(queries, kind)
        items = (
            tagged(item, query=query.text, source=source, **labels_of(query, columns))
            for query, source, item in files.results(queries.values())
        )
        return self.publish(Results(items, kind, summary, inputs, tag_columns=columns))


def _kind(queries: Mapping[str, BatchQuery]) -> str:
    """Return the kind of the results: that of one source, or the kind for several."""
    kinds = {
        source if isinstance(source, str) else source.type
        for query in queries.values()
        for source in query.request.sources or ("web",)
    }
    return kind_of_source(kinds.pop()) if len(kinds) == 1 else "search"


def _reasons(tally: Tally) -> list[dict[str, Any]]:
    return [
        {"query": failure.query.text, "error": failure.error} for failure in tally.failed[:_SHOWN_FAILURES]
    ]


def _summary(tally: Tally) -> dict[str, Any]:
    return {
        "done": tally.done,
        "failed": [
            {"query": failure.query.text, "error": failure.error, "ambiguous": failure.ambiguous}
            for failure in tally.failed
        ],
        "left": [query.entry for query in tally.left],
        "not_begun": len(tally.left),
        "credits_used": tally.credits_used,
    }
