"""The threat protection override, which search and scrape options share."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from airflow_provider_webdata.api.models.base import RequestModel
from airflow_provider_webdata.api.models.fields import DomainPattern, Integer, Listed, TopLevelDomain


class ThreatProtection(RequestModel):
    """Replaces parts of the organization's threat protection policy for one request.

    What is omitted keeps the organization's value. Needs the enterprise feature, else the service answers
    403.

    :param mode: `off`, or `normal` (2 more credits per URL scanned). Not `off` where protection is enforced.
    :param risk_score_threshold: 0 to 100; at or above it a URL is blocked. Lower is stricter.
    :param blacklist: at most 1000 domains always blocked, `example.com` or `*.example.com`.
    :param whitelist: at most 1000 domains always allowed, same format; wins over every other rule.
    :param blocked_tlds: at most 1000 top-level domains, lower case, without the dot.
    :param failure_policy: when the classifier cannot be reached, `closed` blocks and `open` allows.
    """

    mode: Literal["off", "normal"] | None = None
    risk_score_threshold: Annotated[Integer, Field(ge=0, le=100)] | None = None
    blacklist: Annotated[Listed[DomainPattern], Field(max_length=1000)] | None = None
    whitelist: Annotated[Listed[DomainPattern], Field(max_length=1000)] | None = None
    blocked_tlds: Annotated[Listed[TopLevelDomain], Field(max_length=1000)] | None = None
    failure_policy: Literal["open", "closed"] | None = None
