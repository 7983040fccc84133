"""Checks of the installation: versions, and the plugin in Airflow's plugin manager."""

from __future__ import annotations

import platform
from typing import TYPE_CHECKING, Any

import airflow

from airflow_provider_webdata import __version__
from airflow_provider_webdata.airflow_db.components import plugin_applications
from airflow_provider_webdata.common.supported_airflow import require_airflow
from airflow_provider_webdata.inbox.wire import INBOX_PATH

from .finding import ok, wrong

if TYPE_CHECKING:
    from .finding import Finding

_INBOX_MOUNT = INBOX_PATH.rpartition("/")[0]


def versions() -> Finding:
    """Check that this package supports the installed Airflow version."""
    seen = f"airflow-provider-webdata {__version__}, Airflow {airflow.__version__}, Python {platform.python_version()}"
    try:
        require_airflow()
    except RuntimeError as error:
        seen, _, advice = str(error).partition(": ")
        return wrong(seen, f"{advice[:1].upper()}{advice[1:]}.")
    return ok(seen)


def plugin() -> Finding:
    """Check that Airflow mounts this package's applications, including the inbox, and none hides the inbox."""
    applications = plugin_applications()
    if _INBOX_MOUNT not in [app["url_prefix"] for app in applications if _is_ours(app)]:
        return wrong(
            f"Airflow has not loaded the plugin, so {_INBOX_MOUNT} does not exist",
            "Check `airflow plugins` and the API server's log for an import error, and for another plugin named "
            "'webdata'; then restart the API server.",
        )
    first = next(app for app in applications if app["url_prefix"].rstrip("/") in {"", _INBOX_MOUNT})
    if not _is_ours(first):
        return wrong(
            f"the application {first.get('name')!r} of another plugin, mounted at {first['url_prefix'] or '/'}, "
            f"hides the inbox at {_INBOX_MOUNT}",
            "Mount that application elsewhere.",
        )
    return ok(f"Airflow has loaded the plugin and mounts the inbox at {_INBOX_MOUNT}")


def _is_ours(application: dict[str, Any]) -> bool:
    return type(application["app"]).__module__.startswith(f"{__package__.partition('.')[0]}.")
