"""The hook: one method per operation of the service, typed, over the connection's client."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseHook
from airflow.sdk.log import mask_secret

from airflow_provider_webdata.api import endpoints, models
from airflow_provider_webdata.api.client import WebDataClient
from airflow_provider_webdata.api.errors import WebDataError
from airflow_provider_webdata.hooks import calls
from airflow_provider_webdata.hooks.connection import ConnectionSettings, settings_of
from airflow_provider_webdata.hooks.diagnosis import credits_left, diagnose

if TYPE_CHECKING:
    from types import TracebackType

    from airflow_provider_webdata.api.endpoints import ResponseT
    from airflow_provider_webdata.inbox.reader import InboxReader

Body = Mapping[str, Any]


class WebDataHook(BaseHook):
    """The web data service through an Airflow connection.

    All calls share one pooled client, made on first use; `close()` or a `with` block ends it. Every method
    raises the errors of `airflow_provider_webdata.api.errors`: `InvalidRequestError` before anything is sent,
    `ConfigurationError` for a connection that cannot work, `APIError` for what the service answers,
    `InvalidResponseError` and `TransportError` for the rest.

    :param webdata_conn_id: id of a connection of type `webdata`.
    """

    conn_name_attr = "webdata_conn_id"
    default_conn_name = "webdata_default"
    conn_type = "webdata"
    hook_name = "Web Data"

    def __init__(self, webdata_conn_id: str = default_conn_name) -> None:
        super().__init__()
        self.webdata_conn_id = webdata_conn_id
        self._settings: ConnectionSettings | None = None
        self._client: WebDataClient | None = None

    def get_settings(self) -> ConnectionSettings:
        """Return the connection's settings, read once; Airflow's masker knows every secret in them."""
        if self._settings is None:
            settings = settings_of(self.get_connection(self.webdata_conn_id))
            mask_secret(list(settings.secrets()))
            self._settings = settings
        return self._settings

    def get_conn(self) -> WebDataClient:
        """Return the client of this hook, for calls that have no method of their own."""
        if self._client is None:
            self._client = WebDataClient(self.get_settings().client)
        return self._client

    def close(self) -> None:
        """Close the client's connections; a later call opens new ones."""
        if self._client is not None:
            self._client.close()
            self._client = None

    def __enter__(self) -> WebDataHook:
        """Return the hook itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the client."""
        self.close()

    def _execute(self, call: calls.Call[ResponseT]) -> ResponseT:
        return self.get_conn().call(call.endpoint, **call.arguments())

    def search(
        self, request: models.SearchRequest | Body, *, extra_body: Body | None = None
    ) -> models.SearchResponse:
        """Search the web, and scrape the results where `scrapeOptions` asks for it. Bills credits.

        :param request: reference, POST /v2/search; only `query` is required.
        :param extra_body: merged into the body unchecked.
        """
        return self._execute(calls.search(request, extra_body))

    def create_monitor(
        self, request: models.MonitorCreateRequest | Body, *, extra_body: Body | None = None
    ) -> models.Monitor:
        """Create a monitor. Never repeated after a lost answer, for names are not unique.

        :param request: reference, POST /v2/monitor; name, schedule and targets are required.
        :param extra_body: merged into the body unchecked.
        """
        return self._execute(calls.create_monitor(request, extra_body)).data

    def list_monitors(self, *, limit: int | None = None, offset: int | None = None) -> list[models.Monitor]:
        """Return one page of the monitors, newest first. Supplement 13.5.

        :param limit: most monitors to return, 1 to 100; the service's default is 25.
        :param offset: how many to skip.
        """
        return self._execute(calls.list_monitors(limit, offset)).data

    def iter_monitors(self) -> Iterator[models.Monitor]:
        """Yield every monitor once, newest first, a page at a time."""
        pages = calls.MonitorPages()
        while pages.query is not None:
            yield from pages.take(self.list_monitors(**pages.query))

    def get_monitor(self, monitor_id: str) -> models.Monitor:
        """Return one monitor.

        Reads come from a replica: just after its creation a monitor may be answered with `NotFoundError`.

        :param monitor_id: the monitor's UUID.
        """
        return self._execute(calls.of_monitor(endpoints.GET_MONITOR, monitor_id)).data

    def update_monitor(
        self,
        monitor_id: str,
        request: models.MonitorUpdateRequest | Body | None = None,
        *,
        extra_body: Body | None = None,
    ) -> models.Monitor:
        """Change a monitor; what is left out stays. Supplement 13.6.

        `targets` replaces the whole array, and a target without its `id` loses its page history.

        :param monitor_id: the monitor's UUID.
        :param request: the fields to change.
        :param extra_body: merged into the body unchecked; may stand alone.
        """
        return self._execute(calls.update_monitor(monitor_id, request, extra_body)).data

    def delete_monitor(self, monitor_id: str) -> models.DeleteResponse:
        """Delete a monitor.

        :param monitor_id: the monitor's UUID.
        """
        return self._execute(calls.of_monitor(endpoints.DELETE_MONITOR, monitor_id))

    def run_monitor(self, monitor_id: str) -> models.MonitorCheck:
        """Start a check now and return it, queued. Bills credits; never repeated after a lost answer.

        :param monitor_id: the monitor's UUID.
        :raises ConflictError: a check is running (its id is in `body["checkId"]`), or the monitor is paused.
        """
        return calls.check_of_run(self._execute(calls.of_monitor(endpoints.RUN_MONITOR, monitor_id)))

    def list_monitor_checks(
        self,
        monitor_id: str,
        *,
        limit: int | None = None,
        offset: int | None = None,
        status: str | None = None,
    ) -> list[models.MonitorCheck]:
        """Return one page of a monitor's checks, newest first, without their pages. Supplement 13.10.

        :param monitor_id: the monitor's UUID.
        :param limit: most checks to return, 1 to 100; the service's default is 25.
        :param offset: how many to skip.
        :param status: only checks in this state.
        """
        return self._execute(calls.list_monitor_checks(monitor_id, limit, offset, status)).data

    def get_monitor_check(
        self,
        monitor_id: str,
        check_id: str,
        *,
        limit: int | None = None,
        skip: int | None = None,
        status: str | None = None,
    ) -> models.MonitorCheckDetail:
        """Return a check with one part of its pages. Judge it by its `status`.

        :param monitor_id: the monitor's UUID.
        :param check_id: the check's UUID.
        :param limit: most pages to return, 1 to 100; the service's default is 25.
        :param skip: how many pages to skip.
        :param status: only pages of this status: `same`, `new`, `changed`, `removed` or `error`.
        """
        return self._execute(calls.get_monitor_check(monitor_id, check_id, limit, skip, status)).data

    def iter_monitor_check_pages(
        self, monitor_id: str, check_id: str, *, status: str | None = None
    ) -> Iterator[models.MonitorCheckDetail]:
        """Yield a check in parts until all its pages were read, each page once.

        Read a check that has ended: pages are added while it runs.

        :param monitor_id: the monitor's UUID.
        :param check_id: the check's UUID.
        :param status: only pages of this status.
        """
        pages = calls.CheckPages()
        call = calls.get_monitor_check(monitor_id, check_id, calls.PAGE_SIZE, None, status)
        answer = self._execute(call)
        while True:
            yield pages.take(answer.data)
            link = pages.next_link(answer.next, answer.data.next)
            if link is None:
                return
            answer = self.get_conn().follow(call.endpoint, link)

    def get_credit_usage(self) -> models.CreditUsage:
        """Return the team's credits. Costs none. Supplement 14."""
        return self._execute(calls.Call(endpoints.CREDIT_USAGE)).data

    def test_connection(self) -> tuple[bool, str]:
        """Check the connection with the real key, without spending credits.

        :return: whether it works, and in words what is wrong or how many credits are left.
        """
        try:
            with self:
                return True, credits_left(self.get_credit_usage())
        except WebDataError as error:
            return diagnose(error)

    def inbox(self) -> InboxReader:
        """Return a reader of the deliveries that arrived for this connection; close it after use.

        :raises ConfigurationError: the connection has no webhook secret, or it is not known where the inbox is.
        """
        from airflow_provider_webdata.hooks.inbox import inbox_address
        from airflow_provider_webdata.inbox.reader import InboxReader

        return InboxReader(inbox_address(self.get_settings()))
