"""What the operators that return one document share: its log, its credits, and where it goes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow_provider_webdata.tasks.large_document import LargeDocuments
from airflow_provider_webdata.tasks.result_output import ResultOutput
from airflow_provider_webdata.tasks.validated_results import ValidatedResults

if TYPE_CHECKING:
    from collections.abc import Mapping

    from airflow.sdk import Context

_SITE_ERROR = 400


class DocumentOperator(LargeDocuments, ValidatedResults, ResultOutput):
    """An operator whose call returns one document.

    XCom: the document with the service's names (`markdown`, `metadata`, ...); with `output`, what `ResultOutput`
    says. The keys `scrapeId`, `creditsUsed`, `statusCode` and `warning` hold these facts of it either way.
    """

    def deliver_document(
        self, wire: dict[str, Any], operation: str, source: str, context: Context, options: Mapping[str, Any]
    ) -> Any:
        """Log a document, deliver it, and return the task's XCom.

        :param wire: the answer in wire form.
        :param operation: `scrape` or `parse`, for the credits in the metrics.
        :param source: the document's URL.
        :param options: scrape options, in wire form.
        """
        from airflow_provider_webdata.api.prices import page_extras
        from airflow_provider_webdata.tasks.credit_account import by_format

        document = wire["data"]
        metadata = document.get("metadata") or {}
        summary = {
            "scrapeId": metadata.get("scrapeId"),
            "creditsUsed": metadata.get("creditsUsed"),
            "statusCode": metadata.get("statusCode"),
            "warning": wire.get("warning") or document.get("warning"),
        }
        self._log_document(summary, metadata, source)
        used = summary["creditsUsed"]
        self.count_answer(
            used,
            context,
            operation,
            summary["scrapeId"],
            formats=by_format(used or 0, 1, page_extras(options)),
        )
        self.push(context, **summary)
        return self.deliver(
            [document],
            "document",
            context,
            summary,
            inputs=[source],
            value=lambda documents, _facts: documents[0] if documents else None,
        )

    def _log_document(self, summary: dict[str, Any], metadata: dict[str, Any], source: str) -> None:
        if summary["warning"]:
            self.log.warning("The service warns: %s", summary["warning"])
        status, error = summary["statusCode"], metadata.get("error")
        if error or (isinstance(status, int) and status >= _SITE_ERROR):
            self.log.warning(
                "The site answered %s with status %s%s; the service bills it as a page",
                source,
                status,
                f" ({error})" if error else "",
            )
        from airflow_provider_webdata.tasks.cached_pages import CachedPages

        cached = CachedPages()
        cached.add({"metadata": metadata})
        self.log.info(
            "Document %s of %s%s; credits used: %s",
            summary["scrapeId"] or "without id",
            source,
            f", from the service's cache {cached.age()}" if cached.count else "",
            "unknown" if summary["creditsUsed"] is None else summary["creditsUsed"],
        )
