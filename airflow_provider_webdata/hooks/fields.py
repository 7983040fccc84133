# SPDX-License-Identifier: Apache-2.0
"""Fields of requests, as keyword arguments of the hooks' methods. Written by tools/hook_fields.py.

The annotations are evaluated on import, without `from __future__ import annotations`: `signatures.py` reads them.
"""

from typing import TYPE_CHECKING, Annotated, Any, TypedDict, TypeVar

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
else:
    # Tools that read signatures, such as `HookToolset`, know the types of JSON only.
    Mapping, Sequence = dict, list

T = TypeVar("T")

Needed = Annotated[T, "required"]
"""A required field. Type checkers take all as optional, because a mapping may replace them."""


class AgentFields(TypedDict, total=False):
    """Fields of `AgentRequest`.

    :param prompt: description of the data to collect, at most 10,000 characters.
    :param urls: pages to visit first, or exclusively with `strict_constrain_to_urls`.
    :param strict_constrain_to_urls: visit only the pages in `urls`.
    :param schema: JSON Schema of the result.
    :param max_credits: maximum credits of the run, more than 0. A run that exceeds them fails without data and is not
        billed. Default: 2500. Daily free runs are not available with a higher limit.
    :param model: model of the agent: `spark-2`, `spark-1-mini` or `spark-1-pro`. Default: `spark-1-pro`.
    :param audit_metadata: user to record in the audit log: `username`.
    :param threat_protection: threat protection override, for teams with this feature.
    :param webhook: endpoint that receives the job's events: `url`, `events`, `headers`, `metadata`.
    :param effort: effort of the agent: `low`, `medium`, or `high`. This and the following fields are not publicly
        documented.
    :param mode: with `extract`, each turn of a thread returns all its data; with `chat`, a later turn may return only
        text, as `message`. Default: the mode of the thread, or `extract`.
    :param thread_id: UUID of the thread to continue: the `threadId` of an earlier run. Its `mode`, `urls`, `schema`,
        and `exchange` apply unless set. Default: a new thread.
    :param exchange: data providers that the run may call: `enabled`, `toolkits`, `maxCalls`, `requireApproval`,
        `approve`, `decline`, `onTermsRequired`.
    :param location: location to fetch pages from: `country`.
    :param zero_data_retention: retain no data, for teams with this feature. Default: false.
    """

    prompt: Needed[str]
    urls: Sequence[str]
    strict_constrain_to_urls: bool
    schema: Mapping[str, Any] | type
    max_credits: float
    model: str
    audit_metadata: Mapping[str, Any]
    threat_protection: Mapping[str, Any]
    webhook: Mapping[str, Any] | str
    effort: str
    mode: str
    thread_id: str
    exchange: Mapping[str, Any]
    location: Mapping[str, Any]
    zero_data_retention: bool


class BatchScrapeFields(TypedDict, total=False):
    """Fields of `BatchScrapeRequest`.

    :param urls: the pages, at least 1 for a job; results are in order of completion.
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
    :param zero_data_retention: retain no data, for teams with this feature; excludes screenshots and
        `only_clean_content`. Default: false.
    :param webhook: endpoint that receives the job's events: `url`, `events`, `headers`, `metadata`.
    :param max_concurrency: maximum number of pages scraped concurrently, at least 1. Default: the team's limit.
    :param ignore_invalid_urls: skip invalid URLs. Default: true, but without it, some servers reject the whole batch
        for one invalid URL.
    :param append_to_id: UUID of an existing batch scrape to append the URLs to.
    """

    urls: Needed[Sequence[str]]
    formats: Sequence[str | Mapping[str, Any]]
    only_main_content: bool
    only_clean_content: bool
    include_tags: Sequence[str]
    exclude_tags: Sequence[str]
    max_age: int
    min_age: int
    headers: Mapping[str, str]
    wait_for: int
    mobile: bool
    skip_tls_verification: bool
    timeout: int
    parsers: Sequence[str | Mapping[str, Any]]
    actions: Sequence[Mapping[str, Any]]
    location: Mapping[str, Any]
    remove_base64_images: bool
    block_ads: bool
    proxy: str
    store_in_cache: bool
    lockdown: bool
    redact_pii: bool | Mapping[str, Any]
    profile: Mapping[str, Any]
    threat_protection: Mapping[str, Any]
    audit_metadata: Mapping[str, Any]
    fast_mode: bool
    check_prompt_injection: bool
    safe_mode: bool
    zero_data_retention: bool
    webhook: Mapping[str, Any] | str
    max_concurrency: int
    ignore_invalid_urls: bool
    append_to_id: str


