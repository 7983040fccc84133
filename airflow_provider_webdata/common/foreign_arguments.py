# SPDX-License-Identifier: Apache-2.0
"""Arguments of other clients of web data services, and the arguments to write in their place."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from airflow_provider_webdata.common.spelling import snake_case

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping


class Replacement(NamedTuple):
    """What to write in place of an argument of another client.

    :param argument: the argument to write.
    :param value: its value as source text; `...` is the caller's own.
    :param note: a remark about the value.
    :param beside: another argument that must be beside `argument`. Empty: none.
    :param within: an argument that the operation must have. Empty: none.
    """

    argument: str
    value: str = "..."
    note: str = ""
    beside: str = ""
    within: str = ""


def advice(name: str, known: Collection[str], parts: Mapping[str, Collection[str]]) -> str:
    """Return what to write in place of an unknown argument, such as `write limit=...`, or an empty string.

    :param name: the unknown argument, in any spelling.
    :param known: the operation's arguments.
    :param parts: fields of the operation's arguments that are objects, by argument, such as those of `scrape_options`.
    """
    own = Replacement(snake_case(name))
    for one in (*FOREIGN.get(_plain(name), ()), own):
        if one.within and one.within not in known:
            continue
        note = f" ({one.note})" if one.note else ""
        if _has(known, one) and one is not own:
            return f"write {one.argument}={one.value}{note}"
        for part, fields in parts.items():
            if part in known and _has(fields, one):
                return f'write {part}={{"{one.argument}": {one.value}}}{note}'
    return ""


def _has(known: Collection[str], one: Replacement) -> bool:
    return one.argument in known and (not one.beside or one.beside in known)


def _plain(name: str) -> str:
    return name.replace("_", "").replace("-", "").lower()


def _read(table: Mapping[str, tuple[Replacement, ...]]) -> Iterator[tuple[str, tuple[Replacement, ...]]]:
    for names, replacements in table.items():
        for name in names.split():
            yield _plain(name), replacements


def _tracked(fields: str) -> Replacement:
    """Return the format by which a target of a monitor, which has a type, gets JSON."""
    return Replacement(
        "formats", f'["markdown", {{"type": "changeTracking", "modes": ["json"], {fields}}}]', within="type"
    )


FOREIGN = dict(
    _read(
        {
            # Searches.
            "max_results num_results n_results number_of_results results_count num count top_k k limit max_items "
            "max_pages max_crawl_pages max_requests max_urls max_links page_limit page_size per_page": (
                Replacement("limit"),
                Replacement("k"),
            ),
            "q search_query search_term search_terms keyword keywords query": (
                Replacement("query"),
                Replacement("search"),
                Replacement("prompt"),
            ),
            "queries": (Replacement("query", note="one per call; WebDataBatchSearchOperator runs many"),),
            "lang language hl search_lang languages locale": (
                Replacement("language"),
                Replacement("country", note="a search has a country of two letters, and no language"),
                Replacement("prompt", note="which can name the language", beside="strict_constrain_to_urls"),
                Replacement("location", '{"languages": [...]}'),
            ),
            "gl country country_code region geo geo_location proxy_country": (
                Replacement("country"),
                Replacement("location", '{"country": ...}'),
            ),
            "time_range time_period timeframe freshness recency date_restrict days search_recency_filter": (
                Replacement("tbs", '"qdr:w"', "h, d, w, m, or y: the last hour, day, week, month, or year"),
            ),
            "start_date end_date start_published_date end_published_date published_after published_before": (
                Replacement("tbs", "tbs(start, end)", "from airflow_provider_webdata.api.query import tbs"),
            ),
            "topic search_type tbm vertical": (Replacement("sources", '["news"]', 'or "web", "images"'),),
            "include_images": (
                Replacement("sources", '["web", "images"]'),
                Replacement("formats", '["markdown", "images"]'),
            ),
            "include_domains include_domain domains sites site allowed_domains search_domain_filter": (
                Replacement("include_domains", "[...]"),
                Replacement(
                    "url",
                    note="a crawl stays on the site of url; start one for each",
                    beside="max_discovery_depth",
                ),
            ),
            "exclude_domains exclude_domain blocked_domains exclude_sites": (
                Replacement("exclude_domains", "[...]"),
            ),
            "safe_search safesearch": (Replacement("safe", "True"),),
            "pages page_count number_of_pages": (Replacement("limit"),),
            # Results, and the wait for them.
            "output output_path output_file output_to destination dest file_path filename path save_path": (
                Replacement("save_to", note="the path of a file"),
            ),
            "media output_folder download_dir": (Replacement("media_to", note="the path of a folder"),),
            "wait wait_until_complete wait_until_finished": (
                Replacement("wait_for_completion", "True", "or False"),
            ),
            "max_wait max_wait_time timeout_seconds wait_time": (
                Replacement("wait_timeout", note="seconds"),
                Replacement("timeout"),
            ),
            # Structured data.
            "schema json_schema output_schema response_schema extraction_schema response_model": (
                Replacement("schema"),
                _tracked('"schema": ...'),
                Replacement("formats", '["markdown", {"type": "json", "schema": ...}]'),
            ),
            "prompt extraction_prompt system_prompt": (
                Replacement("prompt"),
                _tracked('"prompt": ...'),
                Replacement("formats", '["markdown", {"type": "json", "prompt": ...}]'),
            ),
            "task objective goal instruction instructions": (Replacement("prompt"),),
            "extract extract_options extractor_options json_options llm_extraction": (
                _tracked('"prompt": ..., "schema": ...'),
                Replacement("formats", '["markdown", {"type": "json", "prompt": ..., "schema": ...}]'),
            ),
            "change_tracking_options": (
                Replacement(
                    "formats",
                    '["markdown", {"type": "changeTracking", "modes": ["git-diff"]}]',
                    beside="actions",
                ),
            ),
            # Formats of a page.
            "format output_format output_formats return_format content_format contents include_content "
            "include_raw_content include_markdown": (Replacement("formats", '["markdown"]'),),
            "include_html include_raw_html": (Replacement("formats", '["markdown", "html"]'),),
            "include_links": (Replacement("formats", '["markdown", "links"]'),),
            "screenshot include_screenshot screenshot_options": (
                Replacement("formats", '["markdown", "screenshot"]', beside="actions"),
            ),
            "full_page full_page_screenshot screenshot_full_page": (
                Replacement(
                    "formats", '["markdown", {"type": "screenshot", "full_page": True}]', beside="actions"
                ),
            ),
            "parse_pdf": (Replacement("parsers", '["pdf"]', "or [] for PDFs that are not parsed"),),
            # How a page is fetched.
            "page_options scraper_options scrape_config": (
                Replacement("scrape_options", '{"only_main_content": ...}'),
                Replacement("only_main_content", note="pass each option of a page as an argument"),
            ),
            "scrape_options": (
                Replacement("only_main_content", note="pass each option of a page as an argument"),
            ),
            "crawl_options crawler_options params": (
                Replacement("limit", note="each option is an argument"),
                Replacement("only_main_content", note="each option is an argument"),
            ),
            "main_content_only extract_main_content": (Replacement("only_main_content"),),
            "css_selector selector target_selector include_selectors include_elements only_include_tags": (
                Replacement("include_tags", "[...]"),
            ),
            "exclude_selectors excluded_selector remove_selector remove_selectors exclude_elements remove_tags": (
                Replacement("exclude_tags", "[...]"),
            ),
            "wait_ms wait_for_ms wait_time_ms": (Replacement("wait_for"),),
            "wait_for_selector": (Replacement("actions", '[{"type": "wait", "selector": ...}]'),),
            "js_code javascript execute_js js_snippet": (
                Replacement("actions", '[{"type": "executeJavascript", "script": ...}]'),
            ),
            "timeout_ms": (Replacement("timeout"),),
            "cookies": (Replacement("headers", '{"Cookie": ...}'),),
            "user_agent": (Replacement("headers", '{"User-Agent": ...}'),),
            "custom_headers extra_headers http_headers": (Replacement("headers"),),
            "no_cache bypass_cache skip_cache force_refresh livecrawl": (
                Replacement("max_age", "0"),
                Replacement("ignore_cache", "True"),
            ),
            "stealth stealth_mode premium_proxy use_stealth": (
                Replacement("proxy", '"enhanced"', beside="actions"),
            ),
            "proxy_type proxy_mode": (Replacement("proxy"),),
            # Crawls and maps.
            "url start_url base_url seed_url site_url website page_url uri": (
                Replacement("url"),
                Replacement("urls", "[...]"),
            ),
            "urls start_urls seed_urls": (
                Replacement("urls"),
                Replacement("url", note="one per call; batch scrapes accept several pages"),
            ),
            "max_depth depth crawl_depth max_crawl_depth max_link_depth": (
                Replacement("max_discovery_depth"),
            ),
            "allow_backward_links allow_backward_crawling": (Replacement("crawl_entire_domain"),),
            "allow_external allow_external_content_links follow_external_links": (
                Replacement("allow_external_links"),
            ),
            "include_subdomains allow_subdomains": (
                Replacement("allow_subdomains"),
                Replacement("include_subdomains"),
            ),
            "ignore_sitemap skip_sitemap": (Replacement("sitemap", '"skip"', 'or "include" for false'),),
            "sitemap_only": (Replacement("sitemap", '"only"'),),
            "use_sitemap use_sitemaps": (Replacement("sitemap", '"include"', 'or "skip" for false'),),
            "includes include_patterns include_urls include_url_globs include_regex allow_patterns url_patterns "
            "select_paths": (Replacement("include_paths", "[...]", "regular expressions of paths"),),
            "excludes exclude_patterns exclude_urls exclude_url_globs exclude_regex deny_patterns": (
                Replacement("exclude_paths", "[...]", "regular expressions of paths"),
            ),
            "ignore_robots": (Replacement("ignore_robots_txt"),),
            "request_delay crawl_delay delay_between_requests": (Replacement("delay", note="in seconds"),),
            "concurrency max_concurrent max_concurrent_requests concurrent_requests": (
                Replacement("max_concurrency"),
            ),
            "webhook_url callback_url": (Replacement("webhook"),),
            # Operators.
            "firecrawl_conn_id http_conn_id conn_id": (Replacement("webdata_conn_id"),),
            "api_key api_url": (
                Replacement("webdata_conn_id", note="the connection has the key and the address"),
            ),
            "max_credits budget": (Replacement("credit_limit"),),
            "origin": (Replacement("extra_body", '{"origin": ...}'),),
            "integration": (Replacement("extra_body", '{"integration": ...}'),),
        }
    )
)
"""Replacements by the foreign name in lower case, without underscores. The first that an operation has applies."""
