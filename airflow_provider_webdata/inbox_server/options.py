# SPDX-License-Identifier: Apache-2.0
"""The options of Airflow's servers, in section `[webdata]` of Airflow's configuration.

The plugin and the DB manager read `inbox` and `pages`. An invalid value of these must not prevent Airflow from
starting: it is logged, and the default applies. All other functions raise `OptionError` if their option is invalid.
"""

from __future__ import annotations

from functools import cache

from airflow.configuration import conf
from airflow.exceptions import AirflowConfigException

from airflow_provider_webdata.common.logs import logger
from airflow_provider_webdata.inbox_server.storage.errors import OptionError

log = logger(__name__)


def inbox_enabled() -> bool:
    """Return whether this Airflow has an inbox (`inbox`, False)."""
    return _switch("inbox", default=False)


def pages_enabled() -> bool:
    """Return whether the API server has the provider's pages (`pages`, True)."""
    return _switch("pages", default=True)


def creates_tables() -> bool:
    """Return whether the inbox creates its tables itself (`inbox_create_tables`, False)."""
    return _flag("inbox_create_tables")


def max_body_bytes() -> int:
    """Return the maximum size of a delivery (`inbox_max_body_mb`, 16 MB)."""
    given, megabytes = _number("inbox_max_body_mb", "16")
    if not 0 < megabytes * 2**20 < float("inf"):
        raise OptionError(f"[webdata] inbox_max_body_mb must be a number above 0 (given: {given!r})")
    return int(megabytes * 2**20)


def retention_days() -> float:
    """Return the retention of deliveries in days (`inbox_retention_days`, 30); 0 keeps all."""
    given, days = _number("inbox_retention_days", "30")
    if not 0 <= days < float("inf"):
        raise OptionError(f"[webdata] inbox_retention_days must be a number, 0 or more (given: {given!r})")
    return days


def _switch(name: str, *, default: bool) -> bool:
    try:
        return _flag(name, default=default)
    except OptionError as error:
        _report(f"{error.brief()}. The default, {default}, applies")
        return default


@cache
def _report(problem: str) -> None:
    """Log a problem once per process."""
    log.error("%s", problem)


def _flag(name: str, *, default: bool = False) -> bool:
    try:
        return conf.getboolean("webdata", name, fallback=default)
    except AirflowConfigException:
        given = conf.get("webdata", name)
        raise OptionError(f"[webdata] {name} must be True or False (given: {given!r})") from None


def _number(name: str, default: str) -> tuple[str, float]:
    """Return an option as text and as a number, NaN if it is not one."""
    given = conf.get("webdata", name, fallback=default)
    try:
        return given, float(given)
    except ValueError:
        return given, float("nan")
