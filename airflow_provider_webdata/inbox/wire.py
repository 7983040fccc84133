# SPDX-License-Identifier: Apache-2.0
"""Routes of the inbox, and the header that authenticates a delivery."""

from __future__ import annotations

import re
from typing import NamedTuple
from urllib.parse import quote, unquote

SECRET_HEADER = "X-WebData-Webhook-Secret"  # noqa: S105
"""Header that the service sends back with every delivery (sandbox/docs/service.md#webhook-headers)."""

SIGNATURE_PREFIX = "sha256="
"""Prefix of the digest in a delivery's signature header (sandbox/docs/service.md#delivery-signature)."""

INBOX_PATH = "/webdata/inbox"
"""Route that receives deliveries: the only path that the service must reach."""

DELIVERIES_PATH = "/webdata/deliveries"
"""Route by which triggers and sensors read stored deliveries."""

INLINE_BODY_BYTES = 16 * 1024
"""Maximum size of a body in lists; larger bodies are omitted and fetched individually."""

MONITOR_NAME = "monitor"
"""Field of a managed webhook's metadata with the monitor's name."""

MAX_VALUES = 1000
"""Maximum number of keys, job ids, monitor ids, and events in one request of a reader."""

LISTS = {"key": "keys", "job_id": "job_ids", "monitor_id": "monitor_ids", "event": "events"}
"""Repeatable query parameters, and the corresponding fields of searches and filters."""

REFUSED = "the webhook secret or the signature is missing or wrong"
"""The inbox's `error` with a 401, which distinguishes it from another server's 401."""

NOT_JSON = "the body is not JSON"
"""The inbox's `error` with a 400."""

_KEY = re.compile(r"[A-Za-z0-9._~-]{1,200}")


def is_key(text: str) -> bool:
    """Return whether a text is a valid correlation key: 1 to 200 letters, digits, `.`, `_`, `~`, or `-`."""
    return _KEY.fullmatch(text) is not None


def delivery_url(base: str, conn_id: str, key: str | None = None) -> str:
    """Return the address for the deliveries of a connection.

    :param base: address of the Airflow API server, including its base path, if any.
    :param conn_id: id of the connection whose secrets the deliveries carry.
    :param key: correlation key of one wait or monitor. None: the address for manually configured webhooks.
    """
    url = f"{root_of(base)}{INBOX_PATH}/{quote(conn_id, safe='')}"
    return url if key is None else f"{url}/{quote(key, safe='')}"


def root_of(base: str) -> str:
    """Return the address of an inbox without its own path."""
    return base.rstrip("/").removesuffix(INBOX_PATH)


class Place(NamedTuple):
    """The parts of a URL that receives deliveries.

    :param root: address of the inbox, without its own path.
    :param key: correlation key, if any.
    """

    root: str
    conn_id: str
    key: str | None


def place_of(url: str | None) -> Place | None:
    """Return the parts of a URL in the form of `delivery_url`, of this or another Airflow; None for any other URL."""
    root, is_inbox, rest = (url or "").partition(f"{INBOX_PATH}/")
    conn_id, _, key = rest.partition("/")
    if not is_inbox or not conn_id:
        return None
    key = unquote(key)
    return Place(root, unquote(conn_id), key if is_key(key) else None)
