# SPDX-License-Identifier: Apache-2.0
"""A web server for media that misbehaves as its paths ask for."""

from __future__ import annotations

import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Route = Callable[[BaseHTTPRequestHandler], None]


class MediaServer:
    """Serves what `routes` holds by path; remembers the requests."""

    def __init__(self) -> None:
        self.routes: dict[str, Route] = {}
        self.requests: list[tuple[str, dict[str, str]]] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                path = self.path.partition("?")[0]
                outer.requests.append((path, {k.lower(): v for k, v in self.headers.items()}))
                outer.routes.get(path, status(404))(self)

            def log_message(self, *_: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    def paths(self) -> list[str]:
        return [path for path, _ in self.requests]

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


def serve(
    body: bytes,
    content_type: str | None = "image/png",
    length: int | None = None,
    encoding: str | None = None,
) -> Route:
    """A whole answer; with another `length` than the body has, it ends too early."""

    def route(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        if content_type is not None:
            handler.send_header("Content-Type", content_type)
        if encoding is not None:
            handler.send_header("Content-Encoding", encoding)
        handler.send_header("Content-Length", str(len(body) if length is None else length))
        handler.send_header("Set-Cookie", "tracker=1")
        handler.end_headers()
        handler.wfile.write(body)
        if length is not None:
            handler.close_connection = True

    return route


def unannounced(
    chunks: Callable[[], Any], content_type: str = "video/mp4", encoding: str = "identity"
) -> Route:
    """A chunked answer of unknown length."""

    def route(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.send_header("Content-Type", content_type)
        handler.send_header("Content-Encoding", encoding)
        handler.send_header("Transfer-Encoding", "chunked")
        handler.end_headers()
        try:
            for chunk in chunks():
                handler.wfile.write(b"%x\r\n%s\r\n" % (len(chunk), chunk))
            handler.wfile.write(b"0\r\n\r\n")
        except OSError:
            handler.close_connection = True

    return route


def status(code: int, **headers: str) -> Route:
    def route(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(code)
        for name, value in headers.items():
            handler.send_header(name, value)
        handler.send_header("Content-Length", "0")
        handler.end_headers()

    return route


def redirect(location: str) -> Route:
    return status(302, Location=location)


def first(*routes: Route) -> Route:
    """The first route for the first request, and so on; the last one for all others."""
    remaining = list(routes)

    def route(handler: BaseHTTPRequestHandler) -> None:
        (remaining.pop(0) if len(remaining) > 1 else remaining[0])(handler)

    return route
