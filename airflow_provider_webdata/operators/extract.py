"""The operator that extracts structured data from pages and sites."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from airflow_provider_webdata.tasks.jobs.job_operator import WebDataJobOperator
from airflow_provider_webdata.tasks.operator import RequestFields

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from airflow_provider_webdata.api.models import JobStarted
    from airflow_provider_webdata.api.models.base import RequestModel
    from airflow_provider_webdata.states.jobs import JobKind


class WebDataExtractOperator(WebDataJobOperator, fields=RequestFields("ExtractRequest")):
    """Extract structured data from pages and sites, and wait for it. Bills credits.

    The service maintains this operation no further, and names the agent as its successor. It has no request that
    cancels an extract job: killing the task, or a timeout, leaves it running, and the log says so.

    Every argument up to `integration` is a field of POST /v2/extract, templated; what is left out is not sent: the
    defaults below are the service's. In mappings inside, wire and Python names both work. `urls` or `prompt` is
    required. A `webhook` of your own takes the place of that of this Airflow's inbox. How the job is started once and
    waited for is said in `WebDataJobOperator`.

    XCom: the service's answer with wire names: `data`, `tokensUsed`, `sources` and the rest, with `id`; with `output`,
    what was written and where instead of `data`. The XCom key `invalidURLs` holds the URLs that the service dropped.

    :param urls: pages; one that ends in `/*` means its whole site. The service may refuse more than 10.
    :param prompt: what to extract, in words, at most 10,000 characters.
    :param schema: JSON Schema of what to extract.
    :param enable_web_search: also search the web. Default: false.
    :param ignore_sitemap: find the pages of a site without its sitemap. Default: false.
    :param include_subdomains: take subdomains for part of a site. Default: true.
    :param show_sources: add `sources` to the result. Default: false.
    :param ignore_invalid_urls: drop bad URLs and go on without them. Default: true.
    :param scrape_options: how the pages are scraped, as the arguments of a scrape.
    :param threat_protection: threat protection override, for teams that have it.
    :param system_prompt: how the model is to behave, at most 10,000 characters. Not documented publicly, as are the
        next two.
    :param allow_external_links: also follow links to other sites.
    :param agent: have an agent move about on the pages: `model`.
    :param webhook: where the job reports to: `url`, `events`, `headers`, `metadata`.
    :param origin: label of the caller, for the service's own statistics. Default: `api`.
    :param integration: another such label.
    :param kwargs: arguments of `WebDataJobOperator`, of `JobResults` (`max_error_ratio`), of `ValidatedResults`
        (`result_schema`), of `ResultOutput` (`output`, `save_media`), `BillingOperator` (`credit_limit`),
        `WebDataOperator` and `BaseOperator`.
    """

    job_kind: ClassVar[JobKind] = "extract"

    def __init__(
        self,
        *,
        # fields of ExtractRequest, written by tools/operator_fields.py
        urls: Sequence[str] | None = None,
        prompt: str | None = None,
        schema: Mapping[str, Any] | None = None,
        enable_web_search: bool | str | None = None,
        ignore_sitemap: bool | str | None = None,
        include_subdomains: bool | str | None = None,
        show_sources: bool | str | None = None,
        ignore_invalid_urls: bool | str | None = None,
        scrape_options: Mapping[str, Any] | None = None,
        threat_protection: Mapping[str, Any] | None = None,
        system_prompt: str | None = None,
        allow_external_links: bool | str | None = None,
        agent: Mapping[str, Any] | None = None,
        webhook: Mapping[str, Any] | str | None = None,
        origin: str | None = None,
        integration: str | None = None,
        # end of fields
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        # fields of ExtractRequest, written by tools/operator_fields.py
        self.urls = urls
        self.prompt = prompt
        self.schema = schema
        self.enable_web_search = enable_web_search
        self.ignore_sitemap = ignore_sitemap
        self.include_subdomains = include_subdomains
        self.show_sources = show_sources
        self.ignore_invalid_urls = ignore_invalid_urls
        self.scrape_options = scrape_options
        self.threat_protection = threat_protection
        self.system_prompt = system_prompt
        self.allow_external_links = allow_external_links
        self.agent = agent
        self.webhook = webhook
        self.origin = origin
        self.integration = integration
        # end of fields

    def targets(self) -> list[str]:
        """Return the URLs or texts by which the service would name the job."""
        from airflow_provider_webdata.tasks.jobs.results import texts

        return [*texts(self.urls), *texts(self.prompt)]

    def send(self, request: RequestModel, idempotency_key: str) -> JobStarted:  # noqa: ARG002
        """Start the extract job."""
        return self.hook.start_extract(
            request,  # type: ignore[arg-type]
            extra_body=self.checked_extra_body("start extract"),
        )
