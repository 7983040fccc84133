"""The decision whether a wait listens for deliveries."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_provider_webdata.api.errors import ConfigurationError
from airflow_provider_webdata.hooks.webhooks import can_receive, no_deliveries_reason

if TYPE_CHECKING:
    from airflow_provider_webdata.hooks.connection import ConnectionSettings
    from airflow_provider_webdata.waiting.policy import PollingPolicy


def listens(policy: PollingPolicy, settings: ConnectionSettings) -> bool:
    """Return whether a wait listens for deliveries.

    :param policy: of the wait.
    :param settings: of the connection.
    :raises ConfigurationError: the policy asks for webhooks, and the connection cannot receive any.
    """
    if policy.wait_by != "polling" and can_receive(settings):
        return True
    if policy.wait_by == "webhook":
        raise ConfigurationError(no_deliveries_reason(settings))
    return False
