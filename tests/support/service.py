# SPDX-License-Identifier: Apache-2.0
"""The service's own names and the connection to it, stated once and apart from the package that is tested."""

from __future__ import annotations

import hashlib
import hmac
import json
from datetime import datetime, timezone
from typing import Any

CONNECTION_ID = "webdata_default"
SANDBOX_KEY = "wd-sandbox-key"
WEBHOOK_SECRET = "a-webhook-secret-of-the-tests"

NEVER = {"cron": f"0 0 1 {(datetime.now(timezone.utc).month + 5) % 12 + 1} *"}
"""A schedule that runs no check for five months. The service accepts at most a year ahead."""


def hourly() -> dict[str, str]:
    """A schedule that runs its next check in half an hour: no full hour strikes in the middle of a test."""
    return {"cron": f"{(datetime.now(timezone.utc).minute + 30) % 60} * * * *"}


CHECK_COMPLETED = "monitor.check.completed"
MONITOR_PAGE = "monitor.page"

SECRET_HEADER = "X-WebData-Webhook-Secret"
SIGNATURE_HEADER = "X-Firecrawl-Signature"

# The path at which a job of each kind is started, and below which it is found.
JOB_PATHS = {
    "crawl": "/v2/crawl",
    "batch_scrape": "/v2/batch/scrape",
    "agent": "/v2/agent",
}

UNFETCHED: dict[str, Any] = {
    "markdown": "Upstream Error",
    "metadata": {
        "sourceURL": "http://nohost.example.net/x",
        "url": "http://nohost.example.net/x",
        "statusCode": 599,
        "error": "Network Connect Timeout Error",
        "contentType": "text/plain; charset=utf-8",
        "proxyUsed": "basic",
        "creditsUsed": 1,
    },
}
"""The document of a host that does not resolve, as a self-hosted server returns it."""


def signature(secret: str, body: bytes) -> str:
    """The value of `SIGNATURE_HEADER`."""
    return "sha256=" + hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()


SERVICE = "http://api.firecrawl.dev"
"""The service's own host, whose idempotency keys are trusted. A server of a test answers for it, as the proxy of the
connection."""


def connection_text(url: str, key: str = SANDBOX_KEY, *, is_service: bool = False, **extra: Any) -> str:
    """A connection as an environment variable holds it; an extra of None is absent.

    :param is_service: the server answers for the service's own host.
    """
    given = {"server": "hosted", **({"proxy": url} if is_service else {}), **extra}
    extras = {name: value for name, value in given.items() if value is not None}
    host = SERVICE if is_service else url
    return json.dumps({"conn_type": "webdata", "host": host, "password": key, "extra": extras})
