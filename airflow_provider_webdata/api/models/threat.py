# SPDX-License-Identifier: Apache-2.0
"""Threat protection: the override in search and scrape options, and the organization's policy."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from airflow_provider_webdata.api.models.base import Answer, Lenient, RequestModel, ResponseModel
from airflow_provider_webdata.api.models.fields import DomainPattern, Integer, Listed, Switch, TopLevelDomain

ThreatMode = Literal["off", "normal", "manual-only", "zscaler"]
"""Methods to check URLs before they are fetched."""


class ThreatProtection(RequestModel):
    """Overrides parts of the organization's threat protection policy for one request.

    Omitted fields keep the organization's values. Without the enterprise feature, the service returns 403.

    :param mode: `off`, `normal` (2 more credits per scanned URL), `manual-only` (only your own lists), or `zscaler`
        (the organization's Zscaler decides). Must not be `off` if protection is enforced.
    :param risk_score_threshold: 0 to 100; at or above it a URL is blocked. Lower is stricter.
    :param blacklist: at most 1000 domains to block, `example.com` or `*.example.com`.
    :param whitelist: at most 1000 domains to allow, in the same format; overrides all other rules.
    :param blocked_tlds: at most 1000 top-level domains, in lower case, without the dot.
    :param failure_policy: `closed` blocks and `open` allows URLs while the classifier is unreachable.
    """

    mode: ThreatMode | None = None
    risk_score_threshold: Annotated[Integer, Field(ge=0, le=100)] | None = None
    blacklist: Annotated[Listed[DomainPattern], Field(max_length=1000)] | None = None
    whitelist: Annotated[Listed[DomainPattern], Field(max_length=1000)] | None = None
    blocked_tlds: Annotated[Listed[TopLevelDomain], Field(max_length=1000)] | None = None
    failure_policy: Literal["open", "closed"] | None = None


class ThreatPolicyRequest(ThreatProtection):
    """Body of `PUT /v2/team/threat-protection`: the whole policy. Omitted fields return to their defaults.

    :param mode: `off`, `normal` (2 more credits per scanned URL), `manual-only` (only your own lists), or `zscaler`
        (the organization's Zscaler decides).
    :param risk_score_threshold: 0 to 100; at or above it a URL is blocked. Lower is stricter. Default: 75.
    :param blacklist: at most 1000 domains to block, `example.com` or `*.example.com`. Default: none.
    :param whitelist: at most 1000 domains to allow, in the same format; overrides all other rules. Default: none.
    :param blocked_tlds: at most 1000 top-level domains, in lower case, without the dot. Default: none.
    :param failure_policy: `closed` blocks and `open` allows URLs while the classifier is unreachable. Default:
        `closed`.
    :param allow_request_overrides: allow `threat_protection` in requests. Default: true.
    """

    mode: ThreatMode
    allow_request_overrides: Switch | None = None


class ThreatPolicy(ResponseModel):
    """The current policy, including defaults.

    :ivar mode: a `ThreatMode`, or a newer value.
    :ivar configured: whether a policy was saved.
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
    """Response of `GET` and `PUT /v2/team/threat-protection`."""

    data: ThreatPolicy
