# SPDX-License-Identifier: Apache-2.0
"""Check for a supported Airflow version, before an import fails without a clear message."""

from __future__ import annotations

import re

from airflow_provider_webdata import __version__

OLDEST_AIRFLOW = (3, 2, 1)
"""The oldest supported version, as in `pyproject.toml`."""


def airflow_release() -> tuple[int, ...]:
    """Return the version of the installed Airflow; a release candidate counts as its release."""
    return tuple(int(part) for part in re.findall(r"\d+", _version())[:3])


def _version() -> str:
    import airflow

    return str(getattr(airflow, "__version__", ".".join(map(str, OLDEST_AIRFLOW))))


def require_airflow() -> None:
    """Raise a clear error if Airflow is missing or too old.

    Airflow's command line and other DAGs keep working: only DAG files that import this package, and the plugin, fail to
    load.

    :raises RuntimeError: Airflow is not installed, or is older than `OLDEST_AIRFLOW`.
    """
    oldest = ".".join(map(str, OLDEST_AIRFLOW))
    needs = f"airflow-provider-webdata {__version__} needs Apache Airflow {oldest} or newer"
    try:
        found = airflow_release()
    except ModuleNotFoundError as error:
        if error.name != "airflow":
            raise
        raise RuntimeError(
            f"{needs}, but Airflow is not installed: run `pip install 'apache-airflow>={oldest}'`"
        ) from None
    if found < OLDEST_AIRFLOW:
        raise RuntimeError(
            f"{needs}, but this is Airflow {_version()}: upgrade Airflow, or uninstall airflow-provider-webdata"
        )
