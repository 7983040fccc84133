# SPDX-License-Identifier: Apache-2.0
"""The ledger of a task: requests within its credit limit, and the XCom `credits`."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from airflow_provider_webdata.api.endpoints import PRICES, label_of
from airflow_provider_webdata.api.errors import ProcessingContinuesError
from airflow_provider_webdata.common.numbers import credits_text
from airflow_provider_webdata.common.xcom_keys import CREDITS
from airflow_provider_webdata.hooks.call_guard import cost_of_failure
from airflow_provider_webdata.hooks.ledger import Ledger
from airflow_provider_webdata.runs.failures import CreditLimitError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from airflow.sdk import Context

    from airflow_provider_webdata.api.models.base import RequestModel
    from airflow_provider_webdata.api.prices import Price

    RequestT = TypeVar("RequestT", bound=RequestModel)


@dataclass(frozen=True)
class Cost:
    """The cost of a call.

    :param used: credits that the service reports; None, or less than 0: unknown.
    :param formats: the part of each format; `page` is the base price.
    :param scraping: the part for scraping search results.
    :param saved: credits that were not spent.
    :param is_final: False: the call still bills.
    """

    used: Any
    formats: Mapping[str, float] = field(default_factory=dict)
    scraping: float = 0
    saved: float = 0
    is_final: bool = True


class TaskLedger:
    """The ledger of one attempt of a task.

    :param push: pushes XComs.
    :param conn_id: the task's connection.
    :param limit: maximum credits for all attempts until the task is cleared; None: no limit.
    :param bills: returns whether the server bills calls.
    """

    def __init__(
        self,
        context: Context,
        log: Any,
        push: Callable[..., None],
        conn_id: str,
        limit: float | None = None,
        bills: Callable[[], bool] = lambda: True,
    ) -> None:
        self.credits = Ledger(context, conn_id, limit, bills=bills, push=push, log=log)
        self._log = log
        self._push = push

    def push_earlier(self) -> None:
        """Push the credits of earlier attempts: Airflow deletes an attempt's XComs before the next."""
        if not self.credits.is_empty:
            self._push(**{CREDITS: self.credits.to_wire()})

    def held(
        self, operation: str, request: RequestT, credits: float | None = None, **priced: Any
    ) -> RequestT:
        """Return a request with a bounded price: one without `parsers` gets a page limit for PDFs.

        :param operation: its name in `Price`.
        :param credits: its maximum cost. Default: the whole limit.
        :param priced: other arguments of `Price.most`.
        """
        limit, price = self.credits.limit, PRICES.get(operation)
        if limit is None or price is None:
            return request
        credits = limit if credits is None else credits
        request, note = bounded(price, request, credits, **priced)
        # Otherwise `reserve` refuses the request.
        if note is not None and price.bound({**request.to_wire(), **priced}).credits <= credits:
            self._log.info("%s: %s", label_of(operation), note)
        return request

    def reserve(
        self,
        operation: str,
        body: Mapping[str, Any],
        extra_body: Mapping[str, Any] | None = None,
        *,
        execution: str | None = None,
    ) -> None:
        """Reserve the maximum cost of a request before it is sent.

        :param operation: its name in `Price`.
        :param body: the request in wire form.
        :param extra_body: additional unchecked fields.
        :param execution: id under which the service bills the request once, however often it is sent. An earlier
            attempt's reservation for it remains, and a repetition needs no other.
        :raises CreditLimitError: the request may exceed the limit, or has no documented maximum cost.
        """
        self.warn_if_cleared()
        ledger, limit, call = self.credits, self.credits.limit, execution or operation
        if execution is not None and ledger.repeats(call, operation):
            return
        if limit is None:
            ledger.reserve(call, 0)
            return
        bound, name = PRICES[operation].most(body, extra_body), label_of(operation)
        if not bound.is_known:
            raise CreditLimitError(
                f"{name}: nothing was sent: credit_limit={credits_text(limit)} cannot be enforced: "
                f"{'; '.join(bound.unknown)}"
            )
        price = f"up to {credits_text(bound.credits)} credits: {bound.how}"
        if not ledger.reserve(call, bound.credits):
            spent = ledger.spent
            earlier = (
                f", after {credits_text(spent)} credits that were or may have been spent" if spent else ""
            )
            raise CreditLimitError(
                f"{name}: nothing was sent: it may exceed credit_limit={credits_text(limit)}{earlier}: "
                f"it may cost {price}",
                {"credit_limit": spent + bound.credits},
            )
        self._log.info("%s: may cost %s; credit_limit=%s", name, price, credits_text(limit))

    def warn_if_cleared(self) -> None:
        """Log that the task is billed again because it was cleared."""
        if spent := self.credits.spent_before_cleared:
            self._log.warning(
                "The task was cleared, so its calls are billed again. Before that, they cost %s credits",
                credits_text(spent),
            )

    def settle(
        self,
        cost: Cost,
        operation: str,
        *,
        call: str | None = None,
        execution: str | None = None,
        is_stored: bool = True,
    ) -> None:
        """Record the cost of a call; push and log the task's credits.

        :param call: as in `Ledger.settle`.
        :param execution: as in `reserve`.
        :param is_stored: as in `Ledger.settle`.
        """
        self.credits.settle(
            execution or operation,
            cost.used,
            operation,
            call=call,
            formats=cost.formats,
            scraping=cost.scraping,
            saved=cost.saved,
            is_final=cost.is_final,
            is_stored=is_stored,
        )
        self.credits.report()

    def lose(self, operation: str) -> None:
        """Record that the response of a reserved request was lost, see `Ledger.lose`; push and log the credits."""
        self.credits.lose(operation)
        self.credits.report()

    def save(self, credits: float, operation: str) -> None:
        """Record credits that were not spent; push and log the task's credits."""
        # Without a name: the reservation of a killed attempt remains.
        self.credits.settle("", 0, operation, saved=credits)
        self.credits.report()

    def settle_failed(
        self,
        error: BaseException,
        operation: str,
        body: Mapping[str, Any] | None = None,
        execution: str | None = None,
    ) -> None:
        """Record the cost of a failed call; see `Ledger.settle_failed`.

        :param body: the request in wire form.
        :param execution: as in `reserve`.
        """
        # The task repeats the request, which is billed once.
        cost = 0 if isinstance(error, ProcessingContinuesError) else cost_of_failure(error, body)
        self.credits.settle_failed(
            execution or operation, error, cost, operation, is_repeatable=execution is not None
        )

    @contextmanager
    def sending(
        self,
        operation: str,
        body: Mapping[str, Any],
        extra_body: Mapping[str, Any] | None = None,
        *,
        execution: str | None = None,
    ) -> Iterator[None]:
        """Send a request within this block; see `reserve`. A failure settles it."""
        self.reserve(operation, body, extra_body, execution=execution)
        try:
            yield
        except BaseException as error:
            self.settle_failed(error, operation, body, execution)
            raise


def bounded(price: Price, request: RequestT, credits: float, **priced: Any) -> tuple[RequestT, str | None]:
    """Return a request with a bounded price, and a log line about the bound; see `TaskLedger.held`."""
    body = request.to_wire()
    parsers = price.pdf_parsers({**body, **priced}, credits)
    if parsers is None:
        return request, None
    note = (
        f"a PDF bills each of its pages. {credits_text(credits)} credits allow {parsers[0]['maxPages']} per PDF, "
        f"so the request has parsers={parsers!r}. Set parsers for another limit, or to [] for PDFs as base64"
    )
    return type(request).model_validate(price.with_parsers(body, parsers)), note
