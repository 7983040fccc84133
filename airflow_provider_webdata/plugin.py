"""What Airflow mounts from this package. Every Airflow process imports it: nothing heavy at module level."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow.plugins_manager import AirflowPlugin

from airflow_provider_webdata.supported_airflow import require_airflow

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, MutableMapping
    from datetime import datetime

    Message = MutableMapping[str, Any]

require_airflow()


def tbs(start: Any, end: datetime | None = None, *, sort_by_date: bool = False) -> str:
    """Return the time filter of a search that covers an interval; in templates `macros.webdata.tbs`.

    `{{ macros.webdata.tbs(dag_run) }}` keeps a DAG's search to the data interval of its run. For a run that has none,
    as one that was started by hand may, it is the day of `dag_run.run_after`. See
    `airflow_provider_webdata.api.query.tbs`.

    :param start: the DAG run, or the first moment of the interval.
    :param end: end of the interval, where `start` is a moment; a midnight does not count its day in.
    :param sort_by_date: newest first.
    """
    from airflow_provider_webdata.api import query

    return query.tbs(start, end, sort_by_date=sort_by_date)


class _Inbox:
    """The webhook inbox as an ASGI application, which comes into being at its first request."""

    def __init__(self) -> None:
        self._application: Any = None

    async def __call__(
        self,
        scope: MutableMapping[str, Any],
        receive: Callable[[], Awaitable[Message]],
        send: Callable[[Message], Awaitable[None]],
    ) -> None:
        if self._application is None:
            from airflow_provider_webdata.inbox.server.application import application_or_unavailable

            self._application = application_or_unavailable()
        await self._application(scope, receive, send)


class WebDataPlugin(AirflowPlugin):
    """Macros for templates, under `macros.webdata`, and the webhook inbox on the API server."""

    name = "webdata"
    fastapi_apps: list[dict[str, Any]] = [  # noqa: RUF012
        {"app": _Inbox(), "url_prefix": "/webdata", "name": "Web data inbox"}
    ]
    macros: list[Callable[..., Any]] = [tbs]  # noqa: RUF012
