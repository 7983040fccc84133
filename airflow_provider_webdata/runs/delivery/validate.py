"""Validation of structured results against a schema; see `options.Schema`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

from airflow_provider_webdata.common.item_urls import site_failed, url_of
from airflow_provider_webdata.common.tagged_items import tagged, untagged
from airflow_provider_webdata.results.provider_records import KIND as RECORDS
from airflow_provider_webdata.results.provider_records import LABELS, is_error
from airflow_provider_webdata.results.result_schema import ERRORS, ERRORS_KEY
from airflow_provider_webdata.runs.delivery.step import Step
from airflow_provider_webdata.runs.failures import InvalidResultsError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from airflow_provider_webdata.results.columns import Column
    from airflow_provider_webdata.results.result_schema import ResultSchema
    from airflow_provider_webdata.runs.delivery.step import Results

_MOST_LISTED = 100


class Validate(Step):
    """Marks the items that do not match a schema."""

    def __init__(self, schema: ResultSchema, on_invalid: Literal["keep", "fail"], log: Any) -> None:
        self._schema = schema
        self._on_invalid = on_invalid
        self._log = log
        self._found: list[dict[str, Any]] = []
        self._counts = {"checked": 0, "invalid": 0}

    def columns(self, columns: tuple[Column, ...], kind: str) -> tuple[Column, ...]:
        """Return the schema's columns for items that have some."""
        if kind == RECORDS:
            # Their contract already defines the column types.
            return (*columns, ERRORS)
        return columns if kind in ("link", "retrieval") else self._schema.columns(kind)

    def items(self, items: Iterable[Any], results: Results) -> Iterator[Any]:
        """Yield the items; an invalid one gets `validationErrors` as its first field."""
        for index, item in enumerate(items):
            problems = _problems(item, results.kind, self._schema)
            if problems is None:
                yield item
                continue
            self._counts["checked"] += 1
            if not problems:
                yield item
                continue
            self._counts["invalid"] += 1
            if len(self._found) < _MOST_LISTED:
                self._found.append({"index": index, "url": url_of(item), "errors": problems})
            yield tagged(item, **{ERRORS_KEY: problems})

    def facts(self) -> Mapping[str, Any]:
        """Return the counts, and the problems of the first invalid items."""
        return {"validation": {**self._counts, "items": self._found}}

    def written(self) -> None:
        """Log the number of valid items."""
        if self._counts["invalid"]:
            self._log.warning("%s", self._summary())
        elif self._counts["checked"]:
            self._log.info("All %d results are valid", self._counts["checked"])

    def verdict(self) -> None:
        """Fail the task if an item is invalid and `on_invalid` is `fail`."""
        if self._on_invalid == "fail" and self._counts["invalid"]:
            raise InvalidResultsError(f"{self._summary()}; all results are delivered anyway, and are in XCom")

    def _summary(self) -> str:
        shown = "; ".join(
            f"{found['url'] or 'item ' + str(found['index'])}: {', '.join(found['errors'][:3])}"
            for found in self._found[:5]
        )
        return f"{self._counts['invalid']} of {self._counts['checked']} results are invalid: {shown}"


def _problems(item: Any, kind: str, schema: ResultSchema) -> list[str] | None:
    """Return the problems of an item; None if it is not validated."""
    if kind == RECORDS:
        return None if is_error(item) else schema.problems(untagged(item, *LABELS))
    if kind == "generic":
        problems = schema.problems(item)
        # A value that is not an object was wrapped; see `JobResult.deliver_data`.
        return problems and schema.problems(item["value"]) if item.keys() == {"value"} else problems
    if item.get("json") is not None:
        return schema.problems(item["json"])
    metadata = item.get("metadata")
    return (
        ["json: missing from the page"]
        if isinstance(metadata, Mapping) and not site_failed(metadata)
        else None
    )
