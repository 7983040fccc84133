# SPDX-License-Identifier: Apache-2.0
"""The hook: typed methods for operations of the service, and `request` for all others."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseHook

from airflow_provider_webdata.api.client import WebDataClient
from airflow_provider_webdata.api.errors import CallRefusedError, WebDataError
from airflow_provider_webdata.hooks.blocking import blocking, iterating
from airflow_provider_webdata.hooks.connection import (
    CONN_TYPE,
    AirflowConnection,
    ConnectionSettings,
    existing,
    settings_of,
)
from airflow_provider_webdata.hooks.diagnosis import diagnose
from airflow_provider_webdata.hooks.masking import mask
from airflow_provider_webdata.hooks.operations.base import Operations
from airflow_provider_webdata.hooks.operations.files import FileOperations
from airflow_provider_webdata.hooks.operations.indexes import IndexOperations
from airflow_provider_webdata.hooks.operations.jobs import JobOperations
from airflow_provider_webdata.hooks.operations.monitors import MonitorOperations
from airflow_provider_webdata.hooks.operations.pages import PageOperations
from airflow_provider_webdata.hooks.operations.providers import ProviderOperations
from airflow_provider_webdata.hooks.operations.requests import RequestOperations
from airflow_provider_webdata.hooks.operations.sessions import SessionOperations
from airflow_provider_webdata.hooks.operations.team import TeamOperations
from airflow_provider_webdata.hooks.optional import optional, read

if TYPE_CHECKING:
    from collections.abc import Iterable
    from types import TracebackType

    from typing_extensions import Self

    from airflow_provider_webdata.api.endpoints import Endpoint, ResponseT
    from airflow_provider_webdata.api.models import ParseUpload
    from airflow_provider_webdata.api.multipart import Upload
    from airflow_provider_webdata.api.servers import Server
    from airflow_provider_webdata.hooks.call_guard import CallGuard
    from airflow_provider_webdata.hooks.calls import Call
    from airflow_provider_webdata.inbox.reader import InboxReader

# Guards the first use of every hook. A lock per hook would prevent pickling. Reentrant, because a signal handler may
# interrupt the first use.
_FIRST_USE = threading.RLock()


class WebDataHook(Operations, BaseHook):
    """The web data service through an Airflow connection.

    All calls, from any thread, share one pooled client, created on first use and closed by `close()` or a `with`
    block. Every method raises the errors of `airflow_provider_webdata.api.errors`: `InvalidRequestError` before a
    request is sent, `ConfigurationError` for an invalid connection, `APIError` for an error response, and
    `InvalidResponseError` or `TransportError` for everything else.

    :param webdata_conn_id: id of a connection of type `webdata`.
    """

    conn_name_attr = "webdata_conn_id"
    default_conn_name = "webdata_default"
    conn_type = CONN_TYPE
    hook_name = "Web Data"

    def __init__(self, webdata_conn_id: str = default_conn_name) -> None:
        super().__init__()
        self.webdata_conn_id = webdata_conn_id
        self._settings: ConnectionSettings | None = None
        self._client: WebDataClient | None = None
        self._guard: CallGuard | None = None
        self._is_optional = False

    def get_settings(self) -> ConnectionSettings:
        """Return the connection's settings, read once. Airflow masks every secret in them."""
        if self._settings is None:
            with _FIRST_USE:
                if self._settings is None:
                    self._settings = _read(existing(self.get_connection, self.webdata_conn_id))
        return self._settings

    def get_conn(self) -> WebDataClient:
        """Return the client of this hook, for calls without a separate method.

        :raises CallRefusedError: the hook is guarded. The client would not enforce its limits.
        """
        if self._guard is not None:
            raise CallRefusedError("a guarded hook does not expose its client; call the hook's methods")
        return self._connected()

    def _connected(self) -> WebDataClient:
        client = self._client
        if client is None:
            with _FIRST_USE:
                client = self._client = self._client or WebDataClient(self.get_settings().client)
        return client

    def close(self) -> None:
        """Close the client's connections; a later call opens new ones."""
        client, self._client = self._client, None
        if client is not None:
            client.close()

    @classmethod
    def of(cls, connection: AirflowConnection) -> WebDataHook:
        """Return a hook for a connection that may not be stored in Airflow, such as one to test first.

        :param connection: an Airflow connection of type `webdata`.
        :raises ConfigurationError: a field is invalid.
        """
        made = cls(connection.conn_id)
        made._settings = _read(connection)
        return made

    def sibling(self) -> Self:
        """Return another hook of the same connection, with its own client. The connection is not read again.

        For code that interrupts a call of this hook, such as a signal handler.
        """
        made = type(self)(self.webdata_conn_id)
        made._settings = self._settings
        made._guard = self._guard
        return made

    def optional(self) -> Self:
        """Return another hook of the same connection for reads that the caller can do without.

        Each read is tried once with a short timeout, is not repeated in this process for five minutes if it fails, and
        is not sent to a server that lacks the operation.
        """
        made = self.sibling()
        settings = self.get_settings()
        made._settings = replace(settings, client=optional(settings.client))
        made._is_optional = True
        return made

    def __enter__(self) -> Self:
        """Return the hook itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the client."""
        self.close()

    def _server(self) -> Server:
        return self.get_settings().client.server

    # The methods below await these five, which never suspend. See `hooks.blocking`.

    async def _execute(self, call: Call[ResponseT]) -> ResponseT:
        if self._is_optional:
            return read(self.get_settings().client, call.endpoint, lambda: self._sent(call))
        return self._sent(call)

    def _sent(self, call: Call[ResponseT]) -> ResponseT:
        if self._guard is None:
            return self._connected().call(call.endpoint, **call.arguments())
        call, reservation = self._guard.admit(call)
        try:
            answer = self._connected().call(call.endpoint, **call.arguments())
        except BaseException as error:
            self._guard.failed(call, reservation, error)
            raise
        self._guard.answered(call, reservation, answer)
        return answer

    async def _check(self, call: Call[Any]) -> None:
        if self._guard is not None:
            self._guard.check(call)

    async def _send_file(self, target: ParseUpload, upload: Upload) -> None:
        self._connected().send_file(target, upload)

    async def _follow(self, endpoint: Endpoint[ResponseT], link: str) -> ResponseT:
        return self._connected().follow(endpoint, link)

    async def _mask(self, secrets: Iterable[str]) -> None:
        mask(secrets)

    search = blocking(PageOperations.search)
    scrape = blocking(PageOperations.scrape)
    get_scrape = blocking(PageOperations.get_scrape)
    map = blocking(PageOperations.map)

    run_provider = blocking(ProviderOperations.run_provider)
    find_tools = iterating(ProviderOperations.find_tools)
    data_tool = blocking(ProviderOperations.data_tool)

    search_developer = blocking(IndexOperations.search_developer)
    search_papers = blocking(IndexOperations.search_papers)
    get_paper = blocking(IndexOperations.get_paper)
    read_paper = blocking(IndexOperations.read_paper)
    similar_papers = blocking(IndexOperations.similar_papers)

    start_crawl = blocking(JobOperations.start_crawl)
    start_batch_scrape = blocking(JobOperations.start_batch_scrape)
    start_agent = blocking(JobOperations.start_agent)
    job_status = blocking(JobOperations.job_status)
    cancel_job = blocking(JobOperations.cancel_job)
    job_errors = blocking(JobOperations.job_errors)
    iter_job_documents = iterating(JobOperations.iter_job_documents)
    active_crawls = blocking(JobOperations.active_crawls)
    crawl_params = blocking(JobOperations.crawl_params)

    parse = blocking(FileOperations.parse)
    parse_formats = blocking(FileOperations.parse_formats)

    open_session = blocking(SessionOperations.open_session)
    list_sessions = blocking(SessionOperations.list_sessions)
    execute = blocking(SessionOperations.execute)
    close_session = blocking(SessionOperations.close_session)
    replay = blocking(SessionOperations.replay)
    replay_page = blocking(SessionOperations.replay_page)
    interact_with_scrape = blocking(SessionOperations.interact_with_scrape)
    stop_scrape_interaction = blocking(SessionOperations.stop_scrape_interaction)

    create_monitor = blocking(MonitorOperations.create_monitor)
    list_monitors = blocking(MonitorOperations.list_monitors)
    iter_monitors = iterating(MonitorOperations.iter_monitors)
    get_monitor = blocking(MonitorOperations.get_monitor)
    update_monitor = blocking(MonitorOperations.update_monitor)
    delete_monitor = blocking(MonitorOperations.delete_monitor)
    run_monitor = blocking(MonitorOperations.run_monitor)
    list_monitor_checks = blocking(MonitorOperations.list_monitor_checks)
    get_monitor_check = blocking(MonitorOperations.get_monitor_check)
    iter_monitor_check_pages = iterating(MonitorOperations.iter_monitor_check_pages)
    changed_pages = iterating(MonitorOperations.changed_pages)

    credit_usage = blocking(TeamOperations.credit_usage)
    credit_history = blocking(TeamOperations.credit_history)
    token_usage = blocking(TeamOperations.token_usage)
    token_history = blocking(TeamOperations.token_history)
    queue_status = blocking(TeamOperations.queue_status)
    concurrency = blocking(TeamOperations.concurrency)
    threat_policy = blocking(TeamOperations.threat_policy)
    replace_threat_policy = blocking(TeamOperations.replace_threat_policy)
    activity = blocking(TeamOperations.activity)
    iter_activity = iterating(TeamOperations.iter_activity)

    request = blocking(RequestOperations.request)

    def test_connection(self) -> tuple[bool, str]:
        """Test the connection with its API key and its kind of server, without retries and without spending credits.

        :return: whether the connection works, and a message with the problem, or the remaining credits and why
            its inbox is unused.
        """
        # Airflow tests a connection in its API server only.
        from airflow_provider_webdata.hooks.probe import probe
        from airflow_provider_webdata.hooks.webhooks import can_receive, inbox_error, no_deliveries_reason

        try:
            settings = self.get_settings()
            works, message = probe(settings.client).message()
        except WebDataError as error:
            return diagnose(error)
        if not works or not settings.webhook.url:
            return works, message
        if not can_receive(settings):
            message += f" Tasks wait by polling: {no_deliveries_reason(settings)}."
        elif problem := inbox_error(settings):
            message += f" Tasks wait by polling: {problem.brief()}."
        return works, message

    def inbox(self) -> InboxReader:
        """Return a reader of this connection's deliveries; close it after use.

        :raises ConfigurationError: the connection has no webhook secret, or the inbox URL is unknown.
        """
        # Only waits by webhook need these modules, which would slow down the import of the hook by a tenth.
        from airflow_provider_webdata.hooks.webhooks import inbox_address
        from airflow_provider_webdata.inbox.reader import InboxReader

        return InboxReader(inbox_address(self.get_settings()))


def _read(connection: AirflowConnection) -> ConnectionSettings:
    settings = settings_of(connection)
    mask(settings.secrets())
    return settings
