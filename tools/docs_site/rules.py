# SPDX-License-Identifier: Apache-2.0
"""The anchors of sandbox/docs/service.md for the rules of request fields."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

from airflow_provider_webdata.api.endpoints import ENDPOINTS
from tools.coverage_page import slug

SERVICE = Path(__file__).parents[2] / "sandbox" / "docs" / "service.md"

SECTIONS: dict[str, tuple[str, ...]] = {
    "AgentWebhookConfig": ("webhook-object",),
    "BatchScrapeRequest": ("scrape-options",),
    "CrawlOptions": ("crawl",),
    "CrawlParamsRequest": ("crawl",),
    "CrawlTarget": ("targets",),
    "EmailNotification": ("monitor-fields",),
    "MapRequest": ("scrape-options",),
    "MonitorNotification": ("monitor-fields",),
    "MonitorScrapeOptions": ("scrape-options",),
    "MonitorWebhookConfig": ("webhook-object",),
    "PageJobWebhookConfig": ("webhook-object",),
    "ParseOptions": ("scrape-options",),
    "ParseReferenceRequest": ("parse", "scrape-options"),
    "ScrapeInteractRequest": ("code", "session"),
    "ScrapeOptions": ("scrape-options",),
    "ScrapeRequest": ("scrape-options",),
    "ScrapeTarget": ("targets",),
    "SearchScrapeOptions": ("scrape-options",),
    "SearchTarget": ("targets",),
    "ThreatPolicyRequest": ("threat-protection",),
    "ThreatProtection": ("threat-protection",),
}
"""Additional sections with the fields of a model, after the section of its endpoint. The first with a field applies."""

COMMON = {
    "integration": "caller-integration",
    "notification": "monitor-notification",
    "origin": "caller-labels",
    "schedule": "schedule",
    "status": "monitor-update",
    "threatProtection": "threat-protection",
}
"""The rules of fields that have the same meaning in all requests."""

WHOLE: dict[str, str] = {
    "AgentApproval": "agent-exchange",
    "AgentExchange": "agent-exchange",
    "AgentLocation": "agent-server-fields",
    "AgentRefusal": "agent-exchange",
    "AgentWebhookConfig": "webhook-events-steps",
    "AttributeSelector": "format-further",
    "AttributesFormat": "format-further",
    "AuditMetadata": "scrape-audit",
    "CategoryFilter": "search-categories",
    "ChangeTrackingFormat": "format-change-tracking",
    "ClickAction": "action-click",
    "DeterministicJsonFormat": "format-further",
    "ExecuteJavascriptAction": "action-script",
    "HighlightsFormat": "format-highlights",
    "ImageParser": "parser-image",
    "JsonFormat": "format-json",
    "Location": "scrape-location",
    "MonitorScrapeOptions": "target-scrape-options",
    "MonitorSchedule": "schedule-form",
    "MonitorWebhookConfig": "webhook-events-monitor",
    "OtherSource": "search-sources",
    "PIIOptions": "scrape-pii",
    "PageJobWebhookConfig": "webhook-events",
    "ParsePlainFormat": "parse-formats",
    "PdfAction": "action-pdf",
    "PdfParser": "parser-pdf",
    "PlainFormat": "format-plain",
    "ProviderCall": "provider-calls",
    "FindToolsRequest": "find-tools-call",
    "PressAction": "action-press",
    "Profile": "scrape-profile",
    "QueryFormat": "format-further",
    "QuestionFormat": "format-question",
    "ScrapeAction": "action-scrape",
    "ScrapeOptions": "scrape-options",
    "ScreenshotAction": "action-screenshot",
    "ScreenshotFormat": "format-screenshot",
    "ScrollAction": "action-scroll",
    "SearchScrapeOptions": "search-scrape-options",
    "Viewport": "format-screenshot",
    "WaitAction": "action-wait",
    "WebSource": "search-sources",
    "WriteAction": "action-write",
}
"""Models with a single rule or section."""


def rule_of_model(model: str) -> str:
    """Return the anchor of the rule or section of a model.

    :param model: name of a request model.
    :raises LookupError: the model has no endpoint and is not in `SECTIONS` or `WHOLE`.
    """
    if model in WHOLE:
        return WHOLE[model]
    for section in sections_of(model):
        return section
    raise LookupError(
        f"{model}: add its rule or section of sandbox/docs/service.md to WHOLE or SECTIONS of {__name__}"
    )


def sections_of(model: str) -> tuple[str, ...]:
    """Return the sections of sandbox/docs/service.md whose tables have the fields of a model."""
    return (*_endpoints().get(model, ()), *SECTIONS.get(model, ()))


@cache
def _endpoints() -> dict[str, tuple[str]]:
    declared = ENDPOINTS.values()
    return {one.request().__name__: (one.section,) for one in declared if one.request is not None}


def rule_of_field(model: str, field: str) -> str | None:
    """Return the anchor of a field's rule, or None.

    :param model: name of a request model.
    :param field: wire name of the field.
    """
    if field in COMMON:
        return COMMON[field]
    if field == "events":
        return WHOLE[model]
    return next((anchor for section in sections_of(model) if (anchor := _rows().get((section, field)))), None)


@cache
def _rows() -> dict[tuple[str, str], str]:
    """Return the anchor of each row, by the section and the fields in the first cells."""
    found: dict[tuple[str, str], str] = {}
    section: list[str] = []
    for line in SERVICE.read_text(encoding="utf-8").splitlines():
        if heading := re.match(r"(#+) (.*)", line):
            # A section's rows include those of its subsections.
            section = [*section[: len(heading[1]) - 1], slug(heading[2])]
        elif line.startswith("|"):
            cells = line.strip("|").split(" | ")[:2]
            naming = next((cell for cell in cells if "`" in cell), "")
            for anchor in re.findall(r'<a id="([^"]+)">', " ".join(cells))[:1]:
                for name in re.findall(r"`([A-Za-z0-9_]+)[*?]?`", naming):
                    for above in section:
                        found.setdefault((above, name), anchor)
    return found
