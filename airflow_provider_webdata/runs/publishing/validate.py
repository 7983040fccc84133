# SPDX-License-Identifier: Apache-2.0
"""Validation of structured results against the task's or the request's schema."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from airflow_provider_webdata.common.coded_errors import brief
from airflow_provider_webdata.common.item_urls import page_problem, site_failed, url_of
from airflow_provider_webdata.results.errors import OutputError
from airflow_provider_webdata.results.provider_records import KIND as RECORDS
from airflow_provider_webdata.results.provider_records import LABELS, is_error
from airflow_provider_webdata.results.result_schema import (
    ERRORS,
    ERRORS_KEY,
    ResultSchema,
    requested_schema,
)
from airflow_provider_webdata.results.tagged_items import tagged, untagged
from airflow_provider_webdata.runs.failures import InvalidResultsError
from airflow_provider_webdata.runs.publishing.step import Step

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from airflow_provider_webdata.runs.publishing.step import Results

_MAX_LISTED = 100
_MAX_PROBLEM_LENGTH = 300


class ExpectedSchema(NamedTuple):
    """What a task's arguments say about the schema of its results.

    :param schema: `result_schema`; None: the schema that the request contains, if any.
    :param rows: `result_rows`.
    :param fails: whether an invalid result fails the task.
    """

    schema: Mapping[str, Any] | type | str | None
    rows: str | None
    fails: bool


class Validate(Step):
    """Marks the items that do not match the schema, if there is one."""

    def __init__(self, option: ExpectedSchema, request: Callable[[], Mapping[str, Any]], log: Any) -> None:
        self._option = option
        self._request = request
        self._log = log
        self._found: list[dict[str, Any]] = []
        self._counts = {"checked": 0, "invalid": 0}
        self._failed = 0

    @cached_property
    def _schema(self) -> ResultSchema | None:
        if self._option.schema is not None:
            return ResultSchema.of(self._option.schema)
        found = requested_schema(self._request())
        try:
            return None if found is None else ResultSchema(found, rows=rows_path(self._option.rows))
        except OutputError as error:
            self._log.warning("The results are not validated by the request's schema: %s", brief(error))
            return None

    def prepare(self) -> None:
        """Check the option's schema."""
        if self._option.schema is not None:
            self._schema  # noqa: B018 - an invalid schema fails before any call is billed

    def transform(self, results: Results) -> Results:
        """Return the items, invalid ones with `validationErrors` as first field, and the schema's columns."""
        if (schema := self._schema) is None:
            return results
        items = self._validated(results, schema)
        if results.kind == RECORDS:
            # Their contract already defines the column types.
            return replace(results, items=items, tag_columns=(ERRORS, *results.tag_columns))
        columns = results.columns if results.kind == "link" else schema.columns(results.kind)
        return replace(results, items=items, columns=columns)

    def _validated(self, results: Results, schema: ResultSchema) -> Iterator[Any]:
        for index, item in enumerate(results.items):
            if (failure := _failure(item, results.kind)) is not None:
                # An error page may still match the schema.
                self._failed += 1
                yield tagged(item, **{ERRORS_KEY: [failure]})
                continue
            problems = _problems(item, results.kind, schema)
            self._counts["checked"] += problems is not None
            if not problems:
                yield item
                continue
            self._counts["invalid"] += 1
            if len(self._found) < _MAX_LISTED:
                self._found.append({"index": index, "url": url_of(item), "errors": problems})
            yield tagged(item, **{ERRORS_KEY: problems})

    def summary(self) -> Mapping[str, Any]:
        """Return the counts, and the problems of the first invalid items."""
        if self._schema is None:
            return {}
        failed = {"failed": self._failed} if self._failed else {}
        return {"validation": {**self._counts, **failed, "items": self._found}}

    def written(self) -> None:
        """Log the numbers of valid items and of failed pages."""
        if self._failed:
            self._log.warning("%d failed pages were not validated", self._failed)
        if self._counts["invalid"]:
            self._log.warning("%s", self._summary())
        elif self._counts["checked"]:
            self._log.info("All %d results are valid", self._counts["checked"])

    def verdict(self) -> None:
        """Fail the task if an item is invalid and `on_invalid_result` is `fail`."""
        if self._option.fails and self._counts["invalid"]:
            raise InvalidResultsError(f"{self._summary()}; all results are published anyway, and are in XCom")

    def _summary(self) -> str:
        shown = "; ".join(
            f"{found['url'] or 'item ' + str(found['index'])}: {', '.join(found['errors'][:3])}"
            for found in self._found[:5]
        )
        count = f"{self._counts['invalid']} of {self._counts['checked']} results are invalid"
        return f"{count}: {shown}"


def rows_path(rows: str | None) -> list[str]:
    """Return the keys of the path to the list of results in an agent's data.

    :param rows: the argument `result_rows`, such as `answer.companies`.
    """
    return [] if rows is None else rows.split(".")


def _failure(item: Any, kind: str) -> str | None:
    """Return why a page is not validated, or None."""
    metadata = item.get("metadata") if kind not in (RECORDS, "generic") else None
    if not isinstance(metadata, Mapping) or not site_failed(metadata):
        return None
    return f"not validated: {page_problem(metadata)}"[:_MAX_PROBLEM_LENGTH]


def _problems(item: Any, kind: str, schema: ResultSchema) -> list[str] | None:
    """Return the problems of an item; None if it is not validated."""
    if kind == RECORDS:
        return None if is_error(item) else schema.problems(untagged(item, *LABELS), is_element=True)
    if kind == "generic":
        problems = schema.problems(item, is_element=True)
        if problems and item.keys() == {"value"}:
            # A value that is not an object was wrapped; see `JobResult.publish_data`.
            return schema.problems(item["value"], is_element=True)
        return problems
    if item.get("json") is not None:
        return schema.problems(item["json"], is_element=False)
    return ["json: missing from the page"] if isinstance(item.get("metadata"), Mapping) else None
