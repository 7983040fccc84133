# SPDX-License-Identifier: Apache-2.0
"""Settings that can be changed while the sandbox runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from webdata_sandbox.config import ENTITLEMENTS, SandboxConfig
from webdata_sandbox.reference.errors import ServiceError
from webdata_sandbox.reference.profiles import PROFILES, Profile

if TYPE_CHECKING:
    from webdata_sandbox.reference.wire import Json

PLAIN: dict[str, type] = {
    "latency_ms": float,
    "check_seconds": float,
    "parse_seconds": float,
    "page_seconds": float,
    "pdf_seconds": float,
    "settle": bool,
    "concurrency": int,
    "step_seconds": float,
    "free_runs": int,
    "max_sessions": int,
    "compress": bool,
}
BY_PROFILE = ("queue_seconds", "closing_seconds")
NOT_ENABLED = {
    "enterprise": "Zero Data Retention (ZDR) search is not enabled for your team.",
    "threatProtection": "Threat Protection is not enabled for your team.",
    "zeroDataRetention": "Zero data retention is not enabled for your team.",
    "robots": "Robots options are not enabled for your team.",
}


class Settings:
    """The current settings; their names and units are those of :class:`SandboxConfig`.

    :raises ValueError: a setting is invalid.
    """

    profile: Profile
    latency_ms: float
    check_seconds: float
    parse_seconds: float
    page_seconds: float
    pdf_seconds: float
    settle: bool
    concurrency: int
    step_seconds: float
    free_runs: int
    max_sessions: int
    compress: bool
    entitlements: frozenset[str]
    bulk: tuple[int, int] | None

    NAMES = frozenset({*PLAIN, *BY_PROFILE, "profile", "entitlements", "bulk"})

    def __init__(self, config: SandboxConfig) -> None:
        self._config = config
        self._seconds: dict[str, float | None] = {}
        self.reset()

    @property
    def queue_seconds(self) -> float:
        """Queue time of a check or job, in sandbox time."""
        stated = self._seconds["queue_seconds"]
        return self.profile.queue_seconds if stated is None else stated

    @property
    def closing_seconds(self) -> float:
        """Time from the last page of a job to its end, in sandbox time."""
        stated = self._seconds["closing_seconds"]
        return self.profile.closing_seconds if stated is None else stated

    def reset(self) -> None:
        """Restore the initial settings."""
        self.change({name: getattr(self._config, name) for name in self.NAMES})

    def change(self, values: Json) -> None:
        """Change some settings.

        :param values: values by setting; unknown names are ignored.
        :raises ValueError: a value is invalid.
        """
        for name, kind in PLAIN.items():
            if name in values:
                setattr(self, name, kind(values[name]))
        for name in BY_PROFILE:
            if name in values:
                self._seconds[name] = None if values[name] is None else float(values[name])
        if "profile" in values:
            self.profile = _profile(values["profile"])
        if "entitlements" in values:
            self.entitlements = _entitlements(values["entitlements"])
        if "bulk" in values:
            self.bulk = (int(values["bulk"][0]), int(values["bulk"][1])) if values["bulk"] else None

    def require_entitlement(self, name: str) -> None:
        """Refuse a feature that the team lacks.

        :raises ServiceError: 403.
        """
        if name not in self.entitlements:
            raise ServiceError(403, NOT_ENABLED[name])


def _profile(name: Any) -> Profile:
    if name not in PROFILES:
        raise ValueError(f"unknown profile {name!r}; use one of {', '.join(PROFILES)}")
    return PROFILES[name]


def _entitlements(names: Any) -> frozenset[str]:
    unknown = set(names) - set(ENTITLEMENTS)
    if unknown:
        raise ValueError(
            f"unknown entitlements: {', '.join(sorted(unknown))}. Entitlements: {', '.join(ENTITLEMENTS)}"
        )
    return frozenset(names)
