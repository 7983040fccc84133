"""Feedback on a result. See docs/service.md#feedback."""

from __future__ import annotations

from airflow_provider_webdata.api import endpoints, models
from airflow_provider_webdata.hooks.calls import Body, Call
from airflow_provider_webdata.hooks.operations.base import Operations


class FeedbackOperations(Operations):
    """Feedback."""

    async def search_feedback(
        self,
        search_id: str,
        request: models.SearchFeedbackRequest | Body,
        *,
        extra_body: Body | None = None,
    ) -> models.FeedbackResponse:
        """Rate a search. Free; the first feedback may refund a credit.

        Only the first feedback on a search counts. For later ones, `already_submitted` is true.

        :param search_id: `id` of the search response.
        :param request: only `rating` and the fields that it requires. See docs/service.md#feedback-substance.
        :param extra_body: merged into the body unchecked.
        :raises ConflictError: the feedback is too late, or the search failed; see `code`.
        """
        return await self._execute(
            Call.of(endpoints.SEARCH_FEEDBACK, request, path={"search_id": search_id}, extra_body=extra_body)
        )

    async def feedback(
        self, request: models.FeedbackRequest | Body, *, extra_body: Body | None = None
    ) -> models.FeedbackResponse:
        """Rate the result of a search, scrape, parse, or map; otherwise like `search_feedback`.

        :param request: `endpoint`, `job_id`, `rating`, and one other field. See docs/service.md#feedback-job.
        :param extra_body: merged into the body unchecked.
        :raises ConflictError: the feedback is too late, or the rated call failed; see `code`.
        """
        return await self._execute(Call.of(endpoints.FEEDBACK, request, extra_body=extra_body))

    async def provider_feedback(
        self, request: models.ProviderFeedbackRequest | Body, *, extra_body: Body | None = None
    ) -> models.FeedbackResponse:
        """Rate how well data providers cover a website. Free; may refund a credit, up to 10 a day for each website.

        :param request: `rating`, `requested_website` and `rationale` are required. See
            docs/service.md#feedback-providers.
        :param extra_body: merged into the body unchecked.
        """
        if not isinstance(request, models.ProviderFeedbackRequest):
            request = {"endpoint": "alexandria", **request}
        return await self._execute(Call.of(endpoints.PROVIDER_FEEDBACK, request, extra_body=extra_body))
