# SPDX-License-Identifier: Apache-2.0
"""Sites as a self-hosted server reads them: without an index of its own, and by the exact address.

A running server showed these differences; none of their exchanges was recorded: see docs/sandbox.md#profiles.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.support.waiting import PATIENCE
from webdata_sandbox.server import SandboxServer

SITE = "https://site.example.org"


@pytest.fixture(scope="module")
def server() -> Iterator[SandboxServer]:
    with SandboxServer(profile="self-hosted", queue_seconds=0, closing_seconds=0) as running:
        yield running


@pytest.fixture
def sandbox(server: SandboxServer) -> SandboxServer:
    server.control.reset()
    links = f'<a href="{SITE}/a/">a</a><a href="{SITE}/b?p=1">b</a>'
    server.control.set_page(f"{SITE}/", links, title="Home")
    server.control.set_page(f"{SITE}/a/", "<p>with a slash</p>", title="A")
    server.control.set_page(f"{SITE}/b", "<p>without one</p>", title="B")
    server.control.set_page(f"{SITE}/b?p=1", "<p>with a query</p>", title="B 1")
    server.control.set_site("site.example.org", sitemap=[f"{SITE}/a/", f"{SITE}/b?p=1", f"{SITE}/b"])
    return server


@pytest.fixture
def http(server: SandboxServer) -> Iterator[httpx.Client]:
    headers = {"Authorization": f"Bearer {server.api_key}"}
    with httpx.Client(base_url=server.url, headers=headers, timeout=PATIENCE, trust_env=False) as client:
        yield client


def mapped(http: httpx.Client, **body: Any) -> list[str]:
    links = http.post("/v2/map", json={"url": SITE, **body}).json()["links"]
    return [link["url"].removeprefix(SITE) for link in links]


def pages(sandbox: SandboxServer, http: httpx.Client, kind: str, **body: Any) -> dict[str, Any]:
    """Return the metadata of a job's documents by the requested path."""
    path = f"/v2/{kind}"
    job = f"{path}/{http.post(path, json=body).json()['id']}"
    sandbox.control.advance(3600)
    status = http.get(job).json()
    assert status["status"] == "completed"
    found = [document["metadata"] for document in status["data"]]
    return {metadata["sourceURL"].removeprefix(SITE): metadata for metadata in found}


@pytest.mark.rule("self-hosted-map")
def test_a_map_has_addresses_without_query_and_last_slash(sandbox: SandboxServer, http: httpx.Client) -> None:
    assert mapped(http) == ["", "/a", "/b"]
    assert mapped(http, ignoreQueryParameters=False) == ["", "/a", "/b?p=1", "/b"]
    sandbox.control.configure(profile="hosted")
    assert mapped(http) == ["/", "/a", "/b"]


@pytest.mark.rule("self-hosted-slash")
def test_some_addresses_exist_only_with_the_slash(sandbox: SandboxServer, http: httpx.Client) -> None:
    def status(path: str) -> int:
        document = http.post("/v2/scrape", json={"url": f"{SITE}{path}"}).json()["data"]
        return int(document["metadata"]["statusCode"])

    paths = ("/a/", "/a", "/b", "/b/", "/", "")
    assert [status(path) for path in paths] == [200, 404, 200, 200, 200, 200]
    crawled = pages(sandbox, http, "crawl", url=SITE, limit=10)
    assert {path: metadata["statusCode"] for path, metadata in crawled.items()} == {
        "/": 200, "/a/": 200, "/b?p=1": 200, "/b": 200,
    }  # fmt: skip
    batch = pages(sandbox, http, "batch/scrape", urls=[f"{SITE}{path}" for path in mapped(http)])
    assert {path: metadata["statusCode"] for path, metadata in batch.items()} == {
        "": 200,
        "/a": 404,
        "/b": 200,
    }
    sandbox.control.configure(profile="hosted")
    assert status("/a") == 200


@pytest.mark.rule("metadata-server")
def test_pages_that_wait_for_others_say_so(sandbox: SandboxServer, http: httpx.Client) -> None:
    urls = [f"{SITE}/{name}" for name in ("", "a/", "b")]
    found = pages(sandbox, http, "batch/scrape", urls=urls)
    assert [metadata["concurrencyLimited"] for metadata in found.values()] == [False, True, True]
    assert ["concurrencyQueueDurationMs" in metadata for metadata in found.values()] == [False, True, True]
    sandbox.control.configure(concurrency=3)
    found = pages(sandbox, http, "batch/scrape", urls=urls)
    assert {metadata["concurrencyLimited"] for metadata in found.values()} == {False}


@pytest.mark.rule("job-errors")
@pytest.mark.parametrize("kind", ["crawl", "batch/scrape"])
def test_a_job_that_loses_a_page(sandbox: SandboxServer, http: httpx.Client, kind: str) -> None:
    """It is in neither the documents, the errors, nor the counts."""
    sandbox.control.add_fault("lose_page", path=f"{SITE}/b")
    body = {"url": SITE} if kind == "crawl" else {"urls": [f"{SITE}/a/", f"{SITE}/b"]}
    job = http.post(f"/v2/{kind}", json=body).json()["id"]
    sandbox.control.advance(3600)
    status = http.get(f"/v2/{kind}/{job}").json()
    read = 3 if kind == "crawl" else 1
    assert (status["status"], status["total"], status["completed"], len(status["data"])) == (
        "completed", read, read, read,
    )  # fmt: skip
    assert http.get(f"/v2/{kind}/{job}/errors").json()["errors"] == []


@pytest.mark.rule("delivery-private", "self-hosted-private")
def test_private_addresses_are_refused(sandbox: SandboxServer, http: httpx.Client) -> None:
    url = "http://10.0.0.7:8000/page"
    sandbox.control.set_page(url, "<p>private</p>")
    assert http.post("/v2/scrape", json={"url": url}).status_code == 200
    sandbox.control.set_quirks(["private-refused"])
    refused = http.post("/v2/scrape", json={"url": url})
    assert (refused.status_code, refused.json()["code"]) == (500, "SCRAPE_ALL_ENGINES_FAILED")
    webhook = {"url": "http://127.0.0.1:9/hook"}
    job = http.post("/v2/batch/scrape", json={"urls": [url, f"{SITE}/b"], "webhook": webhook}).json()["id"]
    sandbox.control.advance(3600)
    assert http.get(f"/v2/batch/scrape/{job}").json()["completed"] == 1
    [error] = http.get(f"/v2/batch/scrape/{job}/errors").json()["errors"]
    assert (error["url"], error["code"]) == (url, "SCRAPE_ALL_ENGINES_FAILED")
    assert sandbox.control.deliveries() == []  # skipped silently
