# SPDX-License-Identifier: Apache-2.0
"""A service that has only jobs, over real HTTP, and answers what a test sets.

Where the sandbox behaves as the service is documented to, this one does what a test needs: it loses requests or
answers, hides jobs from its lists, and does not end a job by itself.
"""

from __future__ import annotations

import contextlib
import json
import threading
import urllib.request
import uuid
from datetime import datetime, timezone
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from tests.support.service import JOB_PATHS

RUNNING = {"crawl": "scraping", "batch_scrape": "scraping", "agent": "processing"}

Answer = tuple[int, Any, dict[str, str]]

REFUSED: Answer = (401, {"success": False, "error": "Unauthorized: Invalid token"}, {})
"""The answer to a wrong key."""


def _part(path: str, job: dict[str, Any], query: str) -> dict[str, Any]:
    """Return the state of a job with pages after `skip`, and `next` until the job is completed."""
    pages = job.get("data")
    if not isinstance(pages, list):
        return job
    asked = {name: int(value) for name, value in parse_qsl(query)}
    skip = asked.get("skip", 0)
    shown = pages[skip : skip + asked.get("limit", 100)]
    if job["status"] == "completed" and skip + len(shown) >= len(pages):
        return {**job, "data": shown}
    return {**job, "data": shown, "next": f"https://elsewhere.example{path}?skip={skip + len(shown)}"}


