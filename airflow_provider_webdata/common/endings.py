"""Shutdown dates of operations of the hosted service, and their replacements. See docs/service.md#extract-end."""

from __future__ import annotations

from datetime import datetime, timezone
from urllib.parse import urlsplit

import msgspec

from airflow_provider_webdata.get_provider_info import HOSTED_URL

HOSTED_HOSTS = frozenset({urlsplit(HOSTED_URL).hostname})
"""Hosts that shut down operations; a self-hosted server may keep them."""


class Ending(msgspec.Struct, frozen=True):
    """The shutdown of an operation on the hosted service.

    :param operation: the operation, such as `/v2/extract`.
    :param successor: instruction that names the replacement.
    """

    operation: str
    at: datetime
    successor: str

    def concerns(self, base_url: str) -> bool:
        """Return whether a base URL belongs to the hosted service."""
        return urlsplit(base_url).hostname in HOSTED_HOSTS

    def has_passed(self) -> bool:
        """Return whether the operation has been shut down."""
        return datetime.now(timezone.utc) >= self.at

    @property
    def warning(self) -> str:
        """The date and the successor, as text."""
        return f"The hosted service shuts down {self.operation} on {self.at:%Y-%m-%d at %H:%M} UTC. {self.successor}"


EXTRACT = Ending(
    "/v2/extract",
    datetime(2026, 12, 10, 15, tzinfo=timezone.utc),
    "Set via='scrape' or via='agent' of WebDataExtractOperator, or use WebDataBatchScrapeOperator with a json format "
    "or WebDataAgentOperator: docs/upgrade.md#replace-extract",
)
