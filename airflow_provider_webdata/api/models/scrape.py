# SPDX-License-Identifier: Apache-2.0
"""Scrape options, shared by search, monitors, and the scraping operations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

import pendulum
from pydantic import Field, field_validator

from airflow_provider_webdata.api.models.actions import Action, WaitAction
from airflow_provider_webdata.api.models.base import RequestModel, problem
from airflow_provider_webdata.api.models.fields import (
    CountryCode,
    Headers,
    Integer,
    Integration,
    Listed,
    String,
    Switch,
    Text,
    WebAddress,
    one_of,
    switch_or,
)
from airflow_provider_webdata.api.models.formats import Format, MonitorFormat, ScreenshotFormat, format_types
from airflow_provider_webdata.api.models.threat import ThreatProtection
from airflow_provider_webdata.api.servers import ONLY_SELF_HOSTED, SELF_HOSTED

if TYPE_CHECKING:
    from airflow_provider_webdata.api.servers import Server

_MAX_WAITS_MILLISECONDS = 60_000
_EPOCH = pendulum.from_timestamp(0)
_MILLENNIUM_MILLISECONDS = 1000 * 365 * 86_400_000

DEFAULT_MAX_AGE = 2 * 86_400_000
LOCKDOWN_MAX_AGE = 2 * 365 * 86_400_000
"""Default maximum age of a cached page, in milliseconds. See sandbox/docs/service.md#scrape-max-age."""


class PdfParser(RequestModel):
    """Converts a PDF to markdown, for 1 credit per page.

    :param mode: `fast` (embedded text only), `auto` (first fast, then OCR; service default), or `ocr` (always OCR).
    :param max_pages: maximum number of parsed pages, 1 to 10,000.
    :param pages: also return the markdown of each page.
    :param blocks: also return the layout blocks of each page.
    :param page_markers: mark page breaks in the markdown.
    """

    type: Literal["pdf"] = "pdf"
    mode: Literal["fast", "auto", "ocr"] | None = None
    max_pages: Annotated[Integer, Field(ge=1, le=10_000)] | None = None
    pages: Switch | None = None
    blocks: Switch | None = None
    page_markers: Switch | None = None


class ImageParser(RequestModel):
    """Text recognition on raster images."""

    type: Literal["image"] = "image"


Parser = Annotated[Literal["pdf", "image"] | PdfParser | ImageParser, one_of("a parser")]
"""A parser as an object or as text."""


class Location(RequestModel):
    """Location to fetch the page from, which also determines language and time zone.

    :param country: ISO 3166-1 alpha-2 code, sent in upper case. Service default: US.
    :param languages: language tags in order of preference. Default: depends on the country.
    """

    country: CountryCode | None = None
    languages: Listed[Text] | None = None


class Profile(RequestModel):
    """Named browser state: cookies, local storage, and sessions.

    :param name: 1 to 128 characters, required.
    :param save_changes: save the state; only one session can save at a time. Service default: true.
    """

    name: Annotated[String, Field(min_length=1, max_length=128)]
    save_changes: Switch | None = None


class PIIOptions(RequestModel):
    """Redaction of personally identifiable information.

    :param mode: `accurate` (service default), `aggressive`, or `fast`.
    :param entities: kinds to redact; all when omitted.
    :param replace_style: `tag` (service default), `mask`, or `remove`.
    """

    mode: Literal["accurate", "aggressive", "fast"] | None = None
    entities: Listed[Literal["PERSON", "EMAIL", "PHONE", "LOCATION", "FINANCIAL", "SECRET"]] | None = None
    replace_style: Literal["tag", "mask", "remove"] | None = None


class AuditMetadata(RequestModel):
    """User to record in the organization's audit log.

    :param username: required, at most 1024 characters.
    """

    username: Annotated[String, Field(max_length=1024)]


