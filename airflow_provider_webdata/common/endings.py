"""Shutdown dates of operations of the hosted service, and their replacements. See docs/service.md#extract-end."""

from __future__ import annotations

from datetime import datetime, timezone

import msgspec

from airflow_provider_webdata.common.links import docs_link


class Ending(msgspec.Struct, frozen=True):
    """The shutdown of an operation on the hosted service.

    :param operation: the operation, such as `/v2/extract`.
    :param successor: instruction that names the replacement.
    """

    operation: str
    at: datetime
    successor: str

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
    f"or WebDataAgentOperator: {docs_link('upgrade.md#replace-extract')}",
)
