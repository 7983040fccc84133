# SPDX-License-Identifier: Apache-2.0
"""The quality that results need before they are published; see `options.Quality`."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from datetime import timezone
from typing import TYPE_CHECKING, Any, NamedTuple

from airflow_provider_webdata.common.clean_text import trimmed
from airflow_provider_webdata.common.item_urls import is_cut, site_failed, url_of
from airflow_provider_webdata.common.numbers import credits_text, known_credits
from airflow_provider_webdata.common.run_span import run_span, time_zone_of
from airflow_provider_webdata.common.xcom_keys import QUALITY, QUALITY_REJECTED
from airflow_provider_webdata.hooks.task_metrics import count, gauge
from airflow_provider_webdata.results.files.formats import rejected_url
from airflow_provider_webdata.results.files.storage import check_file
from airflow_provider_webdata.results.item_paths import at_path
from airflow_provider_webdata.results.lineage import Assertion, Measurements
from airflow_provider_webdata.results.pages.substitutes import is_page, substitute_kind
from airflow_provider_webdata.results.pages.visible_text import is_blank
from airflow_provider_webdata.runs.failures import RejectedResultsError
from airflow_provider_webdata.runs.publishing.step import Step

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from airflow.sdk import Context

    from airflow_provider_webdata.options import Quality
    from airflow_provider_webdata.runs.publishing.check_pages import CheckPages
    from airflow_provider_webdata.runs.publishing.detect_changes import DetectChanges
    from airflow_provider_webdata.runs.publishing.step import Results

_MAX_FIELDS = 50
_MAX_FIELD_LENGTH = 64


class Measure(Step):
    """Measures items as they stream, and judges them after the last one.

    :param quality: the operator's `quality`.
    :param changes: the comparison with earlier runs, if any.
    :param output: URL of the output; None: the results go to XCom.
    :param pages: the counts of the pages, for the reasons of failed ones.
    """

    def __init__(
        self,
        quality: Quality,
        context: Context,
        log: Any,
        changes: DetectChanges | None,
        output: str | None,
        pages: CheckPages,
    ) -> None:
        self._limits = quality
        self._context = context
        self._log = log
        self._changes = changes
        self._output = output
        self._pages = pages
        self._fields = [*(quality.coverage or ())]
        self._found: Counter[str] = Counter()
        """Counts: `items`, `known`, and `pages`."""
        self._filled: Counter[str] = Counter(dict.fromkeys(self._fields, 0))
        self._blocked: Counter[str] = Counter()
        self._blocked_example = ""
        """The first blocked page, without its content, for the log and XCom."""
        self._assertions: list[Assertion] = []
        self._credits: float | None = None
        self._least = quality.min_items
        """Minimum number of results, also compared with the previous run."""
        self._unfinished = ""
        self._is_rejected = False

    @property
    def holds_back(self) -> bool:
        """True if failed results are held back."""
        return self._limits.on_fail == "fail"

    def prepare(self) -> None:
        """Fail if rejected results could not be written."""
        if self._output is not None and self.holds_back:
            check_file(rejected_url(self._output), movable=True)

    def transform(self, results: Results) -> Results:
        """Return the results unchanged, and measure their items as they stream."""
        return replace(results, items=self._measured(results))

    def _measured(self, results: Results) -> Iterator[Any]:
        texts = self._pages.text_formats(results.kind)
        for item in results.items:
            self._measure(item, texts)
            yield item
        self._found["known"] = results.known
        if number := results.summary.get("not_begun"):
            self._unfinished = f"{number} searches not started"
        elif results.summary.get("status") == "cancelled":
            self._unfinished = "a job canceled at the limit"
        used = known_credits(results.summary.get("credits_used", results.summary.get("creditsUsed")))
        if used is not None and self._found["items"]:
            self._credits = round(used / self._found["items"], 4)

    def summary(self) -> Mapping[str, Any]:
        """Return the measurements. Rejected ones have another key, because later runs must not compare with them."""
        run, items = _MeasuredRun.of(self._context), self._found["items"]
        measured = {
            "items": items + self._found["known"],
            "pages": self._found["pages"],
            "blocked": dict(self._blocked),
            "coverage": {field: round(filled / items, 4) for field, filled in self._filled.items() if items},
            "credits_per_item": self._credits,
            "min_items": self._least,
            "failed": [assertion._asdict() for assertion in self._failed],
            **run._asdict(),
        }
        return {QUALITY_REJECTED if self._is_rejected else QUALITY: measured}

    def measurements(self) -> Measurements:
        """Return the measurements."""
        return Measurements(self._found["items"], dict(self._filled), self._assertions)

    def judge(self, url: str | None) -> RejectedResultsError | None:
        """Judge the items, log and count the outcome; return an error if they must not replace the output."""
        self._assertions = [*self._judged()]
        if self.holds_back:
            for assertion in self._failed:
                name = (
                    assertion.condition
                    if assertion.field is None
                    else f"{assertion.condition} of {assertion.field}"
                )
                self._log.error(
                    "Condition %s failed: expected %s, got %s", name, assertion.expected, assertion.actual
                )
        self._report()
        if not self._failed:
            return None
        listed = "; ".join(
            f"{assertion.name}: expected {assertion.expected}, got {assertion.actual}"
            for assertion in self._failed
        )
        text = f"{len(self._failed)} of {len(self._assertions)} conditions failed: {listed}"
        if failed := self._pages.errors.first_few():
            text += f". Pages that failed: {failed}"
        if not self.holds_back:
            self._log.warning("%s", text)
            self._log.warning("The results are published anyway because of Quality(on_fail='warn')")
            return None
        accept = (
            "The results are in XCom; to accept them anyway, mark the task as success"
            if url is None
            else f"{url} is unchanged, and the results are in {rejected_url(url)}. To accept them anyway, move that "
            f"file to {url}, mark the task as success, and clear the tasks downstream"
        )
        self._log.error("%s", accept)
        self._is_rejected = True
        error = RejectedResultsError(
            f"{text}. {accept}. To request them again, clear the task, which is billed"
        )
        error.reasons = self._pages.errors.reasons()
        return error

    @property
    def _failed(self) -> list[Assertion]:
        return [assertion for assertion in self._assertions if not assertion.passed]

    def _measure(self, item: Mapping[str, Any], texts: Collection[str] | None) -> None:
        self._found["items"] += 1
        metadata = item.get("metadata")
        # The content of an error page is not the data.
        is_failed = isinstance(metadata, Mapping) and site_failed(metadata)
        for field, value in item.items():
            is_shown = field in self._filled or (
                len(self._filled) < _MAX_FIELDS and len(field) <= _MAX_FIELD_LENGTH
            )
            if is_shown and field not in self._fields:
                self._filled[field] += not (is_failed and _is_content(field)) and _has_content(value)
        for field in self._fields:
            has_value = not (is_failed and _is_content(field)) and _has_content(_value(item, field))
            self._filled[field] += has_value
        if is_page(item):
            self._found["pages"] += 1
            substitute = substitute_kind(item, text_formats=texts)
            if kind_found := substitute or ("cut" if is_cut(item["metadata"]) else None):
                self._blocked[kind_found] += 1
                self._blocked_example = self._blocked_example or trimmed(url_of(item) or "a page without URL")

    def _judged(self) -> Iterator[Assertion]:
        limits, found = self._limits, self._found
        items, known, pages = found["items"], found["known"], found["pages"]
        total = items + known
        yield Assertion(
            "min_items", None, f"at least {limits.min_items}", str(total), total >= limits.min_items
        )
        if self._unfinished:
            yield Assertion("unfinished", None, "all work within credit_limit", self._unfinished, False)
        if limits.drop_vs_last is not None and (before := self._items_before()):
            least = math.ceil(round(before * (1 - limits.drop_vs_last), 6))
            self._least = max(self._least, least)
            expected = f"at least {least}, because the previous run had {before}"
            yield Assertion("drop_vs_last", None, expected, str(total), total >= least)
        for field, share in (limits.coverage or {}).items() if items else ():
            filled = self._filled[field]
            yield Assertion(
                "coverage", field, f"at least {share:.4g}", _part(filled, items), filled / items >= share
            )
        if limits.blocked is not None and pages:
            blocked = self._blocked.total()
            actual = _part(blocked, pages) + (f", such as {self._blocked_example}" if blocked else "")
            yield Assertion(
                "blocked", None, f"at most {limits.blocked:.4g}", actual, blocked / pages <= limits.blocked
            )

    def _report(self) -> None:
        context, items, blocked = self._context, self._found["items"], self._blocked.total()
        gauge("webdata.quality.items", items + self._found["known"], context)
        gauge("webdata.quality.blocked", blocked, context)
        for field in self._fields if items else ():
            gauge("webdata.quality.coverage", self._filled[field] / items, context, field=field)
        if self._credits is not None:
            gauge("webdata.quality.credits_per_item", self._credits, context)
        for assertion in self._failed:
            count("webdata.quality.failed", 1, context, condition=assertion.condition)
        kinds = ", ".join(f"{number} {kind}" for kind, number in self._blocked.most_common())
        self._log.info(
            "Measured %d results: %d of %d conditions passed",
            items,
            len(self._assertions) - len(self._failed),
            len(self._assertions),
        )
        self._log.info(
            "%d of %d pages blocked%s; %s credits each; coverage %s",
            blocked,
            self._found["pages"],
            f" ({kinds})" if kinds else "",
            credits_text(self._credits),
            ", ".join(f"{field} {_part(self._filled[field], items)}" for field in self._fields)
            or "not measured",
        )

    def _items_before(self) -> int | None:
        """Return the number of results of the previous run from the state or XCom, or None if it is unknown."""
        if self._changes is not None and self._changes.last_count is not None:
            return self._changes.last_count
        ti: Any = self._context["ti"]
        run = _MeasuredRun.of(self._context)
        found = None
        # The first run has none: docs/contributing/upstream/missing_xcom_is_an_error.md
        if not run.has_logical_date or ti.get_previous_dagrun() is not None:
            # The newest by logical date. Databases sort runs without one first or last, so these require reading all.
            found = ti.xcom_pull(key=QUALITY, include_prior_dates=True, map_indexes=run.map_index)
        if found and not (_precedes(found, run) and found.get("has_logical_date") == run.has_logical_date):
            every = ti.xcom_pull(task_ids=[ti.task_id], key=QUALITY, include_prior_dates=True)
            before = (measured for measured in every if _precedes(measured, run))
            found = max(before, key=lambda measured: measured["until"], default=None)
        if not found:
            self._log.info("drop_vs_last passes because no earlier run recorded its number of results")
            return None
        return int(found["items"])


class _MeasuredRun(NamedTuple):
    """A run in XCom `quality`.

    :param until: end of its data, or its due time, ISO 8601.
    :param map_index: -1 for an unmapped task.
    """

    until: str
    map_index: int
    has_logical_date: bool

    @classmethod
    def of(cls, context: Context) -> _MeasuredRun:
        dag_run, index = context["dag_run"], context["ti"].map_index
        _, until = run_span(dag_run, time_zone_of(context.get("dag")))
        has_logical_date = getattr(dag_run, "logical_date", None) is not None
        return cls(
            until.astimezone(timezone.utc).isoformat(), -1 if index is None else index, has_logical_date
        )


def _precedes(measured: Any, run: _MeasuredRun) -> bool:
    return (
        isinstance(measured, Mapping)
        and isinstance(measured.get("items"), int)
        and measured.get("map_index") == run.map_index
        and str(measured.get("until", "~")) < run.until
    )


def _is_content(field: str) -> bool:
    return field.partition(".")[0] not in ("url", "metadata")


def _value(item: Mapping[str, Any], field: str) -> Any:
    return url_of(item) if field == "url" else at_path(item, field)


def _has_content(value: Any) -> bool:
    if isinstance(value, str):
        return not is_blank(value)
    return value is not None and value != [] and value != {}


def _part(number: int, of: int) -> str:
    return f"{number / of:.4g} ({number} of {of})" if of else "none"
