# SPDX-License-Identifier: Apache-2.0
"""The operator that calls data providers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from airflow_provider_webdata.base.operator import RequestFields, WebDataOperator
from airflow_provider_webdata.common.arguments import number, without_sets
from airflow_provider_webdata.common.coded_errors import ArgumentError
from airflow_provider_webdata.common.literals import is_literal

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from airflow_provider_webdata.options import Changes, Quality


class WebDataProviderOperator(
    WebDataOperator,
    fields=RequestFields(
        "ProviderRequest",
        without=("calls",),
        own=("provider", "capability", "options", "calls", "record_key", "max_error_ratio"),
        options=("save_to", "changes", "result_schema", "quality", "credit_limit"),
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

    XCom: a mapping with `scrape_id`, `creditsUsed`, `requestId`, `failed`, `calls` (the service's result of each call,
    without its data), `count`, and `data` (the records); with `save_to`, `path` and `bytes` replace `data`. The keys
    `scrape_id`, `credits_used`, `request_id`, and `failed` contain these values. With `calls`, each record starts with
    `call`, the call's index, and `tool`.

    :param provider: id of the provider (templated).
    :param capability: name of a capability, such as `prices/history` (templated).
    :param options: options according to the capability's contract (templated). Numbers and booleans may be text, as
        rendered by templates.
    :param calls: 1 to 10 mappings with `provider`, `capability`, `options`, `version`, instead of the three arguments;
        or JSON text of such a list (templated).
    :param record_key: field that identifies a record across runs, for `changes`. Default: `url`.
    :param max_error_ratio: maximum fraction of the calls, 0 to 1, that may fail (templated). Default: 0.
    :param timeout: time limit of the calls in milliseconds, 1 to 300,000; the service caps it at 120,000. Default:
        120,000.
    :param save_to: path or URL of a file for the results, in any storage that Airflow knows (templated). `*` in its
        name becomes a name of the task instance, so that each run and each mapped instance has its own file. Its suffix
        is the format, such as `.jsonl.gz` or `.parquet`; `docs/results.md` lists them. The file is written completely
        or not at all, and a retry replaces it. XCom then has `path`, `count`, and `bytes` instead of the results.
        Default: XCom.
    :param documents: flat rows for retrieval instead of the items: `id` (the same for a page in all runs), `url`,
        `title`, `text`, `metadata`, and `digest`. For pages, search results, and links. Default: false.
    :param changes: path or URL of a folder for what earlier runs saw, or `Changes` (templated). Default: no comparison.
    :param result_schema: schema that structured results must match, the `json` of pages or the data of an agent: JSON
        Schema as a mapping, pydantic model, or the model's import path, such as `shop.models.Product`. An invalid
        result gets a first field `validationErrors`, and XCom `validation` counts them; see `docs/results.md`. Default:
        the schema that the request contains, if any.
    :param on_invalid_result: `keep`, or `fail`: fail the task, without a retry, after all results are published.
        Default: `keep`.
    :param quality: conditions that the results must meet before they replace those of earlier runs: minimum number of
        results, or `Quality`. Default: no conditions.
    :param credit_limit: maximum credits for all attempts until the task is cleared (templated). A call of a killed
        attempt counts with its maximum cost. A call whose documented price may exceed the limit or is unbounded is not
        sent, and the task fails with WD-034. Default: no limit.
    :param kwargs: arguments of `WebDataOperator` and `BaseOperator`.
    """

    _run_path = "airflow_provider_webdata.runs.provider:ProviderRun"
    _work_list = "calls"
    template_fields: Sequence[str] = (
        *WebDataOperator.template_fields,
        "provider",
        "capability",
        "options",
        "calls",
        "max_error_ratio",
    )

    def __init__(
        self,
        *,
        provider: str | None = None,
        capability: str | None = None,
        options: Mapping[str, Any] | None = None,
        calls: Sequence[Mapping[str, Any]] | str | None = None,
        # fields of ProviderRequest, written by tools/operator_fields.py
        timeout: int | str | None = None,
        save_to: str | None = None,
        documents: bool = False,
        changes: Changes | str | None = None,
        result_schema: Mapping[str, Any] | type | str | None = None,
        on_invalid_result: Literal["keep", "fail"] = "keep",
        quality: Quality | int | None = None,
        credit_limit: float | str | None = None,
        # end of fields
        record_key: str | None = None,
        max_error_ratio: float | str = 0.0,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        # fields of ProviderRequest, written by tools/operator_fields.py
        self.timeout = timeout
        self.save_to = save_to
        self.documents = documents
        self.changes = changes
        self.result_schema = result_schema
        self.on_invalid_result = on_invalid_result
        self.quality = quality
        self.credit_limit = credit_limit
        # end of fields
        self.provider = provider
        self.capability = capability
        self.options = options
        self.calls = calls
        self.record_key = record_key
        self.max_error_ratio = max_error_ratio
        self._check_arguments()

    def _check_values(self) -> None:
        """Check the arguments that are not fields of the request; see `ServiceTask._check_values`."""
        super()._check_values()
        if bool(self._one_call()) == (self.calls is not None):
            raise ArgumentError("pass either provider, capability, and options, or calls")
        if is_literal(self.max_error_ratio):
            number("max_error_ratio", self.max_error_ratio, 1)

    def _one_call(self) -> dict[str, Any]:
        call = {"provider": self.provider, "capability": self.capability, "options": self.options}
        return {name: value for name, value in call.items() if value is not None}

    def _field_values(self) -> dict[str, Any]:
        """Return the request fields that are not None, by their Python names."""
        calls: Any = [self._one_call()] if self.calls is None else self.calls
        return {"calls": without_sets(calls), **super()._field_values()}
