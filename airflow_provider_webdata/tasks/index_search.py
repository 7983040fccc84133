"""What the operators have in common that search an index of the service's own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from airflow_provider_webdata.tasks.result_output import ResultOutput

if TYPE_CHECKING:
    from collections.abc import Mapping

    from airflow.sdk import Context

    from airflow_provider_webdata.api.models.base import ResponseModel


class IndexSearchOperator(ResultOutput):
    """Base of operators whose answer is a list `results`, without an id and without its cost.

    :param kwargs: arguments of `ResultOutput`, `BillingOperator`, `WebDataOperator` and `BaseOperator`.
    """

    operation: ClassVar[str]
    """As `api.prices.price_bound` calls it."""

    item_kind: ClassVar[str]
    """What the results are, see `results.columns.columns_of`."""

    def ask(self, request: Any, extra_body: Mapping[str, Any] | None) -> ResponseModel:
        """Make the search.

        :param request: the request that the arguments make.
        :param extra_body: merged into it unchecked.
        """
        raise NotImplementedError

    def call_service(self, context: Context) -> Any:
        """Search, count what it cost, and deliver what was found."""
        from airflow_provider_webdata.api import models
        from airflow_provider_webdata.api.errors import trimmed
        from airflow_provider_webdata.api.prices import search_price

        name = self.operation.replace("_", " ")
        request = self.checked_request(getattr(models, self.request_model), name)
        extra_body = self.checked_extra_body(name)
        answer = self.paid_answer(
            self.operation,
            request.to_wire(),
            context,
            lambda: self.ask(request, extra_body),
            extra_body=extra_body,
        )
        results = answer.pop("results", None) or []
        answer.pop("success", None)
        self.log.info("%s for %r brought %d results", name.capitalize(), trimmed(request.query), len(results))
        # The service does not say what it cost; documented is one price.
        self.count_answer(
            answer.get("creditsUsed", search_price(len(results))), context, self.operation, None
        )
        self.push(context, **answer)
        return self.deliver(
            results,
            self.item_kind,
            context,
            answer,
            inputs=[request.query],
            value=lambda items, facts: {**facts, "results": items},
        )
