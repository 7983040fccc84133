# SPDX-License-Identifier: Apache-2.0
"""Data providers and their catalog. See sandbox/docs/service.md#data-providers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from airflow_provider_webdata.api import endpoints, models
from airflow_provider_webdata.api.errors import (
    InvalidRequestError,
    InvalidResponseError,
    error_class,
)
from airflow_provider_webdata.api.prices import CATALOG
from airflow_provider_webdata.hooks.calls import Body, Call, body_for, one_of
from airflow_provider_webdata.hooks.operations.base import Operations
from airflow_provider_webdata.hooks.signatures import with_fields

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from typing_extensions import Unpack

    from airflow_provider_webdata.hooks.fields import (
        FindToolsFields,
    )

FIND = "find-tools"


def _lookup(options: Mapping[str, Any]) -> Call[models.ProviderResponse]:
    call = {"provider": CATALOG, "capability": FIND, "options": {**options}}
    return Call(endpoints.FIND_TOOLS, body=models.ProviderRequest.model_validate({"calls": [call]}))


def _page(answer: models.ProviderResponse) -> models.ToolPage:
    """Return the catalog page in a response.

    :raises APIError: the catalog refuses the options.
    :raises InvalidResponseError: the response contains no catalog page.
    """
    label = endpoints.FIND_TOOLS.label
    result = answer.data.alexandria[0] if answer.data.alexandria else models.ProviderResult()
    if (error := result.error) is not None:
        status = error.status if isinstance(error.status, int) else 500
        raise error_class(status, error.code)(
            label,
            status,
            str(error.message or "the catalog gave no reason"),
            code=error.code,
        )
    try:
        return models.ToolPage.model_validate(result.data)
    except ValidationError:
        raise InvalidResponseError(label, "the response contains no catalog page", status=200) from None


def _following(call: Any) -> Mapping[str, Any] | None:
    """Return the options of a prepared catalog call, or None for any other call, which may be billed."""
    if not isinstance(call, Mapping) or (call.get("provider"), call.get("capability")) != (CATALOG, FIND):
        return None
    options = call.get("options")
    return options if isinstance(options, Mapping) else None


class ProviderOperations(Operations):
    """Data providers."""

    async def run_provider(
        self,
        calls: Sequence[models.ProviderCall | Body] | models.ProviderRequest,
        *,
        request_id: str | None = None,
        tools: Sequence[models.DataTool | None] = (),
        extra_body: Body | None = None,
    ) -> models.ProviderResponse:
        """Call data providers. Bills credits; a retry with the same id returns the first response and is free.

        Errors of individual calls are in their results.

        :param calls: 1 to 10 calls (`provider`, `capability`, `options`), or the entire request.
        :param request_id: idempotency key: 1 to 128 letters, digits, `.`, `_`, `:`, and `-`. Default: a new key, so
            only retries within this method call are free.
        :param tools: the contracts of the calls, from which a guarded hook computes their maximum price.
        :param extra_body: merged into the body unchecked.
        :raises TermsRequiredError: the terms of a provider are not accepted.
        :raises RequestIdUsedError: the id was used for different calls.
        :raises RequestUnresolvedError: the outcome of the calls is lost; another id would bill them again.
        """
        if "alexandria" in (extra_body or {}):
            raise InvalidRequestError(
                endpoints.RUN_PROVIDER.label,
                ["extra_body: must not contain alexandria; pass the calls in calls"],
            )
        request = calls if isinstance(calls, models.ProviderRequest) else {"calls": list(calls)}
        call = Call(
            endpoints.RUN_PROVIDER,
            body=body_for(models.ProviderRequest, request, endpoints.RUN_PROVIDER.label),
            extra_body=extra_body,
            idempotency_key=request_id,
            priced={"tools": [tool and tool.to_wire() for tool in tools]},
        )
        return await self._execute(call)

    @with_fields
    async def find_tools(
        self,
        request: models.FindToolsRequest | Body | None = None,
        **fields: Unpack[FindToolsFields],
    ) -> AsyncIterator[models.DataTool]:
        """Yield capabilities of providers, or providers, groups, or categories, page by page. Free.

        :param request: the fields as a mapping or a model, in place of keyword arguments. Default: all providers.
        """
        given = one_of(request, fields, endpoints.FIND_TOOLS.label)
        body = body_for(models.FindToolsRequest, given or {}, endpoints.FIND_TOOLS.label)
        options: Mapping[str, Any] | None = body.to_wire()
        seen: set[str] = set()
        while options is not None:
            page = _page(await self._execute(_lookup(options)))
            items = {item.model_dump_json(): item for item in page.items}
            fresh = [key for key in items if key not in seen]
            for key in fresh:
                yield items[key]
            # A page that repeats earlier items, or has none, is the last, regardless of its link.
            options = _following(page.next) if fresh else None
            seen.update(fresh)

    async def data_tool(self, provider: str, capability: str) -> models.DataTool | None:
        """Return a capability with its contract, or None if the catalog does not list it. Free.

        :param provider: id of the provider.
        :param capability: name of the capability.
        """
        wanted = {"providers": [provider], "capabilities": [capability], "level": "tools"}
        options: Mapping[str, Any] | None = body_for(
            models.FindToolsRequest, wanted, endpoints.FIND_TOOLS.label
        ).to_wire()
        found = None
        # A summary contains a prepared call that returns the full contract.
        for _ in range(2):
            if options is None:
                break
            page = _page(await self._execute(_lookup(options)))
            listed = (tool for tool in page.items if tool.address == f"{provider}/{capability}")
            found = next(listed, found)
            options = None if found is None or found.is_complete else _following(found.next)
        return found
