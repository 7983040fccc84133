# SPDX-License-Identifier: Apache-2.0
"""Advice in messages works when it is followed."""

from __future__ import annotations

import re
from typing import Any

import pytest

from airflow_provider_webdata import options
from airflow_provider_webdata.api import models
from airflow_provider_webdata.api.endpoints import PRICES
from airflow_provider_webdata.common.coded_errors import UnknownArgumentError
from airflow_provider_webdata.operators.batch_scrape import WebDataBatchScrapeOperator
from airflow_provider_webdata.operators.crawl import WebDataCrawlOperator
from airflow_provider_webdata.operators.scrape import WebDataScrapeOperator
from airflow_provider_webdata.operators.search import WebDataSearchOperator
from tests.support import direct
from tests.support.direct import StateStore

URL = "https://shop.example/kettle"
SCHEMA = {"type": "object", "properties": {"name": {"type": "string"}}}
DATA = '{"@type": "Product", "name": "Kettle"}'
PRODUCT = f'<script type="application/ld+json">{DATA}</script><h1>Kettle</h1><p>kettle</p>'


@pytest.mark.parametrize("written", ["schema", "json_schema", "response_model"])
@pytest.mark.parametrize(
    ("task", "arguments"),
    [
        (WebDataScrapeOperator, {"url": URL}),
        (WebDataBatchScrapeOperator, {"urls": [URL], "poll_interval": 1}),
        (WebDataCrawlOperator, {"url": URL, "limit": 1, "poll_interval": 1}),
        (WebDataSearchOperator, {"query": "kettle"}),
    ],
    ids=["scrape", "batch", "crawl", "search"],
)
def test_a_schema(here: Any, task: Any, arguments: dict[str, Any], written: str) -> None:
    """The text of the pages is returned too, as without a schema."""
    here.control.set_page(URL, PRODUCT, title="kettle")
    with pytest.raises(UnknownArgumentError) as caught:
        task(task_id="t", **arguments, **{written: SCHEMA})
    [(name, value)] = re.findall(r"write (\w+)=(.*)\.$", str(caught.value), re.MULTILINE)
    value = eval(value.replace("...", "SCHEMA"), {"SCHEMA": SCHEMA})
    outcome = direct.run(task(task_id="t", **arguments, **{name: value}))
    assert outcome.state == "success", outcome.error
    pages = outcome.value.get("data") or outcome.value.get("web") or [outcome.value]
    page = next(page for page in pages if page["metadata"]["sourceURL"] == URL)
    assert page["json"]["name"]
    assert "kettle" in page["markdown"]


OPTIONS: list[tuple[str, Any, dict[str, Any], set[str]]] = [
    ("scrape", models.ScrapeRequest, {"url": URL}, {"proxy"}),
    ("batch_scrape", models.BatchScrapeRequest, {"urls": [URL]}, {"proxy"}),
    (
        "crawl",
        models.CrawlRequest,
        {"url": URL, "limit": 3, "allow_external_links": True},
        {"scrape_options.proxy", "allow_external_links"},
    ),
    (
        "search",
        models.SearchRequest,
        {"query": "q", "scrape_options": {"formats": ["markdown"]}},
        {"scrape_options.proxy", "exclude_domains"},
    ),
    ("parse", models.ParseOptions, {"proxy": "auto"}, {"proxy"}),
]


@pytest.mark.rule("credits-page")
@pytest.mark.parametrize(("operation", "model", "fields", "names"), OPTIONS, ids=[one[0] for one in OPTIONS])
def test_an_option_that_a_price_names_lowers_it(
    operation: str, model: Any, fields: dict[str, Any], names: set[str]
) -> None:
    def bound(given: dict[str, Any]) -> Any:
        return PRICES[operation].bound(model.model_validate(given).to_wire())

    before = bound(fields)
    named = dict(re.findall(r"\d with ([\w.]+)=('\w+'|\[[^]]*\]|\w+)", before.how))
    assert named.keys() == names
    for path, value in named.items():
        *above, name = path.split(".")
        inner = {name: eval(value)}
        changed = (
            {**fields, above[0]: {**fields.get(above[0], {}), **inner}} if above else {**fields, **inner}
        )
        assert bound(changed).credits < before.credits


def test_a_limit_is_met_by_the_advice_of_its_error(here: Any) -> None:
    here.control.set_page(URL, PRODUCT)

    def run(**more: Any) -> direct.Outcome:
        return direct.run(WebDataScrapeOperator(task_id="t", url=URL, credit_limit=1, **more), StateStore())

    refused = run()
    assert "(WD-034)" in str(refused.error)
    assert "5 (page; 1 with proxy='basic')" in str(refused.error)
    assert run(proxy="basic").state == "success"


@pytest.mark.parametrize(
    ("name", "given_as"),
    [("removed_after", "timedelta(days=3)"), ("min_items", "3")],
    ids=lambda given: given,
)
def test_an_argument_of_an_option(name: str, given_as: str) -> None:
    crawl: dict[str, Any] = {"task_id": "t", "url": URL, "limit": 9}
    with pytest.raises(UnknownArgumentError) as caught:
        WebDataCrawlOperator(**crawl, **{name: 3})
    [(option, value)] = re.findall(r"write (\w+)=(.*)\.$", str(caught.value), re.MULTILINE)
    given = eval(
        value.replace(f"{name}=...", f"{name}={given_as}").replace("...", "'/tmp/seen'"), vars(options)
    )
    assert getattr(WebDataCrawlOperator(**crawl, **{option: given}), option) == given
