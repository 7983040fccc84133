# SPDX-License-Identifier: Apache-2.0
"""The compared clients, each as a function that sends one search and returns the number of results."""

from __future__ import annotations

from collections.abc import Callable

KEY = "wd-benchmark-key"

Search = Callable[[], int]


def raw_httpx(url: str) -> Search:
    """Search with plain httpx and `response.json()`: handwritten code without validation."""
    import httpx

    client = httpx.Client(headers={"authorization": f"Bearer {KEY}"}, timeout=60)

    def search() -> int:
        response = client.post(f"{url}/v2/search", json={"query": "wheat", "limit": 10})
        response.raise_for_status()
        return len(response.json()["data"]["web"])

    return search


def provider(url: str) -> Search:
    """Search with this package's client, which validates the request and the response."""
    from airflow_provider_webdata.api import endpoints
    from airflow_provider_webdata.api.client import ClientConfig, WebDataClient
    from airflow_provider_webdata.api.models import SearchRequest

    client = WebDataClient(ClientConfig(url, KEY, timeout=60))

    def search() -> int:
        answer = client.call(endpoints.SEARCH, body=SearchRequest(query="wheat", limit=10))
        assert answer.data is not None
        assert answer.data.web is not None
        return len(answer.data.web)

    return search


def other_client(url: str) -> Search:
    """Search with firecrawl-py, the client of the public service."""
    from firecrawl import Firecrawl

    client = Firecrawl(api_key=KEY, api_url=url)

    def search() -> int:
        return len(client.search("wheat", limit=10).web or [])

    return search


CONTENDERS: dict[str, Callable[[str], Search]] = {
    "httpx + json": raw_httpx,
    "this provider": provider,
    "firecrawl-py": other_client,
}
