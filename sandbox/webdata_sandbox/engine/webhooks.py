# SPDX-License-Identifier: Apache-2.0
"""Delivery of webhook events with the documented retries (sandbox/docs/service.md#webhooks)."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import uuid
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from webdata_sandbox.reference.urls import host_of, is_private

if TYPE_CHECKING:
    import httpx

    from webdata_sandbox.reference.wire import Json
    from webdata_sandbox.state.core import Core

CONCURRENCY = 8
"""Maximum concurrent deliveries. No receiver could answer the thousands of events of a crawl within ten seconds."""

_BEFORE_SENDING = frozenset({"lose_delivery", "late_delivery"})
_AFTER_SENDING = frozenset({"lose_answer"})


class Webhooks:
    """Sends events and records every attempt.

    :param secret: key of the signature header; None: unsigned.
    :param timeout: real seconds that a receiver has to respond.
    """

    def __init__(self, core: Core, *, secret: str | None, timeout: float) -> None:
        self._store, self._clock, self._agenda = core.store, core.clock, core.agenda
        self._quirks, self._faults, self._settings = core.quirks, core.faults, core.settings
        self._secret, self._timeout = secret, timeout
        self._client: httpx.AsyncClient | None = None
        self._slots = asyncio.Semaphore(CONCURRENCY)

    def resume(self) -> None:
        """Resume deliveries that an earlier sandbox left unfinished."""
        for delivery in self.deliveries():
            if delivery["status"] == "pending":
                self._plan(delivery)

    def deliveries(self) -> list[Json]:
        """Return all deliveries, oldest first, each with its ``attempts`` and ``status``.

        The status is ``pending``, ``delivered``, ``failed`` (after the last retry), or ``lost`` (not sent because of a
        fault).
        """
        return self._store.list("delivery")

    def emit(
        self, webhook: Json, event: str, job_id: str, data: Json | None, *, error: str | None, success: bool
    ) -> None:
        """Send an event if the webhook subscribes to it.

        :param event: full name of the event. Webhooks of jobs subscribe to the part after the first dot.
        :param data: the only element of ``data``; None: an empty list.
        """
        subscribed = webhook.get("events")
        if subscribed and event not in subscribed and event.partition(".")[2] not in subscribed:
            return
        if self._quirks.on("private-refused") and is_private(host_of(webhook["url"])):
            return
        delivery_id = str(uuid.uuid4())
        envelope: Json = {
            "success": success,
            "type": event,
            "id": job_id,
            "webhookId": delivery_id,
            "data": [] if data is None else [data],
            "metadata": webhook.get("metadata") or {},
        }
        if self._quirks.on("webhook-data-object") and data is not None:
            envelope["data"] = data
        if self._quirks.on("no-webhook-id"):
            del envelope["webhookId"]
        if error is not None:
            envelope["error"] = error
        delivery: Json = {
            "id": delivery_id,
            "url": webhook["url"],
            "headers": dict(webhook.get("headers") or {}),
            "event": event,
            "jobId": job_id,
            "body": json.dumps(envelope, ensure_ascii=False),
            "status": "pending",
            "due": self._clock.now(),
            "attempts": [],
        }
        fault = self._faults.consume_delivery(_BEFORE_SENDING, event, _path(webhook["url"]))
        if fault is not None and fault.kind == "lose_delivery":
            delivery["status"] = "lost"
        elif fault is not None:
            delivery["due"] += fault.seconds
        self._store.put("delivery", delivery_id, delivery)
        if delivery["status"] == "pending":
            self._plan(delivery)

    async def close(self) -> None:
        """Close the connections."""
        if self._client is not None:
            await self._client.aclose()

    def _plan(self, delivery: Json) -> None:
        self._agenda.at(delivery["due"], lambda: self._attempt(delivery["id"]))

    async def _attempt(self, delivery_id: str) -> None:
        delivery = self._store.get("delivery", delivery_id)
        if delivery is None or delivery["status"] != "pending":
            return
        async with self._slots:
            status, error = await self._post(delivery)
        if self._faults.consume_delivery(_AFTER_SENDING, delivery["event"], _path(delivery["url"])):
            status, error = None, "the response was lost because of the fault lose_answer"
        delivery["attempts"].append({"at": self._clock.iso(), "statusCode": status, "error": error})
        failures = len(delivery["attempts"])
        pauses = self._settings.profile.retries
        if status is not None and 200 <= status < 300:
            delivery["status"] = "delivered"
        elif failures > len(pauses):
            delivery["status"] = "failed"
        else:
            delivery["due"] = self._clock.now() + pauses[failures - 1]
        self._store.put("delivery", delivery_id, delivery)
        if delivery["status"] == "pending":
            self._plan(delivery)

    async def _post(self, delivery: Json) -> tuple[int | None, str | None]:
        # Imported here because the import is slow and only sandboxes that send webhooks need it.
        import httpx

        if self._client is None:
            self._client = httpx.AsyncClient(timeout=self._timeout, trust_env=False)
        body = delivery["body"].encode()
        headers = {**delivery["headers"], "Content-Type": "application/json"}
        if self._secret:
            headers["X-Firecrawl-Signature"] = sign(self._secret, body)
        if self._quirks.on("webhook-headers"):
            headers["X-Firecrawl-Webhook-Id"] = delivery["id"]
            headers["X-Firecrawl-Event"] = delivery["event"]
            headers["X-Firecrawl-Job-Id"] = delivery["jobId"]
            headers["X-Firecrawl-Delivery-Mode"] = "direct"
        try:
            request = self._client.post(delivery["url"], content=body, headers=headers)
            response = await asyncio.wait_for(request, self._timeout)
        except (asyncio.TimeoutError, httpx.TimeoutException):
            return None, f"no response within {self._timeout:g} seconds"
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            return None, f"{type(error).__name__} at {urlsplit(delivery['url']).hostname}"
        return response.status_code, None


def _path(url: str) -> str:
    return urlsplit(url).path


def sign(secret: str, body: bytes) -> str:
    """Return the value of the signature header."""
    return "sha256=" + hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
