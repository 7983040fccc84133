# SPDX-License-Identifier: Apache-2.0
"""Values that only some kinds of servers accept: the models accept them, and each request is held to its server."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from airflow_provider_webdata.api import endpoints
from airflow_provider_webdata.api.config import ClientConfig
from airflow_provider_webdata.api.endpoints import Endpoint
from airflow_provider_webdata.api.errors import InvalidRequestError
from airflow_provider_webdata.api.exchange import MARGIN_SECONDS, Prepared, prepare
from airflow_provider_webdata.api.models.search import SearchRequest
from airflow_provider_webdata.api.servers import Kind

SITE = "https://example.com/"
LONG = {"timeout": 400_000}
PLAIN = {"url": "http://10.0.0.7:8080/hook", "headers": {"X-Key": "hush"}}
SCHEDULE = {"cron": "0 * * * *"}
TARGETS = [
    {"type": "scrape", "urls": [SITE]},
    {"type": "crawl", "url": SITE, "crawlOptions": {"limit": 1}, "scrapeOptions": LONG},
]
REFUSED: list[tuple[Endpoint[Any], dict[str, Any], str]] = [
    (endpoints.SCRAPE, {"url": SITE, **LONG}, "timeout: must be at most 300000 ms (given: 400000)"),
    (endpoints.START_BATCH_SCRAPE, {"urls": [SITE], **LONG}, "timeout: must be"),
    (endpoints.SEARCH, {"query": "q", "scrapeOptions": LONG}, "scrapeOptions.timeout: must be"),
    (endpoints.START_CRAWL, {"url": SITE, "scrapeOptions": LONG}, "scrapeOptions.timeout: must be"),
    (
        endpoints.CREATE_MONITOR,
        {"name": "m", "schedule": SCHEDULE, "targets": TARGETS},
        "targets[1].scrapeOptions.timeout: must be",
    ),
    (endpoints.UPDATE_MONITOR, {"targets": TARGETS}, "targets[1].scrapeOptions.timeout: must be"),
    (
        endpoints.START_CRAWL,
        {"url": SITE, "webhook": PLAIN},
        "webhook.url: must be an https URL (plain http only for a loopback address) (given: 'http://10.0.0.7:8080/hook')",
    ),
    (
        endpoints.START_AGENT,
        {"prompt": "p", "webhook": "http://airflow.internal"},
        "webhook.url: must be an https",
    ),
    (endpoints.UPDATE_MONITOR, {"webhook": PLAIN}, "webhook.url: must be an https URL"),
    (
        endpoints.SEARCH,
        {"query": "q", "categories": ["pdf", "github"]},
        "categories[1]: must be 'codehost' (given: 'github')",
    ),
]
WAY_OUT = (
    "Only a self-hosted server accepts it. If yours is one, set server of the connection to 'self-hosted'"
)


def prepared(declared: Kind | None, endpoint: Endpoint[Any], fields: dict[str, Any]) -> Prepared[Any]:
    assert endpoint.request is not None
    config = ClientConfig("https://host.example", "k", declared=declared)
    body = endpoint.request().model_validate(fields)
    return prepare(config, endpoint, {"monitor_id": "m"}, None, body, None)


@pytest.mark.rule("server-bounds", "scrape-timeout", "webhook-url", "search-categories")
def test_a_request_is_held_to_the_bounds_of_its_server() -> None:
    for endpoint, fields, problem in REFUSED:
        for declared in ("hosted", None):
            with pytest.raises(InvalidRequestError) as caught:
                prepared(declared, endpoint, fields)
            (found,) = caught.value.problems
            assert found.startswith(problem)
            assert found.endswith(WAY_OUT)
            assert "hush" not in found
        assert prepared("self-hosted", endpoint, fields).wire


def test_what_is_accepted_everywhere() -> None:
    """The limit itself, webhooks that stay on this host, and the other fields named `timeout`."""
    for endpoint, fields in [
        (endpoints.SCRAPE, {"url": SITE, "timeout": 300_000}),
        (endpoints.SEARCH, {"query": "q", **LONG}),
        (endpoints.MAP, {"url": SITE, **LONG}),
        *(
            (endpoints.START_CRAWL, {"url": SITE, "webhook": {"url": url}})
            for url in (
                "https://a.example/x",
                "http://localhost:8080/x",
                "http://127.8.9.1",
                "http://[::1]:9/x",
            )
        ),
    ]:
        assert prepared("hosted", endpoint, fields).wire == fields


@pytest.mark.rule("scrape-timeout")
def test_the_client_waits_for_a_long_scrape() -> None:
    search = {"query": "q", "scrapeOptions": {"formats": ["markdown"], **LONG}}
    for endpoint, fields, seconds in [
        (endpoints.SCRAPE, {"url": SITE, **LONG}, 400 * 5 / 3),
        (endpoints.SEARCH, search, 460),
    ]:
        found = prepared("self-hosted", endpoint, fields)
        assert found.request["timeout"].read == seconds + MARGIN_SECONDS


@pytest.mark.rule("server-bounds", "search-categories")
@pytest.mark.parametrize(
    ("given", "sent"),
    [
        (["codehost", "research"], ["github", "research"]),
        (["github", "codehost"], ["github"]),
        ([{"type": "codehost"}, {"type": "pdf"}], [{"type": "github"}, {"type": "pdf"}]),
        ([], []),
    ],
)
def test_categories_in_the_spelling_of_a_self_hosted_server(given: Any, sent: Any) -> None:
    fields = {"query": "q", "categories": given}
    assert prepared("self-hosted", endpoints.SEARCH, fields).wire["categories"] == sent
    if "github" not in given:
        assert prepared("hosted", endpoints.SEARCH, fields).wire["categories"] == given


@pytest.mark.rule("server-bounds", "scrape-location", "search-location", "agent-server-fields")
def test_countries_are_sent_in_capitals() -> None:
    for endpoint, fields in [
        (endpoints.SCRAPE, {"url": SITE, "location": {"country": "de"}}),
        (endpoints.MAP, {"url": SITE, "location": {"country": "De"}}),
        (endpoints.START_AGENT, {"prompt": "p", "location": {"country": "de"}}),
    ]:
        assert prepared("hosted", endpoint, fields).wire["location"] == {"country": "DE"}
    assert prepared("hosted", endpoints.SEARCH, {"query": "q", "country": "de"}).wire["country"] == "DE"
    for wrong in ("Germany", "d", "D1", "ÄÖ", "DE\n"):
        with pytest.raises(ValidationError, match="must be a two-letter country code, such as DE"):
            SearchRequest.model_validate({"query": "q", "country": wrong})
