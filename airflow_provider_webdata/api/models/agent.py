"""The service's AI agent, which collects data from the web by itself."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, field_validator

from airflow_provider_webdata.api.models.base import Lenient, RequestModel, ResponseModel
from airflow_provider_webdata.api.models.fields import JsonSchema, Listed, Number, Switch, Text, WebAddress
from airflow_provider_webdata.api.models.scrape import AuditMetadata
from airflow_provider_webdata.api.models.threat import ThreatProtection
from airflow_provider_webdata.api.models.webhook import WebhookConfig, check_job_events

_DEFAULT_MAX_CREDITS = 2500


class AgentWebhookConfig(WebhookConfig):
    """An endpoint that receives the events of an agent's run; as `WebhookConfig` otherwise.

    :param events: `started`, `action`, `completed`, `failed`, `cancelled`, without prefix; all when omitted.
    """

    events: Listed[Text] | None = None

    @field_validator("events")
    @classmethod
    def _job_events(cls, events: list[str] | None) -> list[str] | None:
        return check_job_events(events, ("started", "action", "completed", "failed", "cancelled"))


class AgentRequest(RequestModel):
    """Body of `POST /v2/agent`; only `prompt` is required.

    :param prompt: what to find out, at most 10,000 characters.
    :param urls: where to look first, or only there with `strict_constrain_to_urls`.
    :param strict_constrain_to_urls: visit no other pages than `urls`.
    :param schema_: JSON Schema of the answer.
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
    """

    nullable = frozenset({"integration"})

    prompt: Annotated[Text, Field(max_length=10_000)]
    urls: Listed[WebAddress] | None = None
    strict_constrain_to_urls: Switch | None = Field(None, alias="strictConstrainToURLs")
    schema_: JsonSchema | None = Field(None, alias="schema")
    max_credits: Annotated[Number, Field(gt=0)] | None = None
    model: Literal["spark-2", "spark-1-mini", "spark-1-pro"] | None = None
    audit_metadata: AuditMetadata | None = None
    threat_protection: ThreatProtection | None = None
    webhook: AgentWebhookConfig | None = None
    effort: Literal["low", "medium", "high"] | None = None
    zero_data_retention: Switch | None = None
    origin: Text | None = None
    integration: Text | None = None

    def _own_warnings(self) -> list[str]:
        found = []
        if self.strict_constrain_to_urls and not self.urls:
            found.append("strictConstrainToURLs: without urls there is no page to visit")
        if self.max_credits is not None and self.max_credits > _DEFAULT_MAX_CREDITS:
            found.append(
                f"maxCredits: above {_DEFAULT_MAX_CREDITS} the run is billed even if a free one is left"
            )
        return found


class AgentStatus(ResponseModel):
    """A run of the agent. Read `status`, never `success`, which stays true for a failed run.

    `status` is processing, completed, failed, cancelled or newer. `data` is there when it is completed, `error`
    when it failed. The result can be read for 24 hours, until `expires_at`.
    """

    success: bool | None = None
    status: str
    data: Any = None
    error: Lenient[str | None] = None
    model: Lenient[str | None] = None
    credits_used: Lenient[int | float | None] = None
    expires_at: Lenient[str | None] = None
