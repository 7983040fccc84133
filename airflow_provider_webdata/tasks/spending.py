"""What tasks that bill share: a limit before each call, and an account of what was spent after it."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from airflow_provider_webdata.tasks.arguments import checked_number, number
from airflow_provider_webdata.tasks.operator import WebDataOperator
from airflow_provider_webdata.tasks.service_task import ServiceTask

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from airflow.sdk import Context

    from airflow_provider_webdata.hooks.budget import Budget
    from airflow_provider_webdata.tasks.credit_account import CreditAccount


class SpendingTask(ServiceTask):
    """Base of the tasks that tell what was spent.

    The XCom key `credits` holds `used`, `saved` (what it would have cost to ask again for what an earlier attempt had
    got), `unknown` (how many calls the service does not tell the cost of), `byOperation` and `byFormat`. Earlier
    attempts are included on Airflow 3.3; on 3.2, which keeps no task state, each attempt counts by itself, and the
    log says so.
    """

    _account: tuple[object, CreditAccount] | None = None

    def credit_account(self, context: Context) -> CreditAccount:
        """Return the account of the attempt; on 3.2, nothing but this object knows what its calls have cost."""
        from airflow_provider_webdata.tasks.credit_account import CreditAccount

        ti = context.get("ti")
        if self._account is None or self._account[0] is not ti:
            self._account = (ti, CreditAccount(context))
        return self._account[1]

    def count_credits(
        self,
        used: Any,
        context: Context,
        operation: str,
        *,
        call: str | None = None,
        formats: Mapping[str, float] | None = None,
        scraping: float = 0,
        saved: float = 0,
        is_earlier: bool = False,
    ) -> None:
        """Enter what a call cost into the account, push and log the account, and count it in the metrics.

        :param used: credits, as the service says; None, or less than 0, where it does not.
        :param operation: its name.
        :param call: what names the call, which is counted once for all attempts; None: it has no name.
        :param formats: what of the cost each format accounts for.
        :param scraping: what of it is for scraping the results of a search.
        :param saved: credits that were not spent.
        :param is_earlier: whether an earlier attempt made the call and counted it in the metrics.
        """
        from airflow_provider_webdata.tasks.credit_account import enter_call

        credits = enter_call(
            self.credit_account(context),
            context,
            self.log,
            used,
            operation,
            call=call,
            formats=formats,
            scraping=scraping,
            saved=saved,
            is_earlier=is_earlier,
        )
        self.push(context, credits=credits)

    def count_saved(self, saved: float, context: Context, operation: str) -> None:
        """Enter credits that were not spent, such as for pages that were known already.

        :param saved: credits.
        :param operation: what would have cost them.
        """
        self.count_credits(0, context, operation, saved=saved)

    def push_earlier_credits(self, context: Context) -> None:
        """Push what earlier attempts spent: Airflow deletes the XComs of each before the next."""
        if (
            getattr(context.get("ti"), "try_number", 1) > 1
            and not (account := self.credit_account(context)).is_empty
        ):
            self.push(context, credits=account.to_wire())


class BillingOperator(SpendingTask, WebDataOperator):
    """Base of the operators whose calls are billed.

    :param credit_limit: most credits that all attempts may spend until the task is cleared (templated); on Airflow 3.2,
        which keeps no task state, each attempt. A call of a killed attempt counts with the most that it may cost.
        Nothing is sent that may cost more, by the documented prices at their highest, or whose price has no documented
        bound: the task fails with WD-034, which says why. None (default): no limit.
    :param kwargs: arguments of the other base classes.
    """

    template_fields: Sequence[str] = (*WebDataOperator.template_fields, "credit_limit")

    def __init__(self, *, credit_limit: float | str | None = None, **kwargs: Any) -> None:
        if not isinstance(credit_limit, str):
            number("credit_limit", credit_limit)
        super().__init__(**kwargs)
        self.credit_limit = credit_limit

    _budget: tuple[object, Budget] | None = None

    def execute(self, context: Context) -> Any:
        """Push what earlier attempts spent, then call the service."""
        self.push_earlier_credits(context)
        return super().execute(context)

    def credit_budget(self, context: Context, operation: str = "credit_limit") -> Budget:
        """Return the budget of the attempt: `credit_limit`, and what the account does not know of its use.

        :param operation: which names the task in the error of a limit that is no number.
        """
        from airflow_provider_webdata.hooks.budget import Budget

        ti = context.get("ti")
        if self._budget is None or self._budget[0] is not ti:
            limit = checked_number(operation, "credit_limit", self.credit_limit)
            account = self.credit_account(context)
            self._budget = (ti, Budget(limit, context, counted=lambda: account.since_cleared))
        return self._budget[1]

    def count_credits(self, used: Any, context: Context, operation: str, **more: Any) -> None:
        """Enter what a call cost into the account, and settle what was reserved for it."""
        super().count_credits(used, context, operation, **more)
        is_known = isinstance(used, (int, float)) and used >= 0
        # The account has what is known.
        self.credit_budget(context).settle(operation, 0 if is_known else None)

    @contextmanager
    def within_credit_limit(
        self,
        operation: str,
        body: Mapping[str, Any],
        context: Context,
        extra_body: Mapping[str, Any] | None = None,
    ) -> Iterator[None]:
        """Send a request within this block; see `hold_credit_limit`. A failure settles what was reserved."""
        from airflow_provider_webdata.hooks.call_guard import cost_of_failure

        self.hold_credit_limit(operation, body, context, extra_body)
        try:
            yield
        except BaseException as error:
            self.credit_budget(context).settle(operation, cost_of_failure(error))
            raise

    def hold_credit_limit(
        self,
        operation: str,
        body: Mapping[str, Any],
        context: Context,
        extra_body: Mapping[str, Any] | None = None,
    ) -> None:
        """Reserve what a request may cost that is about to be sent; `count_credits` of the operation settles it.

        :param operation: as `api.prices.price_bound` calls it.
        :param body: the request in wire form.
        :param extra_body: what is sent with it unchecked.
        :raises CreditLimitError: it may cost more, or nothing documented says how much.
        :raises InvalidRequestError: `credit_limit` is no number of at least 0.
        """
        budget = self.credit_budget(context, operation)
        if (limit := budget.limit) is None:
            return
        from airflow_provider_webdata.api.prices import price_bound
        from airflow_provider_webdata.tasks.failures import CreditLimitError

        bound = price_bound(operation, body, extra_body)
        name = operation.replace("_", " ")
        if not bound.is_known:
            raise CreditLimitError(
                f"{name}: nothing was sent, because credit_limit={limit:g} cannot be held: {'; '.join(bound.unknown)}"
            )
        price = f"up to {bound.credits:g} credits: {bound.how}"
        if not budget.reserve(operation, bound.credits):
            spent = budget.spent
            earlier = f", after {spent:g} that were spent already, or may have been" if spent else ""
            raise CreditLimitError(
                f"{name}: nothing was sent, because it may exceed credit_limit={limit:g}{earlier}: it may cost {price}"
            )
        self.log.info("%s: may cost %s; credit_limit=%g", name, price, limit)
