# SPDX-License-Identifier: Apache-2.0
"""A schema that no result can be validated by is refused while the DAG file is parsed."""

from __future__ import annotations

import re
from typing import Any

import pytest
from airflow.sdk import DAG, task

from airflow_provider_webdata.base.arguments.schema_check import schema_problems
from airflow_provider_webdata.operators.agent import WebDataAgentOperator
from airflow_provider_webdata.operators.batch_scrape import WebDataBatchScrapeOperator
from airflow_provider_webdata.operators.batch_search import WebDataBatchSearchOperator
from airflow_provider_webdata.operators.crawl import WebDataCrawlOperator
from airflow_provider_webdata.operators.incremental_crawl import WebDataIncrementalCrawlOperator
from airflow_provider_webdata.operators.parse import WebDataParseOperator
from airflow_provider_webdata.operators.provider import WebDataProviderOperator
from airflow_provider_webdata.operators.scrape import WebDataScrapeOperator
from airflow_provider_webdata.operators.search import WebDataSearchOperator
from airflow_provider_webdata.sensors.job import WebDataJobSensor

SCHEMA = {"type": "object", "properties": {"price": {"type": "number"}}}
JSON = {"type": "json", "schema": SCHEMA}
SITE = "https://a.example/"
PAGES: dict[Any, dict[str, Any]] = {
    WebDataScrapeOperator: {"url": SITE},
    WebDataBatchScrapeOperator: {"urls": [SITE]},
    WebDataParseOperator: {"file": "/a.pdf"},
    WebDataIncrementalCrawlOperator: {"url": SITE, "changes": "/m", "refresh_after": 60},
    WebDataCrawlOperator: {"url": SITE},
    WebDataSearchOperator: {"query": "q"},
    WebDataBatchSearchOperator: {"queries": ["q"], "save_to": "a.jsonl"},
}
WITH_SCRAPE_OPTIONS = {WebDataCrawlOperator, WebDataSearchOperator, WebDataBatchSearchOperator}


def formats(operator: Any, *given: Any) -> dict[str, Any]:
    return (
        {"scrape_options": {"formats": [*given]}}
        if operator in WITH_SCRAPE_OPTIONS
        else {"formats": [*given]}
    )


@pytest.mark.parametrize("operator", PAGES, ids=lambda operator: operator.__name__)
def test_a_schema_needs_data_and_the_advice_works(operator: Any) -> None:
    for given in ({}, formats(operator, "markdown")):
        with pytest.raises(ValueError, match="result_schema: no format") as failed:
            operator(task_id="t", result_schema=SCHEMA, **PAGES[operator], **given)
    found = re.search("; write (.+), beside other formats", str(failed.value))
    assert found
    advised = eval(f"dict({found[1].replace('...', 'SCHEMA')})", {"SCHEMA": SCHEMA})
    operator(task_id="t", result_schema=SCHEMA, **PAGES[operator], **advised)
    operator(task_id="u", result_schema=SCHEMA, **PAGES[operator], **formats(operator, "markdown", JSON))


@pytest.mark.parametrize("operator", PAGES, ids=lambda operator: operator.__name__)
def test_without_a_schema_any_format_will_do(operator: Any) -> None:
    operator(task_id="t", **PAGES[operator], **formats(operator, "markdown"))


def test_what_is_known_at_run_time_only_is_not_refused() -> None:
    with DAG("d", schedule=None):

        @task
        def wanted() -> list[Any]:
            return [JSON]

        for number, value in enumerate(
            (wanted(), "{{ params.formats }}", ["markdown", "{{ params.format }}"])
        ):
            WebDataScrapeOperator(task_id=f"t{number}", url=SITE, formats=value, result_schema=SCHEMA)  # type: ignore[arg-type]
        for number, options in enumerate(("{{ params.options }}", {"formats": "{{ params.formats }}"})):
            WebDataCrawlOperator(task_id=f"u{number}", url=SITE, scrape_options=options, result_schema=SCHEMA)  # type: ignore[arg-type]
        WebDataScrapeOperator(task_id="b", url=SITE, extra_body={"formats": [JSON]}, result_schema=SCHEMA)


def test_data_without_formats_is_not_refused() -> None:
    WebDataAgentOperator(task_id="a", prompt="p", schema=SCHEMA, result_schema=SCHEMA)
    WebDataProviderOperator(task_id="p", provider="p", capability="c", result_schema=SCHEMA)
    WebDataJobSensor(task_id="j", kind="crawl", job_id="1", result_schema=SCHEMA)


def test_both_formats_with_data() -> None:
    for kind in ("json", "deterministicJson"):
        assert schema_problems("ScrapeRequest", {"formats": [{"type": kind}]}, SCHEMA, None) == []
    assert schema_problems("ScrapeRequest", {"formats": [{"type": "product"}]}, SCHEMA, None) != []
    assert schema_problems("MapRequest", {}, SCHEMA, None) == []
