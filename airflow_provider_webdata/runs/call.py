# SPDX-License-Identifier: Apache-2.0
"""A task that makes one call: validated before, sent, and published after."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from airflow_provider_webdata.api.endpoints import label_of
from airflow_provider_webdata.common.coded_errors import CodedError, brief
from airflow_provider_webdata.common.numbers import known_credits
from airflow_provider_webdata.common.xcom_keys import SKIPPED, UNPUBLISHED
from airflow_provider_webdata.runs.billed_response import BilledResponse
from airflow_provider_webdata.runs.failures import UnpublishedResponseError
from airflow_provider_webdata.runs.request import checked_extra_body, checked_request, request_body
from airflow_provider_webdata.runs.run import Run

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from airflow_provider_webdata.api.models.base import Answer, RequestModel
    from airflow_provider_webdata.base.operator import WebDataOperator
    from airflow_provider_webdata.runs.money.task_ledger import Cost
    from airflow_provider_webdata.runs.publishing.publication import Value
    from airflow_provider_webdata.runs.publishing.step import Results

    RequestT = TypeVar("RequestT", bound=RequestModel)


@dataclass(frozen=True)
class CallResult:
    """A response, to count and publish.

    :param value: builds the task's XCom, see `Publication.publish`.
    :param pushed: XComs beside the return value.
    :param failure: error that fails the task without a retry, after the results are published.
    :param retry: error that fails the attempt before the results are published; the next attempt repeats the call.
    """

    results: Results
    cost: Cost
    value: Value | None = None
    pushed: Mapping[str, Any] = field(default_factory=dict)
    failure: CodedError | None = None
    retry: CodedError | None = None


@dataclass(frozen=True)
class BilledCall:
    """A validated request, the call that sends it, and the reading of its response.

    :param extra_body: additional unchecked fields.
    :param send: makes the call.
    :param read: logs a response, and returns its results.
    :param priced: other arguments of `Price.most`.
    :param execution: the id under which the service repeats the call's first response free of charge.
    :param inputs: other inputs of the call, as JSON.
    """

    request: RequestModel
    extra_body: Mapping[str, Any] | None
    send: Callable[[], Answer]
    read: Callable[[Any], CallResult]
    priced: Mapping[str, Any] = field(default_factory=dict)
    execution: str | None = None
    inputs: Mapping[str, Any] = field(default_factory=dict)


def wire_of(answer: Answer) -> dict[str, Any]:
    """Return a response in wire form, with the number of its skipped entries."""
    wire = answer.to_wire()
    return {**wire, SKIPPED: answer.skipped} if answer.skipped else wire


def summary_of(answer: Answer) -> dict[str, Any]:
    """Return a response as `wire_of`, without `success`."""
    summary = wire_of(answer)
    summary.pop("success", None)
    return summary


class CallRun(Run):
    """One call and its response. A subclass states the call; this class bills, counts, and publishes it.

    A billed response is stored on receipt, until Airflow has stored the task's result; see `BilledResponse`. If an
    attempt fails or is killed, the next one publishes the response in place of the call. If it can neither be stored
    nor published, the task fails without a retry, and pushes the response as XCom `unpublished`.
    """

    task: WebDataOperator

    model: ClassVar[type[Any]]
    """Model of the request."""

    answer_model: ClassVar[type[Answer]]
    """Model of the response."""

    method: ClassVar[str] = ""
    """The method of the hook that makes the call. Default: the name of the operation."""

    billed: BilledResponse | None = None

    @cached_property
    def body(self) -> Mapping[str, Any]:
        """The sent request, in wire form."""
        return request_body(self.task)

    def billed_call(self) -> BilledCall:
        """Validate the arguments, and return the call to make."""
        request, extra_body = self.request(self.model)
        send = partial(getattr(self.hook, self.method or self.operation), request, extra_body=extra_body)
        return BilledCall(request, extra_body, send, partial(self.read, request))

    def publish_nothing(self) -> Any:
        """Publish the empty result of a task whose list of work is empty."""
        raise NotImplementedError

    def read(self, request: Any, answer: Any) -> CallResult:
        """Log a response, and return its results.

        :param answer: an `answer_model`.
        """
        raise NotImplementedError

    def execute(self) -> Any:
        """Execute the task; see `Run.calling`.

        :raises AirflowSkipException: nothing changed.
        """
        try:
            with self.calling():
                self.prepare_publication()
                result = self.call()
            return self.finished(result)
        # Airflow raises a BaseException on a task timeout.
        except BaseException as error:
            self._report_unpublished(error)
            raise

    def request(self, model: type[RequestT], **priced: Any) -> tuple[RequestT, Mapping[str, Any] | None]:
        """Build the request from the arguments; return it with the unchecked `extra_body`.

        :param priced: other arguments of `Price.most`.
        :raises InvalidRequestError: a field breaks a documented rule.
        """
        name = label_of(self.operation)
        request = checked_request(self.task, model, name, map_index=self.attempt.map_index)
        return self.ledger.held(self.operation, request, **priced), checked_extra_body(self.task, name)

    def call(self) -> Any:
        """Make the call unless an earlier attempt stored its response, or there is no work; publish the response.

        :raises CreditLimitError: the call may exceed `credit_limit`.
        """
        self.ledger.push_earlier()
        if self.task._has_no_work():
            self.log.info("%s is empty: no request is sent", self.task._work_list)
            self.body = {}
            return self.publish_nothing()
        call = self.billed_call()
        self.body = body = call.request.to_wire()
        wanted = {self.operation: body, "extra": call.extra_body, **call.inputs}
        account = self.hook.get_settings().client.account
        billed = self.billed = BilledResponse(
            wanted, self.answer_model, account, self.publication.path, self.context, self.log
        )
        self.leftovers.append(billed.delete)

        def sent() -> Answer:
            priced_body = {**body, **call.priced}
            with self.ledger.sending(self.operation, priced_body, call.extra_body, execution=call.execution):
                return call.send()

        answer = billed.or_call(sent)
        result = call.read(answer)
        cost = result.cost
        if billed.is_earlier:
            cost = replace(cost, saved=known_credits(cost.used) or 0)
        call_id = call.execution or billed.call_id
        self.ledger.settle(
            cost, self.operation, call=call_id, execution=call.execution, is_stored=not billed.is_stored
        )
        if result.retry is not None:
            # The response has no results to publish, and the next attempt must not find it.
            self.forget()
            raise result.retry
        self.push(**result.pushed)
        results = result.results
        self.lacks("entries_skipped", answer.skipped)
        if answer.skipped:
            results = replace(results, covers_all=lambda _: False)
        value = self.publish(results, result.value)
        if result.failure is not None:
            self.refuse_published(result.failure, value)
        return value

    def _report_unpublished(self, error: BaseException) -> None:
        """If the next attempt cannot read the billed response, push it, and fail the task without a retry."""
        billed = self.billed
        if billed is None or billed.answer is None:
            return
        if billed.is_stored:
            self.log.info("Stored the response: the next attempt publishes it without being billed again")
            return
        try:
            self.context["ti"].xcom_push(UNPUBLISHED, self.storable(wire_of(billed.answer)))
            fate = "It is in this attempt's XCom 'unpublished': read it there, or"
        except Exception as failure:  # noqa: BLE001 - no error here may lead to a retry that bills again
            self.log.warning("Failed to push the response to XCom, too: %s", brief(failure))
            fate = "It is lost:"
        unpublished = UnpublishedResponseError(
            f"The response was billed, but could not be published ({brief(error) or type(error).__name__}) or stored "
            f"for a retry. {fate} clear the task to make the call again. The task is not retried, because a retry "
            "would be billed again"
        )
        raise self.explained(unpublished) from (None if isinstance(error, CodedError) else error)
