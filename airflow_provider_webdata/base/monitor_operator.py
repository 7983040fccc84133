# SPDX-License-Identifier: Apache-2.0
"""Base class of the operators for an existing monitor."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow_provider_webdata.base.links import LINKS
from airflow_provider_webdata.base.operator import WebDataOperator
from airflow_provider_webdata.common.arguments import monitor_of, seconds
from airflow_provider_webdata.common.coded_errors import ArgumentError
from airflow_provider_webdata.options import REPLICA_WAIT_SECONDS

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from datetime import timedelta

    from airflow.sdk import BaseOperatorLink


class ExistingMonitorOperator(WebDataOperator):
    """Base class of the operators for an existing monitor.

    :param monitor_id: UUID of the monitor, or the result of a task about it (templated).
    :param monitor_name: name of the monitor, as an alternative to the id (templated). The name must be unique.
    :param replica_wait: maximum seconds to wait for a monitor or check that should exist. The service reads from a
        replica, where new objects may be missing for a moment. 0: read once.
    :param kwargs: arguments of `WebDataOperator` and `BaseOperator`.
    """

    operator_extra_links: Collection[BaseOperatorLink] = LINKS
    template_fields: Sequence[str] = (*WebDataOperator.template_fields, "monitor_id", "monitor_name")

    def __init__(
        self,
        *,
        monitor_id: str | None = None,
        monitor_name: str | None = None,
        replica_wait: float | timedelta = REPLICA_WAIT_SECONDS,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.monitor_id = monitor_id
        self.monitor_name = monitor_name
        self.replica_wait = replica_wait

    def _check_values(self) -> None:
        """Check the arguments that are not fields of the request; see `ServiceTask._check_values`."""
        super()._check_values()
        if (self.monitor_id is None) == (self.monitor_name is None):
            raise ArgumentError("pass either monitor_id or monitor_name")
        seconds("replica_wait", self.replica_wait, least=0)

    def _rendered(self, written: Mapping[str, Any]) -> None:
        """Replace the result of another task by the monitor's id."""
        super()._rendered(written)
        self.monitor_id = monitor_of(self.monitor_id)
