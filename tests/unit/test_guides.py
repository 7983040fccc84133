"""What the pages for users claim and no example shows: figures, commands, and the form of questions."""

from __future__ import annotations

import re
import shlex
from datetime import datetime, timezone
from pathlib import Path
from typing import get_args

import pytest
from airflow.cli.cli_parser import get_parser
from airflow.sdk.api.datamodels._generated import DagRun
from airflow.sdk.definitions._internal.templater import FILTERS

from airflow_provider_webdata.api.config import ClientConfig
from airflow_provider_webdata.api.errors import ConfigurationError

DOCS = Path(__file__).parents[2] / "docs"
SERVICE = (DOCS / "service.md").read_text(encoding="utf-8")
COSTS = (DOCS / "costs.md").read_text(encoding="utf-8")
FAQ = (DOCS / "faq.md").read_text(encoding="utf-8")

PRICED = re.findall(
    r"^\| (?!Operation|Format|What|Call|---)([^|]+) \| ([^|]+) \| ([^|]*service\.md#[^|]*) \|$",
    COSTS,
    re.MULTILINE,
)


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


def test_there_are_prices() -> None:
    assert len(PRICED) > 25


@pytest.mark.parametrize(("what", "price", "links"), PRICED, ids=[row[0][:50] for row in PRICED])
def test_each_figure_of_the_costs_stands_in_its_rule(what: str, price: str, links: str) -> None:
    rules = " ".join(rule(anchor) for anchor in re.findall(r"service\.md#([\w-]+)", links))
    prose = re.sub(r"\(.*?\)|`[^`]*`", "", price)
    assert figures(prose) <= figures(rules), what


@pytest.mark.parametrize("page", ["faq.md", "upgrade.md", "errors.md", "costs.md"])
def test_each_command_is_one_of_airflows(page: str) -> None:
    text = (DOCS / page).read_text(encoding="utf-8")
    blocks = [
        line.strip() for block in re.findall(r"```sh\n(.*?)```", text, re.S) for line in block.splitlines()
    ]
    inline = re.findall(r"`(airflow [^`]+)`", text)
    commands = [line for line in [*blocks, *inline] if line.startswith("airflow ") and "..." not in line]
    assert commands
    for command in commands:
        arguments = shlex.split(command, comments=True)[1:]
        # Two commands are named without the arguments that they need.
        if arguments in (["connections", "add"],):
            continue
        assert get_parser().parse_args(arguments).func, command


QUESTIONS = dict(zip(*[iter(re.split(r"^## (.*)\n", FAQ, flags=re.M)[1:])] * 2, strict=True))


def test_there_are_enough_questions() -> None:
    assert 15 <= len(QUESTIONS) <= 25
    assert [question for question in QUESTIONS if not question.endswith("?")] == []


@pytest.mark.parametrize("question", QUESTIONS)
def test_an_answer_is_short_and_leads_on(question: str) -> None:
    answer = QUESTIONS[question]
    assert re.search(r"\]\([\w/.-]+\.md", answer)
    plain = re.sub(r"`[^`]*`|\([^)]*\)", "x", answer)
    assert 2 <= len(re.findall(r"[.?](?=\s|$)", plain)) <= 5


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
