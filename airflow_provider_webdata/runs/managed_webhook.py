# SPDX-License-Identifier: Apache-2.0
"""The managed webhook, by which a monitor or a job reports to this Airflow's inbox.

A monitor keeps its webhook for its whole lifetime.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

from airflow_provider_webdata.api.servers import private_webhook_note
from airflow_provider_webdata.common.logs import logger
from airflow_provider_webdata.hooks.environment import environment
from airflow_provider_webdata.hooks.webhooks import (
    can_receive,
    inbox_error,
    new_key,
    no_deliveries_reason,
    webhook_for,
)
from airflow_provider_webdata.inbox.wire import place_of
from airflow_provider_webdata.runs.failures import MonitorConflictError
from airflow_provider_webdata.states.monitor_decision import Listed, Reporter

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from airflow.sdk import Context

    from airflow_provider_webdata.api.models import Monitor
    from airflow_provider_webdata.hooks.connection import ConnectionSettings

log = logger(__name__)

ORIGIN = ("dag_id", "run_id", "task_id", "map_index")
"""Metadata of a delivery that identifies the task that started the job."""


def origin_of(context: Context) -> dict[str, str]:
    """Return the metadata that identifies a delivery's task; empty outside a task run."""
    ti = context.get("ti")
    return {} if ti is None else {name: str(getattr(ti, name)) for name in ORIGIN}


class ManagedWebhook:
    """The webhook by which the monitors and jobs of a connection report to its inbox.

    It is attached only if the connection has an address and its inbox answers.

    :param attach: True: attach it; the connection must have an address. False: do not. None: attach it if the
        connection has an address.
    :param events: event names, in the form of the request.
    :param origin: metadata for every delivery: from `origin_of`, or the mark of a declared monitor.
    """

    def __init__(
        self,
        settings: ConnectionSettings,
        attach: bool | None,
        events: Sequence[str],
        origin: Mapping[str, str] | None = None,
    ) -> None:
        self._settings = settings
        self._attach = attach
        self._events = events
        self._origin = origin

    @property
    def is_possible(self) -> bool:
        """Whether this or an earlier attempt may attach the webhook."""
        return self._attach is not False and can_receive(self._settings)

    @cached_property
    def wanted(self) -> bool:
        """Whether monitors and jobs get the webhook. Asks the inbox once, and logs the reason if it does not answer."""
        if self._attach is False:
            return False
        if not can_receive(self._settings):
            if self._settings.webhook.url and not self._attach:
                log.warning(
                    "No webhook is attached, and waits poll: %s", no_deliveries_reason(self._settings)
                )
            return bool(self._attach)
        if (error := inbox_error(self._settings)) is not None:
            log.warning("No webhook is attached, and waits poll: %s", error.brief())
        return error is None

    def new(self, key: str | None = None) -> dict[str, Any] | None:
        """Return the webhook for a new job or monitor, in wire form, or None.

        :param key: correlation key. Default: a new one.
        :raises ConfigurationError: the webhook is required, but the connection has no address or no secret.
        """
        if not self.wanted:
            return None
        settings = self._settings
        if note := private_webhook_note(settings.client.server, settings.webhook.url or ""):
            log.info("The webhook may not arrive, then polling ends the wait: %s", note)
        return self._made(key or new_key(), self._origin)

    def kept(self, key: str | None, metadata: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Return the webhook for an existing monitor, in wire form, whether or not the inbox answers.

        :param key: the key to keep. None: a new one.
        :param metadata: metadata in place of `origin`.
        """
        made = self._made(key or new_key(), metadata or self._origin)
        # A connection without a secret header removes an earlier connection's header.
        return {"headers": {}, **made}

    def of(self, monitor: Monitor) -> dict[str, Any] | None:
        """Return the webhook for a monitor that another task may declare, in wire form; None to keep its webhook.

        :raises ConfigurationError: the webhook is required, but the connection has no address or no secret.
        :raises MonitorConflictError: the monitor reports to another Airflow.
        """
        if not self.wanted:
            return None
        here, one = Reporter(environment(), self._settings.webhook.url), Listed.of(monitor)
        if here.is_foreign(one):
            raise MonitorConflictError(
                f"{here.described(one)}. Omit attach_webhook, or declare the monitor here with adopt=True"
            )
        place = place_of(one.url) if here.receives(one) else None
        # The mark of the task that declares the monitor stays.
        return self.kept(place.key if place else None, one.mark.metadata if one.mark else None)

    def _made(self, key: str, metadata: Mapping[str, Any] | None) -> dict[str, Any]:
        return webhook_for(self._settings, key, self._events, metadata)
