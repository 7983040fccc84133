# SPDX-License-Identifier: Apache-2.0
"""Calls about jobs that scrape many pages, for the tests of crawl and batch scrape."""

from __future__ import annotations

from typing import Any

import httpx

from .conftest import Api

PATHS = {"crawl": "/v2/crawl", "batch_scrape": "/v2/batch/scrape"}
NOBODY = "0b0e3e1c-7d8a-4a53-9f7e-2f1f9a3b7c11"
HOST = "many.example"
"""A site that :func:`site` makes: page n is ``https://many.example/p/n``, the front page leads to all."""


def site(api: Api, pages: int, host: str = HOST, **fields: Any) -> list[str]:
    """Make a generated site and return the addresses of its pages, the front page first."""
    api.sandbox.control.set_site(host, pages=pages, **fields)
    return [f"https://{host}/", *(f"https://{host}/p/{number}" for number in range(1, pages + 1))]


class Job:
    """One crawl or batch scrape.

    :param body: the request.
    """

    def __init__(self, api: Api, kind: str, **body: Any) -> None:
        response = api.http.post(PATHS[kind], json=body)
        assert response.status_code == 200, response.text
        self.api, self.kind, self.answer = api, kind, response.json()
        self.id: str = self.answer["id"]
        self.path = f"{PATHS[kind]}/{self.id}"

    def poll(self, **query: Any) -> dict[str, Any]:
        response = self.api.http.get(self.path, params=query)
        assert response.status_code == 200, response.text
        return response.json()

    def settled(self) -> dict[str, Any]:
        self.api.sandbox.control.settle()
        return self.poll()

    def errors(self) -> dict[str, Any]:
        return self.api.http.get(f"{self.path}/errors").json()

    def cancel(self) -> httpx.Response:
        return self.api.http.delete(self.path)

    def urls(self) -> list[str]:
        """Let the job end, and return what it scraped, page by page of its results."""
        self.api.sandbox.control.settle()
        found: list[str] = []
        path: str | None = self.path
        while path:
            body = self.api.http.get(path).json()
            assert body["status"] in ("completed", "cancelled"), body
            found.extend(document["metadata"]["sourceURL"] for document in body["data"])
            path = body.get("next")
        return found


def crawl(api: Api, url: str = f"https://{HOST}/", **body: Any) -> Job:
    return Job(api, "crawl", url=url, **body)


def batch(api: Api, urls: list[str], **body: Any) -> Job:
    return Job(api, "batch_scrape", urls=urls, **body)


def start(api: Api, kind: str, urls: list[str], **body: Any) -> Job:
    """Start a job of that kind over a generated site's pages."""
    return crawl(api, urls[0], **body) if kind == "crawl" else batch(api, urls, **body)
