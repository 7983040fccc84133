"""Government search, over pages that declare themselves government pages."""

from __future__ import annotations

from typing import TYPE_CHECKING

from webdata_sandbox.engine.index import Filters, Index, highlight
from webdata_sandbox.reference.prices import search_cost

from .call import Reply
from .endpoint import Endpoint
from .validation import query_body, valid_query

if TYPE_CHECKING:
    from webdata_sandbox.state.core import Core

    from .call import Call

PATH = "/v2/search/gov"
DEFAULT_RESULTS = 10
LABELS = ("jurisdiction", "court", "courtType", "cites")
"""Filters by index labels. No page of the sandbox has labels."""


class GovernmentSearch:
    """Handles ``GET`` and ``POST /v2/search/gov``."""

    def __init__(self, core: Core, index: Index) -> None:
        self._core, self._index = core, index

    def endpoints(self) -> list[Endpoint]:
        """Return the endpoints of this operation."""
        return [Endpoint(method, PATH, self.search, "search", keyless=True) for method in ("GET", "POST")]

    async def search(self, call: Call) -> Reply:
        """Validate, search, and bill."""
        operation = "search.gov"
        body = valid_query(operation, query_body(operation, call) if call.method == "GET" else call.body)
        self._core.credits.require()
        limit = body.get("k", DEFAULT_RESULTS)
        filters = Filters(include=(body["domain"],) if "domain" in body else ())
        is_unlabeled = body.keys().isdisjoint(LABELS)
        pages = self._index.web(body["query"], filters, limit, categories=["gov"]) if is_unlabeled else []
        self._core.credits.spend(search_cost(len(pages)))
        web = [
            {
                "url": page.url,
                "title": page.title,
                "description": highlight(page, body["query"]) or page.description,
                "position": position,
            }
            for position, page in enumerate(pages, 1)
        ]
        return Reply(200, {"success": True, "data": {"web": web}})
