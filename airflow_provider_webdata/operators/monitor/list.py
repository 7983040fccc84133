# SPDX-License-Identifier: Apache-2.0
"""The operator that lists monitors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow_provider_webdata.base.operator import WebDataOperator

if TYPE_CHECKING:
    from collections.abc import Sequence


class WebDataListMonitorsOperator(WebDataOperator):
    """List the team's monitors, newest first.

    The service has no filters; the task applies `status` and `name_pattern` to all monitors.

    XCom: a list of monitors, with wire names; header values are replaced by `***`.

    :param status: return only monitors in this state, such as `active` or `paused` (templated).
    :param name_pattern: return only monitors whose name matches this case-sensitive shell pattern with `*`, `?`, and
        `[...]` (templated).
    :param limit: maximum number of monitors to return, at least 1 (templated). Default: all.
    :param kwargs: arguments of `WebDataOperator` and `BaseOperator`.
    """

    _run_path = "airflow_provider_webdata.runs.monitors.manage:ListMonitorsRun"
    template_fields: Sequence[str] = (*WebDataOperator.template_fields, "status", "name_pattern", "limit")

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
        self._check_arguments()
