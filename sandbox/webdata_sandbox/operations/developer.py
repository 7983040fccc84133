# SPDX-License-Identifier: Apache-2.0
"""Developer search: issues, pull requests, and READMEs of repositories, and documentation."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from webdata_sandbox.engine.index import Filters, Index, passages
from webdata_sandbox.reference.errors import UnsupportedHereError
from webdata_sandbox.reference.prices import search_cost

from .call import Reply
from .endpoint import Endpoint
from .validation import query_body, valid_query

if TYPE_CHECKING:
    from webdata_sandbox.engine.page import Page
    from webdata_sandbox.reference.wire import Json
    from webdata_sandbox.state.core import Core

    from .call import Call

PATH = "/v2/search/developer"
KINDS = ("doc", "issue", "pull_request", "readme")
DEFAULT_RESULTS = 10
REPOSITORY_FILTERS = ("language", "topic", "license", "min_stars", "max_stars", "archived", "fork")
UNSUPPORTED_FILTERS = ("skills", "language", "topic", "license", "archived", "fork")
_STARS = re.compile(r"([\d,]+) stars")


class DeveloperSearch:
    """Handles ``GET`` and ``POST /v2/search/developer``."""

    def __init__(self, core: Core, index: Index) -> None:
        self._core, self._index = core, index

    def endpoints(self) -> list[Endpoint]:
        """Return the endpoints of this operation."""
        return [Endpoint(method, PATH, self.search, "search", keyless=True) for method in ("GET", "POST")]

    async def search(self, call: Call) -> Reply:
        """Validate, search, and bill."""
        operation = "search.developer"
        body = valid_query(operation, query_body(operation, call) if call.method == "GET" else call.body)
        if unsupported := [name for name in UNSUPPORTED_FILTERS if name in body]:
            raise UnsupportedHereError(f"filter by {', '.join(unsupported)}; omit this filter")
        self._core.credits.require()
        types = set(body.get("types", KINDS))
        pages = [page for page in self._index.web(body["query"], Filters(), 1000) if kind_of(page) in types]
        found = [page for page in pages if _admitted(page, body)][: body.get("k", DEFAULT_RESULTS)]
        self._core.credits.spend(search_cost(len(found)))
        answer: Json = {
            "success": True,
            "results": [_result(page, body) for page in found],
            "coverage": {kind: _coverage(kind, types, body) for kind in KINDS},
            "reranked": False,
        }
        known = [*self._index.all()]
        if "repos" in body:
            repos = {repo_of(page) for page in known}
            types_of = dict.fromkeys(("issue", "pullRequest", "readme"), True)
            answer["repos"] = [
                {"repo": name, "indexed": name in repos, "types": types_of if name in repos else {}}
                for name in body["repos"]
            ]
        if "sources" in body:
            hosts = {page.host for page in known if kind_of(page) == "doc"}
            answer["sources"] = [{"source": name, "indexed": name in hosts} for name in body["sources"]]
        return Reply(200, answer)


def kind_of(page: Page) -> str | None:
    """Return the developer type of a page, or None."""
    if page.host.startswith("docs."):
        return "doc"
    if not page.is_code:
        return None
    path = urlsplit(page.url).path
    return "issue" if "/issues/" in path else "pull_request" if "/pull/" in path else "readme"


def repo_of(page: Page) -> str | None:
    """Return the repository that a page is about, or None."""
    if kind_of(page) in (None, "doc"):
        return None
    return "/".join(urlsplit(page.url).path.removesuffix(".html").strip("/").split("/")[:2])


def _admitted(page: Page, body: Json) -> bool:
    if kind_of(page) == "doc":
        sources = body.get("sources")
        return page.host in sources if sources else not any(name in body for name in REPOSITORY_FILTERS)
    if body.get("repos") and repo_of(page) not in body["repos"]:
        return False
    match = _STARS.search(page.description)
    stars = int(match[1].replace(",", "")) if match else 0
    return bool(body.get("min_stars", 0) <= stars <= body.get("max_stars", stars))


def _coverage(kind: str, types: set[str], body: Json) -> str:
    if kind not in types:
        return "skipped"
    filtered = kind == "doc" and not body.get("sources") and any(name in body for name in REPOSITORY_FILTERS)
    return "unavailable" if filtered else "ok"


def _result(page: Page, body: Json) -> Json:
    kind, repo = kind_of(page), repo_of(page)
    number = urlsplit(page.url).path.removesuffix(".html").rpartition("/")[2]
    name = page.url if kind == "doc" else repo if kind == "readme" else f"{repo}#{number}"
    texts = passages(page, body["query"], body.get("passages", 1))
    return {
        "id": f"{kind}:{name}",
        "type": kind,
        "url": page.url,
        "title": page.title,
        "passages": [{"text": text} for text, _ in texts],
    }
