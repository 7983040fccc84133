"""A task's credits: a limit before each call, an account after it."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from airflow_provider_webdata.api.endpoints import PRICES, label_of
from airflow_provider_webdata.common.numbers import known_credits
from airflow_provider_webdata.hooks.budget import Budget
from airflow_provider_webdata.hooks.call_guard import cost_of_failure
from airflow_provider_webdata.runs.credit_account import CreditAccount, enter_call
from airflow_provider_webdata.runs.failures import CreditLimitError
from airflow_provider_webdata.runs.request import checked_number

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from airflow.sdk import Context

    from airflow_provider_webdata.api.models.base import RequestModel
    from airflow_provider_webdata.api.prices import Price

    RequestT = TypeVar("RequestT", bound=RequestModel)


class Billing:
    """The credits of one attempt.

    The XCom key `credits` has `used`, `saved` (the cost of the results that an earlier attempt already fetched),
    `unknown` (calls whose cost the service does not report), `byOperation`, `byFormat`, and `byConnection`. Airflow 3.3
    includes earlier attempts. Airflow 3.2 stores no task state: each attempt counts separately, and the log says so.

    :param push: pushes XComs.
    :param conn_id: the task's connection.
    :param credit_limit: maximum credits for all attempts until the task is cleared; None: no limit.
    :param operation: name of the call in the error for an invalid limit.
    :param bills: returns whether the server bills calls. If not, every cost is 0.
    :raises InvalidRequestError: `credit_limit` is not a number of at least 0.
    """

    def __init__(
        self,
        context: Context,
        log: Any,
        push: Callable[..., None],
        conn_id: str,
        credit_limit: Any = None,
        operation: str = "credit_limit",
        *,
        bills: Callable[[], bool] = lambda: True,
    ) -> None:
        self.account = account = CreditAccount(context)
        self._log = log
        self._push = push
        self._conn_id = conn_id
        self._bills = bills
        limit = checked_number(operation, "credit_limit", credit_limit)
        # The part of the limit's use that the account does not include.
        self.budget = Budget(limit, context, counted=lambda: account.since_cleared)

    def push_earlier(self) -> None:
        """Push the credits of earlier attempts: Airflow deletes an attempt's XComs before the next."""
        if self.account.attempt.number > 1 and not self.account.is_empty:
            self._push(credits=self.account.to_wire())

    def held(
        self, operation: str, request: RequestT, credits: float | None = None, **priced: Any
    ) -> RequestT:
        """Return a request with a bounded price: one without `parsers` gets a page limit for PDFs.

        :param operation: its name in `Price`.
        :param credits: its maximum cost. Default: the whole limit.
        :param priced: other arguments of `Price.most`.
        """
        limit, price = self.budget.limit, PRICES.get(operation)
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
        """Reserve the maximum cost of a request before it is sent; `count` settles it.

        :param operation: its name in `Price`.
        :param body: the request in wire form.
        :param extra_body: additional unchecked fields.
        :param execution: id under which the service bills the request once, however often it is sent. An earlier
            attempt's reservation for it remains.
        :raises CreditLimitError: the request may exceed the limit, or has no documented maximum cost.
        """
        limit = self.budget.limit
        if limit is None or (execution is not None and self.budget.is_unsettled(execution)):
            return
        bound = PRICES[operation].most(body, extra_body)
        name = label_of(operation)
        if not bound.is_known:
            raise CreditLimitError(
                f"{name}: nothing was sent: credit_limit={limit:g} cannot be enforced: {'; '.join(bound.unknown)}"
            )
        price = f"up to {bound.credits:g} credits: {bound.how}"
        if not self.budget.reserve(execution or operation, bound.credits):
            spent = self.budget.spent
            earlier = f", after {spent:g} credits that were or may have been spent" if spent else ""
            raise CreditLimitError(
                f"{name}: nothing was sent: it may exceed credit_limit={limit:g}{earlier}: it may cost {price}"
            )
        self._log.info("%s: may cost %s; credit_limit=%g", name, price, limit)

    @contextmanager
    def within_limit(
        self,
        operation: str,
        body: Mapping[str, Any],
        extra_body: Mapping[str, Any] | None = None,
        *,
        execution: str | None = None,
    ) -> Iterator[None]:
        """Send a request within this block; see `reserve`. A failure with a known cost settles the reservation."""
        self.reserve(operation, body, extra_body, execution=execution)
        try:
            yield
        except BaseException as error:
            cost = cost_of_failure(error)
            if execution is None or cost is not None:
                self.budget.settle(execution or operation, cost)
            raise

    def count(
        self,
        used: Any,
        operation: str,
        *,
        execution: str | None = None,
        **call: Any,
    ) -> None:
        """Record a call's cost in the account and the metrics; push and log the account.

        :param used: credits that the service reports; None, or less than 0, if it reports none.
        :param execution: as in `reserve`.
        :param call: `call`, `formats`, `scraping`, `saved`, and `is_earlier` of `enter_call`.
        """
        if used != 0 and not self._bills():
            used = 0
        self._push(credits=enter_call(self.account, self._log, used, operation, self._conn_id, **call))
        # The account includes every known cost.
        self.budget.settle(execution or operation, None if known_credits(used) is None else 0)


def bounded(price: Price, request: RequestT, credits: float, **priced: Any) -> tuple[RequestT, str | None]:
    """Return a request with a bounded price, and a log line about the bound; see `Billing.held`."""
    body = request.to_wire()
    parsers = price.pdf_parsers({**body, **priced}, credits)
    if parsers is None:
        return request, None
    note = (
        f"a PDF bills each of its pages. {credits:g} credits allow {parsers[0]['maxPages']} per PDF, so the request "
        f"has parsers={parsers!r}. Set parsers for another limit, or to [] for PDFs as base64"
    )
    return type(request).model_validate(price.with_parsers(body, parsers)), note
