"""The name of this Airflow."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from airflow.sdk.configuration import conf


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
