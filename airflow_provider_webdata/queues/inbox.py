"""`MessageQueueTrigger(scheme="webdata", ...)` of common-messaging: the inbox as a message queue like any other."""

from __future__ import annotations

from typing import TYPE_CHECKING

try:
    from airflow.providers.common.messaging.providers.base_provider import BaseMessageQueueProvider
except ImportError as error:
    from airflow.exceptions import AirflowOptionalProviderFeatureException

    # Airflow then leaves the scheme out, without a warning.
    raise AirflowOptionalProviderFeatureException(
        "The message queue scheme webdata needs the package apache-airflow-providers-common-messaging: "
        "pip install 'airflow-provider-webdata[messaging]'"
    ) from error

if TYPE_CHECKING:
    from typing import Any

    from airflow.triggers.base import BaseEventTrigger


class WebDataMessageQueueProvider(BaseMessageQueueProvider):
    """The scheme `webdata`; the trigger takes the arguments of `WebDataWebhookEventTrigger`, which it stands for.

    Airflow stores that trigger in its place: cursors and shared readers are those of `WebDataWebhookEventTrigger`.
    """

    scheme = "webdata"

    def queue_matches(self, queue: str) -> bool:  # noqa: ARG002
        """Return False: no address names the inbox, and Airflow gives up the argument `queue`."""
        return False

    def trigger_class(self) -> type[BaseEventTrigger]:
        """Return the trigger that makes one asset event of every delivery."""
        from airflow_provider_webdata.triggers.events import WebDataWebhookEventTrigger

        return WebDataWebhookEventTrigger

    def trigger_kwargs(self, queue: str, **kwargs: Any) -> dict[str, Any]:  # noqa: ARG002
        """Return nothing: see `queue_matches`."""
        return {}
