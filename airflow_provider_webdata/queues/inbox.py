"""The inbox as a message queue: `MessageQueueTrigger(scheme="webdata", ...)` of common-messaging."""

from __future__ import annotations

from typing import TYPE_CHECKING

try:
    from airflow.providers.common.messaging.providers.base_provider import BaseMessageQueueProvider
except ImportError as error:
    from airflow.exceptions import AirflowOptionalProviderFeatureException

    # Airflow silently skips the scheme on this exception.
    raise AirflowOptionalProviderFeatureException(
        "The message queue scheme webdata needs the package apache-airflow-providers-common-messaging: "
        "pip install 'airflow-provider-webdata[messaging]'"
    ) from error

if TYPE_CHECKING:
    from typing import Any

    from airflow.triggers.base import BaseEventTrigger


class WebDataMessageQueueProvider(BaseMessageQueueProvider):
    """The scheme `webdata`, which accepts the arguments of `WebDataWebhookEventTrigger`.

    Airflow stores the `WebDataWebhookEventTrigger`, so it uses that trigger's cursors and shared readers.
    """

    scheme = "webdata"

    def queue_matches(self, queue: str) -> bool:  # noqa: ARG002
        """Return False: the inbox has no queue URL, and Airflow deprecates the argument `queue`."""
        return False

    def trigger_class(self) -> type[BaseEventTrigger]:
        """Return the trigger that emits one asset event for each delivery."""
        from airflow_provider_webdata.triggers.events import WebDataWebhookEventTrigger

        return WebDataWebhookEventTrigger

    def trigger_kwargs(self, queue: str, **kwargs: Any) -> dict[str, Any]:  # noqa: ARG002
        """Return no arguments. See `queue_matches`."""
        return {}
