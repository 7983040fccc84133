"""Structured results held against a schema: what is not valid is kept, marked and reported, and paid for once."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from airflow_provider_webdata.options import Schema
from airflow_provider_webdata.tasks.result_output import ResultDelivery

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from airflow.sdk import Context

    from airflow_provider_webdata.results.columns import Column
    from airflow_provider_webdata.results.result_schema import ResultSchema

_MOST_LISTED = 100
_SITE_ERROR = 400


class ValidatedResults(ResultDelivery):
    """Base of operators and sensors whose results may be structured: the `json` of pages, data of extract and agent.

    :param result_schema: JSON Schema as a mapping, pydantic model, the model's import path, or `Schema`. Default: the
        schema that the request contains, if any.
    :param kwargs: arguments of the other base classes.
    """

    _schema: ResultSchema | None = None
    _validation: Mapping[str, Any] | None = None

    def __init__(
        self, *, result_schema: Schema | Mapping[str, Any] | type | str | None = None, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self.result_schema = Schema.of(result_schema)

    @property
    def _own_schema(self) -> Any:
        return None if self.result_schema is None else self.result_schema.schema

    def check_result_arguments(self) -> None:
        """Fail the task for good where results could not be written or validated, before anything is paid for."""
        super().check_result_arguments()
        if self._own_schema is not None:
            from airflow_provider_webdata.results.errors import OutputError
            from airflow_provider_webdata.results.result_schema import ResultSchema

            try:
                ResultSchema.of(self._own_schema)
            except OutputError as error:
                self.refuse(error)

    def deliver(
        self,
        items: Iterable[Any],
        kind: str,
        context: Context,
        summary: Mapping[str, Any],
        *,
        inputs: Sequence[str] = (),
        value: Callable[[list[Any], dict[str, Any]], Any] | None = None,
    ) -> Any:
        """Deliver the results, those that are not valid marked; see `ResultDelivery.deliver`."""
        self._schema = self._found_schema()
        if self._schema is None:
            return super().deliver(items, kind, context, summary, inputs=inputs, value=value)
        facts: dict[str, Any] = {"validation": {"checked": 0, "invalid": 0, "items": []}}
        self._validation = facts["validation"]
        result = super().deliver(
            self._validated(items, kind, self._schema, facts["validation"]),
            kind,
            context,
            ChainMap(facts, summary),  # type: ignore[arg-type]
            inputs=inputs,
            value=value,
        )
        self.push(context, **facts)
        self._tell(facts["validation"])
        return result

    def columns(self, kind: str) -> tuple[Column, ...]:
        """Return the columns of a table of the results, with those of the schema."""
        if self._schema is None or kind in ("link", "retrieval"):
            return super().columns(kind)
        return self._schema.columns(kind)

    def finished(self, result: Any, context: Context) -> Any:
        """Return the result of a task that has delivered it; fail the task if it is not valid and that is wished."""
        fails = self.result_schema is not None and self.result_schema.on_invalid == "fail"
        if fails and self._validation is not None and self._validation["invalid"]:
            from airflow_provider_webdata.tasks.failures import InvalidResultsError

            # A task that fails returns nothing: what was paid for goes to where the return value would be.
            self.push(context, return_value=result)
            self.refuse(
                InvalidResultsError(
                    f"{_in_words(self._validation)}; all results are delivered, and in XCom, all the same"
                )
            )
        return super().finished(result, context)

    def rows_path(self) -> Sequence[str]:
        """Return the path of the list of results in the data."""
        rows = None if self.result_schema is None else self.result_schema.rows
        return () if rows is None else rows.split(".")

    def _found_schema(self) -> ResultSchema | None:
        from airflow_provider_webdata.results.errors import OutputError
        from airflow_provider_webdata.results.result_schema import ResultSchema, requested_schema

        if self._own_schema is not None:
            return ResultSchema.of(self._own_schema)
        schema = requested_schema(self.request_body())
        try:
            return None if schema is None else ResultSchema(schema, rows=self.rows_path())
        except OutputError as error:
            self.log.warning("The results are not validated by the request's schema: %s", error)
            return None

    def _validated(
        self, items: Iterable[Any], kind: str, schema: ResultSchema, validation: dict[str, Any]
    ) -> Iterator[Any]:
        from airflow_provider_webdata.results.item_urls import url_of
        from airflow_provider_webdata.results.result_schema import ERRORS_KEY
        from airflow_provider_webdata.tasks.tagged_items import tagged

        for index, item in enumerate(items):
            problems = _problems(item, kind, schema)
            if problems is None:
                yield item
                continue
            validation["checked"] += 1
            if not problems:
                yield item
                continue
            validation["invalid"] += 1
            if len(validation["items"]) < _MOST_LISTED:
                validation["items"].append({"index": index, "url": url_of(item), "errors": problems})
            yield tagged(item, **{ERRORS_KEY: problems})

    def _tell(self, validation: Mapping[str, Any]) -> None:
        if validation["invalid"]:
            self.log.warning("%s", _in_words(validation))
        elif validation["checked"]:
            self.log.info("All %d results are valid", validation["checked"])


def _problems(item: Any, kind: str, schema: ResultSchema) -> list[str] | None:
    """Return what is wrong with a result; None of one that is not to be judged."""
    if kind == "generic":
        problems = schema.problems(item)
        # What is no object was wrapped; see `JobResults`.
        return problems and schema.problems(item["value"]) if item.keys() == {"value"} else problems
    if item.get("json") is not None:
        return schema.problems(item["json"])
    metadata = item.get("metadata")
    if not isinstance(metadata, Mapping) or metadata.get("error"):
        return None
    status = metadata.get("statusCode")
    return None if isinstance(status, int) and status >= _SITE_ERROR else ["json: the page has none"]


def _in_words(validation: Mapping[str, Any]) -> str:
    shown = "; ".join(
        f"{found['url'] or 'item ' + str(found['index'])}: {', '.join(found['errors'][:3])}"
        for found in validation["items"][:5]
    )
    return f"{validation['invalid']} of {validation['checked']} results are not valid: {shown}"
