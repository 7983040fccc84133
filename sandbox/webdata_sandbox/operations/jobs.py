# SPDX-License-Identifier: Apache-2.0
"""Base class of jobs: storage, webhook events, and one day of retention."""

from __future__ import annotations

import uuid
from abc import ABC, abstractmethod
from datetime import timedelta
from typing import TYPE_CHECKING, Any, ClassVar

from webdata_sandbox.reference.timestamps import iso
from webdata_sandbox.reference.wire import webhook_object

if TYPE_CHECKING:
    from webdata_sandbox.engine.webhooks import Webhooks
    from webdata_sandbox.reference.wire import Json
    from webdata_sandbox.state.core import Core

RETENTION = timedelta(hours=24)


class Jobs(ABC):
    """Jobs of one kind, each stored as one object.

    :cvar kind: name of the kind, and prefix of its events.
    :cvar not_found: error text of a 404.
    """

    kind: ClassVar[str]
    not_found: ClassVar[str]

    def __init__(self, core: Core, webhooks: Webhooks) -> None:
        self._core, self._settings, self._quirks = core, core.settings, core.quirks
        self._store, self._clock, self._webhooks = core.store, core.clock, webhooks

    @abstractmethod
    def resume(self) -> None:
        """Resume the unfinished jobs of an earlier sandbox."""

    def all(self) -> list[Json]:
        """Return all jobs of the kind, oldest first."""
        return self._store.list(self.kind)

    def running(self) -> list[Json]:
        """Return the unfinished jobs, oldest first."""
        return [job for job in self.all() if job["finishedAt"] is None]

    def _new(self, request: Json, status: str, **fields: Any) -> Json:
        now = self._clock.datetime()
        webhook = request.get("webhook")
        return {
            "id": str(uuid.uuid4()),
            "status": status,
            "request": request,
            "webhook": webhook_object(webhook),
            "begun": False,
            "spent": 0,
            "error": None,
            "createdAt": iso(now),
            "finishedAt": None,
            "expiresAt": iso(now + RETENTION),
            **fields,
        }

    def _save(self, job: Json) -> None:
        self._store.put(self.kind, job["id"], job)

    def _close(self, job: Json, status: str) -> None:
        now = self._clock.datetime()
        job.update(status=status, finishedAt=iso(now), expiresAt=iso(now + RETENTION))

    def _notify(
        self,
        job: Json,
        event: str,
        data: Json | None = None,
        *,
        error: str | None = None,
        success: bool | None = None,
    ) -> None:
        """Send an event if the job has a webhook. By default, an event without an error is a success."""
        if job["webhook"]:
            success = error is None if success is None else success
            name = f"{self.kind}.{event}"
            self._webhooks.emit(job["webhook"], name, job["id"], data, error=error, success=success)
