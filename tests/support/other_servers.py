# SPDX-License-Identifier: Apache-2.0
"""Other implementations of the service's API, replayed over real HTTP.

Each class answers in the statuses and shapes of one of them, as seen on 2026-11-28: see docs/servers.md#what-was-tried.
Pages are made up from their URLs, so that no test reads a site.
"""

from __future__ import annotations

import contextlib
import json
import re
import threading
import urllib.error
import urllib.request
import uuid
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar
from urllib.parse import parse_qsl, urlsplit

from tests.support.service import SANDBOX_KEY

EXPIRES = "2099-01-01T00:00:00.000Z"
NO_BODY = ""
"""An answer with an empty body."""


@dataclass(frozen=True)
class Request:
    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    raw: bytes

    @property
    def body(self) -> dict[str, Any]:
        found = json.loads(self.raw or b"{}")
        return found if isinstance(found, dict) else {}


@dataclass(frozen=True)
class Answer:
    """An answer; a text is sent verbatim, anything else as JSON."""

    body: Any
    status: int = 200


@dataclass
class Job:
    """A job, which is over at its first poll.

    :param urls: its pages, in order.
    """

    id: str
    path: str
    urls: list[str]
    status: str = "completed"
    formats: list[Any] = field(default_factory=list)


def is_missing_page(url: str) -> bool:
    """Return whether a site has no such page: its URL ends with `/missing`."""
    return url.endswith("/missing")


def is_unreachable(url: str) -> bool:
    """Return whether a page cannot be fetched: its URL ends with `/unreachable`."""
    return url.endswith("/unreachable")


def pages_of(url: str, limit: int) -> list[str]:
    """Return the pages of a site, at most 250."""
    root = url.rstrip("/")
    return [url, *(f"{root}/{number}" for number in range(1, 250))][:limit]


class OtherServer:
    """A server whose subclasses are implementations.

    :cvar name: name and version of the implementation.
    :cvar kind: the kind of server that its user declares.
    :ivar api_key: any is accepted.
    :ivar requests: the requests, oldest first.
    :ivar jobs: its jobs by id.
    :ivar cut: paths whose next POST is executed, and its answer lost; each once.
    """

    name: ClassVar[str]
    kind: ClassVar[str]
    api_key = "any"

    def __init__(self) -> None:
        self.requests: list[Request] = []
        self.jobs: dict[str, Job] = {}
        self.cut: list[str] = []
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def log_message(self, *_: Any) -> None: ...

            def handle_one(self) -> None:
                parts = urlsplit(self.path)
                raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                headers = {name.lower(): value for name, value in self.headers.items()}
                request = Request(self.command, parts.path, dict(parse_qsl(parts.query)), headers, raw)
                server.requests.append(request)
                answer = server.answer(request)
                if self.command == "POST" and parts.path in server.cut:
                    server.cut.remove(parts.path)
                    self.close_connection = True
                    with contextlib.suppress(OSError):
                        self.connection.shutdown(2)
                    return
                is_text = isinstance(answer.body, str)
                data = answer.body.encode() if is_text else json.dumps(answer.body).encode()
                self.send_response(answer.status)
                if not is_text:
                    self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

        for method in ("GET", "POST", "PUT", "PATCH", "DELETE"):
            setattr(Handler, f"do_{method}", Handler.handle_one)
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> OtherServer:
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def starts(self, path: str = "/v2/crawl") -> list[Request]:
        """Return the requests that start a job."""
        return [one for one in self.requests if (one.method, one.path) == ("POST", path)]

    def answer(self, request: Request) -> Answer:
        """Return the answer to a request."""
        known = {
            "/v2/scrape": self.scrape,
            "/v2/crawl": self.start,
            "/v2/batch/scrape": self.start,
            "/v2/map": self.map,
            "/v2/search": self.search,
        }
        if request.method == "POST" and request.path in known:
            return known[request.path](request)
        if request.path == "/v2/crawl/active":
            return self.active()
        found = re.fullmatch(r"(/v2/crawl|/v2/batch/scrape)/([^/]+)(/errors)?", request.path)
        if found is None or request.method not in ("GET", "DELETE"):
            return self.missing(request)
        job = self.jobs.get(found[2])
        if job is None or job.path != found[1]:
            return self.unknown_job(found[2])
        if found[3]:
            return self.errors_of(job)
        return self.cancel(job) if request.method == "DELETE" else self.state(job, request)

    def missing(self, request: Request) -> Answer:
        """Answer a request for an operation that is not implemented."""
        raise NotImplementedError

    def scrape(self, request: Request) -> Answer:
        raise NotImplementedError

    def start(self, request: Request) -> Answer:
        return self.missing(request)

    def map(self, request: Request) -> Answer:
        return self.missing(request)

    def search(self, request: Request) -> Answer:
        return self.missing(request)

    def active(self) -> Answer:
        return Answer({"success": True, "crawls": []})

    def unknown_job(self, job_id: str) -> Answer:
        return Answer({"success": False, "error": "Job not found"}, 404)

    def errors_of(self, job: Job) -> Answer:
        return Answer({"errors": [], "robotsBlocked": []})

    def state(self, job: Job, request: Request) -> Answer:
        raise NotImplementedError

    def cancel(self, job: Job) -> Answer:
        raise NotImplementedError

    def add_job(self, request: Request, job_id: str | None = None) -> Job:
        """Store the job of a request, which has no unknown options."""
        body = request.body
        urls = body.get("urls") or pages_of(body["url"], body.get("limit") or 100)
        options = body.get("scrapeOptions") or body
        job = Job(job_id or str(uuid.uuid4()), request.path, urls, formats=options.get("formats") or [])
        self.jobs[job.id] = job
        return job


