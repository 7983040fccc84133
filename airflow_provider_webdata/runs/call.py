"""A task that makes one call: validated before, billed once, delivered after."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from airflow_provider_webdata.api.endpoints import label_of
from airflow_provider_webdata.common.coded_errors import CodedError
from airflow_provider_webdata.runs.failures import UndeliveredAnswerError
from airflow_provider_webdata.runs.kept_answer import KeptAnswer
from airflow_provider_webdata.runs.request import checked_extra_body, checked_request
from airflow_provider_webdata.runs.run import Run

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from airflow_provider_webdata.api.models.base import RequestModel, ResponseModel

    RequestT = TypeVar("RequestT", bound=RequestModel)


class CallRun(Run):
    """One call and its response.

    A billed response that could not be delivered is stored for the next attempt, which delivers it instead of repeating
    the same call: in Airflow's task state store (3.3), up to 16 MiB, otherwise beside the output. If both fail,
    the task fails without a retry, and pushes the response as XCom `undelivered`.
    """

    answer: KeptAnswer | None = None
    body: Mapping[str, Any] | None = None
    """The request that `paid` sent, in wire form."""

    def execute(self) -> Any:
        """Execute the task; see `Run.calling`.

        :raises AirflowSkipException: nothing changed.
        """
        self.prepare_delivery()
        try:
            with self.calling():
                self.billing.push_earlier()
                result = self.call()
        # Airflow raises a BaseException on a task timeout.
        except BaseException as error:
            self._keep(error)
            raise
        if self.answer is not None:
            self.answer.delivered()
        return self.finished(result)

    def validated_request(self) -> Mapping[str, Any]:
        """Return the sent request, in wire form; the results must match its schema."""
        return super().validated_request() if self.body is None else self.body

    def request(self, model: type[RequestT], **priced: Any) -> tuple[RequestT, Mapping[str, Any] | None]:
        """Build the request from the arguments; return it with the unchecked `extra_body`.

        :param priced: other arguments of `Price.most`.
        :raises InvalidRequestError: a field breaks a documented rule.
        """
        name = label_of(self.operation)
        request = checked_request(self.task, model, name)
        return self.billing.held(self.operation, request, **priced), checked_extra_body(self.task, name)

    def paid(
        self,
        request: RequestModel,
        extra_body: Mapping[str, Any] | None,
        call: Callable[[], ResponseModel],
        *,
        priced: Mapping[str, Any] | None = None,
        execution: str | None = None,
        **more: Any,
    ) -> dict[str, Any]:
        """Return a billed call's response, in wire form: stored by an earlier attempt, or new.

        :param extra_body: additional unchecked fields.
        :param priced: other arguments of `Price.most`.
        :param execution: the id under which the service repeats the call's first response free of charge.
        :param more: other inputs of the call, as JSON.
        :raises CreditLimitError: the call may exceed `credit_limit`.
        """
        self.body = body = request.to_wire()
        wanted = {self.operation: body, "extra": extra_body, **more}
        account = self.hook.get_settings().client.account
        self.answer = KeptAnswer(wanted, account, self.delivery.path, self.context, self.log)

        def sent() -> dict[str, Any]:
            priced_body = {**body, **(priced or {})}
            with self.billing.within_limit(self.operation, priced_body, extra_body, execution=execution):
                return call().to_wire()

        answer = self.answer.or_call(sent)
        answer.pop("success", None)
        return answer

    def count(self, used: Any, answer_id: str | None, **parts: Any) -> None:
        """Count the response's cost, once for all attempts.

        :param used: credits that the service reports; None if it reports none.
        :param answer_id: id of the response, if it has one.
        :param parts: `formats`, `scraping`, and `execution` of `Billing.count`.
        """
        answer = self.answer
        is_earlier = answer is not None and answer.is_earlier
        self.billing.count(
            used,
            self.operation,
            call=answer_id or (None if answer is None else answer.name),
            saved=used or 0 if is_earlier else 0,
            is_earlier=is_earlier,
            **parts,
        )

    def _keep(self, error: BaseException) -> None:
        """Store an undelivered response; if that fails, fail the task without a retry."""
        if self.answer is None or self.answer.answer is None or self.answer.keep():
            return
        way_out = "clear the task to make the call again"
        try:
            self.context["ti"].xcom_push("undelivered", self.answer.answer)
            way_out = f"the response is in this attempt's XCom 'undelivered': read it there, or {way_out}"
        except Exception as failure:  # noqa: BLE001 - no error here may lead to a retry that bills again
            self.log.warning("Failed to push the response to XCom, too: %s", failure)
        undelivered = UndeliveredAnswerError(
            f"The response was billed, but could not be delivered ({str(error) or type(error).__name__}) or stored for "
            f"a retry. The task is not retried, because a retry would be billed again: {way_out}"
        )
        raise self.explained(undelivered) from (None if isinstance(error, CodedError) else error)
