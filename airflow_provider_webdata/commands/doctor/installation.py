# SPDX-License-Identifier: Apache-2.0
"""Checks of the installation: versions, and the plugin in Airflow's plugin manager."""

from __future__ import annotations

import platform
from typing import TYPE_CHECKING, Any

import airflow

from airflow_provider_webdata import __version__
from airflow_provider_webdata.airflow_db.components import plugin_applications
from airflow_provider_webdata.common.page_urls import UI_PATH
from airflow_provider_webdata.common.supported_airflow import require_airflow
from airflow_provider_webdata.inbox.wire import INBOX_PATH
from airflow_provider_webdata.inbox_server.options import inbox_enabled, pages_enabled

from .finding import failed, passed

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
        return failed(seen, f"{advice[:1].upper()}{advice[1:]}.")
    return passed(seen)


def plugin() -> Finding:
    """Check that Airflow mounts the inbox and the pages, if they are on, and no other plugin hides them."""
    mounts = ([_INBOX_MOUNT] if inbox_enabled() else []) + ([UI_PATH] if pages_enabled() else [])
    applications = plugin_applications()
    ours = [app["url_prefix"] for app in applications if _is_ours(app)]
    if missing := [mount for mount in mounts if mount not in ours]:
        return failed(
            f"Airflow has not loaded the plugin, so {' and '.join(missing)} cannot be reached",
            "Check `airflow plugins` and the API server's log for an import error, and for another plugin named "
            "'webdata'; then restart the API server.",
        )
    for mount in mounts:
        first = next(app for app in applications if app["url_prefix"].rstrip("/") in {"", mount})
        if not _is_ours(first):
            return failed(
                f"the application {first.get('name')!r} of another plugin, mounted at {first['url_prefix'] or '/'}, "
                f"hides {mount}",
                "Mount that application elsewhere.",
            )
    if not mounts:
        return passed("Airflow has nothing to mount: the inbox and the pages are off")
    return passed(f"Airflow has loaded the plugin, which mounts {' and '.join(mounts)}")


def _is_ours(application: dict[str, Any]) -> bool:
    return type(application["app"]).__module__.startswith(f"{__package__.partition('.')[0]}.")
