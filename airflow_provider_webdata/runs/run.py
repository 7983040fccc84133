"""Base of all runs: the task, its context, and the delivery of results."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, NoReturn

from airflow_provider_webdata.results.errors import OutputError
from airflow_provider_webdata.runs.billing import Billing
from airflow_provider_webdata.runs.delivery.delivery import Delivery
from airflow_provider_webdata.runs.failures import InvalidResultsError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import datetime

    from airflow.sdk import Context

    from airflow_provider_webdata.api.errors import WebDataError
    from airflow_provider_webdata.coded_errors import CodedError
    from airflow_provider_webdata.hooks.webdata import WebDataHook
    from airflow_provider_webdata.runs.delivery.delivery import Value
    from airflow_provider_webdata.runs.delivery.step import Results


class Run:
    """One attempt of a task.

    :param task: the operator.
    :param context: the task's context.
    """

    operation: str = "credit_limit"
    """As `api.prices.price_bound` calls what the task is billed for."""

    def __init__(self, task: Any, context: Context) -> None:
        self.task = task
        self.context = context
        self.log = task.log
        self.refuse: Callable[[str | CodedError], NoReturn] = task.refuse
        """Fails the task for good."""

    def call(self) -> Any:
        """Call the service, and return the task's XCom."""
        raise NotImplementedError

    def execute(self) -> Any:
        """Execute the task.

        :raises AirflowFailException: no retry can help.
        :raises AirflowRescheduleException: the service asks to wait.
        :raises WebDataError: a retry may help, or the task's retry policy decides.
        """
        with self.task.calling(self.context):
            return self.call()

    @property
    def hook(self) -> WebDataHook:
        """The hook of the task's connection."""
        hook: WebDataHook = self.task.hook
        return hook

    def push(self, **values: Any) -> None:
        """Push XComs beside the return value."""
        self.task.push(self.context, **values)

    def postpone(self, error: WebDataError, context: Context, since: datetime | None) -> None:
        """Reschedule the task; return if it may not be. See `ServiceTask.postpone`."""
        self.task.postpone(error, context, since)

    @cached_property
    def billing(self) -> Billing:
        """The credits of the task.

        :raises InvalidRequestError: `credit_limit` is no number of at least 0.
        """
        limit, name = getattr(self.task, "credit_limit", None), self.operation.replace("_", " ")
        return Billing(self.context, self.log, self.push, limit, name)

    def on_kill(self) -> None:
        """End what the run has started: a user has ended the task."""

    def validated_request(self) -> Mapping[str, Any]:
        """Return the request whose schema the results must match, in wire form."""
        request: Mapping[str, Any] = self.task.request_body() if hasattr(self.task, "result_schema") else {}
        return request

    @cached_property
    def delivery(self) -> Delivery:
        """Where the results go, as the options of the task say."""
        task = self.task
        return Delivery(
            self.context,
            self.log,
            lambda: self.hook.get_settings(),
            output=getattr(task, "output_to", None),
            media=getattr(task, "media", None),
            changes=getattr(task, "changes", None),
            schema=getattr(task, "result_schema", None),
            request=self.validated_request,
        )

    def prepare_delivery(self) -> None:
        """Fail the task for good if an option cannot work."""
        try:
            self.delivery.prepare()
        except OutputError as error:
            self.refuse(error)

    def deliver(self, results: Results, value: Value | None = None) -> Any:
        """Deliver results, and return the task's XCom; see `Delivery.deliver`."""
        result = self.delivery.deliver(results, value)
        self.push(**self.delivery.facts)
        return result

    def finished(self, result: Any) -> Any:
        """Return the task's XCom, unless the delivery fails or skips the task.

        :param result: the XCom.
        """
        try:
            self.delivery.verdict()
        except InvalidResultsError as error:
            # A task that fails returns nothing: what was billed goes where the return value would be.
            self.push(return_value=result)
            self.refuse(error)
        return result
