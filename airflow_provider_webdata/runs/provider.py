# SPDX-License-Identifier: Apache-2.0
"""Calls to data providers in one request."""

from __future__ import annotations

import hashlib
import json
import math
from typing import TYPE_CHECKING, Any

from airflow_provider_webdata.api.models import ProviderRequest, ProviderResponse
from airflow_provider_webdata.common.numbers import known_credits
from airflow_provider_webdata.hooks.task_metrics import count
from airflow_provider_webdata.results.provider_records import (
    KIND,
    LABELS,
    item_of_record,
    record_columns,
    records_of,
)
from airflow_provider_webdata.runs.call import BilledCall, CallResult, CallRun
from airflow_provider_webdata.runs.failures import TooManyFailuresError, too_many
from airflow_provider_webdata.runs.money.task_ledger import Cost
from airflow_provider_webdata.runs.publishing.step import Results
from airflow_provider_webdata.runs.request import checked_number
from airflow_provider_webdata.states.task_record import Started, new_key

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from airflow_provider_webdata.api.models import DataTool
    from airflow_provider_webdata.operators.provider import WebDataProviderOperator

_SHOWN_FAILURES = 5
_TYPED: Mapping[str, tuple[type, ...]] = {"integer": (int,), "number": (int, float), "boolean": (bool,)}
_TRANSIENT = frozenset({408, 425, 429})


class ProviderRun(CallRun):
    """Calls data providers and publishes their records.

    The request's idempotency id is recorded before it is sent, so that the next attempt gets the response that this one
    lost, from a server whose keys are trusted. If no call succeeded, the request is sent again with another id.
    """

    task: WebDataProviderOperator

    operation = "provider"
    answer_model = ProviderResponse

    def publish_nothing(self) -> Any:
        """Publish the empty result of a task without calls."""
        summary: dict[str, Any] = {
            "scrape_id": None,
            "creditsUsed": 0,
            "requestId": None,
            "calls": [],
            "failed": 0,
        }
        self.push(**{name: value for name, value in summary.items() if name != "calls"})
        key = _key_of(self.task.record_key or "url")
        return self.publish(Results([], KIND, summary, [], columns=record_columns([], LABELS), key=key))

    def billed_call(self) -> BilledCall:
        """Look up the contracts, and return the calls in one request."""
        request, extra_body = self.request(ProviderRequest)
        most_errors = checked_number(self.operation, "max_error_ratio", self.task.max_error_ratio, 1) or 0.0
        tools = self._contracts(request)
        request = _by_contract(request, tools)
        server = self.hook.get_settings().client.server
        request_id = self._request_id(request, extra_body) if server.accepts_keys else None
        inputs = [f"{call.provider}/{call.capability}" for call in request.calls]
        return BilledCall(
            request,
            extra_body,
            send=lambda: self.hook.run_provider(request, request_id=request_id, extra_body=extra_body),
            read=lambda answer: self._read(answer, inputs, tools, request_id, most_errors),
            priced={"tools": [tool and tool.to_wire() for tool in tools]},
            execution=request_id if server.trusts_keys else None,
        )

    def _read(
        self,
        answer: ProviderResponse,
        inputs: Sequence[str],
        tools: Sequence[DataTool | None],
        request_id: str | None,
        most_errors: float,
    ) -> CallResult:
        results = [result.to_wire() for result in answer.data.alexandria]
        self._report(results)
        failures = [result for result in results if result.get("error")]
        failed = [result["error"] for result in failures]
        self.lacks("calls_failed", len(failed), len(results))
        excess = too_many(len(failed), len(results) - len(failed), 0, most_errors, "calls")
        if excess:
            first = "; ".join(map(_error_text, failed[:_SHOWN_FAILURES]))
            excess = excess._replace(text=f"{excess.text}. The first: {first}")
        summary = {
            "scrape_id": answer.scrape_id,
            "creditsUsed": answer.credits_used,
            "requestId": request_id,
            "calls": [_without_data(result) for result in results],
            "failed": len(failed),
        }
        labels = () if self.task.calls is None else LABELS
        columns = record_columns([tool.fields for tool in tools if tool is not None], labels)
        items = _items(results, tools, labels=bool(labels))
        key = _key_of(self.task.record_key or "url")
        failure = retry = None
        if excess and self._may_be_mended(failed, results):
            retry = TooManyFailuresError(
                f"{excess.text}; the next attempt repeats the calls", _reasons(failures), ratio=excess.ratio
            )
        elif excess:
            failure = TooManyFailuresError(
                f"{excess.text}; the results are published anyway, and are in XCom. Clear the task to repeat all calls",
                _reasons(failures),
                ratio=excess.ratio,
            )
        return CallResult(
            Results(items, KIND, summary, inputs, columns=columns, key=key),
            Cost(answer.credits_used),
            pushed={name: value for name, value in summary.items() if name != "calls"},
            failure=failure,
            retry=retry,
        )

    def _contracts(self, request: ProviderRequest) -> list[DataTool | None]:
        """Return the contract of each call. The lookup is free."""
        found: dict[tuple[str, str], DataTool | None] = {}
        for call in request.calls:
            name = (call.provider, call.capability)
            if name not in found:
                found[name] = tool = self.hook.data_tool(*name)
                if tool is None:
                    self.log.warning("The catalog has no %s/%s: its records have no columns", *name)
        return [found[call.provider, call.capability] for call in request.calls]

    def _request_id(self, request: ProviderRequest, extra_body: Mapping[str, Any] | None) -> str:
        sent = json.dumps([request.to_wire(), extra_body], sort_keys=True)
        digest = hashlib.sha256(sent.encode()).hexdigest()
        started = self.memory.record.started_as("provider")
        if started is None or started.request != digest:
            started = Started(kind="provider", key=new_key(), request=digest)
            self.memory.write(started=started, phase="requested")
        return f"airflow:{started.key}"

    def _may_be_mended(
        self, failed: Sequence[Mapping[str, Any]], results: Sequence[Mapping[str, Any]]
    ) -> bool:
        """Return whether the next attempt may repeat all calls, and record that it does."""
        billed = any(result.get("creditsCost") or _is_billed_error(result) for result in results)
        if billed or self.attempt.is_last or not any(map(_is_transient, failed)):
            return False
        self.memory.write(started=None, phase="planned")
        return True

    def _report(self, results: Sequence[Mapping[str, Any]]) -> None:
        for result in results:
            tool, error = f"{result.get('provider')}/{result.get('capability')}", result.get("error")
            if error:
                self.log.warning("%s failed: %s", tool, _error_text(error))
            else:
                records = result.get("records")
                self.log.info(
                    "%s returned %s records for %s credits",
                    tool,
                    "some" if records is None else records,
                    _shown(result.get("creditsCost")),
                )
                count(
                    "webdata.provider.records",
                    records or 0,
                    self.context,
                    provider=str(result.get("provider")),
                )
        self.log.info("%d calls", len(results))


