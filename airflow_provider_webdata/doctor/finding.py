"""The finding of a check."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from airflow_provider_webdata.common.secret_text import without_secrets

if TYPE_CHECKING:
    from collections.abc import Iterable

State = Literal["ok", "warning", "wrong", "unknown"]
"""`wrong`: something does not work. `warning`: it works, and is hardly meant so. `unknown`: it could not be checked."""


@dataclass(frozen=True)
class Finding:
    """The result of one check.

    :param check: name of the check, such as `key`.
    :param state: whether it is right.
    :param seen: the observation, one line of text.
    :param advice: the next step, one line of text; None if there is nothing to do.
    :param conn_id: the connection that was checked; None for a check that all connections share.
    """

    check: str
    state: State
    seen: str
    advice: str | None = None
    conn_id: str | None = None

    def without(self, secrets: Iterable[str]) -> Finding:
        """Return the finding with every one of these secrets blotted out.

        :param secrets: the secrets; those of fewer than 5 characters hide nothing, and stay.
        """
        seen, advice = without_secrets([self.seen, self.advice or ""], secrets)
        return replace(self, seen=seen, advice=advice or None)
