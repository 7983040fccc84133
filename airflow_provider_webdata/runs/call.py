"""A task that makes one call: checked before it, billed once, delivered after it."""

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
    """One call and its answer.

    An answer that was billed and could not be delivered is kept for the next attempt, which delivers it and makes no
    call, if it would make the same: in Airflow's task state store (3.3), up to 16 MiB, otherwise beside the output. If
    neither takes it, the task fails without a retry, and the answer is in its XCom `undelivered`.
    """

    answer: KeptAnswer | None = None
    body: Mapping[str, Any] | None = None
    """The request of `paid`, in wire form."""

    def execute(self) -> Any:
        """Execute the task; see `Run.calling`.

        :raises AirflowSkipException: nothing changed.
        """
        self.prepare_delivery()
        try:
            with self.calling():
                self.billing.push_earlier()
                result = self.call()
        # Airflow ends a task whose time is over by an exception of this kind.
        except BaseException as error:
            self._keep(error)
            raise
        if self.answer is not None:
            self.answer.delivered()
        return self.finished(result)

    def validated_request(self) -> Mapping[str, Any]:
        """Return the request whose schema the results must match, in wire form: the one that was sent."""
        return super().validated_request() if self.body is None else self.body

    def request(self, model: type[RequestT], **priced: Any) -> tuple[RequestT, Mapping[str, Any] | None]:
        """Return the request that the arguments make, and what is sent with it unchecked.

        :param priced: what else decides on the price, as in `Price.most`.
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
        """Return the answer of a call that bills, in wire form: one that an earlier attempt kept, or a new one.

        :param extra_body: what is sent with it unchecked.
        :param priced: what else decides on the price.
        :param execution: the id under which the service returns the call's first answer again, and bills nothing.
        :param more: what else the call depends on, as JSON.
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
        """Count what the answer cost, once for all attempts.

        :param used: credits, as the service says; None where it does not.
        :param answer_id: the answer's, if it has one.
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
        """Keep an answer that was not delivered; fail the task for good if that is not possible."""
        if self.answer is None or self.answer.answer is None or self.answer.keep():
            return
        way_out = "clear the task to make the call again"
        try:
            self.context["ti"].xcom_push("undelivered", self.answer.answer)
            way_out = f"the answer is in this attempt's XCom 'undelivered': take it from there, or {way_out}"
        except Exception as failure:  # noqa: BLE001 - no error here may lead to a retry that bills again
            self.log.warning("The answer cannot be pushed to XCom either: %s", failure)
        undelivered = UndeliveredAnswerError(
            f"The answer was billed and could not be delivered: {str(error) or type(error).__name__}. It could not be "
            f"kept for a retry either, which would be billed again: no retry is made; {way_out}"
        )
        raise self.explained(undelivered) from (None if isinstance(error, CodedError) else error)
