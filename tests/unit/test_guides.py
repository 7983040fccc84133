# SPDX-License-Identifier: Apache-2.0
"""Claims of the pages for users that no example shows: figures, commands, and the form of questions."""

from __future__ import annotations

import json
import re
import shlex
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, get_args

import pytest
from airflow.cli.cli_parser import get_parser
from airflow.sdk.api.datamodels._generated import DagRun
from airflow.sdk.definitions._internal.templater import FILTERS

from airflow_provider_webdata.api.config import ClientConfig
from airflow_provider_webdata.api.errors import ConfigurationError
from airflow_provider_webdata.api.prices import BATCH_SCRAPE, CRAWL, MAP
from airflow_provider_webdata.common.coded_errors import CodedError
from airflow_provider_webdata.operators.crawl import WebDataCrawlOperator
from airflow_provider_webdata.operators.monitor.create import WebDataCreateMonitorOperator
from airflow_provider_webdata.operators.scrape import WebDataScrapeOperator
from airflow_provider_webdata.operators.search import WebDataSearchOperator
from airflow_provider_webdata.results.files.formats import FORMATS
from tests.support import direct
from tests.support.service import connection_text

DOCS = Path(__file__).parents[2] / "docs"
SERVICE = (DOCS.parent / "sandbox" / "docs" / "service.md").read_text(encoding="utf-8")
COSTS = (DOCS / "costs.md").read_text(encoding="utf-8")
FAQ = (DOCS / "faq.md").read_text(encoding="utf-8")

PRICED = re.findall(r"^\| ([^|]+) \| ([^|]*\[[^|]*/service\.md#[^|]*) \|$", COSTS, re.MULTILINE)


def rule(anchor: str) -> str:
    """Return a rule's row, or the section of that heading."""
    for line in SERVICE.splitlines():
        if f'<a id="{anchor}"></a>' in line:
            return line
    heading = re.search(rf"^#+ {anchor.replace('-', ' ')}\n(.*?)(?=^#)", SERVICE, re.M | re.S | re.I)
    assert heading is not None, anchor
    return heading[1]


def figures(text: str) -> set[str]:
    return set(re.findall(r"\d+", text.replace(",", "")))


def test_each_figure_of_the_costs_stands_in_its_rule() -> None:
    wrong = []
    for what, price in PRICED:
        rules = " ".join(rule(anchor) for anchor in re.findall(r"service\.md#([\w-]+)", price))
        prose = re.sub(r"\(.*?\)|`[^`]*`", "", price)
        wrong += [(what, figure) for figure in figures(prose) - figures(rules)]
    assert wrong == []
    assert len(PRICED) > 25


def test_the_worked_example_of_the_costs_has_the_computed_figures() -> None:
    """200 pages every night, by the functions with which tasks compute the worst case before a call."""
    options = {"proxy": "basic", "parsers": []}
    site = {"url": "https://docs.example/", "limit": 200}

    def pages(number: int) -> float:
        return BATCH_SCRAPE.most({"urls": ["https://docs.example/"] * number, **options}).credits

    crawl = CRAWL.most({**site, "scrapeOptions": options}).credits
    structured = CRAWL.most({**site, "scrapeOptions": {**options, "formats": [{"type": "json"}]}}).credits
    assert pages(200) == crawl
    nightly = {
        "crawl or batch scrape of 200 pages": crawl,
        "the same, with a `json` schema": structured,
        "incremental crawl that reads 1 sitemap and 10 pages": MAP.most(site).credits + pages(1 + 10),
        "monitor of 200 pages": pages(200),
        "map that lists 200 pages": MAP.most(site).credits,
    }
    example = COSTS.partition("## Prices")[0]
    rows = re.findall(r"^\| ([^|]+) \| ([\d,]+) \| ([\d,]+) \|$", example, re.MULTILINE)
    assert rows == [(what, f"{price:,.0f}", f"{30 * price:,.0f}") for what, price in nightly.items()]
    parsers = CRAWL.pdf_parsers({**site, "scrapeOptions": {"proxy": "basic"}}, 1000)
    assert "limit=200" in example
    assert "credit_limit=1000" in example
    assert f"`{json.dumps(parsers)}`" in COSTS


