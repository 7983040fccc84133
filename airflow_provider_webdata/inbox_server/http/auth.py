# SPDX-License-Identifier: Apache-2.0
"""Authentication of senders and readers."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from airflow_provider_webdata.hooks.connection import DEFAULT_SIGNATURE_HEADER, WebhookSettings
from airflow_provider_webdata.inbox import tokens
from airflow_provider_webdata.inbox.wire import SECRET_HEADER, SIGNATURE_PREFIX
from airflow_provider_webdata.inbox_server.storage.refusals import counted_as

if TYPE_CHECKING:
    from starlette.datastructures import Headers

    from airflow_provider_webdata.inbox_server.storage.refusals import Reason


@dataclass(frozen=True)
class Gate:
    """A connection's requirements for deliveries and readers.

    :param conn_id: id of the connection.
    :param secrets: accepted webhook secrets; empty if none is required.
    :param signing_secrets: accepted signing keys; empty if no signature is required.
    :param signature_header: name of the signature header, in lower case.
    :param open: False if the connection is missing or requires no credential: no request is admitted.
    :param counted_as: id under which refused deliveries are counted; see `refusals`.
    """

    conn_id: str
    secrets: tuple[bytes, ...] = field(repr=False)
    signing_secrets: tuple[bytes, ...] = field(repr=False)
    signature_header: bytes
    open: bool
    counted_as: str = ""

    @classmethod
    def of(cls, conn_id: str, webhook: WebhookSettings, stored_id: str | None = None) -> Gate:
        """Return the gate of a connection.

        :param stored_id: the connection's own id, if `conn_id` may be another spelling of it.
        """
        if not (webhook.secrets or webhook.signing_secrets):
            return cls.closed(conn_id)
        return cls(
            conn_id,
            tuple(secret.encode() for secret in webhook.secrets),
            tuple(secret.encode() for secret in webhook.signing_secrets),
            webhook.signature_header.lower().encode(),
            open=True,
            counted_as=counted_as(stored_id or conn_id),
        )

    @classmethod
    def closed(cls, conn_id: str) -> Gate:
        """Return a gate that admits no request and takes the same time as any other."""
        return cls(conn_id, (_DUMMY,), (_DUMMY,), DEFAULT_SIGNATURE_HEADER.lower().encode(), open=False)

    def passes_secret(self, headers: Headers) -> bool:
        """Return whether a delivery has the secret, if one is required."""
        given = headers.get(SECRET_HEADER, "").encode("latin-1")
        matches = False
        for secret in self.secrets:
            matches |= hmac.compare_digest(given, secret)
        return (matches or not self.secrets) and self.open

    def is_signed(self, headers: Headers) -> bool:
        """Return whether a delivery claims to be signed: otherwise an unauthenticated body is not read.

        Any header with "signature" in its name counts as a claim, so the response does not reveal which header this
        connection uses.
        """
        return self.signature_header.decode() in headers or any("signature" in name for name in headers)

    def passes_signature(self, headers: Headers, body: bytes) -> bool:
        """Return whether a delivery has a valid signature, if one is required."""
        if not self.signing_secrets and not self.is_signed(headers):
            return self.open
        given = headers.get(self.signature_header.decode(), "").encode("latin-1")
        matches = False
        # A signed request takes the same time whether or not a signature is required.
        for secret in self.signing_secrets or (_DUMMY,):
            signature = SIGNATURE_PREFIX + hmac.new(secret, body, hashlib.sha256).hexdigest()
            matches |= hmac.compare_digest(given, signature.encode())
        return (matches or not self.signing_secrets) and self.open

    def reason(self, headers: Headers, *, has_secret: bool) -> Reason:
        """Return why an open gate refuses a delivery.

        :param has_secret: the result of `passes_secret`.
        """
        if not has_secret:
            return "secret wrong" if SECRET_HEADER in headers else "secret missing"
        is_signed = self.signature_header.decode() in headers
        return "signature wrong" if is_signed else "signature missing"

    def passes_token(self, headers: Headers) -> bool:
        """Return whether a reader knows a signing secret of the connection; without one, a webhook secret."""
        scheme, _, token = headers.get("authorization", "").partition(" ")
        return (
            tokens.verify(token.strip(), self.keys, self.conn_id) and scheme.lower() == "bearer" and self.open
        )

    @property
    def keys(self) -> list[str]:
        """The secrets for tokens and proofs: the signing secrets, or else the webhook secrets."""
        return [secret.decode() for secret in self.signing_secrets or self.secrets]


_DUMMY = secrets.token_bytes(32).hex().encode()
