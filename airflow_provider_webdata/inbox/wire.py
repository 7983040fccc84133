"""Routes of the inbox, and the header that proves a delivery."""

from __future__ import annotations

import re
from urllib.parse import quote

SECRET_HEADER = "X-WebData-Webhook-Secret"  # noqa: S105
"""Header that the service sends back with every delivery (docs/service.md#webhook-headers)."""

SIGNATURE_PREFIX = "sha256="
"""What stands before the digest in the header of a delivery's signature (docs/service.md#delivery-signature)."""

INBOX_PATH = "/webdata/inbox"
"""Deliveries arrive here: the one path that the service must be able to reach."""

DELIVERIES_PATH = "/webdata/deliveries"
"""Stored deliveries are read here, by triggers and sensors."""

INLINE_BODY_BYTES = 16 * 1024
"""Larger bodies are left out where deliveries are listed, and fetched one by one."""

MONITOR_NAME = "monitor"
"""Field of a managed webhook's metadata by which its deliveries name their monitor."""

MOST_VALUES = 1000
"""Keys, job ids, monitor ids and events that one request of a reader may name."""

LISTS = {"key": "keys", "job_id": "job_ids", "monitor_id": "monitor_ids", "event": "events"}
"""Parameters of a query that may be repeated, and the fields of searches and filters that hold the same."""

REFUSED = "the webhook secret or the signature is missing or wrong"
"""The inbox's `error` beside a 401, by which a stranger's is told from it."""

NOT_JSON = "the body is not JSON"
"""The inbox's `error` beside a 400."""

_KEY = re.compile(r"[A-Za-z0-9._~-]{1,200}")


def is_key(text: str) -> bool:
    """Return whether a text can be a correlation key: 1 to 200 letters, digits, `.`, `_`, `~` or `-`."""
    return _KEY.fullmatch(text) is not None


def delivery_url(base: str, conn_id: str, key: str | None = None) -> str:
    """Return the address for the deliveries of a connection.

    :param base: address of the Airflow API server, with the path under which it is published, if any.
    :param conn_id: id of the connection whose secrets the deliveries carry.
    :param key: correlation key of one wait or monitor; without it, the address for webhooks set up by hand.
    """
    root = base.rstrip("/").removesuffix(INBOX_PATH)
    url = f"{root}{INBOX_PATH}/{quote(conn_id, safe='')}"
    return url if key is None else f"{url}/{quote(key, safe='')}"
