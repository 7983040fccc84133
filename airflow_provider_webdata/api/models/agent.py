"""The service's AI agent, which collects data from the web by itself."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from airflow_provider_webdata.api.models.base import Answer, Lenient, RequestModel, problem
from airflow_provider_webdata.api.models.fields import (
    Identifier,
    Integer,
    JsonSchema,
    Listed,
    Number,
    String,
    Switch,
    Text,
    WebAddress,
)
from airflow_provider_webdata.api.models.scrape import AuditMetadata
from airflow_provider_webdata.api.models.threat import ThreatProtection
from airflow_provider_webdata.api.models.webhook import WebhookConfig

_DEFAULT_MAX_CREDITS = 2500


class AgentWebhookConfig(WebhookConfig):
    """An endpoint that receives the events of an agent's run; as `WebhookConfig` otherwise.

    :param events: `started`, `action`, `completed`, `failed`, `cancelled`, without prefix; all when omitted.
    """

    job_events = ("started", "action", "completed", "failed", "cancelled")


class AgentLocation(RequestModel):
    """Where the run's pages are fetched from.

    :param country: ISO 3166-1 alpha-2 in capitals.
    """

    country: Annotated[String, Field(pattern=r"^[A-Z]{2}$")] | None = None


class AgentApproval(RequestModel):
    """Approves the request of a thread's last turn.

    :param approval_id: id of the `pendingApproval`, required.
    :param call_ids: which of its calls; all when omitted.
    :param always: ask no more in this thread.
    """

    approval_id: Identifier
    call_ids: Listed[Text] | None = None
    always: Switch | None = None


class AgentRefusal(RequestModel):
    """Declines the request of a thread's last turn.

    :param approval_id: id of the `pendingApproval`, required.
    """

    approval_id: Identifier


class AgentExchange(RequestModel):
    """Data providers that a run may call, in addition to the web.

    :param enabled: whether it may. Service default: true.
    :param toolkits: at most 5 providers; all when omitted.
    :param max_calls: most calls of this turn, 1 to 30.
    :param require_approval: end the turn before a call that costs more, and ask; needs the mode `chat`.
    :param approve: approves the request of the last turn; needs a thread.
    :param decline: no to it; needs a thread, and excludes `approve`.
    :param on_terms_required: about providers whose terms the team has not accepted: `skip` them (service default), or
        `ask`. They are never called.
    """

    enabled: Switch | None = None
    toolkits: Annotated[Listed[Text], Field(max_length=5)] | None = None
    max_calls: Annotated[Integer, Field(ge=1, le=30)] | None = None
    require_approval: Switch | None = None
    approve: AgentApproval | None = None
    decline: AgentRefusal | None = None
    on_terms_required: Literal["skip", "ask"] | None = None

    def _check(self) -> None:
        if self.approve is not None and self.decline is not None:
            raise problem(
                "agent_exchange", "'approve' and 'decline' answer the same question; give one of them"
            )


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
    :param effort: `low`, `medium` or `high`. Not documented publicly, as are the rest but `origin`.
    :param mode: `extract` makes each turn of a thread return all its data; `chat` lets a later turn answer with text
        only, as `message`. Default: that of the thread, else `extract`.
    :param thread_id: UUID of the thread that this run continues: the `threadId` of an earlier run. Its `mode`, `urls`,
        `schema` and `exchange` apply unless given. Default: a new thread.
    :param exchange: providers of data that the run may call: `enabled`, `toolkits`, `maxCalls`, `requireApproval`,
        `approve`, `decline`, `onTermsRequired`.
    :param location: where its pages are fetched from: `country`.
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
    mode: Literal["extract", "chat"] | None = None
    thread_id: Identifier | None = None
    exchange: AgentExchange | None = None
    location: AgentLocation | None = None
    zero_data_retention: Switch | None = None
    origin: Text | None = None
    integration: Text | None = None

    def _check(self) -> None:
        exchange = self.exchange
        if exchange is None:
            return
        if self.thread_id is None and (exchange.approve is not None or exchange.decline is not None):
            raise problem(
                "agent_thread", "'exchange' answers what a thread has asked; give its 'threadId' as well"
            )
        if exchange.require_approval and self.mode != "chat":
            raise problem(
                "agent_mode", "exchange.requireApproval needs mode 'chat', given in the same request"
            )

    def _own_warnings(self) -> list[str]:
        found = []
        if self.strict_constrain_to_urls and not self.urls:
            found.append("strictConstrainToURLs: without urls there is no page to visit")
        if self.max_credits is not None and self.max_credits > _DEFAULT_MAX_CREDITS:
            found.append(
                f"maxCredits: above {_DEFAULT_MAX_CREDITS} the run is billed even if a free one is left"
            )
        return found


class AgentStatus(Answer):
    """A run of the agent. Read `status`, never `success`, which stays true for a failed run.

    `status` is processing, completed, failed, cancelled or newer. `data` is there when it is completed, `error`
    when it failed. The result can be read for 24 hours, until `expires_at`.

    :ivar partial: the findings of a run that stopped at its limit; `partial_schema_valid` says whether it is whole.
    :ivar stop_reason: why it stopped, such as `credit_limit_reached`.
    :ivar thread_id: the thread that it belongs to, and in `thread_turn` its place there, from 1.
    :ivar message: its answer as text, which replaces `data` in the mode `chat`.
    :ivar suggestions: possible next requests, each with `label` and `prompt`.
    :ivar pending_approval: the question that it ends with, for the thread's next run to answer: `id`, `kind` (`calls`
        or `terms`), `reason`, `calls`, `terms`, `resolution`.
    :ivar exchange: its paid calls of data providers, and the providers whose terms are not accepted.
    """

    status: str
    data: Any = None
    error: Lenient[str | None] = None
    model: Lenient[str | None] = None
    credits_used: Lenient[int | float | None] = None
    expires_at: Lenient[str | None] = None
    effort: Lenient[str | None] = None
    mode: Lenient[str | None] = None
    partial: Any = None
    partial_schema_valid: Lenient[bool | None] = None
    stop_reason: Lenient[str | None] = None
    thread_id: Lenient[str | None] = None
    thread_turn: Lenient[int | None] = None
    message: Lenient[str | None] = None
    suggestions: Any = None
    pending_approval: Any = None
    exchange: Any = None
