"""The default of `deferrable`."""

from __future__ import annotations

from airflow.sdk.configuration import conf


def is_deferrable(given: bool | None) -> bool:
    """Return whether a task waits in the triggerer.

    :param given: what the author says; None: as Airflow's `[operators] default_deferrable` does.
    """
    return conf.getboolean("operators", "default_deferrable", fallback=False) if given is None else given
