"""The operator that lists monitors."""

from __future__ import annotations

import fnmatch
from typing import TYPE_CHECKING, Any, ClassVar

from airflow_provider_webdata.tasks.operator import WebDataOperator

if TYPE_CHECKING:
    from collections.abc import Sequence

    from airflow.sdk import Context


class WebDataListMonitorsOperator(WebDataOperator):
    """List the team's monitors, newest first.

    The service filters by nothing; `status` and `name_pattern` are applied here, to all monitors.

    XCom: a list of monitors, with wire names; header values are replaced by `***`.

    :param status: only monitors in this state, such as `active` or `paused` (templated).
    :param name_pattern: only names that match, with `*`, `?` and `[...]` as in a shell, case counts (templated).
    :param limit: most monitors to return, at least 1 (templated); all by default.
    :param kwargs: arguments of `WebDataOperator` and `BaseOperator`.
    """

    template_fields: Sequence[str] = ("webdata_conn_id", "status", "name_pattern", "limit")
    template_fields_renderers: ClassVar[dict[str, str]] = {}

    def __init__(
        self,
        *,
        status: str | None = None,
        name_pattern: str | None = None,
        limit: int | str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.status = status
        self.name_pattern = name_pattern
        self.limit = limit

    def call_service(self, context: Context) -> list[dict[str, Any]]:  # noqa: ARG002
        """List what matches."""
        limit = self._checked_limit()
        found = []
        for monitor in self.hook.iter_monitors():
            if self.status and monitor.status != self.status:
                continue
            if self.name_pattern and not fnmatch.fnmatchcase(monitor.name or "", self.name_pattern):
                continue
            found.append(monitor.to_wire(mask_headers=True))
            if limit is not None and len(found) >= limit:
                break
        self.log.info("%d monitors match", len(found))
        return found

    def _checked_limit(self) -> int | None:
        from airflow_provider_webdata.api.errors import InvalidRequestError

        given = self.limit
        if given is None or given == "":
            return None
        text = "" if isinstance(given, bool) else str(given).strip()
        if not text.isdecimal() or int(text) < 1:
            raise InvalidRequestError(
                "list monitors", [f"limit: must be a whole number of at least 1 (given: {given!r})"]
            )
        return int(text)
