"""`airflow webdata providers`, on a sandbox."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest

from airflow_provider_webdata.operators.provider import WebDataProviderOperator
from tests.support.cli import run_command
from tests.support.service import SANDBOX_KEY, connection_text
from webdata_sandbox.server import SandboxServer


@pytest.fixture(scope="module")
def sandbox() -> Iterator[SandboxServer]:
    with SandboxServer() as server:
        yield server


@pytest.fixture
def run(sandbox: SandboxServer, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Any:
    """Run a command; return its error, or what it printed."""
    monkeypatch.setenv("AIRFLOW_CONN_WEBDATA_DEFAULT", connection_text(sandbox.url, SANDBOX_KEY))
    monkeypatch.setenv("AIRFLOW_CONN_OTHER", '{"conn_type": "http"}')

    return partial(run_command, capsys, "providers")


@pytest.mark.rule("find-tools-call", "provider-price")
def test_the_list_has_prices(run: Any, sandbox: SandboxServer) -> None:
    before = sandbox.control.state()["credits"]
    lines = {line.split("|")[0].strip(): line for line in run("list").splitlines()}
    assert "1 a record" in lines["company-register/companies/search"]
    assert "5 a call" in lines["market-prices/prices/history"]
    assert "known after the call" in lines["market-prices/prices/live"]
    assert sandbox.control.state()["credits"] == before


def test_filters_of_the_list(run: Any) -> None:
    def found(*flags: str) -> list[str]:
        return [tool["id"] for tool in json.loads(run("list", *flags, "--output", "json"))]

    assert found("podcasts") == ["episode-index/episodes/search"]
    assert len(found("--provider", "market-prices", "--provider", "episode-index")) == 3
    assert len(found("--limit", "2")) == 2
    assert "No capability matches" in run("list", "zzz")


@pytest.mark.rule("find-tools-contract")
@pytest.mark.parametrize(
    ("tool", "most"),
    [
        ("market-prices/prices/history", 5),
        ("company-register/companies/search", 10),
        ("market-prices/prices/live", None),
    ],
)
def test_a_contract_and_a_task_that_works(run: Any, tool: str, most: float | None) -> None:
    text = run("show", tool)
    described, _, code = text.partition("A task:")
    assert text.startswith(f"{tool}: ")
    for part in ("Price in credits: ", "Options:\n", ", required", "Columns:\n"):
        assert part in described
    names: dict[str, Any] = {}
    statements, call = ast.parse(code).body
    assert isinstance(call, ast.Expr)
    exec(compile(ast.Module([statements], []), tool, "exec"), names)
    task = eval(compile(ast.Expression(call.value), tool, "eval"), names)
    assert isinstance(task, WebDataProviderOperator)
    assert task.credit_limit == most
    assert json.loads(run("show", tool, "--output", "json"))["id"] == tool


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (("show", "market-prices"), "Name a provider and a capability"),
        (("show", "market-prices/nothing"), "The catalog has no market-prices/nothing"),
        (("list", "--conn-id", "nowhere"), "onnection 'nowhere'"),
        (("list", "--conn-id", "other"), "is of type 'http'"),
    ],
)
def test_what_cannot_be_shown(run: Any, flags: tuple[str, ...], words: str) -> None:
    assert words in run(*flags)


def test_a_service_that_fails(run: Any, sandbox: SandboxServer) -> None:
    sandbox.control.add_fault("status", path="/v2/scrape", status=401)
    assert "The catalog cannot be read: find tools: HTTP 401" in run("list")
