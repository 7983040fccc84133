"""One search of the service's own index. The response has neither an id nor a cost."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from airflow_provider_webdata.api.endpoints import label_of
from airflow_provider_webdata.api.errors import trimmed
from airflow_provider_webdata.api.models import (
    DeveloperSearchRequest,
    DeveloperSearchResponse,
    PaperSearchRequest,
    PaperSearchResponse,
)
from airflow_provider_webdata.api.prices import search_price
from airflow_provider_webdata.runs.call import CallResult, CallRun, summary_of
from airflow_provider_webdata.runs.money.task_ledger import Cost
from airflow_provider_webdata.runs.publishing.step import Results

if TYPE_CHECKING:
    from airflow_provider_webdata.operators.developer_search import WebDataDeveloperSearchOperator
    from airflow_provider_webdata.operators.paper_search import WebDataPaperSearchOperator


class IndexSearchRun(CallRun):
    """Searches an index and publishes its `results`."""

    kind: ClassVar[str]
    """Of the results, see `results.columns.columns_of`."""

    def read(self, request: Any, answer: PaperSearchResponse | DeveloperSearchResponse) -> CallResult:
        """Log the results."""
        summary = summary_of(answer)
        found = summary.pop("results", None) or []
        name = label_of(self.operation).capitalize()
        self.log.info("%s for %r returned %d results", name, trimmed(request.query), len(found))
        # The service does not report the cost; the documented price is fixed.
        cost = Cost(summary.get("creditsUsed", search_price(len(found))))
        results = Results(found, self.kind, summary, [request.query])
        return CallResult(results, cost, lambda items, summary: {**summary, "results": items})


class PaperSearchRun(IndexSearchRun):
    """Searches papers."""

    task: WebDataPaperSearchOperator

    operation = "paper_search"
    method = "search_papers"
    kind = "paper"
    model = PaperSearchRequest
    answer_model = PaperSearchResponse


class DeveloperSearchRun(IndexSearchRun):
    """Searches the developer index."""

    task: WebDataDeveloperSearchOperator

    operation = "developer_search"
    method = "search_developer"
    kind = "developer"
    model = DeveloperSearchRequest
    answer_model = DeveloperSearchResponse