class MonitorScrapeOptions(RequestModel):
    """Scrape options in a monitor target. The service does not validate them, so only this model does.

    Like `ScrapeOptions`, but `changeTracking` does not require `markdown`, because monitors add it, and is the only
    source of JSON. A monitor's `maxAge` defaults to 0.
    """

    default_max_age: ClassVar[int] = 0

    formats: Listed[MonitorFormat] | None = None
    only_main_content: Switch | None = None
    only_clean_content: Switch | None = None
    include_tags: Listed[Text] | None = None
    exclude_tags: Listed[Text] | None = None
    max_age: Annotated[Integer, Field(ge=0)] | None = None
    min_age: Annotated[Integer, Field(ge=0)] | None = None
    headers: Headers | None = Field(None, repr=False)
    wait_for: Annotated[Integer, Field(ge=0, le=60_000)] | None = None
    mobile: Switch | None = None
    skip_tls_verification: Switch | None = None
    timeout: Annotated[Integer, Field(ge=1000, le=SELF_HOSTED.longest_scrape_ms)] | None = None
    parsers: Listed[Parser] | None = None
    actions: Annotated[Listed[Action], Field(max_length=50)] | None = None
    location: Location | None = None
    remove_base64_images: Switch | None = None
    block_ads: Switch | None = None
    proxy: Literal["basic", "enhanced", "auto", "stealth"] | None = None
    store_in_cache: Switch | None = None
    lockdown: Switch | None = None
    redact_pii: Annotated[bool | PIIOptions, switch_or(PIIOptions)] | None = Field(None, alias="redactPII")
    profile: Profile | None = None
    threat_protection: ThreatProtection | None = None
    audit_metadata: AuditMetadata | None = None
    fast_mode: Switch | None = None
    check_prompt_injection: Switch | None = None
    safe_mode: Switch | None = None

    @field_validator("formats")
    @classmethod
    def _fitting_formats(cls, formats: list[Any] | None) -> list[Any] | None:
        types = format_types(formats)
        if types.count("screenshot") > 1:
            raise problem("formats", "must contain at most one screenshot format")
        if "rawBase64" in types and len(types) > 1:
            raise problem("formats", "rawBase64 cannot be combined with other formats")
        return formats

    def _own_refusals(self, server: Server) -> list[str]:
        longest = server.longest_scrape_ms
        if self.timeout is None or self.timeout <= longest:
            return []
        return [f"timeout: must be at most {longest} ms (given: {self.timeout}). {ONLY_SELF_HOSTED}"]

    def _own_warnings(self) -> list[str]:
        found = []
        if self.store_in_cache and (self.actions or self.headers):
            found.append("storeInCache: the service sets it to false if actions or headers are set")
        if self.wait_for and self.timeout and self.wait_for * 2 > self.timeout:
            found.append("waitFor: more than half of timeout, which the service may reject")
        if self._waits_milliseconds() > _MAX_WAITS_MILLISECONDS:
            found.append("actions: waits and waitFor exceed 60 s in total, which the service may reject")
        if self.only_clean_content and self.lockdown:
            found.append("onlyCleanContent: not supported with zero data retention, which lockdown implies")
        return found

    def _own_notes(self, server: Server) -> list[str]:
        if not server.caches or self.min_age is not None or (self._skips_cache() and not self.lockdown):
            return []
        usual = LOCKDOWN_MAX_AGE if self.lockdown else self.default_max_age
        oldest = usual if self.max_age is None else self.max_age
        remedy = "" if self.lockdown else "; set max_age=0 to fetch them again"
        age = _in_words(oldest)
        return [f"pages may be up to {age} old, from the service's cache{remedy}"] if oldest else []

    def _skips_cache(self) -> bool:
        """Return whether pages are always fetched again. See sandbox/docs/service.md#scrape-cache."""
        return bool(
            self.headers
            or self.actions
            or self.profile
            or "changeTracking" in format_types(self.formats)
            or any(
                isinstance(item, ScreenshotFormat) and (item.viewport or item.quality is not None)
                for item in self.formats or ()
            )
        )

    def _waits_milliseconds(self) -> int:
        waits = [action for action in self.actions or () if isinstance(action, WaitAction)]
        # The service counts a wait for an element as one second.
        return (self.wait_for or 0) + sum(
            1000 if wait.milliseconds is None else wait.milliseconds for wait in waits
        )


