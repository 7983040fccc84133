"""Data providers and their catalogue. See docs/service.md#data-providers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from airflow_provider_webdata.api import endpoints, models
from airflow_provider_webdata.api.errors import InvalidRequestError, InvalidResponseError, error_class
from airflow_provider_webdata.api.prices import CATALOGUE
from airflow_provider_webdata.hooks.calls import Body, Call, body_for
from airflow_provider_webdata.hooks.operations.base import Operations

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

FIND = "find-tools"


def _lookup(options: Mapping[str, Any]) -> Call[models.ProviderResponse]:
    call = {"provider": CATALOGUE, "capability": FIND, "options": {**options}}
    return Call(endpoints.FIND_TOOLS, body=models.ProviderRequest.model_validate({"calls": [call]}))


def _page(answer: models.ProviderResponse) -> models.ToolPage:
    """Return the page of the catalogue that an answer has.

    :raises APIError: the catalogue refuses the options.
    :raises InvalidResponseError: it is no page.
    """
    label = endpoints.FIND_TOOLS.label
    result = answer.data.alexandria[0] if answer.data.alexandria else models.ProviderResult()
    if (error := result.error) is not None:
        status = error.status if isinstance(error.status, int) else 500
        raise error_class(status, error.code)(
            label, status, str(error.message or "the catalogue gave no reason"), code=error.code
        )
    try:
        return models.ToolPage.model_validate(result.data)
    except ValidationError:
        raise InvalidResponseError(label, "it has no page of the catalogue", status=200) from None


def _following(call: Any) -> Mapping[str, Any] | None:
    """Return the options of a ready call, if it is one to the catalogue: no other is free."""
    if not isinstance(call, Mapping) or (call.get("provider"), call.get("capability")) != (CATALOGUE, FIND):
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
        """Call data providers. Bills credits; a repeat with the same id returns the first answer and bills nothing.

        Errors of single calls are in their results.

        :param calls: 1 to 10 calls (`provider`, `capability`, `options`), or the whole request.
        :param request_id: names the execution: 1 to 128 letters, digits, `.`, `_`, `:`, and `-`. Default: a new one, so
            that only repeats within this call are free.
        :param tools: the contracts of the calls, by which a guarded hook holds its caps.
        :param extra_body: merged into the body unchecked.
        :raises TermsRequiredError: the terms of a provider are not accepted.
        :raises RequestIdUsedError: the id was used for other calls.
        """
        if "alexandria" in (extra_body or {}):
            raise InvalidRequestError(
                endpoints.RUN_PROVIDER.label, ["extra_body: give calls as such, not as alexandria"]
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

    async def find_tools(
        self, request: models.FindToolsRequest | Body | None = None
    ) -> AsyncIterator[models.DataTool]:
        """Yield capabilities of providers, page by page; or providers, groups, or categories. Bills nothing.

        :param request: filters and the `level`; without any, all providers.
        """
        body = body_for(models.FindToolsRequest, request or {}, endpoints.FIND_TOOLS.label)
        options: Mapping[str, Any] | None = body.to_wire()
        seen = []
        while options is not None and options not in seen:
            seen.append(options)
            page = _page(await self._execute(_lookup(options)))
            for item in page.items:
                yield item
            options = _following(page.next)

    async def data_tool(self, provider: str, capability: str) -> models.DataTool | None:
        """Return a capability with its contract, or None if the catalogue has none. Bills nothing.

        :param provider: id of the provider.
        :param capability: name of the capability.
        """
        wanted = {"providers": [provider], "capabilities": [capability], "level": "tools"}
        options: Mapping[str, Any] | None = body_for(
            models.FindToolsRequest, wanted, endpoints.FIND_TOOLS.label
        ).to_wire()
        found = None
        # A summary has a ready call that returns the whole contract.
        for _ in range(2):
            if options is None:
                break
            page = _page(await self._execute(_lookup(options)))
            listed = (tool for tool in page.items if tool.address == f"{provider}/{capability}")
            found = next(listed, found)
            options = None if found is None or found.is_complete else _following(found.next)
        return found
