"""The webhook to which the service reports events."""

from __future__ import annotations

import ipaddress
from typing import Annotated, Any, ClassVar
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, field_validator, model_validator

from airflow_provider_webdata.api.models.base import RequestModel, problem
from airflow_provider_webdata.api.models.fields import Headers, Listed, String, StringMap, Text
from airflow_provider_webdata.common.spelling import nearest

MONITOR_EVENTS = ("monitor.page", "monitor.check.completed")


def _receiver(value: str) -> str:
    if any(character.isspace() or not character.isprintable() for character in value):
        raise problem("webhook_url", "a URL holds no blanks and no control characters")
    try:
        parts = urlsplit(value)
        host = parts.hostname
        _ = parts.port
    except ValueError:
        raise problem("webhook_url", "this is not a URL") from None
    if not host or parts.scheme not in {"http", "https"}:
        raise problem("webhook_url", "a webhook URL is written in full: https://host/path")
    if parts.scheme == "http" and not _is_loopback(host):
        raise problem("webhook_url", "a webhook URL is https; plain http is for loopback addresses only")
    return value


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


class WebhookConfig(RequestModel):
    """An endpoint that receives the events of a job.

    The endpoint must answer 2xx within 10 seconds; else the service tries again after 1, 5 and 15 minutes.

    :param url: https, or http to a loopback address; required. Plain text in place of the object means this.
    :param headers: sent along with every event; kept out of reprs.
    :param metadata: text values, echoed in the payload. Numbers and objects are refused: the service delivers
        text only.
    :param events: which events to send; all when omitted. For jobs without prefix: `completed`, `page`, ...
    """

    job_events: ClassVar[tuple[str, ...]] = ()
    """Names of the events that a job sends, without prefix; empty: not checked."""

    url: Annotated[String, AfterValidator(_receiver)]
    headers: Headers | None = Field(None, repr=False)
    metadata: StringMap | None = None
    events: Listed[Text] | None = None

    @model_validator(mode="before")
    @classmethod
    def _short_form(cls, data: Any) -> Any:
        return {"url": data} if isinstance(data, str) else data

    @field_validator("events")
    @classmethod
    def _job_events(cls, events: list[str] | None) -> list[str] | None:
        for event in events or () if cls.job_events else ():
            if event not in cls.job_events:
                found = nearest(event.rpartition(".")[2], cls.job_events)
                hint = f"did you mean '{found}'?" if found else f"there are {', '.join(cls.job_events)}"
                prefix = "; a job's events are named without prefix" if "." in event else ""
                raise problem("job_event", f"this job does not send '{event}'{prefix}; {hint}")
        return events


class MonitorWebhookConfig(WebhookConfig):
    """An endpoint that receives the events of a monitor; as `WebhookConfig`, but for the events.

    :param events: `monitor.page`, `monitor.check.completed`; both when omitted.
    """

    @field_validator("events")
    @classmethod
    def _monitor_events(cls, events: list[str] | None) -> list[str] | None:
        for event in events or ():
            if event not in MONITOR_EVENTS:
                found = nearest(event.removeprefix("monitor."), ("page", "check.completed"))
                hint = (
                    f"did you mean 'monitor.{found}'?"
                    if found
                    else f"there are {' and '.join(MONITOR_EVENTS)}"
                )
                raise problem("monitor_event", f"a monitor does not send '{event}'; {hint}")
        return events


class PageJobWebhookConfig(WebhookConfig):
    """An endpoint that receives the events of a crawl or batch scrape; as `WebhookConfig` otherwise.

    :param events: `started`, `page`, `completed`, `failed`, without prefix; all when omitted. `failed` is taken
        but never sent: do not wait for it.
    """

    job_events = ("started", "page", "completed", "failed")
