"""The service's AI agent, which collects data from the web by itself (supplement 10)."""

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
    """An endpoint of ours that receives the events of an agent's run; as `WebhookConfig` otherwise.

    :param events: `started`, `action`, `completed`, `failed`, `cancelled`, without prefix; all when omitted.
        Supplement 16.3.
    """

    events: Listed[Text] | None = None

    @field_validator("events")
    @classmethod
    def _job_events(cls, events: list[str] | None) -> list[str] | None:
        return check_job_events(events, ("started", "action", "completed", "failed", "cancelled"))


class AgentRequest(RequestModel):
    """Body of `POST /v2/agent`; only `prompt` is required, and defaults named here are the service's.

    :param prompt: what to find out, at most 10,000 characters.
    :param urls: where to look first, or only there with `strict_constrain_to_urls`.
    :param strict_constrain_to_urls: visit no other pages than `urls`; on the wire `strictConstrainToURLs`.
    :param schema_: JSON Schema of the answer; on the wire `schema`.
    :param max_credits: credits that the run may use, more than 0; when they run out the run fails, without data
        and without charge. Default: 2500; a run with more than that is never one of the day's free ones.
    :param model: `spark-2`, `spark-1-mini` or `spark-1-pro` (default).
    :param audit_metadata: whom to name in the audit log.
    :param threat_protection: override of the organization's policy.
    :param webhook: where events go.
    :param effort: `low`, `medium` or `high` (the client's and the server's source code only).
    :param zero_data_retention: must be enabled for the team (the client's and the server's source code only).
    :param origin: label of the caller.
    :param integration: label of the caller; may be null.
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

    def _doubts(self) -> list[str]:
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
