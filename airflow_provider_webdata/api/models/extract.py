"""Data extraction from many pages by a language model; superseded by agent."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from airflow_provider_webdata.api.models.base import Answer, Lenient, RequestModel, problem
from airflow_provider_webdata.api.models.fields import (
    DroppableAddress,
    Integration,
    JsonSchema,
    Listed,
    Switch,
    Text,
    dropped,
)
from airflow_provider_webdata.api.models.scrape import ScrapeOptions
from airflow_provider_webdata.api.models.threat import ThreatProtection
from airflow_provider_webdata.api.models.webhook import WebhookConfig

_MAX_URLS = 10


class ExtractWebhookConfig(WebhookConfig):
    """An endpoint that receives the events of an extract job; otherwise like `WebhookConfig`.

    :param events: `started`, `completed`, `failed`, without prefix; all when omitted.
    """

    job_events = ("started", "completed", "failed")


class ExtractAgent(RequestModel):
    """The agent that navigates the pages of an extract job.

    :param model: `FIRE-1`.
    """

    model: Literal["FIRE-1"] | None = None


class ExtractRequest(RequestModel):
    """Body of `POST /v2/extract`; `urls` or `prompt` is required.

    :param urls: pages; a URL that ends in `/*` selects the whole site. The service may reject more than 10.
    :param prompt: description of the data to extract, at most 10,000 characters.
    :param schema_: JSON Schema of the data to extract.
    :param enable_web_search: also search the web. Default: false.
    :param ignore_sitemap: discover the pages of a site without its sitemap. Default: false.
    :param include_subdomains: include the subdomains of a site. Default: true.
    :param show_sources: add `sources` to the result. Default: false.
    :param ignore_invalid_urls: skip invalid URLs. Default: true.
    :param scrape_options: arguments of a scrape, for the pages.
    :param threat_protection: threat protection override, for teams with this feature.
    :param system_prompt: instructions for the model, at most 10,000 characters. This and the next two fields are not
        publicly documented.
    :param allow_external_links: also follow links to other sites.
    :param agent: agent that navigates the pages: `model`.
    :param webhook: endpoint that receives the job's events: `url`, `events`, `headers`, `metadata`.
    :param origin: label of the caller for the service's statistics. Default: `api`.
    :param integration: second label: a name that the service knows, such as `n8n`, or text that begins with `_`.
    """

    nullable = frozenset({"integration"})
    parts = {"scrapeOptions": ScrapeOptions}  # noqa: RUF012

    ignore_invalid_urls: Switch | None = Field(None, alias="ignoreInvalidURLs")
    urls: Listed[DroppableAddress] | None = None
    prompt: Annotated[Text, Field(max_length=10_000)] | None = None
    schema_: JsonSchema | None = Field(None, alias="schema")
    enable_web_search: Switch | None = None
    ignore_sitemap: Switch | None = None
    include_subdomains: Switch | None = None
    show_sources: Switch | None = None
    scrape_options: ScrapeOptions | None = None
    threat_protection: ThreatProtection | None = None
    system_prompt: Annotated[Text, Field(max_length=10_000)] | None = None
    allow_external_links: Switch | None = None
    agent: ExtractAgent | None = None
    webhook: ExtractWebhookConfig | None = None
    origin: Text | None = None
    integration: Integration | None = None

    def _check(self) -> None:
        if not self.urls and self.prompt is None:
            raise problem("extract_source", "'urls' or 'prompt' is required")

    def _own_warnings(self) -> list[str]:
        found = dropped(self.urls)
        if self.urls and len(self.urls) > _MAX_URLS:
            found.append(f"urls: more than {_MAX_URLS}, which the service may reject")
        if self.prompt is None and self.schema_ is None:
            found.append("neither prompt nor schema describes the data to extract")
        return found


class ExtractStatus(Answer):
    """An extract job. Check `status` instead of `success`.

    `status` is processing, completed, failed, `cancelled`, or a newer value. `data` is an object, or an empty list
    while the job is running. 15 `tokens_used` are 1 credit. The result is available for 24 hours, until `expires_at`.
    """

    status: str
    data: Any = None
    expires_at: Lenient[str | None] = None
    tokens_used: Lenient[int | float | None] = None
    credits_used: Lenient[int | float | None] = None
    sources: Any = None
    error: Lenient[str | None] = None
    warning: Lenient[str | None] = None
