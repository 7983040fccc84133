"""What Airflow mounts from this package. Every Airflow process imports it: nothing heavy at module level."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow.plugins_manager import AirflowPlugin

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime


def tbs(start: datetime, end: datetime, *, sort_by_date: bool = False) -> str:
    """Return the time filter of a search that covers an interval; in templates `macros.webdata.tbs`.

    `{{ macros.webdata.tbs(data_interval_start, data_interval_end) }}` keeps a scheduled DAG's search to its data
    interval. See `airflow_provider_webdata.api.query.tbs`.

    :param start: first moment of the interval.
    :param end: end of the interval; a midnight does not count its day in.
    :param sort_by_date: newest first.
    """
    from airflow_provider_webdata.api import query

    return query.tbs(start, end, sort_by_date=sort_by_date)


class WebDataPlugin(AirflowPlugin):
    """Macros for templates, under `macros.webdata`."""

    name = "webdata"
    macros: list[Callable[..., Any]] = [tbs]  # noqa: RUF012
