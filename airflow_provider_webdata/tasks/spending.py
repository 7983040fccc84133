"""Base of the tasks that bill."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow_provider_webdata.tasks.service_task import ServiceTask

if TYPE_CHECKING:
    from airflow.sdk import Context

    from airflow_provider_webdata.runs.billing import Billing


class SpendingTask(ServiceTask):
    """Base of the tasks that say what was spent; see `Billing`."""

    credit_limit: float | str | None = None
    _billing: Billing | None = None

    def billing(self, context: Context, operation: str = "credit_limit") -> Billing:
        """Return the credits of the attempt.

        :param context: the task's context.
        :param operation: names the call in the error for a limit that is no number; read by the first call only.
        """
        from airflow_provider_webdata.runs.billing import Billing

        if self._billing is None or self._billing.context.get("ti") is not context.get("ti"):

            def push(**values: Any) -> None:
                self.push(context, **values)

            self._billing = Billing(context, self.log, push, self.credit_limit, operation)
        return self._billing
