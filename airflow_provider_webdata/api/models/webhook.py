# SPDX-License-Identifier: Apache-2.0
"""Webhooks that receive the service's events."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, ClassVar
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, field_validator, model_validator

from airflow_provider_webdata.api.models.base import RequestModel, problem
from airflow_provider_webdata.api.models.fields import Headers, Listed, String, StringMap, Text
from airflow_provider_webdata.api.servers import ONLY_SELF_HOSTED
from airflow_provider_webdata.common.hosts import is_loopback
from airflow_provider_webdata.common.spelling import nearest

if TYPE_CHECKING:
    from airflow_provider_webdata.api.servers import Server

MONITOR_EVENTS = ("monitor.page", "monitor.check.completed")


def _receiver(value: str) -> str:
    if any(character.isspace() or not character.isprintable() for character in value):
        raise problem("webhook_url", "a URL must not contain spaces or control characters")
    try:
        parts = urlsplit(value)
        host = parts.hostname
        _ = parts.port
    except ValueError:
        raise problem("webhook_url", "must be a valid URL") from None
    if not host or parts.scheme not in {"http", "https"}:
        raise problem("webhook_url", "must be a complete URL: https://host/path")
    return value


def _exposes_headers(url: str) -> bool:
    """Return whether deliveries cross a network in plain text."""
    parts = urlsplit(url)
    return parts.scheme != "https" and not is_loopback(parts.hostname)


class WebhookConfig(RequestModel):
    """An endpoint that receives the events of a job.

    The endpoint must return 2xx within 10 seconds. Otherwise, the service retries after 1, 5, and 15 minutes.

    :param url: an https URL, or http with a loopback address or on a self-hosted server; required. Plain text instead
        of an object is a URL.
    :param headers: sent with every event; omitted from reprs.
    :param metadata: text values, echoed in the payload. Numbers and objects are rejected, because the service delivers
        only text.
    :param events: events to send; all when omitted. Without prefix for jobs: `completed`, `page`, ...
    """

    job_events: ClassVar[tuple[str, ...]] = ()
    """Names of a job's events, without prefix; if empty, names are not checked."""

    url: Annotated[String, AfterValidator(_receiver)]
    headers: Headers | None = Field(None, repr=False)
    metadata: StringMap | None = None
    events: Listed[Text] | None = None

    @model_validator(mode="before")
    @classmethod
    def _short_form(cls, data: Any) -> Any:
        return {"url": data} if isinstance(data, str) else data

    def _own_refusals(self, server: Server) -> list[str]:
        if server.allows_plain_webhooks or not _exposes_headers(self.url):
            return []
        rule = "must be an https URL (plain http only for a loopback address)"
        return [f"url: {rule} (given: {self.url!r}). {ONLY_SELF_HOSTED}"]

    def _own_warnings(self) -> list[str]:
        if not _exposes_headers(self.url):
            return []
        return [
            "webhook.url: plain http exposes every delivery and its headers, with any secret, on the network; use https"
        ]

    @field_validator("events")
    @classmethod
    def _job_events(cls, events: list[str] | None) -> list[str] | None:
        for event in events or () if cls.job_events else ():
            if event not in cls.job_events:
                found = nearest(event.rpartition(".")[2], cls.job_events)
                hint = f"did you mean '{found}'?" if found else f"use one of {', '.join(cls.job_events)}"
                prefix = "; omit the prefix of a job's events" if "." in event else ""
                raise problem("job_event", f"this job does not send '{event}'{prefix}; {hint}")
        return events


class MonitorWebhookConfig(WebhookConfig):
    """An endpoint that receives the events of a monitor; otherwise like `WebhookConfig`.

    :param events: `monitor.page`, `monitor.check.completed`; both when omitted.
    """

    @field_validator("events")
    @classmethod
    def _monitor_events(cls, events: list[str] | None) -> list[str] | None:
        for event in events or ():
            if event not in MONITOR_EVENTS:
                found = nearest(event.removeprefix("monitor."), ("page", "check.completed"))
                hint = f"did you mean 'monitor.{found}'?" if found else f"use {' or '.join(MONITOR_EVENTS)}"
                raise problem("monitor_event", f"a monitor does not send '{event}'; {hint}")
        return events


class PageJobWebhookConfig(WebhookConfig):
    """An endpoint that receives the events of a crawl or batch scrape; otherwise like `WebhookConfig`.

    :param events: `started`, `page`, `completed`, `failed`, without prefix; all when omitted. The service accepts
        `failed` but never sends it, so do not wait for it.
    """

    job_events = ("started", "page", "completed", "failed")
