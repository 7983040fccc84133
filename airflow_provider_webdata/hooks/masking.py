"""Telling Airflow's masker what must never be shown, from a task and from within an event loop."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow.sdk import log

if TYPE_CHECKING:
    from collections.abc import Iterable


def mask(secrets: Iterable[str]) -> None:
    """Have Airflow replace these values in every log from now on."""
    log.mask_secret(list(secrets))


async def amask(secrets: Iterable[str]) -> None:
    """Do the same from within the event loop, where the blocking form cannot tell the supervisor."""
    # Airflow 3.2 has the blocking form only.
    amask_secret = getattr(log, "amask_secret", None)
    if amask_secret is None:
        mask(secrets)
    else:
        await amask_secret(list(secrets))
