"""Threat protection: the override that search and scrape options share, and the organization's own policy."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from airflow_provider_webdata.api.models.base import Answer, Lenient, RequestModel, ResponseModel
from airflow_provider_webdata.api.models.fields import DomainPattern, Integer, Listed, Switch, TopLevelDomain

ThreatMode = Literal["off", "normal", "manual-only", "zscaler"]
"""Methods to judge URLs before they are fetched."""


class ThreatProtection(RequestModel):
    """Replaces parts of the organization's threat protection policy for one request.

    What is omitted keeps the organization's value. Needs the enterprise feature, else the service answers
    403.

    :param mode: `off`, `normal` (2 more credits per URL scanned), `manual-only` (your own lists alone), or `zscaler`
        (the organization's Zscaler decides). Not `off` where protection is enforced.
    :param risk_score_threshold: 0 to 100; at or above it a URL is blocked. Lower is stricter.
    :param blacklist: at most 1000 domains always blocked, `example.com` or `*.example.com`.
    :param whitelist: at most 1000 domains always allowed, same format; wins over every other rule.
    :param blocked_tlds: at most 1000 top-level domains, lower case, without the dot.
    :param failure_policy: when the classifier cannot be reached, `closed` blocks and `open` allows.
    """

    mode: ThreatMode | None = None
    risk_score_threshold: Annotated[Integer, Field(ge=0, le=100)] | None = None
    blacklist: Annotated[Listed[DomainPattern], Field(max_length=1000)] | None = None
    whitelist: Annotated[Listed[DomainPattern], Field(max_length=1000)] | None = None
    blocked_tlds: Annotated[Listed[TopLevelDomain], Field(max_length=1000)] | None = None
    failure_policy: Literal["open", "closed"] | None = None


class ThreatPolicyRequest(ThreatProtection):
    """Body of `PUT /v2/team/threat-protection`: the whole policy. Omitted fields return to their defaults.

    :param mode: `off`, `normal` (2 more credits per URL scanned), `manual-only` (your own lists alone), or `zscaler`
        (the organization's Zscaler decides).
    :param risk_score_threshold: 0 to 100; at or above it a URL is blocked. Lower is stricter. Default: 75.
    :param blacklist: at most 1000 domains always blocked, `example.com` or `*.example.com`. Default: none.
    :param whitelist: at most 1000 domains always allowed, same format; wins over every other rule. Default: none.
    :param blocked_tlds: at most 1000 top-level domains, lower case, without the dot. Default: none.
    :param failure_policy: when the classifier cannot be reached, `closed` blocks and `open` allows. Default: `closed`.
    :param allow_request_overrides: whether a request may bring its own `threat_protection`. Default: true.
    """

    mode: ThreatMode
    allow_request_overrides: Switch | None = None


class ThreatPolicy(ResponseModel):
    """The policy in force, defaults included.

    :ivar mode: a `ThreatMode`, or one that this version does not know.
    :ivar configured: whether there is one that somebody saved.
    :ivar updated_at: ISO 8601, or null.
    """

    mode: Lenient[str | None] = None
    risk_score_threshold: Lenient[int | float | None] = None
    blacklist: Lenient[list[str] | None] = None
    whitelist: Lenient[list[str] | None] = None
    blocked_tlds: Lenient[list[str] | None] = None
    failure_policy: Lenient[str | None] = None
    allow_request_overrides: Lenient[bool | None] = None
    configured: Lenient[bool | None] = None
    updated_at: Lenient[str | None] = None


class ThreatPolicyResponse(Answer):
    """Answer of `GET` and `PUT /v2/team/threat-protection`."""

    data: ThreatPolicy
