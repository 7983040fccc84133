# SPDX-License-Identifier: Apache-2.0
"""Pages that the acceptance run reads: a site on loopback, or a few stable public pages."""

from __future__ import annotations

import secrets
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

_LINKS = '<ul><li><a href="/level">The level</a></li><li><a href="/bridge">The bridge</a></li></ul>'
_PAGES = {
    "/": ("River watch", f"<p>{{text}}</p>{_LINKS}"),
    "/level": ("The level", "<p>{text}</p><p>It rises by a hand a day.</p>"),
    "/bridge": ("The bridge", "<p>The bridge is open. Its deck is 620 cm above the bed.</p>"),
}


@dataclass(frozen=True)
class Site:
    """A site.

    :param root: URL of its first page, which links to others.
    :param page: URL of one page.
    :param text: a text of both pages.
    """

    root: str
    page: str
    text: str

    @property
    def urls(self) -> list[str]:
        """Two URLs, or one."""
        return list(dict.fromkeys((self.page, self.root)))


PUBLIC = Site("https://www.iana.org/help/example-domains", "https://example.com/", "Example Domain")


class _Site(ThreadingHTTPServer):
    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Pages)
        # Another text in each run, so that no cache and no other server has it.
        self.text = f"The gauge of the river has the number {secrets.token_hex(4)}."


class _Pages(BaseHTTPRequestHandler):
    server: _Site

    def do_GET(self) -> None:
        origin = f"http://{self.headers.get('Host', '')}"
        path = self.path.partition("?")[0]
        if path == "/robots.txt":
            self._send("text/plain", f"User-agent: *\nAllow: /\nSitemap: {origin}/sitemap.xml\n")
        elif path == "/sitemap.xml":
            urls = "".join(f"<url><loc>{origin}{name}</loc></url>" for name in _PAGES)
            self._send(
                "application/xml",
                f'<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{urls}</urlset>',
            )
        elif path in _PAGES:
            title, body = _PAGES[path]
            body = body.replace("{text}", self.server.text)
            self._send(
                "text/html; charset=utf-8",
                f'<!doctype html><html lang="en"><head><title>{title}</title></head>'
                f"<body><main><h1>{title}</h1>{body}</main></body></html>",
            )
        else:
            self.send_error(404)

    def _send(self, kind: str, text: str) -> None:
        body = text.encode()
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_HEAD(self) -> None:
        self.do_GET()

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing."""


@contextmanager
def local_site() -> Iterator[Site]:
    """Serve a site of three pages on a free port of the loopback address."""
    with _Site() as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            root = f"http://127.0.0.1:{server.server_port}"
            yield Site(f"{root}/", f"{root}/level", server.text)
        finally:
            server.shutdown()
            thread.join()
