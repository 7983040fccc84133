# SPDX-License-Identifier: Apache-2.0
"""The team that owns the API key: credits, tokens, queue, activity, and threat protection policy. Free.

See sandbox/docs/service.md#team.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_provider_webdata.api import endpoints, models
from airflow_provider_webdata.api.errors import InvalidResponseError
from airflow_provider_webdata.hooks.calls import PAGE_SIZE, Body, Call, repeated_page
from airflow_provider_webdata.hooks.operations.base import Operations
from airflow_provider_webdata.hooks.signatures import with_fields

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from typing_extensions import Unpack

    from airflow_provider_webdata.hooks.fields import (
        ThreatPolicyFields,
    )


class TeamOperations(Operations):
    """The team."""

    async def credit_usage(self) -> models.CreditUsage:
        """Return the remaining credits. The figure lags behind the usage by minutes or hours.

        See sandbox/docs/service.md#credits-lag.
        """
        return (await self._execute(Call(endpoints.CREDIT_USAGE))).data

    async def credit_history(self, *, by_api_key: bool | None = None) -> models.CreditHistory:
        """Return the credits used in each billing period.

        :param by_api_key: return one item for each period and API key. Service default: false.
        """
        return await self._execute(Call(endpoints.CREDIT_HISTORY, query={"byApiKey": by_api_key}))

    async def token_usage(self) -> models.TokenUsage:
        """Return the remaining tokens; only extract uses tokens."""
        return (await self._execute(Call(endpoints.TOKEN_USAGE))).data

    async def token_history(self, *, by_api_key: bool | None = None) -> models.TokenHistory:
        """Return the tokens used in each billing period.

        :param by_api_key: return one item for each period and API key. Service default: false.
        """
        return await self._execute(Call(endpoints.TOKEN_HISTORY, query={"byApiKey": by_api_key}))

    async def queue_status(self) -> models.QueueStatus:
        """Return the numbers of the team's queued and running scrape jobs, and the maximum that run concurrently."""
        return await self._execute(Call(endpoints.QUEUE_STATUS))

    async def concurrency(self) -> models.Concurrency:
        """Return the number of the team's running jobs, and the maximum that run concurrently."""
        return await self._execute(Call(endpoints.CONCURRENCY))

    async def threat_policy(self) -> models.ThreatPolicy:
        """Return the organization's threat protection policy. See sandbox/docs/service.md#threat-policy.

        :raises EntitlementError: the team lacks the feature.
        """
        return (await self._execute(Call(endpoints.THREAT_POLICY))).data

    @with_fields
    async def replace_threat_policy(
        self,
        request: models.ThreatPolicyRequest | Body | None = None,
        *,
        extra_body: Body | None = None,
        **fields: Unpack[ThreatPolicyFields],
    ) -> models.ThreatPolicy:
        """Replace the organization's threat protection policy, and return the new policy.

        :param request: the fields as a mapping or a model, in place of keyword arguments. Only `mode` is required;
            omitted fields are reset to their defaults.
        :param extra_body: merged into the body unchecked.
        :raises EntitlementError: the team lacks the feature, the key has no admin rights, or protection is enforced.
        """
        call = Call.of(endpoints.REPLACE_THREAT_POLICY, request, fields, extra_body=extra_body)
        return (await self._execute(call)).data

    async def activity(
        self, *, endpoint: str | None = None, limit: int | None = None, cursor: str | None = None
    ) -> models.Activity:
        """Return one page of the calls of the last 24 hours, without those of monitors.

        :param endpoint: return only calls of this kind: `scrape`, `crawl`, `batch_scrape`, `search`, `extract`, `map`,
            `agent`, `browser`, `interact`, ...
        :param limit: maximum number of items, 1 to 100. Service default: 50.
        :param cursor: cursor from the previous page.
        """
        query = {"endpoint": endpoint, "limit": limit, "cursor": cursor}
        return await self._execute(Call(endpoints.ACTIVITY, query=query))

    async def iter_activity(self, *, endpoint: str | None = None) -> AsyncIterator[models.ActivityItem]:
        """Yield each call of the last 24 hours once, fetching page by page.

        :param endpoint: yield only calls of this kind, as in `activity`.
        """
        seen: set[str | None] = set()
        cursors: set[str] = set()
        cursor: str | None = None
        while True:
            query = {"endpoint": endpoint, "limit": PAGE_SIZE, "cursor": cursor}
            page = await self._execute(Call(endpoints.ACTIVITY, query=query))
            cursor = page.cursor if page.has_more is not False else None
            fresh = [item for item in page.data if item.id is None or item.id not in seen]
            if cursor is not None and cursor == query["cursor"] and page.data and not fresh:
                raise repeated_page(endpoints.ACTIVITY, "calls")
            if cursor in cursors:
                raise InvalidResponseError(endpoints.ACTIVITY.label, "the cursors form a loop", status=200)
            seen.update(item.id for item in fresh)
            for item in fresh:
                yield item
            if not cursor or not fresh:
                return
            cursors.add(cursor)
