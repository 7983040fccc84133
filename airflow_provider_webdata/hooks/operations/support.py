"""Questions to the service's support agent. See docs/service.md#support."""

from __future__ import annotations

from airflow_provider_webdata.api import endpoints, models
from airflow_provider_webdata.hooks.calls import Body, Call
from airflow_provider_webdata.hooks.operations.base import Operations


class SupportOperations(Operations):
    """Support."""

    async def ask(
        self,
        question: str,
        *,
        job_id: str | None = None,
        rationale: str | None = None,
        context: Body | None = None,
        extra_body: Body | None = None,
    ) -> models.AskResponse:
        """Ask the service why a job failed, or how to solve a problem. Free; takes up to 65 seconds.

        A language model writes the answer. The service may test a fix first.

        :param question: the problem, 1 to 8,000 characters.
        :param job_id: id of the job in question, which the service inspects.
        :param rationale: purpose of the job.
        :param context: further facts, as a JSON object.
        :param extra_body: merged into the body unchecked.
        :return: the answer; its `text()` is safe to show.
        :raises ServerError: the service's agent is unavailable (503), or took too long (504).
        """
        request = {"question": question, "job_id": job_id, "rationale": rationale, "context": context}
        return await self._execute(Call.of(endpoints.ASK, request, extra_body=extra_body))