def _by_contract(request: ProviderRequest, tools: Sequence[DataTool | None]) -> ProviderRequest:
    """Return a request with the types of its contracts: templates render numbers and booleans as text."""
    calls = []
    for call, tool in zip(request.calls, tools, strict=True):
        listed = () if tool is None else tool.options or ()
        # A contract's texts may be any JSON.
        types = {name: option.get("type") for option in listed if isinstance(name := option.get("name"), str)}
        options = {name: _typed(value, types.get(name)) for name, value in (call.options or {}).items()}
        calls.append({**call.to_wire(), **({} if call.options is None else {"options": options})})
    return ProviderRequest.model_validate({**request.to_wire(), "alexandria": calls})


def _typed(value: Any, kind: Any) -> Any:
    if not isinstance(value, (str, float)) or not isinstance(kind, str) or kind not in _TYPED:
        return value
    try:
        found = json.loads(value.strip().lower()) if isinstance(value, str) else value
    except ValueError:
        return value
    if kind == "integer" and isinstance(found, float) and found.is_integer():
        found = int(found)
    is_infinite = isinstance(found, float) and math.isinf(found)
    return found if type(found) in _TYPED[kind] and not is_infinite else value


def _shown(used: Any) -> float | str:
    credits = known_credits(used)
    return "unknown" if credits is None else credits


def _is_billed_error(result: Mapping[str, Any]) -> bool:
    """Return whether a failed call was billed anyway."""
    return bool((result.get("error") or {}).get("chargeId"))


def _items(
    results: Sequence[Mapping[str, Any]], tools: Sequence[DataTool | None], *, labels: bool
) -> Iterator[dict[str, Any]]:
    for number, result in enumerate(results):
        tool = tools[number] if number < len(tools) else None
        name = f"{result.get('provider')}/{result.get('capability')}"
        tags = {"call": number, "tool": name} if labels else {}
        if result.get("error"):
            yield {**tags, "error": result["error"]}
            continue
        key = None if tool is None else tool.records_key
        names = [] if tool is None else [field["name"] for field in tool.fields]
        for record in records_of(result.get("data"), key, names, result.get("records")):
            yield item_of_record(record, tags)


def _key_of(name: str) -> Any:
    def key(item: Mapping[str, Any]) -> str | None:
        value = item.get(name)
        return None if value is None else str(value)

    return key


def _without_data(result: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in result.items() if name != "data"}


def _reasons(failures: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    return [
        {
            "call": f"{result.get('provider')}/{result.get('capability')}",
            "status": result["error"].get("status"),
            "code": result["error"].get("code"),
            "error": result["error"].get("message"),
        }
        for result in failures[:_SHOWN_FAILURES]
    ]


def _error_text(error: Mapping[str, Any]) -> str:
    code, message = error.get("code"), error.get("message")
    return f"{code}: {message}" if code else str(message)


def _is_transient(error: Mapping[str, Any]) -> bool:
    status = error.get("status")
    return not isinstance(status, int) or status >= 500 or status in _TRANSIENT
