# SPDX-License-Identifier: Apache-2.0
"""Kinds of long-running jobs."""

from __future__ import annotations

from typing import Any, Literal

from airflow_provider_webdata.common.coded_errors import ArgumentError

JobKind = Literal["crawl", "batch_scrape", "agent"]
"""Kinds of long-running jobs, which are also the prefixes of their events."""

DeliveredKind = Literal[JobKind, "extract"]
"""Kinds of jobs whose events the inbox accepts. Other clients may start extract jobs."""

ALL_JOB_KINDS: tuple[JobKind, ...] = ("crawl", "batch_scrape", "agent")
DELIVERED_KINDS: tuple[DeliveredKind, ...] = (*ALL_JOB_KINDS, "extract")


def checked_kind(given: Any) -> JobKind:
    """Validate a kind of job, and return it.

    :raises ArgumentError: the kind is unknown.
    """
    return _checked(given, ALL_JOB_KINDS)  # type: ignore[no-any-return]


def checked_delivered_kind(given: Any) -> DeliveredKind:
    """Validate a kind of job whose events the inbox accepts, and return it.

    :raises ArgumentError: the kind is unknown.
    """
    return _checked(given, DELIVERED_KINDS)  # type: ignore[no-any-return]


def _checked(given: Any, kinds: tuple[str, ...]) -> Any:
    if given not in kinds:
        raise ArgumentError(f"kind must be one of {', '.join(kinds)} (given: {given!r})")
    return given
