# SPDX-License-Identifier: Apache-2.0
"""Registration of secrets with Airflow's masker, blocking and async."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow.sdk import log

if TYPE_CHECKING:
    from collections.abc import Iterable


def mask(secrets: Iterable[str]) -> None:
    """Mask these values in all later logs."""
    log.mask_secret(list(secrets))


def masked(text: str) -> str:
    """Return a text as a log shows it."""
    return str(log.mask_logs(None, "", {"event": text})["event"])


async def amask(secrets: Iterable[str]) -> None:
    """Mask values from the event loop, where the blocking call cannot reach the supervisor."""
    # Airflow 3.2 has only the blocking function.
    amask_secret = getattr(log, "amask_secret", None)
    if amask_secret is None:
        mask(secrets)
    else:
        await amask_secret(list(secrets))
