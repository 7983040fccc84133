"""Receiving a delivery: refused as early as can be, stored before it is acknowledged.

An unauthenticated request costs a comparison. Its body is read only where it claims to be signed, whatever connection
it names, so that the answer's time does not tell which connections there are.
"""

from __future__ import annotations

import logging
from datetime import datetime, timezone
from typing import TYPE_CHECKING

import anyio
import anyio.to_thread

from airflow_provider_webdata.inbox.envelope import NotJSONError
from airflow_provider_webdata.inbox.server.storage.errors import StoreUnavailableError
from airflow_provider_webdata.inbox.server.storage.records import NewDelivery

from .answers import Answer, not_now
from .limits import Bodies, BusyError, TokenBucket

if TYPE_CHECKING:
    from starlette.types import Receive

    from airflow_provider_webdata.inbox.server.storage.writer import Writer

    from .auth import Gate, Headers
    from .connections import Connections
    from .limits import Body

log = logging.getLogger(__name__)

BODY_SECONDS = 10.0
"""For how long a body may arrive: the service itself gives up then."""

LARGE_BODY = 256 * 1024
"""Bytes from which a body is looked at in a thread, so that it does not hold up the others."""

STRANGE_BODIES_AT_ONCE, STRANGE_BYTES_AT_ONCE = 100, 64 * 2**20
REFUSALS_PER_SECOND, REFUSALS_AT_ONCE = 50.0, 200.0
LOG_LINES_PER_SECOND, LOG_LINES_AT_ONCE = 1.0, 10.0

STORED = Answer.of(200, {"status": "stored"})
DUPLICATE = Answer.of(200, {"status": "duplicate"})
REFUSED = Answer.error(401, "the webhook secret or the signature is missing or wrong")
TOO_LARGE = Answer.error(413, "the body is too large")
TOO_SLOW = Answer.error(408, f"the body took more than {BODY_SECONDS:g} seconds")
NOT_JSON = Answer.error(400, "the body is not JSON")


class ClientGoneError(Exception):
    """Whoever asked is no longer there."""


class _AnswerError(Exception):
    def __init__(self, answer: Answer) -> None:
        super().__init__(answer.status)
        self.answer = answer


class Receiver:
    """Takes deliveries.

    :param connections: the gates.
    :param writer: stores deliveries.
    :param most_bytes: size of the largest body that is accepted.
    """

    def __init__(self, connections: Connections, writer: Writer, most_bytes: int) -> None:
        self._connections, self._writer, self._most_bytes = connections, writer, most_bytes
        self._bodies = Bodies()
        # Whoever only claims a signature must not take the places of those who know the secret.
        self._strange_bodies = Bodies(STRANGE_BODIES_AT_ONCE, STRANGE_BYTES_AT_ONCE)
        self._refusals = TokenBucket(REFUSALS_PER_SECOND, REFUSALS_AT_ONCE)
        self._log_lines = TokenBucket(LOG_LINES_PER_SECOND, LOG_LINES_AT_ONCE)

    async def take(self, conn_id: str, key: str | None, headers: Headers, receive: Receive) -> Answer:
        """Store a delivery and return what to answer.

        :param conn_id: from the URL.
        :param key: from the URL.
        :param headers: of the request, names in lower case.
        :param receive: of the ASGI call.
        :raises ClientGoneError: the sender broke off.
        """
        try:
            gate = await self._connections.gate(conn_id)
            right = gate.passes_secret(headers)
            if not gate.is_signed(headers) and (not right or gate.signing_secrets):
                return self._refused(gate)
            bodies = self._bodies if right and gate.secrets else self._strange_bodies
            with bodies.one() as body:
                await self._read(headers, receive, body)
                return await self._judge(gate, key, headers, body.whole(), right=right)
        except _AnswerError as early:
            return early.answer
        except BusyError as error:
            return not_now(503, "too much at once", error.seconds)
        except StoreUnavailableError as error:
            if self._log_lines.take():
                log.warning("A delivery was not stored and will come again: %s", error)
            return not_now(503, "the delivery could not be stored now")

    async def _judge(
        self, gate: Gate, key: str | None, headers: Headers, raw: bytes, *, right: bool
    ) -> Answer:
        if len(raw) >= LARGE_BODY:
            right &= await anyio.to_thread.run_sync(gate.passes_signature, headers, raw)
        else:
            right &= gate.passes_signature(headers, raw)
        if not right:
            return self._refused(gate)
        now = datetime.now(timezone.utc)
        try:
            if len(raw) >= LARGE_BODY:
                delivery = await anyio.to_thread.run_sync(NewDelivery.from_body, gate.conn_id, key, raw, now)
            else:
                delivery = NewDelivery.from_body(gate.conn_id, key, raw, now)
        except NotJSONError:
            return NOT_JSON
        return STORED if await self._writer.submit(delivery) else DUPLICATE

    def _refused(self, gate: Gate) -> Answer:
        if not self._refusals.take():
            return not_now(429, "too many requests were refused", 1.0)
        if self._log_lines.take():
            log.warning(
                "A delivery for connection %r was refused: its secret or signature is missing or wrong, or there "
                "is no such connection with a webhook secret",
                gate.conn_id[:100],
            )
        return REFUSED

    async def _read(self, headers: Headers, receive: Receive, body: Body) -> None:
        announced = headers.get(b"content-length", b"0")
        if announced.isdigit() and int(announced) > self._most_bytes:
            raise _AnswerError(TOO_LARGE)
        try:
            with anyio.fail_after(BODY_SECONDS):
                more = True
                while more:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        raise ClientGoneError
                    if part := message.get("body", b""):
                        body.add(part)
                    if body.size > self._most_bytes:
                        raise _AnswerError(TOO_LARGE)
                    more = message.get("more_body", False)
        except TimeoutError:
            raise _AnswerError(TOO_SLOW) from None
