# SPDX-License-Identifier: Apache-2.0
"""What differs between kinds of servers, and how a client names what one lacks.

The answers have the statuses, codes, and shapes of a recorded self-hosted server.
"""

from __future__ import annotations

import json
import re
from typing import Any

import httpx
import pytest

from airflow_provider_webdata.api import endpoints
from airflow_provider_webdata.api.config import ClientConfig
from airflow_provider_webdata.api.endpoints import Endpoint
from airflow_provider_webdata.api.errors import (
    APIError,
    AuthenticationError,
    ConfigurationError,
    InvalidRequestError,
    PageError,
    ServerError,
    UndeclaredServerError,
    UnsupportedError,
)
from airflow_provider_webdata.api.exchange import Reader, prepare
from airflow_provider_webdata.api.models import CrawlRequest, ScrapeRequest
from airflow_provider_webdata.api.servers import (
    DECLARED_HOSTED,
    GATEWAY,
    HOSTED,
    PLACEHOLDER_KEY,
    SELF_HOSTED,
    UNKNOWN,
    Kind,
    Server,
    missing_part,
    refuses_key,
)

OWN = "http://scraper.internal:3002"
HOSTED_URL = "https://api.firecrawl.dev"
KEY = "0b3c2a10-7a4e-4a51-9a51-0242ac120002"
PAGE = b'<!DOCTYPE html>\n<html lang="en">\n<body>\n<pre>Cannot GET /v2/agent</pre>\n</body>\n</html>\n'


@pytest.mark.parametrize(
    ("base_url", "declared", "server"),
    [
        (HOSTED_URL, None, HOSTED),
        (f"{HOSTED_URL}/v2", "hosted", HOSTED),
        (HOSTED_URL, "gateway", HOSTED),
        (OWN, None, UNKNOWN),
        ("https://api.firecrawl.dev.internal", None, UNKNOWN),
        (OWN, "hosted", DECLARED_HOSTED),
        (OWN, "gateway", GATEWAY),
        (OWN, "self-hosted", SELF_HOSTED),
    ],
)
def test_the_kind_of_a_connection(base_url: str, declared: Kind | None, server: Server) -> None:
    assert ClientConfig(base_url, "k", declared=declared).server is server


def test_the_hosted_service_is_not_self_hosted() -> None:
    with pytest.raises(ConfigurationError, match=r"server is 'self-hosted', but .* clear server"):
        ClientConfig(HOSTED_URL, "k", declared="self-hosted")


def test_a_self_hosted_server_and_a_gateway_need_no_key() -> None:
    for kind in ("self-hosted", "gateway"):
        assert ClientConfig(OWN, "", declared=kind).api_key == PLACEHOLDER_KEY  # type: ignore[arg-type]
    for declared in (None, "hosted"):
        with pytest.raises(
            ConfigurationError, match="set server to 'self-hosted' or 'gateway' if it requires"
        ):
            ClientConfig(OWN, "", declared=declared)  # type: ignore[arg-type]


@pytest.mark.rule("idempotency-key-servers")
@pytest.mark.parametrize("declared", [None, "gateway", "self-hosted"])
def test_only_a_server_that_stores_keys_receives_one(declared: Kind | None) -> None:
    body = CrawlRequest(url="https://example.com/", limit=1)

    def headers(config: ClientConfig, key: str | None) -> Any:
        call = prepare(config, endpoints.START_CRAWL, None, None, body, None, idempotency_key=key)
        return call.request["headers"]

    for hosted in (ClientConfig(HOSTED_URL, "k"), ClientConfig(OWN, "k", declared="hosted")):
        assert headers(hosted, KEY)["x-idempotency-key"] == KEY
    config = ClientConfig(OWN, "k", declared=declared)
    assert "x-idempotency-key" not in headers(config, None)
    with pytest.raises(InvalidRequestError, match="idempotency_key: only a hosted server stores it"):
        headers(config, KEY)


