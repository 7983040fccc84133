# SPDX-License-Identifier: Apache-2.0
"""Listing the URLs of a site."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, field_validator

from airflow_provider_webdata.api.models.base import (
    Answer,
    Entries,
    Lenient,
    OrNone,
    Remark,
    RequestModel,
    ResponseModel,
)
from airflow_provider_webdata.api.models.crawl import PathFilter, unreadable_expressions
from airflow_provider_webdata.api.models.fields import (
    Headers,
    Integer,
    Integration,
    Listed,
    Query,
    Switch,
    Text,
    WebAddress,
)
from airflow_provider_webdata.api.models.scrape import AuditMetadata, Location
from airflow_provider_webdata.api.models.threat import ThreatProtection


class MapRequest(RequestModel):
    """Body of `POST /v2/map`; only `url` is required. One credit, for any number of links.

    :param url: the site.
    :param search: words by which links are ranked.
    :param sitemap: use of the sitemap: `skip`, `include`, or `only`. Default: `include`.
    :param include_subdomains: also list URLs of subdomains. Default: true.
    :param ignore_query_parameters: omit URLs with a query. Default: true.
    :param ignore_cache: fetch the sitemap again; the cached one is up to 7 days old. Default: false.
    :param limit: maximum number of links, 1 to 100,000. Default: 5,000.
    :param timeout: the service's time limit in milliseconds, at least 1. Default: none.
    :param location: location to fetch the site from: `country`, `languages`.
    :param audit_metadata: user to record in the audit log: `username`.
    :param threat_protection: threat protection override, for teams with this feature.
    :param headers: headers of the requests to the site; their values are hidden in logs and rendered templates. This
        and the next four fields are not publicly documented.
    :param filter_by_path: list only URLs below the path of `url`.
    :param use_index: also list URLs from the service's index.
    :param include_paths: regular expressions for the path; only matching URLs are listed.
    :param exclude_paths: regular expressions for the path; matching URLs are omitted.
    :param origin: label of the caller for the service's statistics. Default: `api`.
    :param integration: second label: a name that the service knows, such as `n8n`, or text that begins with `_`.
    """

    nullable = frozenset({"integration"})

    url: WebAddress
    search: Query | None = None
    sitemap: Literal["skip", "include", "only"] | None = None
    include_subdomains: Switch | None = None
    ignore_query_parameters: Switch | None = None
    ignore_cache: Switch | None = None
    limit: Annotated[Integer, Field(ge=1, le=100_000)] | None = None
    timeout: Annotated[Integer, Field(ge=1)] | None = None
    location: Location | None = None
    audit_metadata: AuditMetadata | None = None
    threat_protection: ThreatProtection | None = None
    headers: Headers | None = Field(None, repr=False)
    filter_by_path: Switch | None = None
    use_index: Switch | None = None
    include_paths: Listed[PathFilter] | None = None
    exclude_paths: Listed[PathFilter] | None = None
    integration: Integration | None = None
    origin: Text | None = None

    def _own_warnings(self) -> list[str]:
        found = unreadable_expressions("includePaths", self.include_paths)
        found += unreadable_expressions("excludePaths", self.exclude_paths)
        if self.sitemap == "skip" and self.ignore_cache:
            found.append("ignoreCache: has no effect with sitemap 'skip', because only the sitemap is cached")
        return found


class MapLink(ResponseModel):
    """A URL of the site, with its title and description if known."""

    url: str
    title: Lenient[str | None] = None
    description: Lenient[str | None] = None


class MapResponse(Answer):
    """Response of `POST /v2/map`. Links in plain text are parsed as links without a title."""

    links: Entries[MapLink]
    id: OrNone[str] = None
    warning: Remark = None

    @field_validator("links", mode="before")
    @classmethod
    def _plain_links(cls, links: Any) -> Any:
        if links is None:
            return []
        if not isinstance(links, list):
            return links
        return [{"url": link} if isinstance(link, str) else link for link in links]