def test_each_format_of_files_is_listed() -> None:
    rows = re.findall(
        r"^\| `(\.[\w.]+)` \| [^|]+ \| (\w*) ?\| (.*?) ?\|$", (DOCS / "results.md").read_text("utf-8"), re.M
    )
    assert [(suffix, columns or None) for suffix, columns, _ in rows] == [
        (suffix, known.columns) for suffix, known in FORMATS.items()
    ]
    assert [known.extra for known in FORMATS.values()] == [
        found[1] if (found := re.search(r"the extra `(\w+)`", needs)) else "" for *_, needs in rows
    ]


def test_each_command_is_one_of_airflows() -> None:
    parser = get_parser()
    for page in ("faq.md", "upgrade.md", "errors.md", "costs.md"):
        text = (DOCS / page).read_text(encoding="utf-8")
        blocks = [
            line.strip()
            for block in re.findall(r"```sh\n(.*?)```", text, re.S)
            for line in block.splitlines()
        ]
        inline = re.findall(r"`(airflow [^`]+)`", text)
        commands = [line for line in [*blocks, *inline] if line.startswith("airflow ") and "..." not in line]
        assert commands, page
        for command in commands:
            arguments = shlex.split(command, comments=True)[1:]
            # This command is named without the arguments that it needs.
            if arguments != ["connections", "add"]:
                assert parser.parse_args(arguments).func, command


QUESTIONS = dict(zip(*[iter(re.split(r"^## (.*)\n", FAQ, flags=re.M)[1:])] * 2, strict=True))


def test_the_answers_are_short_and_lead_on() -> None:
    assert 15 <= len(QUESTIONS) <= 25
    assert [question for question in QUESTIONS if not question.endswith("?")] == []
    for question, answer in QUESTIONS.items():
        assert re.search(r"\]\([\w/.-]+\.md", answer), question
        plain = re.sub(r"`[^`]*`|\([^)]*\)", "x", answer)
        assert 2 <= len(re.findall(r"[.?](?=\s|$)", plain)) <= 5, question


def test_a_run_without_a_logical_date_has_the_time_after_which_it_runs() -> None:
    assert "{{ dag_run.run_after | ds }}" in FAQ
    may_be_none = {
        name: type(None) in get_args(DagRun.model_fields[name].annotation)
        for name in ("run_after", "logical_date", "data_interval_start")
    }
    assert may_be_none == {"run_after": False, "logical_date": True, "data_interval_start": True}
    assert FILTERS["ds"](datetime(2026, 1, 31, 10, tzinfo=timezone.utc)) == "2026-01-31"


def test_a_server_without_keys_takes_any_text_for_one() -> None:
    assert ClientConfig(base_url="http://scraper.internal:3002/v2", api_key="none").base_url == (
        "http://scraper.internal:3002"
    )
    with pytest.raises(ConfigurationError, match="WD-001"):
        ClientConfig(base_url="http://scraper.internal:3002", api_key="")


ERRORS = (DOCS / "errors.md").read_text(encoding="utf-8")
MISTAKES = re.findall(r"^\| `(WebData\w+)\((.+)\)` \| `(.+)` \|$", ERRORS, re.MULTILINE)
SITE = "https://river.example/"
REQUIRED: dict[type[Any], dict[str, Any]] = {
    WebDataCrawlOperator: {"url": SITE},
    WebDataCreateMonitorOperator: {"name": "m", "targets": [{"type": "scrape", "urls": [SITE]}]},
    WebDataScrapeOperator: {"url": SITE},
    WebDataSearchOperator: {"query": "river"},
}


@pytest.mark.parametrize(("name", "given", "message"), MISTAKES)
def test_a_mistake_has_the_shown_message(name: str, given: str, message: str) -> None:
    (operator,) = (one for one in REQUIRED if one.__name__ == name)
    with pytest.raises(CodedError) as raised:
        operator(task_id="search", **{**REQUIRED[operator], **eval(f"dict({given})")})
    # The page omits the end of some.
    assert message.removesuffix(" ...") in " ".join(str(raised.value).split())


def test_the_shown_error_is_a_real_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_WEBDATA_DEFAULT", connection_text("http://127.0.0.1:9", retry_budget=0))
    error = direct.run(WebDataSearchOperator(task_id="t", query="river", credit_limit=0.5)).error
    assert f"```text\n{type(error).__name__}: {error}\n```" in ERRORS
    assert len(MISTAKES) == 8
