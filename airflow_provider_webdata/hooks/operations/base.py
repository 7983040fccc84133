"""The part of a hook that the methods of a resource use."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

    from typing_extensions import Self

    from airflow_provider_webdata.api.endpoints import Endpoint, ResponseT
    from airflow_provider_webdata.api.models import ParseUpload
    from airflow_provider_webdata.api.multipart import Upload
    from airflow_provider_webdata.hooks.call_guard import CallGuard
    from airflow_provider_webdata.hooks.calls import Call


class Operations:
    """Base of both hooks and of their methods, which await only the four below. See `hooks.blocking`."""

    webdata_conn_id: str
    _settings: Any
    _guard: CallGuard | None

    def guarded(
        self,
        *,
        max_credits: float | None = None,
        max_calls: int | None = None,
        allowed_domains: Iterable[str] | None = None,
        blocked_domains: Iterable[str] | None = None,
    ) -> Self:
        """Return another hook of the same connection, which refuses calls that exceed caps; nothing is sent then.

        It refuses private hosts, `extra_body` and `get_conn()` as well. Close it by itself.

        :param max_credits: most credits that all its calls together may cost, by the documented prices at their
            highest; what has no such bound is refused. None: no limit.
        :param max_calls: most calls that bill. None: no limit.
        :param allowed_domains: host names, each with its subdomains, that may be visited; one that is named itself may
            be private. None: all that are public.
        :param blocked_domains: host names, each with its subdomains, that may not be visited.
        :raises ArgumentError: a cap is no number of at least 0, or a domain no host name.
        """
        from airflow_provider_webdata.hooks.budget import attempt_budget
        from airflow_provider_webdata.hooks.call_guard import CallGuard

        guard = CallGuard(
            max_credits=max_credits,
            max_calls=max_calls,
            allowed_domains=allowed_domains,
            blocked_domains=blocked_domains,
            budget=attempt_budget(max_credits, f"guarded/{self.webdata_conn_id}"),
        )
        return self.guarded_by(guard)

    def guarded_by(self, guard: CallGuard) -> Self:
        """Return another hook of the same connection, held by caps that it may share with others.

        :param guard: the caps, and what was spent of them.
        """
        made = type(self)(self.webdata_conn_id)  # type: ignore[call-arg]
        made._settings, made._guard = self._settings, guard
        return made

    async def _execute(self, call: Call[ResponseT]) -> ResponseT:
        raise NotImplementedError

    async def _send_file(self, target: ParseUpload, upload: Upload) -> None:
        raise NotImplementedError

    async def _follow(self, endpoint: Endpoint[ResponseT], link: str) -> ResponseT:
        raise NotImplementedError

    async def _mask(self, secrets: Iterable[str]) -> None:
        raise NotImplementedError
