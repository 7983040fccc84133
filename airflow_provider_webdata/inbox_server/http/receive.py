# SPDX-License-Identifier: Apache-2.0
"""Receipt of deliveries: rejected as early as possible, stored before they are acknowledged.

An unauthenticated request costs one comparison. Its body is read only if it claims to be signed, for existing and
missing connections alike, so that the response time does not reveal which connections exist.
"""

from __future__ import annotations

from datetime import datetime, timezone
from typing import TYPE_CHECKING, TypeVar

import anyio.to_thread
from starlette.responses import JSONResponse

from airflow_provider_webdata import __version__
from airflow_provider_webdata.airflow_db.errors import StoreUnavailableError
from airflow_provider_webdata.common.component_metrics import count
from airflow_provider_webdata.common.logs import logger
from airflow_provider_webdata.inbox import probe
from airflow_provider_webdata.inbox.envelope import NotJSONError
from airflow_provider_webdata.inbox.wire import NOT_JSON, REFUSED
from airflow_provider_webdata.inbox_server.storage.records import NewDelivery
from airflow_provider_webdata.inbox_server.storage.refusals import REASONS, Refusal, sender_of

from .limits import BodyBudget, TokenBucket
from .responses import error_response, retry_later

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.datastructures import Headers
    from starlette.responses import Response
    from starlette.types import Receive

    from airflow_provider_webdata.inbox_server.storage.refusals import Refusals
    from airflow_provider_webdata.inbox_server.storage.writer import Writer

    from .auth import Gate
    from .connections import Connections
    from .limits import BufferedBody

log = logger(__name__)

BODY_SECONDS = 10.0
"""Timeout in seconds for a body; the service has the same."""

LARGE_BODY = 256 * 1024
"""Minimum size of a body that is validated and parsed in a thread, to keep the event loop responsive."""

UNAUTHENTICATED_BODIES_AT_ONCE, UNAUTHENTICATED_BYTES_AT_ONCE = 100, 64 * 2**20
REFUSALS_PER_SECOND, REFUSALS_AT_ONCE = 50.0, 200.0
LOG_LINES_PER_SECOND, LOG_LINES_AT_ONCE = 1.0, 10.0

_STORED = JSONResponse({"status": "stored"})
_DUPLICATE = JSONResponse({"status": "duplicate"})
_REFUSED = error_response(401, REFUSED)
_TOO_LARGE = error_response(413, "the body is too large")
_TOO_SLOW = error_response(408, f"the body took more than {BODY_SECONDS:g} seconds")
_NOT_JSON = error_response(400, NOT_JSON)


_T = TypeVar("_T")


class ClientGoneError(Exception):
    """The client disconnected."""