class CrawlFields(TypedDict, total=False):
    """Fields of `CrawlRequest`.

    :param url: start URL of the crawl.
    :param limit: maximum number of pages, at least 1; each is billed. The service may lower it to the remaining
        credits. Default: 10,000.
    :param max_discovery_depth: maximum number of links from the start, at least 0; the start and the sitemap's pages
        have depth 0.
    :param include_paths: regular expressions for the path; only matching pages are crawled, including the start.
    :param exclude_paths: regular expressions for the path; matching pages are skipped.
    :param regex_on_full_url: match the whole URL instead of the path. Default: false.
    :param sitemap: use of the sitemap: `skip`, `include`, or `only`. Default: `include`.
    :param ignore_query_parameters: crawl only one page per path. Default: false.
    :param deduplicate_similar_urls: crawl only one of several URLs of the same page. Default: true.
    :param crawl_entire_domain: also crawl siblings and parents of the start. Default: false.
    :param allow_external_links: also crawl pages of other sites, one link away. Default: false.
    :param allow_subdomains: also crawl subdomains. Default: false.
    :param ignore_robots_txt: also crawl pages that robots.txt excludes, for teams with this feature. Default: false.
    :param robots_user_agent: user agent whose robots.txt rules apply, for teams with this feature.
    :param delay: seconds between two pages, 0 to 60; pages are then scraped one at a time.
    :param max_concurrency: maximum number of pages scraped concurrently, at least 1. Default: the team's limit.
    :param prompt: the options as text, at most 10,000 characters; explicit options take precedence.
    :param webhook: endpoint that receives the job's events: `url`, `events`, `headers`, `metadata`.
    :param scrape_options: arguments of a scrape, for each page. Unless `max_age` is set, pages may be up to 2 days old,
        from the service's cache.
    :param zero_data_retention: retain no data, for teams with this feature. Default: false.
    """

    url: Needed[str]
    limit: int
    max_discovery_depth: int
    include_paths: Sequence[str]
    exclude_paths: Sequence[str]
    regex_on_full_url: bool
    sitemap: str
    ignore_query_parameters: bool
    deduplicate_similar_urls: bool
    crawl_entire_domain: bool
    allow_external_links: bool
    allow_subdomains: bool
    ignore_robots_txt: bool
    robots_user_agent: str
    delay: float
    max_concurrency: int
    prompt: str
    webhook: Mapping[str, Any] | str
    scrape_options: Mapping[str, Any]
    zero_data_retention: bool


class CrawlParamsFields(TypedDict, total=False):
    """Fields of `CrawlParamsRequest`.

    :param url: start URL of the crawl.
    :param prompt: description of the crawl, at most 10,000 characters.
    """

    url: Needed[str]
    prompt: Needed[str]


class DeveloperSearchFields(TypedDict, total=False):
    """Fields of `DeveloperSearchRequest`.

    :param query: a question, or words.
    :param k: maximum number of results, 1 to 100. Default: 10.
    :param types: kinds of results: `doc`, `issue`, `pull_request`, `readme`. Default: all.
    :param repos: only these repositories, such as `pipeline/pipeline`; documentation is still included.
    :param sources: only these documentation sites, at most 20 ids of 1 to 512 characters; repositories are still
        included.
    :param skills: `only` restricts results to files that describe skills for agents.
    :param passages: maximum number of passages per result, 1 to 5. Default: 1.
    :param language: main language of the repository, such as `Rust`. This and the next six fields filter repositories;
        without `sources`, they exclude documentation.
    :param topic: topic of the repository, such as `async`.
    :param license: license of the repository, such as `MIT`.
    :param min_stars: minimum number of stars, at least 0.
    :param max_stars: maximum number of stars, at least 0.
    :param archived: include archived repositories or not.
    :param fork: include forks or not.
    """

    query: Needed[str]
    k: int
    types: Sequence[str]
    repos: Sequence[str]
    sources: Sequence[str]
    skills: str
    passages: int
    language: str
    topic: str
    license: str
    min_stars: int
    max_stars: int
    archived: bool
    fork: bool


class ExecuteFields(TypedDict, total=False):
    """Fields of `ExecuteRequest`.

    :param code: code to run, 1 to 100,000 characters, counted in UTF-8 bytes; required, omitted from reprs.
    :param language: `python`, `node` or `bash`. Service default: node.
    :param timeout: seconds, 1 to 300. Service default: 30.
    """

    code: Needed[str]
    language: str
    timeout: int