class JobService:
    """Jobs by kind and id, whose states the test sets.

    :ivar jobs: bodies of status answers, by path.
    :ivar bodies: of the requests that started a job.
    :ivar faults: answers to the next requests, one each, before all others; None: none until the service stops.
    :ivar start_faults: the faults of the next starts: `lose request`, `lose answer`, `empty id`, or the status of
        an answer though the job is started.
    :ivar bills: whether it is a server with billing and a database; otherwise it lists no calls, and a key ends it.
    :ivar lists: whether jobs show in the activity and among the running crawls.
    :ivar names: whether the activity names the targets of jobs.
    :ivar honours_keys: whether an idempotency key works once.
    :ivar runs_as: the fields of a job that runs, besides its status.
    :ivar ends_after: polls of a job after which it is over; None: it never is.
    :ivar ends_as: the fields of a job that is over.
    :ivar cancel_faults: answers to the next cancels, which cancel nothing.
    :ivar errors: answer of the list of failed pages; None: the connection is lost.
    :ivar ends_at_cancel: whether a job ends just before it would be canceled.
    :ivar api_key: any is accepted.
    :ivar accepts: the only key that is accepted; None: any.
    """

    api_key = "any"

    def __init__(self) -> None:
        self.jobs: dict[str, dict[str, Any]] = {}
        self.bodies: list[dict[str, Any]] = []
        self.keys: list[str | None] = []
        self.faults: list[Answer | None] = []
        self.accepts: str | None = None
        self._stopped = threading.Event()
        self.start_faults: list[Any] = []
        self.requests: list[str] = []
        self.bills = True
        self.lists = True
        self.names = True
        self.honours_keys = True
        self.runs_as: dict[str, Any] = {}
        self.ends_after: int | None = None
        self.ends_as: dict[str, Any] = {"status": "completed"}
        self.cancel_faults: list[Answer] = []
        self.ends_at_cancel = False
        self.limited = False
        self.invalid_urls: list[str] = []
        self.errors: Any = {"errors": [], "robotsBlocked": []}
        self.errors_status = 200
        self.activity: list[dict[str, Any]] = []
        service = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def log_message(self, *_: Any) -> None: ...

            def answer(self) -> None:
                # As the connection's proxy, it gets whole URLs.
                parts = urlsplit(self.path)
                self.path = parts.path + (f"?{parts.query}" if parts.query else "")
                service.requests.append(f"{self.command} {self.path}")
                length = int(self.headers.get("Content-Length") or 0)
                body = json.loads(self.rfile.read(length)) if length else None
                path, _, query = self.path.partition("?")
                found: Answer | None = REFUSED
                if service.accepts is None or self.headers["Authorization"] == f"Bearer {service.accepts}":
                    key = self.headers.get("x-idempotency-key")
                    found = service.answer(self.command, path, body, key, query)
                if found is None:
                    self.close_connection = True
                    with contextlib.suppress(OSError):
                        self.connection.shutdown(2)
                    return
                status, body, headers = found
                data = json.dumps(body).encode()
                self.send_response(status)
                for name, value in {"Content-Type": "application/json", **headers}.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

        for method in ("GET", "POST", "PUT", "DELETE"):
            setattr(Handler, f"do_{method}", Handler.answer)
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def stop(self) -> None:
        self._stopped.set()
        self._server.shutdown()
        self._server.server_close()

    def set(self, kind: str, job_id: str, status: str, **fields: Any) -> None:
        self.jobs[f"{JOB_PATHS[kind]}/{job_id}"] = {"success": True, "status": status, **fields}

    def set_all(self, status: str, **fields: Any) -> None:
        """Give all jobs a state."""
        for job in self.jobs.values():
            job.update(status=status, **fields)

    def looks(self, job_id: str = "") -> list[str]:
        return [line for line in self.requests if line.startswith("GET") and job_id in line]

    def cancels(self) -> list[str]:
        return [line for line in self.requests if line.startswith("DELETE")]

    def started(self) -> list[str]:
        """Ids of the jobs that were started."""
        return [item["id"] for item in self.activity]

    def answer(self, method: str, path: str, body: Any, key: str | None, query: str = "") -> Answer | None:
        if method == "POST":
            return self._start(path, body, key)
        if method == "PUT":
            return self._limit()
        if self.faults:
            fault = self.faults.pop(0)
            if fault is None:
                self._stopped.wait()
            return fault
        if path == "/v2/team/activity" and not self.bills:
            return 500, {"success": False, "error": "Failed to fetch activity."}, {}
        if path == "/v2/team/activity":
            # Of a busy team: without a filter, the newest calls are scrapes.
            wanted = dict(parse_qsl(query)).get("endpoint", "scrape")
            items = reversed(self.activity) if self.lists else ()
            shown = [
                item if self.names else {**item, "target": None}
                for item in items
                if item["endpoint"] == wanted
            ]
            return 200, {"success": True, "data": shown, "cursor": None, "has_more": False}, {}
        if path == "/v2/crawl/active":
            # Each entry of the activity is a started job.
            crawls = [
                {"id": item["id"], "teamId": "t", "url": item["target"], "options": body}
                for item, body in zip(self.activity, self.bodies, strict=True)
                if item["endpoint"] == "crawl"
                and self.jobs[f"/v2/crawl/{item['id']}"]["status"] == "scraping"
            ]
            return 200, {"success": True, "crawls": crawls if self.lists else []}, {}
        if path.endswith("/errors"):
            return None if self.errors is None else (self.errors_status, self.errors, {})
        job = self.jobs.get(path)
        if job is None:
            return 404, {"success": False, "error": "Job not found."}, {}
        if method == "GET":
            job["looks"] = job.get("looks", 0) + 1
            if self.ends_after is not None and job["looks"] > self.ends_after:
                job.update(self.ends_as)
            return 200, _part(path, job, query), {}
        if self.cancel_faults:
            return self.cancel_faults.pop(0)
        if self.ends_at_cancel:
            job.update(self.ends_as)
        if job["status"] not in RUNNING.values():
            return 409, {"error": "Crawl is already completed"}, {}
        job["status"] = "cancelled"
        return 200, {"status": "cancelled"}, {}

    def _limit(self) -> Answer:
        """Refuse the next request, once, because the DAG of a test orders it."""
        if not self.limited:
            self.limited = True
            self.faults.append((429, {"error": "Rate limit exceeded"}, {"Retry-After": "1"}))
        return 200, {}, {}

    def _start(self, path: str, body: Any, key: str | None) -> Answer | None:
        fault = self.start_faults.pop(0) if self.start_faults else None
        if isinstance(fault, tuple):
            return fault
        if key is not None and not self.bills:
            self.keys.append(key)
            return None
        if fault == "lose request":
            return None
        if key is not None and self.honours_keys:
            if key in self.keys:
                return 409, {"success": False, "error": "Idempotency key already used"}, {}
            self.keys.append(key)
        (kind,) = [kind for kind, start in JOB_PATHS.items() if start == path]
        job_id = str(uuid.uuid4())
        self.bodies.append(body)
        self.set(kind, job_id, RUNNING[kind], **self.runs_as)
        target = body.get("url") or (body.get("urls") or [None])[0] or body.get("prompt")
        now = datetime.now(timezone.utc).isoformat()
        self.activity.append(
            {"id": job_id, "endpoint": kind, "api_version": "v2", "created_at": now, "target": target}
        )
        if body.get("webhook"):
            self._deliver(body["webhook"], kind, job_id)
        if fault == "lose answer":
            return None
        if isinstance(fault, int):
            return fault, {"success": False, "error": "something went wrong"}, {}
        named = "" if fault == "empty id" else job_id
        answer = {"success": True, "id": named, "url": f"{self.url}{path}/{job_id}"}
        return 200, {**answer, "invalidURLs": self.invalid_urls} if self.invalid_urls else answer, {}

    def _deliver(self, webhook: dict[str, Any], kind: str, job_id: str) -> None:
        event = {"success": True, "type": f"{kind}.started", "id": job_id, "webhookId": job_id, "data": []}
        request = urllib.request.Request(
            webhook["url"],
            json.dumps(event).encode(),
            {**webhook.get("headers", {}), "Content-Type": "application/json"},
        )
        with contextlib.suppress(OSError), urllib.request.urlopen(request, timeout=10):
            pass
