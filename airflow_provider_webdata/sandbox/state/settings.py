"""Settings that can be changed while the sandbox runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow_provider_webdata.sandbox.config import ENTITLEMENTS, SandboxConfig
from airflow_provider_webdata.sandbox.reference.errors import ServiceError

if TYPE_CHECKING:
    from airflow_provider_webdata.sandbox.reference.wire import Json

PLAIN: dict[str, type] = {
    "latency_ms": float,
    "queue_seconds": float,
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
NOT_ENABLED = {
    "enterprise": "Zero Data Retention (ZDR) search is not enabled for your team.",
    "threatProtection": "Threat Protection is not enabled for your team.",
    "zeroDataRetention": "Zero data retention is not enabled for your team.",
    "robots": "Robots options are not enabled for your team.",
}


class Settings:
    """The settings in force; their names and units are those of :class:`SandboxConfig`.

    :raises ValueError: when one is wrong.
    """

    latency_ms: float
    queue_seconds: float
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

    NAMES = frozenset({*PLAIN, "entitlements", "bulk"})

    def __init__(self, config: SandboxConfig) -> None:
        self._config = config
        self.reset()

    def reset(self) -> None:
        """Go back to the settings of the start."""
        self.change({name: getattr(self._config, name) for name in self.NAMES})

    def change(self, given: Json) -> None:
        """Change some settings.

        :param given: values by name; names of other settings are left alone.
        :raises ValueError: when a value is wrong.
        """
        for name, kind in PLAIN.items():
            if name in given:
                setattr(self, name, kind(given[name]))
        if "entitlements" in given:
            self.entitlements = _entitlements(given["entitlements"])
        if "bulk" in given:
            self.bulk = (int(given["bulk"][0]), int(given["bulk"][1])) if given["bulk"] else None

    def require_entitlement(self, name: str) -> None:
        """Refuse a feature that the team does not have.

        :raises ServiceError: 403.
        """
        if name not in self.entitlements:
            raise ServiceError(403, NOT_ENABLED[name])


def _entitlements(names: Any) -> frozenset[str]:
    unknown = set(names) - set(ENTITLEMENTS)
    if unknown:
        raise ValueError(
            f"unknown entitlements: {', '.join(sorted(unknown))}; known are {', '.join(ENTITLEMENTS)}"
        )
    return frozenset(names)
