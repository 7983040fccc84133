# SPDX-License-Identifier: Apache-2.0
"""The name of this Airflow."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from airflow.sdk import conf

if TYPE_CHECKING:
    from airflow_provider_webdata.common.attempt import Attempt


def environment() -> str:
    """Return the name of this Airflow: `[webdata] environment`, else the host of its URL, else `localhost`.

    It is the same on all workers, and can be a part of a path.
    """
    if named := str(conf.get("webdata", "environment", fallback="") or "").strip():
        return re.sub(r"[^\w.-]", "-", named)
    for section, option in (("api", "base_url"), ("core", "execution_api_server_url")):
        host = urlsplit(str(conf.get(section, option, fallback="") or "")).hostname
        if host:
            return host
    return "localhost"


def shared_identity(attempt: Attempt) -> tuple[str | int | None, ...]:
    """Return the identity of a task instance in storage that several Airflows may share; see `Attempt.instance`.

    DAG and run ids are the same in each of them.
    """
    dag_id, *others = attempt.instance
    return (f"{environment()}/{dag_id}", *others)
