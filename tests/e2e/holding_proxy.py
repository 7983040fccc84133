# SPDX-License-Identifier: Apache-2.0
"""A service whose answers are slow to arrive: it does the work immediately and withholds the answer."""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType

import httpx

from tests.support.waiting import PATIENCE


class HoldingProxy:
    """Forwards to `target` and withholds the answers to `hold` (method, path) until `release`.

    :ivar answered: set once the target has done the work of a held call.
    :ivar held: the answers to such calls, those after `release` as well.
    """

    def __init__(self, target: str, hold: tuple[str, str]) -> None:
        self.answered = threading.Event()
        self.held: list[httpx.Response] = []
        self._released = threading.Event()
        # Creating a client costs 25 ms of CPU.
        self._http = httpx.Client(base_url=target, trust_env=False, timeout=PATIENCE)
        proxy = self

        class Handler(BaseHTTPRequestHandler):
            def _forward(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                headers = {k: v for k, v in self.headers.items() if k.lower() not in ("host", "connection")}
                answer = proxy._http.request(self.command, self.path, content=body, headers=headers)
                if (self.command, self.path) == hold:
                    proxy.held.append(answer)
                    proxy.answered.set()
                    proxy._released.wait()
                try:
                    self.send_response(answer.status_code)
                    self.send_header("Content-Type", answer.headers.get("Content-Type", ""))
                    self.send_header("Content-Length", str(len(answer.content)))
                    self.end_headers()
                    self.wfile.write(answer.content)
                except OSError:
                    # The client was killed meanwhile; that is what this proxy is for.
                    self.close_connection = True

            do_GET = _forward  # noqa: N815
            do_POST = _forward  # noqa: N815
            do_PATCH = _forward  # noqa: N815

            def log_message(self, format: str, *args: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def release(self) -> None:
        """Send the held answers, and hold none from now on."""
        self._released.set()

    def __enter__(self) -> HoldingProxy:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()
        self._server.shutdown()
        self._server.server_close()
        self._http.close()
