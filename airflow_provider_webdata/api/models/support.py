"""Questions to the service's support agent about a job, and its answers."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from airflow_provider_webdata.api.errors import one_line, trimmed
from airflow_provider_webdata.api.models.base import Answer, Lenient, RequestModel, ResponseModel
from airflow_provider_webdata.api.models.fields import JsonObject, Text


class AskRequest(RequestModel):
    """Body of `POST /v2/support/ask`; only `question` is required.

    :param question: the problem, 1 to 8,000 characters.
    :param rationale: purpose of the job.
    :param job_id: id of the job that the question is about.
    :param context: additional information, as a JSON object.
    """

    question: Annotated[Text, Field(max_length=8000)]
    rationale: Text | None = None
    job_id: Text | None = None
    context: JsonObject | None = None


class Validation(ResponseModel):
    """A test of the fix by the service.

    :ivar result: `success`, `failure`, `skipped`, or newer.
    """

    tested: Lenient[bool | None] = None
    result: Lenient[str | None] = None
    evidence: Lenient[str | None] = None


class Blocked(ResponseModel):
    """The reason why the agent has no answer.

    :ivar attempted: the steps that the agent tried.
    """

    blocked_by: Lenient[str | None] = None
    attempted: Lenient[list[Any] | None] = None


class AskResponse(Answer):
    """Response of `POST /v2/support/ask`. A language model writes its texts, so display them with `text()`.

    :ivar confidence: `high`, `medium`, `low`, or a newer value.
    :ivar fix_parameters: request fields that may solve the problem.
    :ivar feedback: set if the agent has no answer.
    :ivar duration_ms: milliseconds.
    """

    request_id: Lenient[str | None] = None
    answer: Lenient[str | None] = None
    confidence: Lenient[str | None] = None
    fix_parameters: Lenient[dict[str, Any] | None] = None
    validation: Lenient[Validation | None] = None
    feedback: Lenient[Blocked | None] = None
    duration_ms: Lenient[int | float | None] = None

    def text(self, limit: int = 2000) -> str:
        """Return the answer on one line, without control characters.

        :param limit: maximum length in characters.
        :return: the answer, the proposed fields, and the confidence; or the reason why there is no answer.
        """
        answer = one_line(str(self.answer or ""))
        if not answer:
            blocked = self.feedback.blocked_by if isinstance(self.feedback, Blocked) else None
            answer = f"The service has no answer: {one_line(str(blocked or 'it gives no reason'))}"
        # Truncate a long answer, but keep the fields.
        fix = f" Try: {trimmed(str(self.fix_parameters), limit // 4)}" if self.fix_parameters else ""
        confidence = f" (confidence: {trimmed(str(self.confidence), 20)})" if self.confidence else ""
        return f"{trimmed(answer, limit - len(fix) - len(confidence))}{fix}{confidence}"