class Groktocrawl(OtherServer):
    """A Python server with FastAPI, without a browser and a search key.

    :ivar accepts: the only accepted key; None: any.
    """

    name, kind = "groktocrawl 7c64ed1", "self-hosted"
    accepts: str | None = None

    def answer(self, request: Request) -> Answer:
        if self.accepts and request.headers.get("authorization") != f"Bearer {self.accepts}":
            return Answer({"detail": "Invalid or missing API key."}, 403)
        return super().answer(request)

    def missing(self, request: Request) -> Answer:
        return Answer({"detail": "Not Found"}, 404)

    def _invalid(self, name: str, message: str) -> Answer:
        details = [{"field": name, "message": message}]
        body = {"success": False, "error": "Request validation failed", "error_code": "VALIDATION_ERROR"}
        return Answer({**body, "details": details}, 422)

    def _document(self, url: str) -> dict[str, Any]:
        return {"markdown": f"# Page {url}", "metadata": {"title": f"Page {url}"}}

    def scrape(self, request: Request) -> Answer:
        body = request.body
        if not isinstance(url := body.get("url"), str):
            return self._invalid("url", "Field required")
        if any(not isinstance(one, str) for one in body.get("formats") or ()):
            return self._invalid("formats.0", "Input should be a valid string")
        if is_missing_page(url) or is_unreachable(url) or url.endswith(".pdf"):
            failed = {"success": False, "error": f"Failed to scrape {url}", "error_code": "SCRAPE_FAILED"}
            return Answer(failed, 502)
        return Answer({"success": True, "data": self._document(url)})

    def start(self, request: Request) -> Answer:
        body = request.body
        if not body.get("url") and not body.get("urls"):
            return self._invalid("url", "Field required")
        job = self.add_job(request)
        if body.get("includePaths"):
            # They are not regular expressions there, so that none of the usual ones matches.
            job.urls = []
        return Answer({"success": True, "id": job.id})

    def map(self, request: Request) -> Answer:
        return Answer({"success": True, "links": [{"url": one} for one in pages_of(request.body["url"], 5)]})

    def search(self, request: Request) -> Answer:
        return Answer({"success": True, "data": {"web": []}})

    def active(self) -> Answer:
        running = [
            {"id": job.id, "status": "processing"} for job in self.jobs.values() if job.status == "processing"
        ]
        return Answer({"success": True, "data": running})

    def state(self, job: Job, request: Request) -> Answer:
        documents = [
            {"url": url, "markdown": f"# Page {url}"} if "batch" in job.path else self._document(url)
            for url in job.urls
            if not is_missing_page(url) and not is_unreachable(url)
        ]
        numbers = {"total": len(job.urls), "completed": len(documents), "creditsUsed": 0}
        return Answer({"success": True, "status": job.status, **numbers, "data": documents})

    def cancel(self, job: Job) -> Answer:
        if job.status == "completed":
            return Answer({"success": False, "error": "Job not found", "error_code": "NOT_FOUND"}, 404)
        job.status = "cancelled"
        return Answer({"success": True, "status": "cancelled"})


