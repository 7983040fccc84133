"""Feedback on results."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

from airflow.sdk.exceptions import AirflowSkipException

from airflow_provider_webdata.api.errors import ConflictError
from airflow_provider_webdata.api.models import FeedbackRequest, SearchFeedbackRequest
from airflow_provider_webdata.common.task_metrics import count
from airflow_provider_webdata.hooks.calls import body_for
from airflow_provider_webdata.runs.request import checked_extra_body, checked_request
from airflow_provider_webdata.runs.run import Run

if TYPE_CHECKING:
    from collections.abc import Mapping

    from airflow_provider_webdata.api.models import FeedbackResponse

# The service did not record the feedback. It reports INTERNAL for a failed scrape, parse, or map.
_NOT_TAKEN = {"FEEDBACK_WINDOW_EXPIRED", "SEARCH_FAILED", "INTERNAL"}


class FeedbackRun(Run):
    """One attempt of a task that sends feedback."""

    def call(self) -> dict[str, Any]:
        """Send the feedback; log and push the outcome."""
        request = checked_request(self.task, FeedbackRequest, "feedback", map_index=self.attempt.map_index)
        try:
            answer = self._give(request, checked_extra_body(self.task, "feedback")).to_wire()
        except ConflictError as error:
            if error.code in _NOT_TAKEN:
                self._refused(error)
            answer = {"alreadySubmitted": True, "warning": error.message}
        answer.pop("success", None)
        outcome: dict[str, Any] = {
            **dict.fromkeys(("feedbackId", "creditsRefunded", "alreadySubmitted", "dailyCapReached")),
            **dict.fromkeys(("creditsRefundedToday", "dailyRefundCap", "warning")),
            **answer,
        }
        refunded = outcome["creditsRefunded"] or 0
        what = f"{request.endpoint} {request.job_id}"
        if outcome["alreadySubmitted"]:
            self.log.info("Feedback on %s was already recorded and is unchanged", what)
        else:
            self.log.info(
                "Recorded feedback on %s (%s); credits refunded: %g", what, request.rating, refunded
            )
        if outcome["warning"]:
            self.log.warning("The service warns: %s", outcome["warning"])
        if refunded > 0:
            count("webdata.credits_refunded", refunded, self.context)
        return outcome

    def _give(self, request: FeedbackRequest, extra_body: Mapping[str, Any] | None) -> FeedbackResponse:
        own = request.model_fields_set - {"endpoint", "job_id"}
        if request.endpoint != "search" or own - SearchFeedbackRequest.model_fields.keys():
            return self.hook.feedback(request, extra_body=extra_body)
        fields = {name: getattr(request, name) for name in own}
        body = body_for(SearchFeedbackRequest, fields, "search feedback")
        return self.hook.search_feedback(request.job_id, body, extra_body=extra_body)

    def _refused(self, error: ConflictError) -> NoReturn:
        if self.task.on_refused == "skip":
            raise AirflowSkipException(f"No feedback was recorded: {error.brief()}")
        self.refuse(error)
