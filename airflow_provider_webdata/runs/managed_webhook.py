"""The webhook that makes a monitor or a job report to this Airflow's inbox.

A monitor keeps the same for as long as it lives.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from airflow_provider_webdata.hooks.webhooks import can_receive, key_of, new_key, webhook_for
from airflow_provider_webdata.inbox.wire import INBOX_PATH, MONITOR_NAME, SECRET_HEADER, is_key

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from airflow.sdk import Context

    from airflow_provider_webdata.api.models import Monitor
    from airflow_provider_webdata.hooks.connection import ConnectionSettings

log = logging.getLogger(__name__)

ORIGIN = ("dag_id", "run_id", "task_id", "map_index")
"""What a delivery's metadata says of the task that started its job; a monitor's names DAG and task."""
DECLARED_BY = ("dag_id", "task_id")
"""What the metadata of a monitor's deliveries says: the monitor outlives the run."""


def origin_of(context: Context, names: Sequence[str] = ORIGIN) -> dict[str, str]:
    """Return the names of a task by which deliveries say where they come from; empty outside of a task run.

    :param context: the task's.
    :param names: which of `ORIGIN`.
    """
    ti = context.get("ti")
    return {} if ti is None else {name: str(getattr(ti, name)) for name in names}


class ManagedWebhook:
    """The webhook that makes the monitors and jobs of one connection report to its inbox.

    :param attach: True: attach it. False: do not. None: attach it if the connection can receive deliveries and
        the monitor does not report elsewhere.
    :param events: what to report, named as the request wants them.
    :param origin: the task that every delivery names in its metadata, from `origin_of`; a managed webhook that names
        one keeps it.
    :param monitor_name: the monitor's name, for its deliveries to name it, too.
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
    def wanted(self) -> bool:
        """Whether monitors and jobs get it."""
        return bool(self._attach) or (self._attach is None and can_receive(self._settings))

    def new(self, key: str | None = None) -> dict[str, Any] | None:
        """Return the webhook of the job or monitor that will be created, in wire form, or None.

        :param key: correlation key; default: a new one.
        :raises ConfigurationError: it must be attached, and the connection lacks an address or a secret.
        """
        return self._made(key or new_key(), self._origin) if self.wanted else None

    def of(self, monitor: Monitor) -> dict[str, Any] | None:
        """Return the webhook that a monitor should have, in wire form, or None if its webhook stays.

        A monitor that has the managed webhook already keeps its key, which tasks may be waiting for.

        :raises ConfigurationError: it must be attached, and the connection lacks an address or a secret.
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
                "Monitor %s reports to another address than this Airflow's inbox and keeps doing so; "
                "attach_webhook=True replaces it, attach_webhook=False ends this warning",
                monitor.id,
            )
            return None
        # Two DAGs that declare the same monitor would otherwise take it from each other with every run.
        made = self._made(key or new_key(), (metadata if key else None) or self._origin)
        # A connection without a secret header removes that of a former one.
        return {"headers": {}, **made}

    def _made(self, key: str, metadata: Mapping[str, Any] | None) -> dict[str, Any]:
        return webhook_for(self._settings, key, self._events, {**(metadata or {}), **self._named})

    def _key(self, url: str | None, headers: Mapping[str, Any]) -> str | None:
        """Return the key of a managed webhook, also of one from before the public address moved.

        Another Airflow may have a connection of the same name: it has another secret.
        """
        if (key := key_of(self._settings, url)) is not None:
            return key
        _, same_path, key = (url or "").partition(f"{INBOX_PATH}/{quote(self._settings.conn_id, safe='')}/")
        knows_secret = headers.get(SECRET_HEADER) in self._settings.webhook.secrets
        return key if same_path and knows_secret and is_key(key) else None
