"""The identity of a task's job: keys that every attempt of the task computes alike, without a record.

Airflow 3.2 has no store in which one attempt could leave the next one a note.
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
    """The one job of one task in one run, until the task is cleared.

    A job that is started in place of one that failed is another generation, counted from 0.

    :param text: tells the task from all others, in this Airflow and elsewhere.
    """

    text: str

    @classmethod
    def of(cls, attempt: Attempt) -> JobIdentity:
        """Return the identity of a task's job; outside of a task run, a random one."""
        if attempt.ti is None:
            return cls(secrets.token_hex())
        parts = (
            *attempt.instance,
            attempt.max_tries,
            # Another Airflow with the same DAGs starts its runs at other moments.
            attempt.run_start.isoformat() if attempt.run_start else "",
        )
        return cls("\n".join(map(str, parts)))

    def key(self, secret: str, generation: int) -> str:
        """Return the correlation key of the job's webhook, unguessable without the connection's secret."""
        message = f"{self.text}\n{generation}".encode()
        digest = hmac.new(secret.encode(), message, hashlib.sha256).digest()
        return base64.urlsafe_b64encode(digest[:24]).decode()

    def idempotency_key(self, generation: int) -> str:
        """Return the UUID by which the service recognises a repeated request to start the job."""
        return str(uuid.uuid5(_NAMESPACE, f"{self.text}\n{generation}"))

    def request_id(self, sent: Any, generation: int = 0) -> str:
        """Return the id by which the service recognizes a repeated request, which it bills once.

        :param sent: the request, as JSON: another request has another id.
        """
        text = f"{self.text}\n{generation}\n{json.dumps(sent, sort_keys=True)}"
        return f"airflow:{hashlib.sha256(text.encode()).hexdigest()[:48]}"