@pytest.mark.rule("idempotency-key-servers", "provider-request-id")
def test_only_the_service_itself_is_trusted_with_keys() -> None:
    """A lost response of another server may have been billed, whatever became of the key on the way."""

    def run(declared: Kind | None, base_url: str = OWN) -> Any:
        config = ClientConfig(base_url, "k", declared=declared)
        return prepare(config, endpoints.RUN_PROVIDER, None, None, None, {"alexandria": []})

    assert run(None, HOSTED_URL).is_repeatable
    assert run("gateway", HOSTED_URL).is_repeatable
    for declared, is_sent in (("hosted", True), ("gateway", False), (None, False)):
        prepared = run(declared)  # type: ignore[arg-type]
        assert not prepared.is_repeatable
        assert ("x-request-id" in prepared.request["headers"]) is is_sent
    with pytest.raises(UnsupportedError, match="it has no data providers"):
        run("self-hosted")


def refusal(
    declared: Kind | None, endpoint: Endpoint[Any], status: int, body: Any, wire: dict[str, Any]
) -> APIError:
    config = ClientConfig(OWN, "k", declared=declared)
    path = {"search_id": "f", "monitor_id": "m", "session_id": "s", "scrape_id": "c", "job_id": "j"}
    request = ScrapeRequest(url="https://example.com/", **wire) if endpoint is endpoints.SCRAPE else None
    prepared = prepare(config, endpoint, path, None, request, None if request else wire)
    reader = Reader(prepared, httpx.Response(status))
    reader.feed(body if isinstance(body, bytes) else json.dumps({"success": False, **body}).encode())
    with pytest.raises(APIError) as caught:
        reader.finish()
    return caught.value


UNKNOWN_ERROR = {"code": "UNKNOWN_ERROR", "error": "An error occurred."}
NO_ENGINE = {"code": "SCRAPE_ALL_ENGINES_FAILED", "error": "All engines failed. Engines tried: []."}
SOME_ENGINES = {"code": "SCRAPE_ALL_ENGINES_FAILED", "error": "All engines failed. Engines tried: [pdf]."}
FIND = {"alexandria": [{"provider": "catalog", "capability": "find-tools"}]}
NO_KEY = {"code": "BAD_REQUEST", "error": "Unrecognized key in body", "details": [{"keys": ["alexandria"], "message": "Unrecognized key: \"alexandria\""}]}  # fmt: skip # noqa: E501
NO_DATABASE = {"error": "Feedback requires database authentication.", "feedbackErrorCode": "DB_DISABLED"}
PROMPT = {"url": "https://example.com/", "prompt": "only the blog"}
NO_PROMPT = {"error": "Failed to process natural language prompt. Please try rephrasing."}
KINDS: tuple[Kind | None, ...] = ("hosted", "gateway", None, "self-hosted")
LESS = [kind for kind in KINDS if kind != "hosted"]


