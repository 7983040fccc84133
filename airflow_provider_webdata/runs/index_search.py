"""One search of the service's own index. The response has neither an id nor a cost."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from airflow_provider_webdata.api.endpoints import label_of
from airflow_provider_webdata.api.errors import trimmed
from airflow_provider_webdata.api.models import DeveloperSearchRequest, PaperSearchRequest
from airflow_provider_webdata.api.prices import search_price
from airflow_provider_webdata.runs.call import BilledCall, CallResult, CallRun
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

    def billed_call(self) -> BilledCall:
        """Return the search."""
        request, extra_body = self.request(self.model)
        send = partial(self.search, request, extra_body)
        return BilledCall(request, extra_body, send, lambda answer: self._read(request.query, answer))

    def _read(self, query: str, answer: dict[str, Any]) -> CallResult:
        found = answer.pop("results", None) or []
        name = label_of(self.operation).capitalize()
        self.log.info("%s for %r returned %d results", name, trimmed(query), len(found))
        # The service does not report the cost; the documented price is fixed.
        used = answer.get("creditsUsed", search_price(len(found)))
        results = Results(found, self.kind, answer, [query])
        return CallResult(results, lambda items, facts: {**facts, "results": items}, used)


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
