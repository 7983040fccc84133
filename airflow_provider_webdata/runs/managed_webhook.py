"""The managed webhook, by which a monitor or a job reports to this Airflow's inbox.

A monitor keeps its webhook for its whole lifetime.
"""

from __future__ import annotations

import logging
from functools import cached_property
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from airflow_provider_webdata.hooks.webhooks import (
    can_receive,
    inbox_error,
    key_of,
    new_key,
    no_deliveries_reason,
    webhook_for,
)
from airflow_provider_webdata.inbox.wire import INBOX_PATH, MONITOR_NAME, SECRET_HEADER, is_key

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from airflow.sdk import Context

    from airflow_provider_webdata.api.models import Monitor
    from airflow_provider_webdata.hooks.connection import ConnectionSettings

log = logging.getLogger(__name__)

ORIGIN = ("dag_id", "run_id", "task_id", "map_index")
"""Metadata of a delivery that identifies the task that started the job."""
DECLARED_BY = ("dag_id", "task_id")
"""Metadata of a monitor's deliveries. It has no run, because the monitor outlives the run."""


def origin_of(context: Context, names: Sequence[str] = ORIGIN) -> dict[str, str]:
    """Return the metadata that identifies a delivery's task; empty outside a task run.

    :param context: the task's context.
    :param names: which of `ORIGIN`.
    """
    ti = context.get("ti")
    return {} if ti is None else {name: str(getattr(ti, name)) for name in names}


class ManagedWebhook:
    """The webhook by which the monitors and jobs of a connection report to its inbox.

    It is attached only if the connection has an address and its inbox answers.

    :param attach: True: attach it; the connection must have an address. False: do not. None: attach it if the
        connection has an address and the monitor does not report elsewhere.
    :param events: event names, in the form of the request.
    :param origin: metadata for every delivery, from `origin_of`; an existing managed webhook keeps its own.
    :param monitor_name: the monitor's name, to include in its deliveries.
    """

    def __init__(
        self,
        settings: ConnectionSettings,
        attach: bool | None,
        events: Sequence[str],
        origin: Mapping[str, str] | None = None,
        monitor_name: str | None = None,
    ) -> None:
        self._settings = settings
        self._attach = attach
        self._events = events
        self._origin = origin
        self._named = {MONITOR_NAME: monitor_name} if monitor_name else {}

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
        return self._made(key or new_key(), self._origin) if self.wanted else None

    def of(self, monitor: Monitor) -> dict[str, Any] | None:
        """Return the desired webhook of a monitor, in wire form, or None to keep its webhook.

        An existing managed webhook keeps its key, because tasks may be waiting for it.

        :raises ConfigurationError: the webhook is required, but the connection has no address or no secret.
        """
        if not self.wanted:
            return None
        webhook = monitor.webhook
        if isinstance(webhook, str) or webhook is None:
            url, headers, metadata = webhook, {}, None
        else:
            url, headers, metadata = webhook.url, webhook.headers or {}, webhook.metadata
        key = self._key(url, headers)
        if key is None and url and self._attach is None:
            log.warning(
                "Monitor %s reports to an address other than this Airflow's inbox; its webhook is unchanged",
                monitor.id,
            )
            log.warning(
                "Set attach_webhook=True to replace it, or attach_webhook=False to silence this warning"
            )
            return None
        # Otherwise two DAGs that declare the same monitor would replace each other's webhook in every run.
        made = self._made(key or new_key(), (metadata if key else None) or self._origin)
        # A connection without a secret header removes an earlier connection's header.
        return {"headers": {}, **made}

    def _made(self, key: str, metadata: Mapping[str, Any] | None) -> dict[str, Any]:
        return webhook_for(self._settings, key, self._events, {**(metadata or {}), **self._named})

    def _key(self, url: str | None, headers: Mapping[str, Any]) -> str | None:
        """Return the key of a managed webhook, even if its public address has changed since.

        A connection of the same name in another Airflow has another secret.
        """
        if (key := key_of(self._settings, url)) is not None:
            return key
        _, same_path, key = (url or "").partition(f"{INBOX_PATH}/{quote(self._settings.conn_id, safe='')}/")
        knows_secret = headers.get(SECRET_HEADER) in self._settings.webhook.secrets
        return key if same_path and knows_secret and is_key(key) else None
