# SPDX-License-Identifier: Apache-2.0
"""The finding of a check."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from airflow_provider_webdata.common.secret_text import without_secrets

if TYPE_CHECKING:
    from collections.abc import Iterable

State = Literal["passed", "warning", "failed", "skipped"]
"""`warning`: works, but is probably unintended. `skipped`: could not be checked."""


@dataclass(frozen=True)
class Finding:
    """The result of one check. A check returns it without its name and connection, which `checks` adds.

    :param check: name of the check, such as `key`.
    :param state: result of the check.
    :param seen: the observation, one line of text.
    :param advice: the next step, one line of text; None if no action is needed.
    :param conn_id: the checked connection; None for checks that concern all connections.
    """

    check: str
    state: State
    seen: str
    advice: str | None = None
    conn_id: str | None = None

    def without(self, secrets: Iterable[str]) -> Finding:
        """Return the finding with all secrets redacted.

        :param secrets: the secrets. Those of fewer than 5 characters are not redacted.
        """
        seen, advice = without_secrets([self.seen, self.advice or ""], secrets)
        return replace(self, seen=seen, advice=advice or None)


def passed(seen: str) -> Finding:
    """Return the finding of a check that passed."""
    return Finding("", "passed", seen)


def warning(seen: str, advice: str) -> Finding:
    """Return a finding that works, but is probably unintended."""
    return Finding("", "warning", seen, advice)


def failed(seen: str, advice: str | None = None) -> Finding:
    """Return a finding that does not work."""
    return Finding("", "failed", seen, advice)


def skipped(seen: str, advice: str | None = None) -> Finding:
    """Return the finding of a check that could not be made."""
    return Finding("", "skipped", seen, advice)
