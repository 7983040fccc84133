"""The billed calls for the plan of an incremental crawl."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

from airflow_provider_webdata.api import prices
from airflow_provider_webdata.api.endpoints import MAP, SCRAPE
from airflow_provider_webdata.hooks.calls import checked_body
from airflow_provider_webdata.runs.money.paid_records import FileRecords
from airflow_provider_webdata.runs.money.task_ledger import Cost

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from airflow_provider_webdata.api.endpoints import Endpoint
    from airflow_provider_webdata.runs.run import Run

    # `credits`, and the `links` or the `text`.
    Response = dict[str, Any]


class PlanCalls:
    """The map and the sitemaps of a site, each stored: after a rate limit, the next attempt reads it.

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

        def call(body: Any) -> Response:
            response = self._hook.map(body)
            links = [link.url for link in response.links or () if link.url]
            return {"links": links, "credits": prices.MAP.cost(response, body.to_wire())}

        links: list[str] = self._once(MAP, request, call)["links"]
        return links

    def text(self, request: Mapping[str, Any]) -> tuple[str, float]:
        """Return the raw text of a scraped sitemap, which may be empty, and its credits, if known."""

        def call(body: Any) -> Response:
            response = self._hook.scrape(body)
            text = response.data.raw_html
            return {
                "text": text if isinstance(text, str) else "",
                "credits": prices.reported_credits(response),
            }

        answer = self._once(SCRAPE, request, call)
        return answer["text"], answer["credits"] or 0

    def forget(self) -> None:
        """Delete the stored responses."""
        self._records.forget()

    def _once(
        self, endpoint: Endpoint[Any], request: Mapping[str, Any], call: Callable[[Any], Response]
    ) -> Response:
        operation, body = endpoint.name, checked_body(endpoint, request)
        key = hashlib.sha256(json.dumps([operation, request], sort_keys=True).encode()).hexdigest()
        if (earlier := self._earlier.pop(key, None)) is not None:
            self.saved += earlier["credits"] or 0
            return earlier
        ledger = self._run.ledger
        with ledger.sending(operation, body.to_wire()):
            response = call(body)
        try:
            self._records.save([{"key": key, "answer": response}])
        finally:
            ledger.settle(Cost(response["credits"]), operation)
        return response
