"""The extract operator before and after the end of `/v2/extract` on the hosted service."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from datetime import datetime, timezone
from typing import Any

import pytest
from airflow.exceptions import AirflowProviderDeprecationWarning

from airflow_provider_webdata.api import servers
from airflow_provider_webdata.api.servers import server_of
from airflow_provider_webdata.common import endings
from airflow_provider_webdata.common.coded_errors import ArgumentError
from airflow_provider_webdata.operators.extract import WebDataExtractOperator
from airflow_provider_webdata.options import Schema, Wait
from airflow_provider_webdata.sensors.job import WebDataJobSensor
from tests.support import direct
from webdata_sandbox.server import SandboxServer

URLS = [f"https://shop.test/{number}" for number in (2, 1)]
SCHEMA = {
    "type": "object",
    "properties": {"shop": {"type": "string"}, "products": {"type": "array", "items": {"type": "object"}}},
}
DATE = "2026-12-10 at 15:00 UTC"
pytestmark = pytest.mark.filterwarnings("ignore:The hosted service")


@pytest.fixture
def shop(here: SandboxServer) -> SandboxServer:
    for number, url in enumerate(URLS):
        answer = {"shop": f"shop {number}", "products": [{"name": f"product {number}"}]}
        here.control.set_page(url, f"<p>{number}</p>", json=answer)
    return here


def extract(**arguments: Any) -> Any:
    given = {"urls": URLS, "schema": SCHEMA, "wait": Wait(poll_interval=1), "deferrable": False, **arguments}
    return WebDataExtractOperator(task_id="extract", **given)


def sent(server: SandboxServer) -> list[tuple[str, Any]]:
    return [
        (request["path"], request["body"])
        for request in server.control.requests(method="POST")
        if request["path"].startswith("/v2/")
    ]


@pytest.fixture
def after_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """The sandbox is the hosted service, on the day after."""
    monkeypatch.setattr(servers, "HOSTED_HOST", "127.0.0.1")
    monkeypatch.setattr(endings.Ending, "has_passed", lambda _: True)


@pytest.mark.parametrize(
    ("make", "warns"),
    [
        (extract, True),
        (lambda: extract(via="extract"), False),
        (lambda: extract(via="scrape"), False),
        (lambda: WebDataJobSensor(task_id="s", kind="extract", job_id="j"), True),
        (lambda: WebDataJobSensor(task_id="s", kind="agent", job_id="j"), False),
    ],
)
def test_the_end_is_announced_while_the_dag_file_is_read(make: Callable[[], Any], warns: bool) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        make()
    texts = [str(item.message) for item in caught if item.category is AirflowProviderDeprecationWarning]
    assert len(texts) == warns
    assert all(DATE in text and "via='scrape'" in text for text in texts)


@pytest.mark.parametrize("hosted", [True, False])
def test_the_end_is_announced_once_when_the_task_runs_against_the_hosted_service(
    shop: SandboxServer, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, hosted: bool
) -> None:
    if hosted:
        monkeypatch.setattr(servers, "HOSTED_HOST", "127.0.0.1")
        monkeypatch.setattr(endings.Ending, "has_passed", lambda _: False)
    assert direct.run(extract(retries=0)).state == "success"
    assert [DATE in record.getMessage() for record in caplog.records].count(True) == hosted
    assert [path for path, _ in sent(shop)] == ["/v2/extract"]


@pytest.mark.rule("extract-end")
@pytest.mark.parametrize("deferrable", [False, True])
def test_a_job_across_the_end_fails_and_names_the_successor(shop: SandboxServer, deferrable: bool) -> None:
    started = direct.run(extract(via="extract", wait_for_completion=False)).value
    shop.control.set_quirks(["extract-gone"])
    for task in (
        extract(via="extract", retries=2),
        WebDataJobSensor(
            task_id="s", kind="extract", job_id=started, deferrable=deferrable, poke_interval=1, retries=2
        ),
    ):
        outcome = direct.run(task)
        assert outcome.ended == ("failed", 1)
        assert "has shut down this operation.\nSet via='scrape' or via='agent'" in str(outcome.error)
        assert "(WD-028)" in str(outcome.error)


@pytest.mark.parametrize("deferrable", [False, True])
@pytest.mark.parametrize("arguments", [{"via": "scrape"}, {}], ids=["chosen", "after the end"])
def test_a_scrape_returns_the_shape_of_extract(
    shop: SandboxServer, request: Any, log: Callable[[], str], arguments: dict[str, Any], deferrable: bool
) -> None:
    shop.control.set_quirks(["extract-gone"])
    if not arguments:
        request.getfixturevalue("after_the_end")
    outcome = direct.run(
        extract(
            prompt="products",
            system_prompt="be exact",
            scrape_options={"onlyMainContent": False, "formats": ["html"]},
            show_sources=True,
            deferrable=deferrable,
            **arguments,
        )
    )
    assert outcome.state == "success", outcome.error
    assert outcome.value["data"] == {
        "shop": "shop 0",
        "products": [{"name": "product 0"}, {"name": "product 1"}],
    }
    assert outcome.value["sources"] == {"shop": URLS, "products": URLS}
    assert outcome.value["errors"]["count"] == 0
    ((path, body),) = sent(shop)
    assert path == "/v2/batch/scrape"
    assert body == {
        "urls": URLS,
        "formats": [{"type": "json", "schema": SCHEMA, "prompt": "be exact\n\nproducts"}],
        "onlyMainContent": False,
        "ignoreInvalidURLs": True,
    }
    assert ("This task uses via='scrape'" in log()) is not arguments


def test_rows_and_validation_of_a_scrape_are_those_of_extract(shop: SandboxServer, tmp_path: Any) -> None:
    file = tmp_path / "rows.jsonl"
    outcome = direct.run(extract(via="scrape", result_schema=Schema(rows="products"), output=str(file)))
    assert (outcome.value["count"], outcome.value["data"]) == (2, {"shop": "shop 0"})
    assert outcome.value["validation"]["checked"] == 2


def test_pages_without_data_fail_the_task(shop: SandboxServer) -> None:
    shop.control.set_page(URLS[1], "<p>1</p>", error="SCRAPE_TIMEOUT")
    outcome = direct.run(extract(via="scrape", urls=[URLS[1]], retries=2))
    assert outcome.ended == ("failed", 1)
    assert "returned data" in str(outcome.error)
    assert f"{URLS[1]}: " in str(outcome.error)


@pytest.mark.parametrize(
    ("arguments", "body", "ignored"),
    [
        (
            {"urls": ["https://weather.example/*"], "prompt": "levels", "credit_limit": 50},
            {
                "urls": ["https://weather.example"],
                "strictConstrainToURLs": False,
                "prompt": "levels\n\nRead all pages of the site https://weather.example/ for it.",
                "schema": SCHEMA,
                "maxCredits": 50,
            },
            "",
        ),
        ({"urls": None, "prompt": "levels", "schema": None}, {"prompt": "levels"}, ""),
        (
            {"via": "agent", "show_sources": True, "include_subdomains": False},
            {
                "urls": URLS,
                "strictConstrainToURLs": True,
                "prompt": "Extract the data that the schema describes.",
                "schema": SCHEMA,
            },
            "does not support showSources",
        ),
    ],
)
def test_the_agent_does_the_rest(
    shop: SandboxServer,
    after_the_end: None,
    log: Callable[[], str],
    arguments: dict[str, Any],
    body: Any,
    ignored: str,
) -> None:
    outcome = direct.run(extract(**arguments))
    assert outcome.state == "success", outcome.error
    assert sent(shop) == [("/v2/agent", body)]
    assert ignored in log()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"urls": None, "prompt": "x"}, "urls is empty"),
        ({"urls": ["https://a.example/*"]}, "'https://a.example/*' is a whole site"),
        ({"enable_web_search": True}, "enableWebSearch is set"),
    ],
)
def test_a_scrape_that_cannot_replace_extract_is_refused(
    shop: SandboxServer, arguments: dict[str, Any], words: str
) -> None:
    outcome = direct.run(extract(via="scrape", retries=2, **arguments))
    assert outcome.ended == ("failed", 1)
    assert words in str(outcome.error)
    assert "Use via='agent'" in str(outcome.error)
    assert sent(shop) == []


def test_an_unknown_way_is_refused() -> None:
    with pytest.raises(ArgumentError, match="via must be one of extract, scrape, agent"):
        extract(via="crawl")


def test_the_end() -> None:
    assert endings.EXTRACT.at == datetime(2026, 12, 10, 15, tzinfo=timezone.utc)
    assert server_of("https://api.firecrawl.dev", None).ends_operations
    assert not server_of("https://scraper.internal/api.firecrawl.dev", "hosted").ends_operations
