"""The supported versions of Airflow: rooms that import Airflow check first, so that the error names an older one."""

from __future__ import annotations

import re

from airflow_provider_webdata import __version__

OLDEST_AIRFLOW = (3, 2, 1)
"""The oldest version that is supported, as `pyproject.toml` says it."""

PARTITION_EVENTS = (3, 3)
"""The first version in which a task can emit asset events of partitions."""


def airflow_release() -> tuple[int, ...]:
    """Return the version of the installed Airflow; a release candidate counts as its release."""
    return tuple(int(part) for part in re.findall(r"\d+", _version())[:3])


def _version() -> str:
    import airflow

    return str(getattr(airflow, "__version__", ".".join(map(str, OLDEST_AIRFLOW))))


def require_airflow() -> None:
    """Fail in one sentence where Airflow is missing or too old, before an import fails deep inside.

    Airflow's command line and its other DAGs go on: only a DAG file that imports this package does not load, and
    the plugin is left out.

    :raises RuntimeError: there is no Airflow here, or it is older than `OLDEST_AIRFLOW`.
    """
    oldest = ".".join(map(str, OLDEST_AIRFLOW))
    needs = f"airflow-provider-webdata {__version__} needs Apache Airflow {oldest} or newer"
    try:
        found = airflow_release()
    except ModuleNotFoundError as error:
        if error.name != "airflow":
            raise
        raise RuntimeError(
            f"{needs}, and none is installed here: run `pip install 'apache-airflow>={oldest}'`"
        ) from None
    if found < OLDEST_AIRFLOW:
        raise RuntimeError(
            f"{needs}, and this is Airflow {_version()}: upgrade Airflow, or uninstall airflow-provider-webdata"
        )