class FindToolsFields(TypedDict, total=False):
    """Fields of `FindToolsRequest`.

    :param query: description of the data, at most 2,000 characters.
    :param urls: sites of the data, at most 100.
    :param providers: ids of providers, at most 50; the same limit applies to the next three fields.
    :param categories: ids of categories.
    :param groups: ids of groups.
    :param capabilities: names of capabilities, which are returned with their contracts.
    :param level: `categories`, `providers`, `groups`, or `tools`. Default: depends on the filters.
    :param expand: parts of contracts to return: `options`, `response`, `examples`.
    :param limit: maximum number of items per page, 1 to 100.
    :param offset: number of items to skip, at least 0.
    """

    query: str
    urls: Sequence[str]
    providers: Sequence[str]
    categories: Sequence[str]
    groups: Sequence[str]
    capabilities: Sequence[str]
    level: str
    expand: Sequence[str]
    limit: int
    offset: int


class InteractFields(TypedDict, total=False):
    """Fields of `InteractRequest`.

    :param ttl: maximum lifetime of the browser in seconds, 30 to 3600. Default: 300 or 600; sources differ.
    :param activity_ttl: maximum idle time in seconds, 10 to 3600. Default: none or 300; sources differ.
    :param stream_web_view: return a URL for watching the browser. Default: true.
    :param profile: browser state to use: `name`, `saveChanges`; changes are saved when the browser is closed.
    :param block_ads: block advertisements. Default: true. This and the next field are not publicly documented.
    :param record_session: record the session; `GET /v2/interact/{sessionId}/replay` returns the recording.
    """

    ttl: int
    activity_ttl: int
    stream_web_view: bool
    profile: Mapping[str, Any]
    block_ads: bool
    record_session: bool


class MapFields(TypedDict, total=False):
    """Fields of `MapRequest`.

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
    """

    url: Needed[str]
    search: str
    sitemap: str
    include_subdomains: bool
    ignore_query_parameters: bool
    ignore_cache: bool
    limit: int
    timeout: int
    location: Mapping[str, Any]
    audit_metadata: Mapping[str, Any]
    threat_protection: Mapping[str, Any]
    headers: Mapping[str, str]
    filter_by_path: bool
    use_index: bool
    include_paths: Sequence[str]
    exclude_paths: Sequence[str]


class MonitorCreateFields(TypedDict, total=False):
    """Fields of `MonitorCreateRequest`.

    :param name: name of the monitor, 1 to 256 characters.
    :param schedule: a cron expression, a phrase such as `daily at 9:00`, or a mapping with `cron` or `text`, and
        `timezone`.
    :param targets: 1 to 50 mappings with `type` `scrape`, `crawl`, or `search`, or URLs, which become one `scrape`
        target.
    :param goal: description of the changes that matter, at most 2000 characters; required for search targets.
    :param judge_enabled: judge changes against the goal. Default: true if a goal is set.
    :param notification: recipients of notifications: `email` with `enabled`, `includeDiffs`, `recipients`; `slack`.
    :param retention_days: retention in days, 1 to 365. Default: 30.
    :param webhook: endpoint that receives page and check events: `url`, `events`, `headers`, `metadata`.
    """

    name: Needed[str]
    schedule: Needed[Mapping[str, Any] | str]
    targets: Needed[Sequence[Mapping[str, Any] | str]]
    goal: str
    judge_enabled: bool
    notification: Mapping[str, Any]
    retention_days: int
    webhook: Mapping[str, Any] | str


class MonitorUpdateFields(TypedDict, total=False):
    """Fields of `MonitorUpdateRequest`.

    :param name: a new name, 1 to 256 characters.
    :param status: new state: `active` or `paused`.
    :param schedule: a cron expression, a phrase such as `daily at 9:00`, or a mapping with `cron` or `text`, and
        `timezone`.
    :param targets: all targets of the monitor, 1 to 50, as mappings or URLs.
    :param goal: description of the changes that matter, at most 2000 characters; an empty text clears it.
    :param judge_enabled: judge changes against the goal.
    :param notification: recipients of notifications: `email` with `enabled`, `includeDiffs`, `recipients`; `slack`.
    :param retention_days: retention in days, 1 to 365.
    :param webhook: endpoint that receives page and check events; it can be changed, but not removed.
    """

    name: str
    status: str
    schedule: Mapping[str, Any] | str
    targets: Sequence[Mapping[str, Any] | str]
    goal: str
    judge_enabled: bool
    notification: Mapping[str, Any]
    retention_days: int
    webhook: Mapping[str, Any] | str