@pytest.mark.rule("server-lacks")
@pytest.mark.parametrize(
    ("endpoint", "wire", "status", "body", "kinds", "lack"),
    [
        (endpoints.LIST_MONITORS, {}, 500, UNKNOWN_ERROR, ["self-hosted"], "it has no monitors. Schedule"),
        (endpoints.CREDIT_USAGE, {}, 500, UNKNOWN_ERROR, ["self-hosted"], "it does not report credits"),
        (endpoints.LIST_SESSIONS, {}, 500, UNKNOWN_ERROR, ["self-hosted"], "need its browser service and a database"),
        (endpoints.OPEN_SESSION, {}, 503, {"error": "Browser is not configured"}, KINDS, "no browser sessions, which"),
        (endpoints.INTERACT_WITH_SCRAPE, {}, 501, {"error": "Not available"}, KINDS, "no scrapes, whose pages"),
        (endpoints.QUEUE_STATUS, {}, 503, NO_DATABASE, KINDS, "it has no database. Start it with one"),
        (endpoints.DEVELOPER_SEARCH, {}, 404, PAGE, KINDS, "no such search. Use a connection to"),
        (endpoints.QUEUE_STATUS, {}, 404, PAGE, KINDS, 'it has no such operation. Check "Base URL"'),
        (endpoints.SCRAPE, {"mobile": True}, 500, NO_ENGINE, KINDS, "supports the option. Omit it, .* \\(mobile\\)"),
        (endpoints.SCRAPE, {"formats": ["audio"]}, 500, NO_ENGINE, KINDS, "\\(format audio\\)"),
        (endpoints.SCRAPE, {"proxy": "enhanced"}, 500, SOME_ENGINES, ["self-hosted"], "\\(proxy\\)"),
        (endpoints.SCRAPE, {}, 500, SOME_ENGINES, [], ""),
        (endpoints.SCRAPE, {}, 400, {"code": "SCRAPE_ACTIONS_NOT_SUPPORTED", "error": "No"}, KINDS, "none of its"),
        (endpoints.SCRAPE, {"formats": ["summary"]}, 500, UNKNOWN_ERROR, ["self-hosted"], "language model"),
        (endpoints.SCRAPE, {}, 500, UNKNOWN_ERROR, [], ""),
        (endpoints.SCRAPE, {"formats": ["summary"]}, 500, {"code": "SCRAPE_SSL_ERROR", "error": "expired"}, [], ""),
        (endpoints.GET_SCRAPE, {}, 404, {"error": "Job not found."}, ["self-hosted"], "it keeps no scrapes"),
        (endpoints.GET_MONITOR, {}, 404, {"error": "Not found"}, LESS, "it has no monitors"),
        (endpoints.GET_MONITOR, {}, 404, {"error": "Monitor not found"}, [], ""),
        (endpoints.CRAWL_STATUS, {}, 404, {"error": "Not found"}, [], ""),
        (endpoints.FIND_TOOLS, FIND, 400, NO_KEY, KINDS, "it has no data providers"),
        (endpoints.CRAWL_PARAMS_PREVIEW, PROMPT, 400, NO_PROMPT, ["self-hosted"], r"language model.* \(prompt\)"),
        (endpoints.START_CRAWL, PROMPT, 400, {**NO_PROMPT, "code": "BAD_REQUEST"}, [], ""),
    ],
)  # fmt: skip
def test_what_a_server_lacks(
    endpoint: Endpoint[Any], wire: dict[str, Any], status: int, body: Any, kinds: Any, lack: str
) -> None:
    for declared in KINDS:
        error = refusal(declared, endpoint, status, body, wire)
        assert isinstance(error, UnsupportedError) is (declared in kinds), declared
        assert "proxy in front" not in str(error)
        if declared in kinds:
            assert error.verdict == "never"
            assert re.search(lack, " ".join(str(error).split()))


def test_what_may_be_a_passing_failure() -> None:
    """Only the declared kind tells a missing operation from a failure that passes."""
    page = b"<html>500 Internal Server Error</html>"
    assert type(refusal("self-hosted", endpoints.SCRAPE, 500, page, {"formats": ["summary"]})) is ServerError
    assert type(refusal("self-hosted", endpoints.LIST_MONITORS, 503, page, {})) is ServerError
    assert type(refusal("gateway", endpoints.GET_MONITOR, 404, b"", {})) is ServerError
    assert type(refusal("self-hosted", endpoints.GET_MONITOR, 404, b"", {})) is UnsupportedError
    no_key = {"error": "API key is missing"}
    assert type(refusal("self-hosted", endpoints.SCRAPE, 401, no_key, {})) is AuthenticationError
    body = {"code": "UNKNOWN_ERROR", "error": "x"}
    assert type(refusal("hosted", endpoints.LIST_MONITORS, 500, body, {})) is ServerError
    error = refusal(None, endpoints.LIST_MONITORS, 500, body, {})
    assert type(error) is UndeclaredServerError
    assert "If this is a self-hosted server, set server of the connection to 'self-hosted'" in str(error)
    assert type(refusal(None, endpoints.CONCURRENCY, 500, body, {})) is ServerError
    assert type(refusal("self-hosted", endpoints.SCRAPE, 500, SOME_ENGINES, {})) is PageError


@pytest.mark.parametrize(
    ("text", "is_key"),
    [
        ("Invalid or missing API key.", True),
        ("API key is invalid", True),
        ("Not authenticated", True),
        ("API key is missing required scope: crawl:write", False),
        ("Zero data retention is unknown for this team. Ask us for a token", False),
        ("Invalid URL. This site is not supported; your token has not been charged", False),
    ],
)
def test_a_403_about_the_key(text: str, is_key: bool) -> None:
    assert refuses_key(text) is is_key


def test_the_service_has_data_providers() -> None:
    """It names a mistake in the request."""
    wire = {"alexandria": [{"provider": "x"}]}
    text = "alexandria.0.capability: required; url is not allowed"
    assert missing_part(HOSTED, "run_provider", 400, "BAD_REQUEST", text, wire) is None
    assert missing_part(GATEWAY, "run_provider", 400, "BAD_REQUEST", text, wire)
