"""The identity of a task's job: keys that every attempt derives deterministically.

Airflow 3.2 has no store for passing state to the next attempt.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import secrets
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from airflow_provider_webdata.common.attempt import Attempt

_NAMESPACE = uuid.UUID("6f1d8f3c-6f0c-5d52-9a55-3c5a7f1be2d7")


@dataclass(frozen=True)
class JobIdentity:
    """The one job of a task in one run, until the task is cleared.

    A job that replaces a failed one is the next generation, counted from 0.

    :param text: globally unique text for the task, across Airflow installations.
    """

    text: str

    @classmethod
    def of(cls, attempt: Attempt) -> JobIdentity:
        """Return the identity of a task's job; a random one outside a task run."""
        if attempt.ti is None:
            return cls(secrets.token_hex())
        parts = (
            *attempt.instance,
            attempt.round,
            # Distinguishes another Airflow with the same DAGs, whose runs start at other times.
            attempt.run_start.isoformat() if attempt.run_start else "",
        )
        return cls("\n".join(map(str, parts)))

    def key(self, secret: str, generation: int) -> str:
        """Return the correlation key of the job's webhook, unguessable without the connection's secret."""
        message = f"{self.text}\n{generation}".encode()
        digest = hmac.new(secret.encode(), message, hashlib.sha256).digest()
        return base64.urlsafe_b64encode(digest[:24]).decode()

    def idempotency_key(self, generation: int) -> str:
        """Return the UUID by which the service recognizes a repeated start request."""
        return str(uuid.uuid5(_NAMESPACE, f"{self.text}\n{generation}"))

    def request_id(self, sent: Any, generation: int = 0) -> str:
        """Return the id by which the service recognizes a repeated request, which it bills once.

        :param sent: the request, as JSON. A different request has a different id.
        """
        text = f"{self.text}\n{generation}\n{json.dumps(sent, sort_keys=True)}"
        return f"airflow:{hashlib.sha256(text.encode()).hexdigest()[:48]}"