class PaperSearchFields(TypedDict, total=False):
    """Fields of `PaperSearchRequest`.

    :param query: topic of the papers, in natural language.
    :param k: maximum number of papers, 1 to 500. Default: 40.
    :param authors: parts of author names; a paper must match all.
    :param categories: categories of papers, such as `cs.LG`; a paper must be in all.
    :param from_date: earliest date on which a paper was created or updated, such as `2026-01-31`.
    :param to_date: latest such date.
    """

    query: Needed[str]
    k: int
    authors: Sequence[str]
    categories: Sequence[str]
    from_date: str
    to_date: str


class ParseFields(TypedDict, total=False):
    """Fields of `ParseOptions`.

    :param formats: `markdown`, `summary`, `html`, `rawHtml`, `links`, `images`, `json`, as names or mappings with
        `type`. Default: `markdown`.
    :param only_main_content: remove headers, navigation, and footers. Default: true.
    :param include_tags: HTML tags (or CSS selectors) to keep.
    :param exclude_tags: HTML tags (or CSS selectors) to remove.
    :param headers: headers of requests for resources that the file refers to; their values are hidden in logs and
        rendered templates.
    :param timeout: the service's time limit in milliseconds, 1 to 300,000. Default: 30,000, or none.
    :param parsers: `pdf` and `image` parsers, as names or mappings with `type`; an empty list returns PDFs unparsed.
        Default: `pdf`.
    :param skip_tls_verification: accept invalid certificates for resources that the file refers to. Default: true.
    :param remove_base64_images: replace inline base64 images. Default: true.
    :param block_ads: block advertisements. Default: true.
    :param redact_pii: redact personal data: true, or a mapping with `mode`, `entities`, `replaceStyle`. Default: false.
    :param proxy: kind of proxy: `basic` or `auto`.
    :param zero_data_retention: retain no data, for teams with this feature. Default: false.
    :param audit_metadata: user to record in the audit log: `username`.
    """

    formats: Sequence[str | Mapping[str, Any]]
    only_main_content: bool
    include_tags: Sequence[str]
    exclude_tags: Sequence[str]
    headers: Mapping[str, str]
    timeout: int
    parsers: Sequence[str | Mapping[str, Any]]
    skip_tls_verification: bool
    remove_base64_images: bool
    block_ads: bool
    redact_pii: bool | Mapping[str, Any]
    proxy: str
    zero_data_retention: bool
    audit_metadata: Mapping[str, Any]


class ScrapeFields(TypedDict, total=False):
    """Fields of `ScrapeRequest`.

    :param url: the page.
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
    :param zero_data_retention: retain no data, for teams with this feature; excludes screenshots and
        `only_clean_content`. Default: false.
    :param domain_tools: also return data providers' tools for the page's site, in `tools`. Default: false.
    :param tool_detail: level of detail for each tool: `compact`, `summary`, or `full`, which includes its contract.
    """

    url: Needed[str]
    formats: Sequence[str | Mapping[str, Any]]
    only_main_content: bool
    only_clean_content: bool
    include_tags: Sequence[str]
    exclude_tags: Sequence[str]
    max_age: int
    min_age: int
    headers: Mapping[str, str]
    wait_for: int
    mobile: bool
    skip_tls_verification: bool
    timeout: int
    parsers: Sequence[str | Mapping[str, Any]]
    actions: Sequence[Mapping[str, Any]]
    location: Mapping[str, Any]
    remove_base64_images: bool
    block_ads: bool
    proxy: str
    store_in_cache: bool
    lockdown: bool
    redact_pii: bool | Mapping[str, Any]
    profile: Mapping[str, Any]
    threat_protection: Mapping[str, Any]
    audit_metadata: Mapping[str, Any]
    fast_mode: bool
    check_prompt_injection: bool
    safe_mode: bool
    zero_data_retention: bool
    domain_tools: bool
    tool_detail: str


class ScrapeInteractFields(TypedDict, total=False):
    """Fields of `ScrapeInteractRequest`.

    :param code: code to run, 1 to 100,000 characters, counted in UTF-8 bytes; omitted from reprs.
    :param prompt: instructions as text, 1 to 10,000 characters; costs more than code.
    :param language: `python`, `node` or `bash`. Default: `node`.
    :param timeout: seconds, 1 to 300. Default: 30.
    :param ttl: maximum lifetime of the session in seconds, 30 to 3600. Default: 600.
    :param activity_ttl: maximum idle time in seconds, 10 to 3600. Default: 300.
    """

    code: str
    prompt: str
    language: str
    timeout: int
    ttl: int
    activity_ttl: int


