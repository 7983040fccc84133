# SPDX-License-Identifier: Apache-2.0
"""Research search, over pages that declare themselves scientific papers."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from webdata_sandbox.engine.index import Filters, Index, passages
from webdata_sandbox.engine.words import long_words, words
from webdata_sandbox.reference.errors import ServiceError
from webdata_sandbox.reference.prices import PAPER, search_cost

from .call import Reply
from .endpoint import Endpoint
from .validation import query_body, valid_query

if TYPE_CHECKING:
    from webdata_sandbox.engine.page import Page
    from webdata_sandbox.reference.wire import Json
    from webdata_sandbox.state.core import Core

    from .call import Call

PATH = "/v2/search/research/papers"
DEFAULT_PAPERS, DEFAULT_PASSAGES = 40, 4


class Research:
    """Handles requests under ``/v2/search/research/papers``."""

    def __init__(self, core: Core, index: Index) -> None:
        self._core, self._index = core, index

    def endpoints(self) -> list[Endpoint]:
        """Return the endpoints of this operation."""
        return [
            Endpoint("GET", PATH, self.search, "search", keyless=True),
            Endpoint("GET", PATH + "/{id}", self.paper, "search", keyless=True, free_ids=True),
            Endpoint("GET", PATH + "/{id}/similar", self.similar, "search", keyless=True, free_ids=True),
        ]

    async def search(self, call: Call) -> Reply:
        """Validate, search, and bill."""
        params = valid_query("search.research.papers", query_body("search.research.papers", call))
        self._core.credits.require()
        pages = [
            page
            for page in self._index.web(params["query"], Filters(), 1000, categories=["research"])
            if _matches(page, params)
        ]
        return self._results_reply(pages, params["query"], params)

    async def paper(self, call: Call) -> Reply:
        """Return one paper, with passages if the request has a query."""
        params = valid_query("search.research.paper", query_body("search.research.paper", call))
        page = self._page(call.params["id"])
        self._core.credits.require()
        self._core.credits.spend(PAPER)
        answer: Json = {"success": True, "paper": _paper(page)}
        if "query" in params:
            texts = passages(page, params["query"], params.get("k", DEFAULT_PASSAGES))
            answer.update(
                paperId=paper_id(page),
                query=params["query"],
                passages=[{"text": text, "score": score} for text, score in texts],
            )
        return Reply(200, answer)

    async def similar(self, call: Call) -> Reply:
        """List papers that are similar to a paper, cite it, or are cited by it."""
        params = valid_query("search.research.similar", query_body("search.research.similar", call))
        seeds = [self._page(name) for name in (call.params["id"], *params.get("anchor", []))]
        self._core.credits.require()
        others = [page for page in self._papers() if page not in seeds]
        mode = params.get("mode", "similar")
        if mode == "citers":
            others = [page for page in others if any(seed.url in page.links for seed in seeds)]
        elif mode == "references":
            others = [page for page in others if any(page.url in seed.links for seed in seeds)]
        wanted = long_words(params["intent"])
        others.sort(key=lambda page: (-len(wanted & set(words(page.body_text))), page.url))
        reply = self._results_reply(others, params["intent"], params)
        if reply.body is not None:
            reply.body.update(poolSize=len(others), truncated=False)
        return reply

    def _results_reply(self, pages: list[Page], query: str, params: Json) -> Reply:
        shown = pages[: params.get("k", DEFAULT_PAPERS)]
        self._core.credits.spend(search_cost(len(shown)))
        results = [found_paper(page, query) for page in shown]
        return Reply(200, {"success": True, "results": results})

    def _papers(self) -> list[Page]:
        return [page for page in self._index.all() if page.is_research]

    def _page(self, name: str) -> Page:
        for page in self._papers():
            if name in (paper_id(page), primary_id(page), primary_id(page).partition(":")[2]):
                return page
        raise ServiceError(404, "Paper not found")


def paper_id(page: Page) -> str:
    """Return the id of a paper in the index."""
    return str(int.from_bytes(hashlib.sha256(page.url.encode()).digest()[:7], "big"))


def primary_id(page: Page) -> str:
    """Return the DOI of a paper, with the prefix reserved for examples."""
    return f"doi:10.5555/{urlsplit(page.url).path.rpartition('/')[2].partition('.')[0]}"


def _matches(page: Page, params: Json) -> bool:
    authors = " ".join(page.meta.get("citation_author", [])).lower()
    if not all(name.lower() in authors for name in params.get("authors", [])):
        return False
    if not set(params.get("categories", [])) <= set(page.meta.get("citation_keywords", [])):
        return False
    day = page.published.date().isoformat() if page.published else ""
    return bool(params.get("from", "") <= day <= params.get("to", "9999"))


def found_paper(page: Page, query: str) -> Json:
    """Return a paper as the result of a search."""
    wanted = set(words(query))
    score = len(wanted & set(words(f"{page.title} {page.body_text}"))) / max(1, len(wanted))
    name = primary_id(page)
    return {
        "paperId": paper_id(page),
        "primaryId": name,
        "ids": {"doi": [name.removeprefix("doi:")]},
        "title": page.title,
        "abstract": page.body_text,
        "score": round(score, 6),
    }


def _paper(page: Page) -> Json:
    day = page.published.date().isoformat() if page.published else None
    return {
        "paperId": paper_id(page),
        "ids": {"doi": [primary_id(page).removeprefix("doi:")]},
        "title": page.title,
        "abstract": page.description,
        "authors": ", ".join(page.meta.get("citation_author", [])),
        "categories": page.meta.get("citation_keywords", []),
        "createdDate": day,
        "updateDate": day,
    }
