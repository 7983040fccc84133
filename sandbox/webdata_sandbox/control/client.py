# SPDX-License-Identifier: Apache-2.0
"""Client of the control API, for a sandbox in this process or elsewhere."""

from __future__ import annotations

import base64
import json
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import ProxyHandler, Request, build_opener

Json = dict[str, Any]


class ControlError(Exception):
    """The sandbox rejected a control API call. The message gives the reason."""


class SandboxControl:
    """Controls a running sandbox.

    :param url: the sandbox's address, for example ``http://127.0.0.1:8000``.
    :param timeout: seconds to wait for a response.
    """

    def __init__(self, url: str, *, timeout: float = 60.0) -> None:
        self.url = url.rstrip("/")
        self._timeout = timeout
        self._opener = build_opener(ProxyHandler({}))

    def requests(self, path: str | None = None, method: str | None = None) -> list[Json]:
        """Return the received requests, oldest first.

        :param path: a regular expression, matched from the start of the path; a plain prefix works too.
        :param method: return only requests with this method.
        :return: the latest 5000, as items of ``number`` (counted from 1), ``method``, ``path``, ``query``, ``headers``
            (lowercase names; the Authorization value is redacted), ``body``, and the ``status`` of the response (None:
            no response).
        """
        filters = {"path": path, "method": method}
        query = urlencode({name: value for name, value in filters.items() if value is not None})
        return self._list("GET", f"/requests?{query}")

    def clear_requests(self) -> None:
        """Clear the received requests."""
        self._call("DELETE", "/requests")

    def deliveries(self) -> list[Json]:
        """Return the webhook deliveries, oldest first: ``url``, ``body``, ``attempts``, and ``status``.

        The status is ``pending``, ``delivered``, ``failed`` (no retries left), or ``lost`` (dropped by a fault).
        """
        return self._list("GET", "/deliveries")

    def sessions(self) -> list[Json]:
        """Return the open and closed browser sessions, oldest first: ``status``, ``profile``, ``tab`` (address and kept
        values), and, for closed sessions, ``creditsBilled``.
        """
        return self._list("GET", "/sessions")

    def end_session(self, session_id: str) -> None:
        """Destroy a browser session while it is in use, as the service does after a browser failure."""
        self._call("DELETE", f"/sessions/{session_id}")

    def accept_terms(self, provider: str) -> None:
        """Accept the terms of a data provider as an administrator of the team."""
        self._call("POST", f"/terms/{provider}", {})

    def jobs(self, kind: str) -> list[Json]:
        """Return all jobs of a kind, oldest first: ``status``, ``request``, credits ``spent``.

        Extract and agent jobs have the remaining ``steps``. Crawls and batch scrapes have the numbers of pages
        ``found``, ``taken`` (attempted), ``completed``, and ``failed``.

        :param kind: ``crawl``, ``batch_scrape``, ``extract``, or ``agent``.
        """
        return self._list("GET", f"/jobs/{kind}")

    def set_page(self, url: str, html: str | None = None, **page: Any) -> None:
        """Create or replace a page, or set the canned answers that a scrape of it returns.

        :param html: the body or a complete document. Omit html and markdown to set only answers of an existing page.
        :param page: ``markdown`` instead of html; ``title``, ``description``, ``published`` (ISO 8601),
            ``language``, ``news`` (bool), ``status`` (HTTP), ``error`` (error code of its scrape),
            ``content_type``. Answers are ``json`` (any), ``answer``, ``highlights`` (text), ``screenshot``, ``audio``,
            ``video`` (a URL), ``branding``, ``product``, ``menu``, ``actions`` (mappings), and ``blocks`` (a list),
            in the format of the document. None removes an answer. Answers of an uploaded file have the URL
            ``file:///`` and its name.
        """
        self._call("PUT", "/pages", {"url": url, **({"html": html} if html is not None else {}), **page})

    def set_site(self, host: str, **site: Any) -> None:
        """Replace the properties of a host other than its pages.

        :param site: ``pages`` (number of generated pages, ``https://host/p/1`` and up, which use no memory), ``fanout``
            (links per page), ``size`` (characters per page), ``fail_every`` (n: every n-th page fails), ``robots``
            (text of robots.txt), ``sitemap`` (list of URLs, or True for all generated pages).
        """
        self._call("PUT", "/sites", {"host": host, **site})

    def set_media(
        self,
        url: str,
        kind: str,
        content: bytes | None = None,
        *,
        size: int | None = None,
        content_type: str | None = None,
    ) -> None:
        """Attach a file to a page. The format of the same name then links to it.

        :param kind: ``screenshot``, ``audio``, or ``video``.
        :param content: the file.
        :param size: generate a file of this many bytes instead.
        :param content_type: media type; the usual type of the kind when absent.
        """
        text = None if content is None else base64.b64encode(content).decode()
        file = {"url": url, "kind": kind, "content": text, "size": size, "content_type": content_type}
        self._call("PUT", "/media", file)

    def delete_page(self, url: str) -> bool:
        """Remove a page; return whether it existed."""
        return bool(self._call("DELETE", f"/pages?{urlencode({'url': url})}")["removed"])

    def pages(self) -> list[Json]:
        """Return the ``url``, ``title``, and ``status`` of every page."""
        return self._list("GET", "/pages")

    def add_fault(
        self,
        kind: str,
        *,
        method: str | None = None,
        path: str | None = None,
        times: int | None = 1,
        **how: Any,
    ) -> int:
        """Add a fault and return its id.

        :param kind: ``status``, ``delay``, ``drop``, ``drop_after_work``, ``truncate``, ``garbage``, ``html``,
            ``rate_limit``, ``fail_check``, ``fail_extract``, ``fail_agent``, ``fail_crawl``, ``fail_batch_scrape``,
            ``fail_provider`` (``path``: its ``provider/capability``), ``hang``, ``lose_page`` (``path``: the URL of a
            page of a job), ``lose_delivery``, ``late_delivery``, or ``lose_answer``.
        :param method: affect only calls with this method.
        :param path: affect only calls (or deliveries) whose path matches this regular expression from the start.
        :param times: number of occurrences; None for no limit.
        :param how: ``status``, ``body`` (for the job faults, the job's error), ``headers``, ``seconds`` (real time;
            sandbox time for ``late_delivery``), ``event`` (affect only deliveries of this event).
        """
        fault = {"kind": kind, "method": method, "path": path, "times": times, **how}
        return int(self._call("POST", "/faults", fault)["id"])

    def faults(self) -> list[Json]:
        """Return all added faults, with their ``hits``."""
        return self._list("GET", "/faults")

    def clear_faults(self) -> None:
        """Remove all faults."""
        self._call("DELETE", "/faults")

    def set_quirks(self, names: list[str] | tuple[str, ...]) -> None:
        """Enable exactly these quirks (``name`` or ``name=N``)."""
        self._call("PUT", "/quirks", list(names))

    def configure(self, **settings: Any) -> None:
        """Change settings: ``profile``, ``credits``, ``latency_ms``, ``queue_seconds``, ``check_seconds``,
        ``parse_seconds``, ``page_seconds``, ``closing_seconds``, ``pdf_seconds``, ``settle``, ``concurrency``,
        ``step_seconds``, ``free_runs``, ``max_sessions``, ``entitlements``, ``rate_limits`` (calls per minute by
        class), ``bulk`` (results, bytes), ``compress``.
        """
        self._call("PATCH", "/settings", settings)

    def state(self) -> Json:
        """Return the time, profile, credits, quirks, monitors (including deleted ones), and checks."""
        state: Json = self._call("GET", "/state")
        return state

    def advance(self, seconds: float) -> None:
        """Advance the clock and complete all work that becomes due."""
        self._call("POST", "/advance", {"seconds": seconds})

    def settle(self) -> None:
        """Wait until all due work (checks, deliveries) is complete."""
        self._call("POST", "/settle", {})

    def reset(self) -> None:
        """Restore the initial state."""
        self._call("POST", "/reset", {})

    def validate(self, operation: str, body: Any) -> list[Json]:
        """Return the violations that the sandbox finds in a body, without side effects.

        :param operation: ``search``, ``monitor.create``, ``monitor.update``, ``scrapeOptions``, ``scrape``,
            ``batch.scrape``, ``crawl``, ``crawl.params``, ``map``, ``parse``,
            ``extract``, ``agent``, ``interact``, ``interact.execute``, or ``scrape.interact``.
        """
        return self._list("POST", "/validate", {"operation": operation, "body": body})

    def _list(self, method: str, path: str, body: Any = None) -> list[Json]:
        items: list[Json] = self._call(method, path, body)
        return items

    def _call(self, method: str, path: str, body: Any = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        request = Request(  # noqa: S310 - the caller chooses the URL
            f"{self.url}/_sandbox{path}", data, {"Content-Type": "application/json"}, method=method
        )
        try:
            with self._opener.open(request, timeout=self._timeout) as response:
                return json.loads(response.read())
        except HTTPError as error:
            with error:
                text = error.read().decode(errors="replace")
            raise ControlError(f"{method} {path}: {error.code} {text}") from None