class SearchFields(TypedDict, total=False):
    """Fields of `SearchRequest`.

    :param query: the search query, at most 500 characters; `airflow_provider_webdata.api.query` builds queries with
        operators.
    :param limit: maximum number of results per source, 1 to 100. Default: 10.
    :param sources: `web`, `images`, `news`, `alexandria` (tools of data providers, which are free), or mappings with
        `type` (and `tbs`, `location` for web). Names and mappings cannot be mixed. Default: web.
    :param categories: `codehost`, `research`, `pdf`, `gov`, `developer` (cannot be combined), or mappings with `type`.
        Names and mappings cannot be mixed. A self-hosted server gets `codehost` as `github`, its name there. Default:
        no filter.
    :param include_domains: only these host names, without protocol or path; excludes `exclude_domains`.
    :param exclude_domains: host names to exclude.
    :param tbs: time filter, such as `qdr:d`; `airflow_provider_webdata.api.query.tbs` builds one from dates.
    :param location: location to search from, such as `Berlin,Germany`; best combined with `country`.
    :param country: two-letter ISO code, sent in upper case. Default: US.
    :param safe: filter explicit content. Default: no filter.
    :param timeout: the service's time limit for the search in milliseconds, at least 1. Default: 60,000.
    :param ignore_invalid_urls: omit URLs that other operations of the service do not support. Default: false.
    :param highlights: return highlights for the query as descriptions. Default: true.
    :param enterprise: `anon` or `zdr`, kinds of zero data retention, for teams with this feature.
    :param domain_tools: also return data providers' tools for the sites of the results. Default: false.
    :param tool_detail: level of detail for each tool: `compact`, `summary`, or `full`, which includes its contract.
    :param scrape_options: options for scraping the results; `formats` enables it. Unless `max_age` is set, pages may be
        up to 2 days old, from the service's cache.
    :param threat_protection: threat protection override, for teams with this feature.
    """

    query: Needed[str]
    limit: int
    sources: Sequence[str | Mapping[str, Any]]
    categories: Sequence[str | Mapping[str, Any]]
    include_domains: Sequence[str]
    exclude_domains: Sequence[str]
    tbs: str
    location: str
    country: str
    safe: bool
    timeout: int
    ignore_invalid_urls: bool
    highlights: bool
    enterprise: Sequence[str]
    domain_tools: bool
    tool_detail: str
    scrape_options: Mapping[str, Any]
    threat_protection: Mapping[str, Any]


class SimilarPapersFields(TypedDict, total=False):
    """Fields of `SimilarPapersRequest`.

    :param intent: purpose of the search, in natural language; papers are ranked by it.
    :param mode: `similar`, `citers` (papers that cite this one), or `references` (papers that it cites). Default:
        `similar`.
    :param k: maximum number of papers, 1 to 500. Default: 40.
    :param rerank: rerank the results.
    :param anchor: additional papers to start from.
    """

    intent: Needed[str]
    mode: str
    k: int
    rerank: bool
    anchor: Sequence[str]


class ThreatPolicyFields(TypedDict, total=False):
    """Fields of `ThreatPolicyRequest`.

    :param mode: `off`, `normal` (2 more credits per scanned URL), `manual-only` (only your own lists), or `zscaler`
        (the organization's Zscaler decides).
    :param risk_score_threshold: 0 to 100; at or above it a URL is blocked. Lower is stricter. Default: 75.
    :param blacklist: at most 1000 domains to block, `example.com` or `*.example.com`. Default: none.
    :param whitelist: at most 1000 domains to allow, in the same format; overrides all other rules. Default: none.
    :param blocked_tlds: at most 1000 top-level domains, in lower case, without the dot. Default: none.
    :param failure_policy: `closed` blocks and `open` allows URLs while the classifier is unreachable. Default:
        `closed`.
    :param allow_request_overrides: allow `threat_protection` in requests. Default: true.
    """

    mode: Needed[str]
    risk_score_threshold: int
    blacklist: Sequence[str]
    whitelist: Sequence[str]
    blocked_tlds: Sequence[str]
    failure_policy: str
    allow_request_overrides: bool
