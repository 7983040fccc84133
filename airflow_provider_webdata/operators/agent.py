"""The operator that has the service's AI agent collect data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from airflow_provider_webdata.tasks.jobs.job_operator import WebDataJobOperator
from airflow_provider_webdata.tasks.operator import RequestFields

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from airflow_provider_webdata.api.models import JobStarted
    from airflow_provider_webdata.api.models.base import RequestModel
    from airflow_provider_webdata.states.jobs import JobKind


class WebDataAgentOperator(WebDataJobOperator, fields=RequestFields("AgentRequest")):
    """Have the service's AI agent collect data from the web, and wait for it. Bills credits.

    Every argument up to `integration` is a field of POST /v2/agent, templated; what is left out is not sent: the
    defaults below are the service's. In mappings inside, wire and Python names both work. A `webhook` of your own takes
    the place of that of this Airflow's inbox. How the run is started once, waited for and cancelled is said in
    `WebDataJobOperator`; a cancelled run stops at its next step, and bills until then.

    XCom: the service's answer with wire names: `data`, `creditsUsed`, `model` and the rest, with `id`; with `output`,
    what was written and where instead of `data`.

    :param prompt: what to find out, at most 10,000 characters.
    :param urls: where to look first, or only there with `strict_constrain_to_urls`.
    :param strict_constrain_to_urls: visit no other pages than `urls`.
    :param schema: JSON Schema of the answer.
    :param max_credits: credits that the run may use, more than 0; when they run out it fails, without data and without
        charge. Default: 2500; a run with more is never one of the day's free ones.
    :param model: `spark-2`, `spark-1-mini` or `spark-1-pro`. Default: `spark-1-pro`.
    :param audit_metadata: whom to name in the audit log: `username`.
    :param threat_protection: threat protection override, for teams that have it.
    :param webhook: where the job reports to: `url`, `events`, `headers`, `metadata`.
    :param effort: `low`, `medium` or `high`. Not documented publicly, as is the next.
    :param zero_data_retention: keep nothing, for teams that have it. Default: false.
    :param origin: label of the caller, for the service's own statistics. Default: `api`.
    :param integration: another such label.
    :param kwargs: arguments of `WebDataJobOperator`, of `JobResults` (`max_error_ratio`), of `ResultOutput`
        (`output`, `save_media`), `BillingOperator` (`credit_limit`), `WebDataOperator` and `BaseOperator`.
    """

    job_kind: ClassVar[JobKind] = "agent"

    def __init__(
        self,
        *,
        # fields of AgentRequest, written by tools/operator_fields.py
        prompt: str,
        urls: Sequence[str] | None = None,
        strict_constrain_to_urls: bool | str | None = None,
        schema: Mapping[str, Any] | None = None,
        max_credits: float | str | None = None,
        model: str | None = None,
        audit_metadata: Mapping[str, Any] | None = None,
        threat_protection: Mapping[str, Any] | None = None,
        webhook: Mapping[str, Any] | str | None = None,
        effort: str | None = None,
        zero_data_retention: bool | str | None = None,
        origin: str | None = None,
        integration: str | None = None,
        # end of fields
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        # fields of AgentRequest, written by tools/operator_fields.py
        self.prompt = prompt
        self.urls = urls
        self.strict_constrain_to_urls = strict_constrain_to_urls
        self.schema = schema
        self.max_credits = max_credits
        self.model = model
        self.audit_metadata = audit_metadata
        self.threat_protection = threat_protection
        self.webhook = webhook
        self.effort = effort
        self.zero_data_retention = zero_data_retention
        self.origin = origin
        self.integration = integration
        # end of fields

    def targets(self) -> list[str]:
        """Return the URLs or texts by which the service would name the job."""
        from airflow_provider_webdata.tasks.jobs.results import texts

        return [*texts(self.urls), self.prompt]

    def send(self, request: RequestModel, idempotency_key: str) -> JobStarted:  # noqa: ARG002
        """Start the run."""
        return self.hook.start_agent(
            request,  # type: ignore[arg-type]
            extra_body=self.checked_extra_body("start agent"),
        )
