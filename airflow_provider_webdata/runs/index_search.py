"""One search of the service's own index. The response has neither an id nor a cost."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from airflow_provider_webdata.api.endpoints import label_of
from airflow_provider_webdata.api.errors import trimmed
from airflow_provider_webdata.api.models import DeveloperSearchRequest, PaperSearchRequest
from airflow_provider_webdata.api.prices import search_price
from airflow_provider_webdata.runs.call import CallRun
from airflow_provider_webdata.runs.delivery.step import Results

if TYPE_CHECKING:
    from collections.abc import Mapping

    from airflow_provider_webdata.api.models.base import ResponseModel


class IndexSearchRun(CallRun):
    """Searches an index and delivers its `results`."""

    model: ClassVar[type[Any]]
    kind: ClassVar[str]
    """Of the results, see `results.columns.columns_of`."""

    def search(self, request: Any, extra_body: Mapping[str, Any] | None) -> ResponseModel:
        """Make the search."""
        raise NotImplementedError

    def call(self) -> Any:
        """Search, log and count the results, and deliver them."""
        request, extra_body = self.request(self.model)
        answer = self.paid(request, extra_body, lambda: self.search(request, extra_body))
        found = answer.pop("results", None) or []
        name = label_of(self.operation).capitalize()
        self.log.info("%s for %r returned %d results", name, trimmed(request.query), len(found))
        # The service does not report the cost; the documented price is fixed.
        self.count(answer.get("creditsUsed", search_price(len(found))), None)
        results = Results(found, self.kind, answer, [request.query])
        return self.deliver(results, lambda items, facts: {**facts, "results": items})


class PaperSearchRun(IndexSearchRun):
    """Searches papers."""

    operation = "paper_search"
    kind = "paper"
    model = PaperSearchRequest

    def search(self, request: Any, extra_body: Mapping[str, Any] | None) -> ResponseModel:
        """Make the search."""
        return self.hook.search_papers(request, extra_body=extra_body)


class DeveloperSearchRun(IndexSearchRun):
    """Searches the developer index."""

    operation = "developer_search"
    kind = "developer"
    model = DeveloperSearchRequest

    def search(self, request: Any, extra_body: Mapping[str, Any] | None) -> ResponseModel:
        """Make the search."""
        return self.hook.search_developer(request, extra_body=extra_body)