class ScrapeOptions(MonitorScrapeOptions):
    """Options for scraping a page; all are optional.

    Where sources differ on a rule (half of `timeout` for `waitFor`, maximum viewport, total of waits), the service
    decides, and `warnings()` contains a warning.

    :param formats: formats to return, as names or mappings with `type`. `changeTracking` also requires `markdown`; at
        most one screenshot. Default: `markdown`.
    :param only_main_content: remove headers, navigation, and footers. Default: true.
    :param only_clean_content: also remove remaining boilerplate with a language model. Default: false.
    :param include_tags: HTML tags (or CSS selectors) to keep.
    :param exclude_tags: HTML tags (or CSS selectors) to remove.
    :param max_age: maximum age of a page from the service's cache, in milliseconds, at least 0; 0 always fetches the
        page. Default: 2 days, or 2 years with `lockdown`.
    :param min_age: minimum age in milliseconds, at least 0; if set, only the cache is used. 1 accepts a page of any
        age.
    :param headers: headers of the page request; their values are hidden in logs and rendered templates.
    :param wait_for: milliseconds to wait before extracting the content, 0 to 60,000. Default: 0.
    :param mobile: emulate a mobile device. Default: false.
    :param skip_tls_verification: accept invalid certificates. Default: true.
    :param timeout: the service's time limit in milliseconds, 1000 to 300,000, or to 2,147,483,647 on a self-hosted
        server. Default: 60,000.
    :param parsers: `pdf` and `image` parsers, as names or mappings with `type`; an empty list returns PDFs unparsed.
        Default: `pdf`.
    :param actions: mappings with `type`, at most 50, performed on the page before extracting its content.
    :param location: location to fetch the page from: `country`, `languages`.
    :param remove_base64_images: replace inline base64 images. Default: true.
    :param block_ads: block advertisements. Default: true.
    :param proxy: kind of proxy: `basic`, `enhanced` (also called `stealth`), or `auto`. Default: `auto`.
    :param store_in_cache: store the page in the service's cache. Default: true.
    :param lockdown: use only the cache, for 5 credits per hit and 1 per miss. Default: false.
    :param redact_pii: redact personal data: true, or a mapping with `mode`, `entities`, `replaceStyle`. Default: false.
    :param profile: browser state to use: `name`, `saveChanges`.
    :param threat_protection: threat protection override, for teams with this feature.
    :param audit_metadata: user to record in the audit log: `username`.
    :param fast_mode: a switch that is not publicly documented.
    :param check_prompt_injection: check for prompt injections, for 4 more credits; a detected one is an error (403).
    :param safe_mode: apply the organization's safe mode; an excluded page is an error (403). Not publicly documented.
    """

    default_max_age = DEFAULT_MAX_AGE

    formats: Listed[Format] | None = None  # type: ignore[assignment]

    @field_validator("formats")
    @classmethod
    def _change_tracking_has_markdown(cls, formats: list[Format] | None) -> list[Format] | None:
        types = format_types(formats)
        if "changeTracking" in types and "markdown" not in types:
            raise problem(
                "formats", "changeTracking also requires the format markdown; add 'markdown' to the list"
            )
        return formats


class PageRequest(ScrapeOptions):
    """Common fields of scrape and batch scrape: scrape options at the top level, and the caller.

    :param zero_data_retention: retain no data, for teams with this feature; excludes screenshots and
        `only_clean_content`. Default: false.
    :param origin: label of the caller for the service's statistics. Default: `api`.
    :param integration: second label: a name that the service knows, such as `n8n`, or text that begins with `_`.
    """

    nullable = frozenset({"integration"})

    zero_data_retention: Switch | None = None
    integration: Integration | None = None
    origin: Text | None = None

    def _check(self) -> None:
        if self.zero_data_retention:
            check_zero_data_retention(self)


class ScrapeRequest(PageRequest):
    """Body of `POST /v2/scrape`. The scrape options are at the top level, beside `url`.

    :param url: the page.
    :param domain_tools: also return data providers' tools for the page's site, in `tools`. Default: false.
    :param tool_detail: level of detail for each tool: `compact`, `summary`, or `full`, which includes its contract.
    """

    url: WebAddress
    domain_tools: Switch | None = None
    tool_detail: Literal["compact", "summary", "full"] | None = None


def _in_words(milliseconds: int) -> str:
    # pendulum has no word for milliseconds, and its dates have four-digit years.
    if not 1000 <= milliseconds < _MILLENNIUM_MILLISECONDS:
        return f"{milliseconds} ms"
    # Unlike a duration, the difference of two dates has months and years.
    return _EPOCH.diff(pendulum.from_timestamp(milliseconds // 1000)).in_words()


def check_zero_data_retention(options: ScrapeOptions, prefix: str = "") -> None:
    """Reject options that require data retention (sandbox/docs/service.md#zdr-excludes).

    :param prefix: path of the options in the body, for the error message.
    :raises PydanticCustomError: a screenshot or clean content is requested.
    """
    if "screenshot" in format_types(options.formats):
        raise problem(
            "zeroDataRetention",
            f"{prefix}formats: screenshots are not supported with zeroDataRetention; remove one of them",
        )
    if options.only_clean_content:
        raise problem(
            "zeroDataRetention",
            f"{prefix}onlyCleanContent is not supported with zeroDataRetention; remove one of them",
        )
