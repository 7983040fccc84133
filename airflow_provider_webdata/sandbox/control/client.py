"""The client of the control API, for a sandbox in this process or anywhere else."""

from __future__ import annotations

import base64
import json
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import ProxyHandler, Request, build_opener

Json = dict[str, Any]


class ControlError(Exception):
    """The sandbox refused a call of its control API. The message gives the reason."""


class SandboxControl:
    """Steers a running sandbox.

    :param url: the sandbox's address, for example ``http://127.0.0.1:8000``.
    :param timeout: seconds to wait for an answer.
    """

    def __init__(self, url: str, *, timeout: float = 60.0) -> None:
        self.url = url.rstrip("/")
        self._timeout = timeout
        self._opener = build_opener(ProxyHandler({}))

    def requests(self, path: str | None = None, method: str | None = None) -> list[Json]:
        """Return the requests received, oldest first.

        :param path: a regular expression from the start of the path; a plain prefix works too.
        :param method: only this method.
        :return: items of ``method``, ``path``, ``query``, ``headers`` (names in lower case, the Authorization
            without its secret), ``body`` and the ``status`` that was answered (None: not answered).
        """
        given = {"path": path, "method": method}
        query = urlencode({name: value for name, value in given.items() if value is not None})
        found: list[Json] = self._call("GET", f"/requests?{query}")
        return found

    def clear_requests(self) -> None:
        """Forget the requests received."""
        self._call("DELETE", "/requests")

    def deliveries(self) -> list[Json]:
        """Return the webhook deliveries, oldest first: ``url``, ``body``, ``attempts`` and ``status``.

        The status is ``pending``, ``delivered``, ``failed`` (given up) or ``lost`` (never sent, by a fault).
        """
        found: list[Json] = self._call("GET", "/deliveries")
        return found

    def sessions(self) -> list[Json]:
        """Return the browser sessions, oldest first, the closed ones too: with their ``status``, ``profile``,
        ``tab`` (address and kept values), and once closed ``creditsBilled``.
        """
        found: list[Json] = self._call("GET", "/sessions")
        return found

    def end_session(self, session_id: str) -> None:
        """Destroy a browser session under its user, as the service does with one that broke."""
        self._call("DELETE", f"/sessions/{session_id}")

    def accept_terms(self, provider: str) -> None:
        """Accept the terms of a data provider, as an administrator of the team does."""
        self._call("POST", f"/terms/{provider}", {})

    def jobs(self, kind: str) -> list[Json]:
        """Return all jobs of a kind, oldest first: ``status``, ``request``, credits ``spent``.

        Those of extract and agent have the ``steps`` left, the others how many pages were ``found``, ``taken``,
        ``completed`` and ``failed``.

        :param kind: ``crawl``, ``batch_scrape``, ``extract`` or ``agent``.
        """
        found: list[Json] = self._call("GET", f"/jobs/{kind}")
        return found

    def set_page(self, url: str, html: str | None = None, **page: Any) -> None:
        """Create or change a page, or set the canned answers that a scrape of it returns.

        :param html: the body or a whole document. Omit html and markdown to set only answers of an existing page.
        :param page: ``markdown`` instead of html; ``title``, ``description``, ``published`` (ISO 8601),
            ``language``, ``news`` (bool), ``status`` (HTTP), ``error`` (the code a scrape fails with),
            ``content_type``. Answers are ``json`` (any), ``answer``, ``highlights`` (text), ``screenshot``, ``audio``,
            ``video`` (an address), ``branding``, ``product``, ``menu``, ``actions`` (mappings) and ``blocks`` (a
            list), in the form that the document has. None removes an answer.
        """
        self._call("PUT", "/pages", {"url": url, **({"html": html} if html is not None else {}), **page})

    def set_site(self, host: str, **site: Any) -> None:
        """Replace the properties of a host other than its pages.

        :param site: ``pages`` (number of pages generated from ``https://host/p/1`` on, without memory cost), ``fanout``
            (links of each), ``size`` (characters of each), ``fail_every`` (n: every n-th page fails), ``robots`` (text
            of robots.txt), ``sitemap`` (list of addresses, or True for all generated pages).
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
        """Give a page a file, which formats of that name then link to.

        :param kind: ``screenshot``, ``audio`` or ``video``.
        :param content: the file.
        :param size: generate a file of this many bytes instead.
        :param content_type: the usual one of the kind when absent.
        """
        text = None if content is None else base64.b64encode(content).decode()
        file = {"url": url, "kind": kind, "content": text, "size": size, "content_type": content_type}
        self._call("PUT", "/media", file)

    def delete_page(self, url: str) -> bool:
        """Remove a page; return whether it was there."""
        return bool(self._call("DELETE", f"/pages?{urlencode({'url': url})}")["removed"])

    def pages(self) -> list[Json]:
        """Return url, title and status of every page."""
        found: list[Json] = self._call("GET", "/pages")
        return found

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
            ``fail_provider`` (``path``: its ``provider/capability``), ``lose_delivery``, ``late_delivery`` or
            ``lose_answer``.
        :param method: only calls of this method.
        :param path: only calls (deliveries) whose path begins with this regular expression.
        :param times: how often; None: always.
        :param how: ``status``, ``body``, ``headers``, ``seconds`` (real ones; the sandbox's for ``late_delivery``),
            ``event`` (only deliveries of this event).
        """
        fault = {"kind": kind, "method": method, "path": path, "times": times, **how}
        return int(self._call("POST", "/faults", fault)["id"])

    def faults(self) -> list[Json]:
        """Return all added faults, with their ``hits``."""
        found: list[Json] = self._call("GET", "/faults")
        return found

    def clear_faults(self) -> None:
        """Remove all faults."""
        self._call("DELETE", "/faults")

    def set_quirks(self, names: list[str] | tuple[str, ...]) -> None:
        """Switch on exactly these quirks (``name`` or ``name=N``)."""
        self._call("PUT", "/quirks", list(names))

    def configure(self, **settings: Any) -> None:
        """Change settings: ``credits``, ``latency_ms``, ``queue_seconds``, ``check_seconds``, ``parse_seconds``,
        ``page_seconds``, ``pdf_seconds``, ``settle``, ``concurrency``, ``step_seconds``,
        ``free_runs``, ``max_sessions``, ``entitlements``, ``rate_limits`` (class to calls a
        minute), ``bulk`` (results, bytes), ``compress``.
        """
        self._call("PATCH", "/settings", settings)

    def state(self) -> Json:
        """Return time, credits, quirks, monitors (the deleted ones too) and checks."""
        state: Json = self._call("GET", "/state")
        return state

    def advance(self, seconds: float) -> None:
        """Move the clock forward; when this returns, all that fell due on the way has been done."""
        self._call("POST", "/advance", {"seconds": seconds})

    def settle(self) -> None:
        """Wait until all that is due now (checks, deliveries) has been done."""
        self._call("POST", "/settle", {})

    def reset(self) -> None:
        """Go back to the start."""
        self._call("POST", "/reset", {})

    def validate(self, operation: str, body: Any) -> list[Json]:
        """Return the violations that the sandbox finds in a body, without side effects.

        :param operation: ``search``, ``monitor.create``, ``monitor.update``, ``scrapeOptions``, ``scrape``,
            ``batch.scrape``, ``crawl``, ``crawl.params``, ``map``, ``parse``,
            ``extract``, ``agent``, ``interact``, ``interact.execute`` or ``scrape.interact``.
        """
        found: list[Json] = self._call("POST", "/validate", {"operation": operation, "body": body})
        return found

    def _call(self, method: str, path: str, body: Any = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        request = Request(  # noqa: S310 - the address is the caller's own
            f"{self.url}/_sandbox{path}", data, {"Content-Type": "application/json"}, method=method
        )
        try:
            with self._opener.open(request, timeout=self._timeout) as response:
                return json.loads(response.read())
        except HTTPError as error:
            with error:
                text = error.read().decode(errors="replace")
            raise ControlError(f"{method} {path}: {error.code} {text}") from None