class FirecrawlLb(OtherServer):
    """A balancer over keys of the hosted service, which a sandbox plays.

    It forwards the body alone: without the request's headers, such as the idempotency key, and, for reads of jobs,
    without the query.

    :param upstream: address of the service.
    """

    name, kind = "firecrawl-lb 0.1.0b2", "gateway"

    _ROUTES = ("/v2/scrape", "/v2/map", "/v2/search", "/v2/crawl", "/v2/batch/scrape")

    def __init__(self, upstream: str, key: str = SANDBOX_KEY) -> None:
        super().__init__()
        self.upstream, self.key = upstream, key
        self._known: set[str] = set()

    def answer(self, request: Request) -> Answer:
        if request.path in self._ROUTES:
            if request.method != "POST":
                return _refusal(405, "Method Not Allowed", "method_not_allowed")
            return self._forwarded(request)
        found = re.fullmatch(r"(/v2/crawl|/v2/batch/scrape)/([^/]+)", request.path)
        if found is None or request.method not in ("GET", "DELETE"):
            return self.missing(request)
        # It knows only the jobs that it has started.
        return self._forwarded(request) if found[2] in self._known else self.unknown_job(found[2])

    def _forwarded(self, request: Request) -> Answer:
        sent = urllib.request.Request(
            f"{self.upstream}{request.path}", request.raw or None, method=request.method
        )
        sent.add_header("Authorization", f"Bearer {self.key}")
        sent.add_header("Content-Type", "application/json")
        try:
            with urllib.request.urlopen(sent, timeout=60) as response:
                status, data = response.status, response.read()
        except urllib.error.HTTPError as error:
            with error:
                status, data = error.code, error.read()
        body = json.loads(data)
        if request.method == "POST" and isinstance(body.get("id"), str):
            self._known.add(body["id"])
        return Answer(body, status)

    def missing(self, request: Request) -> Answer:
        return _refusal(404, "Not Found", "not_found")

    def unknown_job(self, job_id: str) -> Answer:
        return _refusal(404, "Firecrawl job not found", "not_found")


def _refusal(status: int, message: str, code: str) -> Answer:
    return Answer({"error": {"message": message, "type": "invalid_request_error", "code": code}}, status)


class FirecrawlCompat(OtherServer):
    """A Bun server over two other services, which scrapes and searches only."""

    name, kind = "firecrawl-compat 8e09318", "self-hosted"

    def missing(self, request: Request) -> Answer:
        return Answer({"success": False, "error": "Not found"}, 404)

    def scrape(self, request: Request) -> Answer:
        body = request.body
        if not isinstance(url := body.get("url"), str):
            return Answer({"success": False, "error": "url is required"}, 400)
        # A format as an object silently returns no content, and a missing page has the status 200.
        named = [one for one in body.get("formats") or ["markdown"] if isinstance(one, str)]
        document = {name: f"# Page {url}" for name in named if name in ("markdown", "html", "rawHtml")}
        metadata = {"title": f"Page {url}", "sourceURL": url, "statusCode": 200}
        return Answer({"success": True, "data": {**document, "metadata": metadata}})

    def search(self, request: Request) -> Answer:
        found = [{"url": "https://river.example/", "title": "River", "description": "412 cm"}]
        return Answer({"success": True, "data": {"web": found[: request.body.get("limit", 5)]}})

    def answer(self, request: Request) -> Answer:
        if request.path not in ("/v2/scrape", "/v2/search"):
            return self.missing(request)
        return super().answer(request)


