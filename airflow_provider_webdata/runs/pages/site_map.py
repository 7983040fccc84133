# SPDX-License-Identifier: Apache-2.0
"""A map of a site: the list of its URLs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow_provider_webdata.api.errors import error_text
from airflow_provider_webdata.api.models import MapRequest, MapResponse
from airflow_provider_webdata.api.prices import DEFAULT_LINKS, MAP
from airflow_provider_webdata.api.servers import NO_LINKS, private_target_remedy
from airflow_provider_webdata.common.remedies import sentence
from airflow_provider_webdata.hooks.task_metrics import count
from airflow_provider_webdata.runs.call import CallResult, CallRun, summary_of
from airflow_provider_webdata.runs.money.task_ledger import Cost
from airflow_provider_webdata.runs.publishing.step import Results

if TYPE_CHECKING:
    from airflow_provider_webdata.operators.map import WebDataMapOperator


class MapRun(CallRun):
    """Maps a site and publishes its links."""

    task: WebDataMapOperator

    operation = "map"
    model = MapRequest
    answer_model = MapResponse

    def read(self, request: MapRequest, answer: MapResponse) -> CallResult:
        """Log and count the links."""
        fields = summary_of(answer)
        links = fields.pop("links")
        summary = {"id": None, "warning": None, **fields}
        if answer.warning:
            self.log.warning("The service warns: %s", error_text(answer.warning))
        self.log.info("%s has %d links", request.url, len(links))
        if not links:
            if self.publication.changes is None:
                # With `changes`, the task knows whether earlier runs found pages.
                self.lacks("no_links", 1)
            server = self.hook.get_settings().client.server
            if server.is_self_hosted:
                remedy = private_target_remedy(server, [request.url])
                self.log.warning("%s", sentence(remedy) or NO_LINKS)
        count("webdata.map.links", len(links), self.context)
        limit = int(DEFAULT_LINKS if request.limit is None else request.limit)
        site = request.url
        results = Results(links, "link", summary, [site], site=site, covers_all=lambda number: number < limit)
        cost = Cost(MAP.cost(answer, request.to_wire()))
        return CallResult(results, cost, self._value, pushed=summary)

    def _value(self, links: list[Any], summary: dict[str, Any]) -> Any:
        if self.task.returns == "urls":
            return [link["url"] for link in links]
        return links if self.task.returns == "links" else {**summary, "links": links}
