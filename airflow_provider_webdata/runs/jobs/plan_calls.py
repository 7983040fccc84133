"""The billed calls for the plan of an incremental crawl."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

from airflow_provider_webdata.api.prices import MAP_CREDITS, reported_credits
from airflow_provider_webdata.runs.money.paid_records import FileRecords
from airflow_provider_webdata.runs.money.task_ledger import Cost

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from airflow_provider_webdata.runs.run import Run

    # `credits`, and the `links` or the `text`.
    Response = dict[str, Any]


class PlanCalls:
    """The map and the sitemaps of a site, each billed once: after a rate limit, the next attempt reads those stored.

    :param folder: URL of the manifest's folder.
    :ivar saved: credits of the calls of earlier attempts.
    """

    def __init__(self, run: Run, folder: str) -> None:
        self.saved = 0.0
        self._run, self._hook = run, run.hook
        self._records = FileRecords(f"{folder}/plan", run.context, run.hook.get_settings().client.account)
        self._earlier: dict[str, Response] = {
            record["key"]: record["answer"] for record in self._records.read()
        }

    def links(self, request: Mapping[str, Any]) -> list[str]:
        """Return the URLs of a map."""

        def call() -> Response:
            links = self._hook.map(request).links or ()
            return {"links": [link.url for link in links if link.url], "credits": MAP_CREDITS}

        links: list[str] = self._once("map", request, call)["links"]
        return links

    def text(self, request: Mapping[str, Any]) -> tuple[str, float]:
        """Return the raw text of a scraped sitemap, which may be empty, and its credits."""

        def call() -> Response:
            response = self._hook.scrape(request)
            text = response.data.raw_html
            credits = reported_credits(response) or 1.0
            return {"text": text if isinstance(text, str) else "", "credits": credits}

        answer = self._once("scrape", request, call)
        return answer["text"], answer["credits"]

    def forget(self) -> None:
        """Delete the stored responses."""
        self._records.forget()

    def _once(self, operation: str, request: Mapping[str, Any], call: Callable[[], Response]) -> Response:
        key = hashlib.sha256(json.dumps([operation, request], sort_keys=True).encode()).hexdigest()
        if (earlier := self._earlier.pop(key, None)) is not None:
            self.saved += earlier["credits"]
            return earlier
        ledger = self._run.ledger
        with ledger.sending(operation, request):
            response = call()
        try:
            self._records.save([{"key": key, "answer": response}])
        finally:
            ledger.settle(Cost(response["credits"]), operation)
        return response