class Receiver:
    """Receives deliveries.

    :param most_bytes: maximum size of a body.
    :param refusals: counts refused deliveries.
    """

    def __init__(self, connections: Connections, writer: Writer, most_bytes: int, refusals: Refusals) -> None:
        self._connections, self._writer, self._most_bytes = connections, writer, most_bytes
        self._counted_refusals = refusals
        self._bodies = BodyBudget()
        # Senders with an unverified signature must not exhaust the budget of authenticated senders.
        self._unauthenticated_bodies = BodyBudget(
            UNAUTHENTICATED_BODIES_AT_ONCE, UNAUTHENTICATED_BYTES_AT_ONCE, within_connection=True
        )
        self._refusals = TokenBucket(REFUSALS_PER_SECOND, REFUSALS_AT_ONCE)
        self._log_lines = TokenBucket(LOG_LINES_PER_SECOND, LOG_LINES_AT_ONCE)

    async def receive(
        self, conn_id: str, key: str | None, headers: Headers, receive: Receive, sender: str
    ) -> Response:
        """Store a delivery and return the response.

        :param sender: the sender's address, for the log and the counts of refused deliveries.
        :raises ClientGoneError: the sender disconnected.
        :raises BusyError: too many bodies are in memory, or too many unknown ids are being looked up.
        """
        try:
            gate = await self._connections.gate(conn_id)
            has_secret = gate.passes_secret(headers)
            if not gate.is_signed(headers) and (not has_secret or gate.signing_secrets):
                return self._refused(gate, headers, sender, has_secret=has_secret)
            budget = self._bodies if has_secret and gate.secrets else self._unauthenticated_bodies
            with budget.body(gate.conn_id) as body:
                if (early := await self._read(headers, receive, body)) is not None:
                    return early
                raw = body.whole()
                if not await _off_loop(raw, gate.passes_signature, headers, raw) or not has_secret:
                    return self._refused(gate, headers, sender, has_secret=has_secret)
                if probe.is_probe(raw):
                    proofs = probe.proofs_of(raw, gate.conn_id, gate.keys)
                    return JSONResponse({"status": "probe", "version": __version__, "proofs": proofs})
                return await self._store(gate.conn_id, key, raw)
        except StoreUnavailableError as error:
            if self._log_lines.consume():
                log.warning(
                    "Failed to store a delivery. The hosted service sends it again, a self-hosted server does not: %s",
                    error,
                )
            return retry_later(503, "the delivery could not be stored")

    async def _store(self, conn_id: str, key: str | None, raw: bytes) -> Response:
        now = datetime.now(timezone.utc)
        try:
            delivery = await _off_loop(raw, NewDelivery.from_body, conn_id, key, raw, now)
        except NotJSONError:
            return _NOT_JSON
        is_new = await self._writer.submit(delivery)
        count(
            "webdata.deliveries",
            conn_id=conn_id,
            operation=delivery.envelope.operation or "unknown",
            result="stored" if is_new else "duplicate",
        )
        return _STORED if is_new else _DUPLICATE

    def _refused(self, gate: Gate, headers: Headers, sender: str, *, has_secret: bool) -> Response:
        why = "no such connection, or it has no secret"
        forwarded_for = headers.get("x-forwarded-for", "")
        if gate.open:
            reason = gate.reason(headers, has_secret=has_secret)
            why = REASONS[reason]
            if _may_be_delivery(headers):
                self._counted_refusals.add(Refusal(gate.counted_as, reason, sender_of(sender, forwarded_for)))
        if not self._refusals.consume():
            return retry_later(429, "too many rejected requests", 1.0)
        if self._log_lines.consume():
            log.warning(
                "Rejected a delivery for connection %r: %s. Sender: %r%s",
                gate.conn_id[:100],
                why,
                sender[:100],
                f", x-forwarded-for: {forwarded_for[:200]!r}" if forwarded_for else "",
            )
        return _REFUSED

    async def _read(self, headers: Headers, receive: Receive, body: BufferedBody) -> Response | None:
        """Read the body; return the error response if it is rejected."""
        announced = headers.get("content-length", "0")
        if announced.isdecimal() and int(announced) > self._most_bytes:
            return _TOO_LARGE
        try:
            with body.arriving(BODY_SECONDS):
                more = True
                while more:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        raise ClientGoneError
                    if part := message.get("body", b""):
                        body.add(part)
                    if body.size > self._most_bytes:
                        return _TOO_LARGE
                    more = message.get("more_body", False)
        except TimeoutError:
            return _TOO_SLOW
        return None


def _may_be_delivery(headers: Headers) -> bool:
    """Return whether a body is longer than a probe; `airflow webdata doctor` also sends empty requests."""
    length = headers.get("content-length", "")
    return not length.isdecimal() or int(length) > probe.LENGTH


async def _off_loop(body: bytes, work: Callable[..., _T], *arguments: object) -> _T:
    """Run a function on a body, in a thread if the body is large."""
    if len(body) >= LARGE_BODY:
        return await anyio.to_thread.run_sync(work, *arguments)
    return work(*arguments)
