# SPDX-License-Identifier: Apache-2.0
"""Base class of the hooks and their methods."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

    from typing_extensions import Self

    from airflow_provider_webdata.api.endpoints import Endpoint, ResponseT
    from airflow_provider_webdata.api.models import ParseUpload
    from airflow_provider_webdata.api.multipart import Upload
    from airflow_provider_webdata.api.servers import Server
    from airflow_provider_webdata.hooks.call_guard import CallGuard
    from airflow_provider_webdata.hooks.calls import Call


class Operations:
    """Base class of both hooks and of their methods, which await only the five methods below. See `hooks.blocking`."""

    webdata_conn_id: str
    _settings: Any
    _guard: CallGuard | None

    def guarded(
        self,
        *,
        max_credits: float | None = None,
        max_calls: int | None = None,
        allowed_domains: Iterable[str] | None = None,
    ) -> Self:
        """Return another hook of the same connection that refuses calls that exceed a limit, before they are sent.

        It also refuses private hosts in `url` and `urls`, `extra_body`, and `get_conn()`. Close it separately.

        :param max_credits: maximum total cost of all its calls at the highest documented prices, in credits. Calls
            without a documented price bound are refused. None: no limit.
        :param max_calls: maximum number of billed calls. None: no limit.
        :param allowed_domains: host names, including their subdomains, that may be visited. A host listed here may be
            private. The hook sends only searches, scrapes, and maps, without actions, and refuses every other call.
            None: all public hosts.
        :raises ArgumentError: a limit is not a number of at least 0, or a domain is not a host name.
        """
        from airflow_provider_webdata.hooks.call_guard import CallGuard
        from airflow_provider_webdata.hooks.ledger import ledger_of_process

        name = f"guarded/{self.webdata_conn_id}"
        guard = CallGuard(
            max_credits=max_credits,
            max_calls=max_calls,
            allowed_domains=allowed_domains,
            ledger=ledger_of_process(self.webdata_conn_id, max_credits, name, lambda: self._server().bills),
        )
        return self.guarded_by(guard)

    def guarded_by(self, guard: CallGuard) -> Self:
        """Return another hook of the same connection, limited by a guard that several hooks may share.

        :param guard: the limits, and the credits and calls already used.
        """
        made = type(self)(self.webdata_conn_id)  # type: ignore[call-arg]
        made._settings, made._guard = self._settings, guard
        return made

    def _server(self) -> Server:
        """Return the connection's kind of server; called after the settings were read."""
        raise NotImplementedError

    async def _execute(self, call: Call[ResponseT]) -> ResponseT:
        raise NotImplementedError

    async def _check(self, call: Call[Any]) -> None:
        """Raise `CallRefusedError` if the guard would refuse a call that is sent later."""
        raise NotImplementedError

    async def _send_file(self, target: ParseUpload, upload: Upload) -> None:
        raise NotImplementedError

    async def _follow(self, endpoint: Endpoint[ResponseT], link: str) -> ResponseT:
        raise NotImplementedError

    async def _mask(self, secrets: Iterable[str]) -> None:
        raise NotImplementedError
