# SPDX-License-Identifier: Apache-2.0
"""Publication of results to XCom or a file, through the steps of the task's options."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import chain, islice
from typing import TYPE_CHECKING, Any

from airflow_provider_webdata.common.attempt import Attempt
from airflow_provider_webdata.common.item_urls import url_of
from airflow_provider_webdata.common.logs import task_logger
from airflow_provider_webdata.common.spelling import snake_case
from airflow_provider_webdata.hooks.environment import shared_identity
from airflow_provider_webdata.options import Changes, Quality
from airflow_provider_webdata.results.assets import annotate_outlets
from airflow_provider_webdata.results.columns import columns_of
from airflow_provider_webdata.results.files.output import OutputFile, check_output
from airflow_provider_webdata.results.files.paths import check_path, instance_path, warn_if_relative
from airflow_provider_webdata.results.lineage import WrittenFile
from airflow_provider_webdata.results.pages.preview import ROWS, preview_row
from airflow_provider_webdata.results.pages.retrieval import KIND as DOCUMENTS
from airflow_provider_webdata.results.pages.retrieval import flat_documents
from airflow_provider_webdata.results.xcom import warn_if_large
from airflow_provider_webdata.runs.publishing.check_pages import CheckPages
from airflow_provider_webdata.runs.publishing.detect_changes import DetectChanges
from airflow_provider_webdata.runs.publishing.keep_media import KeepMedia
from airflow_provider_webdata.runs.publishing.own_file import check_own_file
from airflow_provider_webdata.runs.publishing.quality import Measure
from airflow_provider_webdata.runs.publishing.step import Step
from airflow_provider_webdata.runs.publishing.validate import ExpectedSchema, Validate

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from airflow.sdk import Context

    from airflow_provider_webdata.hooks.connection import ConnectionSettings
    from airflow_provider_webdata.results.lineage import Measurements
    from airflow_provider_webdata.runs.failures import RejectedResultsError
    from airflow_provider_webdata.runs.publishing.step import Results
    from airflow_provider_webdata.states.shortfalls import Shortfall

    Value = Callable[[list[Any], dict[str, Any]], Any]


class Flatten(Step):
    """Flattens pages, search results, and links to documents."""

    def __init__(self, log: Any) -> None:
        self._log = log

    def transform(self, results: Results) -> Results:
        """Return the documents."""
        if results.kind in ("generic", "provider_record"):
            self._log.warning(
                "documents=True has no effect: the results are not pages, search results, or links"
            )
            return results
        items = flat_documents(results.items, results.source)
        return replace(results, items=items, kind=DOCUMENTS, columns=columns_of(DOCUMENTS))


class Publication:
    """The publication of one attempt's results.

    :param task: the operator or sensor, whose options select the destination.
    :param connection: reads the settings of the task's connection.
    :param request: returns the request in wire form. Results must match its schema if the task has none.
    :param operation: the name of the call in errors.
    :ivar path: path or URL of the file, without `*`; None: the results go to XCom.
    :ivar pages: the counts of the pages among the results.
    :ivar summary: values about the items for XCom, after `publish`.
    :ivar shortfalls: what the results lack because of the steps, after `publish`.
    :ivar preview: the first rows of the file, shortened.
    :ivar rejection: the error if results do not meet the conditions, after `publish`.
    :ivar written: the written file; None: the results are in XCom.
    :ivar inputs: the query or the URLs, for OpenLineage.
    """

    def __init__(
        self,
        task: Any,
        context: Context,
        connection: Callable[[], ConnectionSettings],
        request: Callable[[], Mapping[str, Any]],
        operation: str,
    ) -> None:
        self.context = context
        self._task = task
        self._log = log = task_logger(task)
        path: Any = getattr(task, "save_to", None)
        folder: Any = getattr(task, "media_to", None)
        changes = Changes.of(getattr(task, "changes", None))
        quality = Quality.of(getattr(task, "quality", None))
        schema = ExpectedSchema(
            getattr(task, "result_schema", None),
            getattr(task, "result_rows", None),
            fails=getattr(task, "on_invalid_result", "keep") == "fail",
        )
        self._save_to = None if path is None else str(path)
        self.path = None if path is None else _instance_path(str(path), context)
        self.changes = None if changes is None else DetectChanges(changes, task, context, request, self.path)
        self.pages = CheckPages(
            operation,
            request if _names_formats(task) else None,
            lambda: connection().client,
            log,
        )
        measure = (
            None if quality is None else Measure(quality, context, log, self.changes, self.path, self.pages)
        )
        self.media = None if folder is None else KeepMedia(str(folder), task.max_media_mb, connection, log)
        steps = (
            self.pages,
            measure,
            self.changes,
            Validate(schema, request, log),
            self.media,
            Flatten(log) if getattr(task, "documents", False) else None,
        )
        self._steps: Sequence[Step] = [step for step in steps if step is not None]
        self.summary: dict[str, Any] = {}
        self.shortfalls: list[Shortfall] = []
        self.preview: Sequence[Mapping[str, Any]] = ()
        self.rejection: RejectedResultsError | None = None
        self.written: WrittenFile | None = None
        self.inputs: Sequence[str] = ()

    @property
    def detected(self) -> DetectChanges:
        """The comparison with earlier runs, for a task that has one."""
        if self.changes is None:
            raise ValueError("The task has no changes=")
        return self.changes

    @property
    def measurements(self) -> Measurements | None:
        """The measurements of the items, for OpenLineage."""
        return next(filter(None, (step.measurements() for step in self._steps)), None)

    def prepare(self) -> None:
        """Fail before any call is billed.

        :raises OutputError: an option is invalid.
        """
        if self._save_to is not None and self.path is not None:
            check_path("save_to", self._save_to, starred=True)
            warn_if_relative("save_to", self._save_to)
            emits_changes = self.changes is not None and self.changes.changes.emit == "changed"
            check_own_file(self._task, self.context, emits_changes=emits_changes)
            check_output(self.path)
        for step in self._steps:
            step.prepare()

    def publish(self, results: Results, value: Value | None = None) -> Any:
        """Publish results and return the XCom.

        With a file, the items are written one at a time, and the XCom is the summary with `path`, `count`, and `bytes`.
        Otherwise it is the value that `value` returns, or the summary with `count` and the items under `data`; a
        warning about a large XCom recommends `save_to`. Rejected results are written beside the file.

        :param value: builds the XCom from the items and the summary, with `count`, `media`, ....
        """
        self.inputs = tuple(results.inputs)
        for step in self._steps:
            results = step.transform(results)
        data: list[Any] = []
        if self.path is None:
            data = [*_located(results)]
            self.rejection = self._judged(None)
            counts: Mapping[str, Any] = {"count": len(data)}
        else:
            counts = self._write(self.path, results)
        # The service's agent may answer with text only.
        reported = results.summary.get("message") or any(step.reports_missing for step in self._steps)
        if not counts["count"] and not reported:
            self._log.warning("There are no results")
        summary = {**results.summary, **counts}
        for step in self._steps:
            found = step.summary()
            summary |= found
            if step.pushes_summary:
                self.summary |= found
            self.shortfalls += step.shortfalls()
        if self.path is not None:
            result: Any = {snake_case(name): value for name, value in summary.items()}
        else:
            build = None if results.kind == DOCUMENTS else value
            result = {**summary, "data": data} if build is None else build(data, summary)
            warn_if_large(result, self._log)
        if self.rejection is not None:
            for step in self._steps:
                step.rejected()
            return result
        annotate_outlets(self.context, summary)
        for step in self._steps:
            step.written()
        return result

    def verdict(self) -> None:
        """Fail or skip the task after its results are published.

        :raises CodedError: the results cannot be accepted.
        :raises AirflowSkipException: nothing changed.
        """
        if self.rejection is not None:
            raise self.rejection
        # A server that returns no content is no reason to skip the task as unchanged.
        self.pages.verdict()
        for step in reversed(self._steps):
            step.verdict()

    def _write(self, path: str, results: Results) -> dict[str, Any]:
        """Write the items, and return the file's part of the summary."""
        items = _located(results)
        columns = (*(results.columns or columns_of(results.kind)), *results.tag_columns)
        with OutputFile(path, columns, judged=any(step.holds_back for step in self._steps)) as file:
            first = [*islice(items, ROWS)]
            self.preview = [preview_row(item) for item in first]
            file.write(chain(first, items))
            self.rejection = self._judged(path)
            if self.rejection is not None:
                file.reject()
        typed = () if file.format.columns is None else file.columns
        self.written = WrittenFile(file.url, file.count, file.bytes, typed, self.measurements)
        self._log.info("Wrote %d results, %d bytes, to %s", file.count, file.bytes, self.written.url)
        return {"path": path, "count": file.count, "bytes": file.bytes}

    def _judged(self, url: str | None) -> RejectedResultsError | None:
        return next(filter(None, [step.judge(url) for step in self._steps]), None)


def _instance_path(path: str, context: Context) -> str:
    run = context.get("dag_run")
    moment = getattr(run, "logical_date", None) or getattr(run, "run_after", None)
    return instance_path(path, shared_identity(Attempt(context)), moment)


def _names_formats(task: Any) -> bool:
    """Return whether a task knows the formats of its pages: it sends the request, and `extra_body` replaces none."""
    # A template may have rendered it as JSON text.
    extra: Any = getattr(task, "extra_body", None) or ()
    return bool(getattr(task, "_request_fields", ())) and not any(
        name in extra for name in ("formats", "scrapeOptions")
    )


def _located(results: Results) -> Iterator[Any]:
    """Yield the items; a page without a URL, such as a parsed file, gets its source as `sourceURL`."""
    for item in results.items:
        if results.kind == "document" and results.source is not None and url_of(item) is None:
            metadata = item.get("metadata")
            kept = metadata if isinstance(metadata, Mapping) else {}
            yield {**item, "metadata": {**kept, "sourceURL": results.source}}
        else:
            yield item