class Crw(OtherServer):
    """A Rust server, which keeps its jobs in memory; its routes were read, and are replayed."""

    name, kind = "crw 4d4d9fc", "self-hosted"

    def missing(self, request: Request) -> Answer:
        return Answer(NO_BODY, 404)

    def _refused(self, status: int, message: str, code: str) -> Answer:
        return Answer({"success": False, "error": message, "errorCode": code}, status)

    def _document(self, url: str, formats: list[Any]) -> dict[str, Any]:
        names = [one if isinstance(one, str) else one["type"] for one in formats or ["markdown"]]
        document: dict[str, Any] = {
            "metadata": {
                "title": f"Page {url}",
                "sourceURL": url,
                "url": url,
                "statusCode": 404 if is_missing_page(url) else 200,
                "creditsUsed": 1,
            }
        }
        texts = {"markdown": f"# Page {url}", "rawHtml": f"<h1>Page {url}</h1>", "links": []}
        return document | {name: text for name, text in texts.items() if name in names}

    def scrape(self, request: Request) -> Answer:
        body = request.body
        if not isinstance(url := body.get("url"), str):
            return self._refused(400, "Invalid request: missing field `url`", "invalid_request")
        if is_unreachable(url):
            return self._refused(422, f"Target unreachable: {url}", "target_unreachable")
        document = self._document(url, body.get("formats") or [])
        if is_missing_page(url):
            return Answer({"success": False, "data": document, "error": "Target returned HTTP 404"})
        return Answer({"success": True, "data": document})

    def start(self, request: Request) -> Answer:
        if not request.body.get("url") and not request.body.get("urls"):
            return self._refused(400, "Invalid request: missing field `url`", "invalid_request")
        job = self.add_job(request)
        return Answer({"success": True, "id": job.id, "url": f"{self.url}{job.path}/{job.id}"})

    def map(self, request: Request) -> Answer:
        return Answer({"success": True, "links": [{"url": one} for one in pages_of(request.body["url"], 5)]})

    def search(self, request: Request) -> Answer:
        return self._refused(503, "Search is disabled: set [search].searxng_url", "search_disabled")

    def active(self) -> Answer:
        running = [job.id for job in self.jobs.values() if job.status == "scraping"]
        return Answer({"success": True, "crawls": running})

    def unknown_job(self, job_id: str) -> Answer:
        return self._refused(404, f"Not found: job {job_id} not found", "not_found")

    def state(self, job: Job, request: Request) -> Answer:
        skip, limit = int(request.query.get("skip", 0)), int(request.query.get("limit", 100))
        # An unreachable page leaves no document and no error, but a batch counts it.
        reached = [url for url in job.urls if not is_unreachable(url)]
        shown = reached[skip : skip + max(limit, 1)]
        end = skip + len(shown)
        has_more = end < len(reached) or job.status == "scraping"
        return Answer(
            {
                "success": True,
                "status": job.status,
                "total": len(job.urls),
                "completed": len(job.urls) if "batch" in job.path else len(reached),
                "creditsUsed": len(reached),
                "expiresAt": EXPIRES,
                "next": f"{self.url}{job.path}/{job.id}?skip={end}" if has_more else None,
                "data": [self._document(url, job.formats) for url in shown],
            }
        )

    def cancel(self, job: Job) -> Answer:
        if job.status == "completed":
            return self._refused(400, "Invalid request: Crawl job already finished", "invalid_request")
        job.status = "cancelled"
        return Answer({"success": True, "status": "cancelled"})


class NodeByte(OtherServer):
    """A Node server, in the shapes of its API page: nested documents, short ids, search results as a list."""

    name, kind = "NodeByte Crawl", "self-hosted"

    def missing(self, request: Request) -> Answer:
        return Answer({"success": False, "error": "Not found"}, 404)

    def scrape(self, request: Request) -> Answer:
        # Its API page shows no scrape.
        return self.missing(request)

    def start(self, request: Request) -> Answer:
        kind = "batch" if "batch" in request.path else "crawl"
        job = self.add_job(request, f"{kind}_01HFQ{len(self.jobs)}")
        return Answer({"success": True, "id": job.id, "url": f"{self.url}{job.path}/{job.id}"})

    def map(self, request: Request) -> Answer:
        return Answer({"success": True, "links": pages_of(request.body["url"], 3)})

    def search(self, request: Request) -> Answer:
        found = {"url": "https://river.example/", "title": "River", "snippet": "412 cm", "engine": "bing"}
        return Answer({"success": True, "query": request.body.get("query"), "total": 1, "data": [found]})

    def active(self) -> Answer:
        return Answer({"success": False, "error": "Not found"}, 404)

    def errors_of(self, job: Job) -> Answer:
        return Answer({"success": False, "error": "Not found"}, 404)

    def state(self, job: Job, request: Request) -> Answer:
        documents: list[dict[str, Any]] = []
        for url in job.urls:
            content = {"markdown": f"# Page {url}", "metadata": {"title": f"Page {url}"}}
            nested = {"url": url, "success": True, "data": content}
            documents.append(nested if "batch" in job.path else {"url": url, **content})
        numbers = {"total": len(documents), "completed": len(documents), "expiresAt": EXPIRES}
        return Answer({"success": True, "status": job.status, **numbers, "data": documents})

    def cancel(self, job: Job) -> Answer:
        return Answer({"success": False, "error": "Not found"}, 404)


@contextlib.contextmanager
def each_of(upstream: str, key: str = SANDBOX_KEY) -> Any:
    """Yield a running server of each implementation.

    :param upstream: address of the service behind the balancer.
    """
    with contextlib.ExitStack() as parts:
        servers = (Groktocrawl(), FirecrawlLb(upstream, key), FirecrawlCompat(), Crw(), NodeByte())
        yield tuple(parts.enter_context(server) for server in servers)
