"""The operator that calls data providers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow_provider_webdata.base.operator import RequestFields, WebDataOperator, checked_limit
from airflow_provider_webdata.common.arguments import as_list, number, without_sets
from airflow_provider_webdata.common.coded_errors import ArgumentError
from airflow_provider_webdata.options import Changes, Output, Quality, Schema

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class WebDataProviderOperator(
    WebDataOperator,
    fields=RequestFields(
        "ProviderRequest",
        without=("calls",),
        own=("provider", "capability", "options", "calls", "record_key", "max_error_ratio"),
        options=("output", "changes", "result_schema", "quality", "credit_limit"),
    ),
):
    """Call data providers, and return their records. Bills credits according to the contract of each capability.

    Pass `provider`, `capability`, and `options` for one call, or `calls` for up to ten in one request. Before the
    request, the task reads the contracts, which is free: they define the columns of tables, and the price for enforcing
    `credit_limit`. `WebDataHook.find_tools` lists the capabilities.

    The idempotency key of a request consists of the task instance, the number of times it was cleared, and the calls.
    After a lost response, the next attempt sends the same key and receives the billed response. A changed request has a
    different key.

    A failed call does not stop the others: an item with `error` represents it. If more calls fail than
    `max_error_ratio` allows, the task fails after publishing the results; on Airflow 3.3, a retry helps only if no call
    was billed. If the terms of a provider are not accepted, the task fails with WD-029 and the URL at which an
    administrator can accept them.

    XCom: a mapping with `scrape_id`, `creditsUsed`, `requestId`, `failed` (each also under its own key), `calls` (the
    service's result of each call, without its data), `count`, and `data` (the records); with `output`, `path` and
    `bytes` replace `data`. With `calls`, each record starts with `call`, the call's index, and `tool`.

    :param provider: id of the provider. May be a template, like the next two arguments.
    :param capability: name of a capability, such as `prices/history`.
    :param options: options according to the capability's contract. Numbers and booleans may be text, as rendered by
        templates.
    :param calls: 1 to 10 mappings with `provider`, `capability`, `options`, `version`, instead of the three arguments;
        or JSON text of such a list (templated).
    :param record_key: field that identifies a record across runs, for `changes`. Default: `url`.
    :param max_error_ratio: maximum fraction of the calls, 0 to 1, that may fail (templated). Default: 0.
    :param timeout: time limit of the calls in milliseconds, 1 to 300,000; the service caps it at 120,000. Default:
        120,000.
    :param output: path or URL of a file for the results, or `Output` (templated). Default: XCom.
    :param changes: path or URL of a folder for the runs' manifests, or `Changes` (templated). Default: no comparison.
    :param result_schema: JSON Schema as a mapping, pydantic model, the model's import path, or `Schema`. Default: the
        schema that the request contains, if any.
    :param quality: conditions that the results must meet before they replace those of earlier runs: minimum number of
        results, or `Quality`. Default: no conditions.
    :param credit_limit: maximum credits for all attempts until the task is cleared. On Airflow 3.2, for each attempt
        (templated). A call of a killed attempt counts with its maximum cost. A call whose documented price may exceed
        the limit or is unbounded is not sent, and the task fails with WD-034. Default: no limit.
    :param kwargs: arguments of `WebDataOperator` and `BaseOperator`.
    """

    run = "airflow_provider_webdata.runs.provider:ProviderRun"
    template_fields: Sequence[str] = (*WebDataOperator.template_fields, "calls", "max_error_ratio")

    def __init__(
        self,
        *,
        provider: str | None = None,
        capability: str | None = None,
        options: Mapping[str, Any] | None = None,
        calls: Sequence[Mapping[str, Any]] | str | None = None,
        # fields of ProviderRequest, written by tools/operator_fields.py
        timeout: int | str | None = None,
        output: Output | str | None = None,
        changes: Changes | str | None = None,
        result_schema: Schema | Mapping[str, Any] | type | str | None = None,
        quality: Quality | int | None = None,
        credit_limit: float | str | None = None,
        # end of fields
        record_key: str | None = None,
        max_error_ratio: float | str = 0.0,
        **kwargs: Any,
    ) -> None:
        one = {"provider": provider, "capability": capability, "options": options}
        given = {name: value for name, value in one.items() if value is not None}
        if bool(given) == (calls is not None):
            raise ArgumentError("pass either provider, capability, and options, or calls")
        if not isinstance(max_error_ratio, str):
            number("max_error_ratio", max_error_ratio, 1)
        super().__init__(**kwargs)
        # fields of ProviderRequest, written by tools/operator_fields.py
        self.timeout = timeout
        self.output_to = Output.of(output)
        self.changes = Changes.of(changes)
        self.result_schema = Schema.of(result_schema)
        self.quality = Quality.of(quality)
        self.credit_limit = checked_limit(credit_limit)
        # end of fields
        self.calls = [given] if calls is None else calls
        self.labels_records = calls is not None
        self.record_key = record_key
        self.max_error_ratio = max_error_ratio

    def field_values(self) -> dict[str, Any]:
        """Return the request fields that are not None, by their Python names."""
        calls = as_list(self.calls) if isinstance(self.calls, str) else self.calls
        return {"calls": without_sets(calls), **super().field_values()}
