# SPDX-License-Identifier: Apache-2.0
"""The service's AI agent, which collects data from the web autonomously."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from airflow_provider_webdata.api.models.base import Answer, Lenient, RequestModel, problem
from airflow_provider_webdata.api.models.fields import (
    CountryCode,
    Identifier,
    Integer,
    Integration,
    JsonSchema,
    Listed,
    Number,
    Switch,
    Text,
    WebAddress,
)
from airflow_provider_webdata.api.models.scrape import AuditMetadata
from airflow_provider_webdata.api.models.threat import ThreatProtection
from airflow_provider_webdata.api.models.webhook import WebhookConfig

_DEFAULT_MAX_CREDITS = 2500


class AgentWebhookConfig(WebhookConfig):
    """An endpoint that receives the events of an agent's run; otherwise like `WebhookConfig`.

    :param events: `started`, `action`, `completed`, `failed`, `cancelled`, without prefix; all when omitted.
    """

    job_events = ("started", "action", "completed", "failed", "cancelled")


class AgentLocation(RequestModel):
    """Location from which the run fetches pages.

    :param country: ISO 3166-1 alpha-2 code, sent in upper case.
    """

    country: CountryCode | None = None


class AgentApproval(RequestModel):
    """Approves the request of a thread's last turn.

    :param approval_id: id of the `pendingApproval`, required.
    :param call_ids: ids of the approved calls; all when omitted.
    :param always: approve all further requests in this thread.
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

    :param enabled: allow calls. Service default: true.
    :param toolkits: at most 5 providers; all when omitted.
    :param max_calls: maximum number of calls in this turn, 1 to 30.
    :param require_approval: before a call that costs more, end the turn with a request for approval; requires the mode
        `chat`.
    :param approve: approves the request of the last turn; requires a thread.
    :param decline: declines it; requires a thread, and excludes `approve`.
    :param on_terms_required: handling of providers whose terms the team has not accepted: `skip` (service default) or
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
            raise problem("agent_exchange", "'approve' and 'decline' are mutually exclusive; set one of them")


class AgentRequest(RequestModel):
    """Body of `POST /v2/agent`; only `prompt` is required.

    :param prompt: description of the data to collect, at most 10,000 characters.
    :param urls: pages to visit first, or exclusively with `strict_constrain_to_urls`.
    :param strict_constrain_to_urls: visit only the pages in `urls`.
    :param schema_: JSON Schema of the result.
    :param max_credits: maximum credits of the run, more than 0. A run that exceeds them fails without data and is not
        billed. Default: 2500. Daily free runs are not available with a higher limit.
    :param model: model of the agent: `spark-2`, `spark-1-mini` or `spark-1-pro`. Default: `spark-1-pro`.
    :param audit_metadata: user to record in the audit log: `username`.
    :param threat_protection: threat protection override, for teams with this feature.
    :param webhook: endpoint that receives the job's events: `url`, `events`, `headers`, `metadata`.
    :param effort: effort of the agent: `low`, `medium`, or `high`. This and the following fields are not
        publicly documented.
    :param mode: with `extract`, each turn of a thread returns all its data; with `chat`, a later turn may return only
        text, as `message`. Default: the mode of the thread, or `extract`.
    :param thread_id: UUID of the thread to continue: the `threadId` of an earlier run. Its `mode`, `urls`, `schema`,
        and `exchange` apply unless set. Default: a new thread.
    :param exchange: data providers that the run may call: `enabled`, `toolkits`, `maxCalls`, `requireApproval`,
        `approve`, `decline`, `onTermsRequired`.
    :param location: location to fetch pages from: `country`.
    :param zero_data_retention: retain no data, for teams with this feature. Default: false.
    :param origin: label of the caller for the service's statistics. Default: `api`.
    :param integration: second label: a name that the service knows, such as `n8n`, or text that begins with `_`.
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
    integration: Integration | None = None

    def _check(self) -> None:
        exchange = self.exchange
        if exchange is None:
            return
        if self.thread_id is None and (exchange.approve is not None or exchange.decline is not None):
            raise problem("agent_thread", "'exchange' answers a request of a thread; also set its 'threadId'")
        if exchange.require_approval and self.mode != "chat":
            raise problem("agent_mode", "exchange.requireApproval requires mode 'chat' in the same request")

    def _own_warnings(self) -> list[str]:
        found = []
        if self.strict_constrain_to_urls and not self.urls:
            found.append("strictConstrainToURLs: without urls, the agent cannot visit any page")
        if self.max_credits is not None and self.max_credits > _DEFAULT_MAX_CREDITS:
            found.append(
                f"maxCredits: above {_DEFAULT_MAX_CREDITS}, the run is billed even if free runs remain"
            )
        return found


class AgentStatus(Answer):
    """An agent run. Check `status` instead of `success`, which is also true for a failed run.

    `status` is processing, completed, failed, `cancelled`, or a newer value. `data` is set when the run is completed,
    `error` when it failed. The result is available for 24 hours, until `expires_at`.

    :ivar partial: the data of a run that stopped at its limit; `partial_schema_valid` is true if it matches the schema.
    :ivar stop_reason: why the run stopped, such as `credit_limit_reached`.
    :ivar thread_id: the thread of the run; `thread_turn` is its position in the thread, from 1.
    :ivar message: the answer as text, which replaces `data` in the mode `chat`.
    :ivar suggestions: possible next requests, each with `label` and `prompt`.
    :ivar pending_approval: the final request of the run, which the next run of the thread answers: `id`, `kind`
        (`calls` or `terms`), `reason`, `calls`, `terms`, `resolution`.
    :ivar exchange: billed calls of data providers, and providers whose terms are not accepted.
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
