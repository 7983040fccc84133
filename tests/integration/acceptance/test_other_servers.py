# SPDX-License-Identifier: Apache-2.0
"""The hook's part of the acceptance run against other implementations of the API.

test_acceptance.py runs all of it against one more.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_webdata.hooks.webdata import WebDataHook
from tests.support.other_servers import (
    Crw,
    FirecrawlCompat,
    FirecrawlLb,
    NodeByte,
    OtherServer,
    each_of,
)
from tests.support.service import CONNECTION_ID, SANDBOX_KEY, connection_text
from tools.acceptance import hook_cases
from tools.acceptance.report import Result
from tools.acceptance.run import Run, results
from tools.acceptance.site import Site
from tools.acceptance.watch import Watch
from webdata_sandbox.server import SandboxServer

DOCS = Path(__file__).parents[3] / "docs" / "servers.md"
PAGE = "https://river.example/"
TEXT = "river"
"""In each page that a replay makes up from its URL, and in that of the sandbox."""


@pytest.fixture(scope="module")
def servers() -> Iterator[dict[type, OtherServer]]:
    with (
        SandboxServer(settle=True, closing_seconds=0, queue_seconds=0) as upstream,
        each_of(upstream.url, upstream.api_key) as running,
    ):
        yield {type(one): one for one in running}


def tried(server: OtherServer, patch: pytest.MonkeyPatch, folder: Path) -> list[Result]:
    text = connection_text(server.url, SANDBOX_KEY, server=server.kind, retry_budget=0)
    patch.setenv(f"AIRFLOW_CONN_{CONNECTION_ID.upper()}", text)
    with WebDataHook() as hook:
        watch = Watch(hook.get_settings().client.server, 1000, unbounded=True)
        with watch.watching():
            run = Run(watch, Site(PAGE, PAGE, TEXT), folder, hook=hook, poll_seconds=0)
            run.folder.mkdir()
            return list(results(run, [*hook_cases.cases()], {}))


@pytest.mark.parametrize(
    "kind", [FirecrawlLb, FirecrawlCompat, Crw, NodeByte], ids=lambda kind: kind.__name__
)
def test_nothing_that_a_server_lacks_is_a_failure(
    servers: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, kind: type[OtherServer]
) -> None:
    found = tried(servers[kind], monkeypatch, tmp_path)
    assert {one.operation: one.reason for one in found if one.outcome == "failed"} == {}
    counts = Counter(one.outcome for one in found)
    (row,) = (line for line in DOCS.read_text().splitlines() if line.startswith(f"| {kind.name.split()[0]}"))
    assert row.endswith(f" | {counts['ok']}, {counts['lacks']} |")
