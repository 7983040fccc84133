"""An inbox on a port of its own: the real application over a SQLite file, which can be stopped and started again."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import threading
from pathlib import Path
from typing import Any

import httpx
import uvicorn
from sqlalchemy import create_engine

from airflow_provider_webdata.inbox.server.http.app import InboxApplication
from airflow_provider_webdata.inbox.server.http.auth import Gate
from airflow_provider_webdata.inbox.server.storage.inbox import Inbox
from airflow_provider_webdata.inbox.server.storage.tables import metadata
from airflow_provider_webdata.inbox.wire import SECRET_HEADER, delivery_url


class _Server(uvicorn.Server):
    def capture_signals(self) -> Any:
        return contextlib.nullcontext()


class InboxServer:
    """What a connection's deliveries are sent to and read from.

    :param folder: for the database.
    :param secret: what the server takes for the webhook secret of every connection; may be changed.
    """

    def __init__(self, folder: Path, secret: str) -> None:
        self.secret = secret
        self.answers: list[tuple[int, dict[str, Any]]] = []
        self.lossy = False
        self.requests: list[str] = []
        self._folder = folder
        self._databases = 0
        self.port = 0
        self._client = httpx.Client(transport=httpx.HTTPTransport(retries=1))
        self.reset()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def reads(self, part: str = "/webdata/deliveries/") -> list[str]:
        return [line for line in self.requests if part in line]

    def reset(self) -> None:
        """Begin with an empty database at the next start."""
        self._databases += 1
        self._database = f"sqlite:///{self._folder}/inbox{self._databases}.db"
        engine = create_engine(self._database)
        metadata.create_all(engine)
        engine.dispose()

    def start(self) -> None:
        # The protocol is named because asyncio switches Nagle's algorithm off only for sockets that say they are TCP.
        listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", self.port))
        listener.listen(256)
        self.port = listener.getsockname()[1]
        ready = threading.Event()

        async def serve() -> None:
            engine = create_engine(self._database)
            self._application = InboxApplication(Inbox.open(engine), self._gate)
            config = uvicorn.Config(
                self._app,
                interface="asgi3",
                log_config=None,
                lifespan="off",
                access_log=False,
                timeout_graceful_shutdown=0,
            )
            self._server = _Server(config)
            asyncio.get_running_loop().call_soon(ready.set)
            await self._server.serve(sockets=[listener])
            await self._application.aclose()
            engine.dispose()

        self._thread = threading.Thread(target=lambda: asyncio.run(serve()), daemon=True)
        self._thread.start()
        assert ready.wait(20)

    def stop(self) -> None:
        """End at once: whoever waits gets no answer."""
        self._server.should_exit = True
        self._server.force_exit = True
        self._thread.join()

    def deliver(
        self, body: dict[str, Any], key: str | None = None, conn_id: str = "webdata_default"
    ) -> httpx.Response:
        """Deliver as the service does."""
        url = delivery_url(self.url, conn_id, key)
        return self._client.post(url, content=json.dumps(body), headers={SECRET_HEADER: self.secret})

    def _gate(self, conn_id: str) -> Gate:
        return Gate(conn_id, (self.secret.encode(),), (), b"x-firecrawl-signature", open=True)

    async def _app(self, scope: Any, receive: Any, send: Any) -> None:
        query = scope["query_string"].decode()
        self.requests.append(f"{scope['method']} {scope['path']}{'?' if query else ''}{query}")
        answer = None
        if "/webdata/inbox/" in scope["path"]:
            answer = (503, {"error": "lost"}) if self.lossy else None
        elif self.answers:
            answer = self.answers.pop(0)
        if answer is not None:
            status, body = answer
            headers = [(b"content-type", b"application/json")]
            await send({"type": "http.response.start", "status": status, "headers": headers})
            await send({"type": "http.response.body", "body": json.dumps(body).encode()})
            return
        with contextlib.suppress(asyncio.CancelledError):
            await self._application(scope, receive, send)
