# SPDX-License-Identifier: Apache-2.0
"""Rules for every operator of the metadata that bills or writes results."""

from __future__ import annotations

import errno
import os
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest

from airflow_provider_webdata.options import Quality
from airflow_provider_webdata.results.errors import StorageError
from tests.integration.results.conftest import bucket, s3_client, s3_connection, s3_server
from tests.support import direct
from tests.support.direct import StateStore
from tests.unit.test_contract import TASKS, parameters, required
from webdata_sandbox.server import SandboxServer

__all__ = ["bucket", "s3_client", "s3_connection", "s3_server"]

URL = "https://docs.pipeline.example/"
WAITING: dict[str, Any] = {"deferrable": False, "poll_interval": 1}
ARGUMENTS: dict[str, dict[str, Any]] = {
    "WebDataSearchOperator": {"query": "river"},
    "WebDataBatchSearchOperator": {"queries": ["river"], "save_to": "FOLDER/*.jsonl"},
    "WebDataScrapeOperator": {"url": URL},
    "WebDataBatchScrapeOperator": {"urls": [URL], **WAITING},
    "WebDataCrawlOperator": {"url": URL, "limit": 1, **WAITING},
    "WebDataIncrementalCrawlOperator": {
        "url": URL,
        "changes": "FOLDER/seen",
        "refresh_after": timedelta(days=1),
        **WAITING,
    },
    "WebDataAgentOperator": {"prompt": "the title", "urls": [URL], **WAITING},
    "WebDataMapOperator": {"url": URL},
    "WebDataParseOperator": {"file": "FOLDER/report.html"},
    "WebDataInteractOperator": {"steps": ["echo high"], "language": "bash"},
    "WebDataProviderOperator": {
        "provider": "company-register",
        "capability": "companies/search",
        "options": {"query": "river"},
    },
}
"""Arguments to which the sandbox returns results, where it needs more than those that are required."""


# The sensor writes the result of a job that somebody else started.
FREE = {"WebDataJobSensor"}
WRITING = [task for task in TASKS if "save_to" in parameters(task) and task.__name__ not in FREE]
BILLING = [task for task in TASKS if "credit_limit" in parameters(task)]


def task(operator: Any, folder: Path, **more: Any) -> Any:
    arguments = ARGUMENTS.get(operator.__name__) or required(operator)
    (folder / "report.html").write_text("<p>Wheat</p>")
    given = {
        name: value.replace("FOLDER", str(folder)) if isinstance(value, str) else value
        for name, value in arguments.items()
    }
    if "changes" in given and "save_to" in more:
        more["save_to"] = direct.fixed(more["save_to"])
    return operator(**{"task_id": "t", **given, **more})


def billed(sandbox: SandboxServer) -> list[str]:
    """Return the paths of the calls that bill. Reading a job does not."""
    requests = sandbox.control.requests()
    return [
        one["path"]
        for one in requests
        if (one["method"] == "POST" or "/research/" in one["path"]) and not is_lookup(one["body"])
    ]


def is_lookup(body: Any) -> bool:
    """Return whether a request reads the catalog of data providers."""
    return bool(body) and any(call["provider"] == "firecrawl" for call in body.get("alexandria", ()))


@pytest.mark.parametrize("operator", WRITING)
def test_an_answer_that_could_not_be_delivered_is_billed_once(
    here: SandboxServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, operator: Any
) -> None:
    """The first attempt makes the call, and cannot write; the second writes the same answer."""
    output = tmp_path / "results.jsonl"

    def lose(request: httpx.Request) -> None:
        # An incremental crawl lists the site first, and looks at its output again.
        if "refresh_after" not in vars(made) or request.url.path not in ("/v2/map", "/v2/scrape"):
            output.mkdir(exist_ok=True)

    send, send_async = httpx.Client.send, httpx.AsyncClient.send

    def sending(client: httpx.Client, request: httpx.Request, **options: Any) -> httpx.Response:
        lose(request)
        return send(client, request, **options)

    async def sending_async(
        client: httpx.AsyncClient, request: httpx.Request, **options: Any
    ) -> httpx.Response:
        lose(request)
        return await send_async(client, request, **options)

    with monkeypatch.context() as patch:

        def mend(number: int) -> None:
            if number == 2:
                patch.undo()
                output.rmdir()

        patch.setattr(httpx.Client, "send", sending)
        patch.setattr(httpx.AsyncClient, "send", sending_async)
        made = task(operator, tmp_path, save_to=str(output), retries=1)
        outcome = direct.run(made, StateStore(), before_try=mend)

    assert outcome.ended == ("success", 2), outcome.error
    assert len(output.read_text().splitlines()) == outcome.value["count"] > 0
    assert outcome.value["path"] == str(output)
    assert len(billed(here)) == len({*billed(here)}) > 0


def full(*_: Any) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


LONG = "x" * 251
QUALITY = Quality(min_items=1)
UNWRITABLE: dict[str, dict[str, Any]] = {
    "a long name": {"save_to": f"FOLDER/new/{LONG}.jsonl"},
    "a long name for rejected results": {"save_to": f"FOLDER/new/{LONG[:245]}.jsonl", "quality": QUALITY},
    "a long name of a folder": {"media_to": f"FOLDER/new/{LONG}{LONG}"},
    "a long name of a state": {"changes": f"FOLDER/new/{LONG}{LONG}"},
    "a folder of the system": {"save_to": "/sys/kernel/webdata.jsonl"},
    "a folder of the system for media": {"media_to": "/sys/kernel/webdata"},
    "a file in place of a folder": {"save_to": "FOLDER/report.html/pages.jsonl"},
    "a disk that is full": {"save_to": "FOLDER/pages.jsonl"},
    "a disk that is full for media": {"media_to": "FOLDER/media"},
    "a disk that is full for a state": {"changes": "FOLDER/seen"},
    "no temporary folder": {"save_to": "s3://results_s3@BUCKET/pages.jsonl", "quality": QUALITY},
}


@pytest.mark.parametrize("name", UNWRITABLE)
@pytest.mark.parametrize("operator", WRITING)
def test_what_cannot_be_written_is_found_before_the_call(
    here: SandboxServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
    operator: Any,
    name: str,
) -> None:
    store = request.getfixturevalue("bucket") if "temporary" in name else ""
    given = {
        option: value.replace("FOLDER", str(tmp_path)).replace("BUCKET", store)
        if isinstance(value, str)
        else value
        for option, value in UNWRITABLE[name].items()
    }
    if not given.keys() <= parameters(operator).keys():
        pytest.skip("it has no such option")
    made = task(operator, tmp_path, **given)
    if "full" in name:
        monkeypatch.setattr(os, "fsync", full)
    if "temporary" in name:
        monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "gone"))
    done = direct.run(made)
    assert done.state == "failed"
    assert isinstance(done.error, StorageError) or "(WD-005)" in str(done.error), done.error
    assert here.control.requests() == []


@pytest.mark.parametrize("operator", BILLING)
def test_a_limit_of_nothing_sends_nothing(here: SandboxServer, tmp_path: Path, operator: Any) -> None:
    outcome = direct.run(task(operator, tmp_path, credit_limit="{{ 0 }}", retries=1))
    assert billed(here) == []
    # A batch reports the queries that it leaves.
    if operator.__name__ != "WebDataBatchSearchOperator":
        assert outcome.ended == ("failed", 1)
        assert "WD-034" in str(outcome.error)


@pytest.mark.parametrize("operator", BILLING)
def test_a_limit_that_renders_to_nothing_is_not_lifted(
    here: SandboxServer, tmp_path: Path, operator: Any
) -> None:
    outcome = direct.run(task(operator, tmp_path, credit_limit="{{ '' }}", retries=1))
    assert outcome.ended == ("failed", 1)
    assert "credit_limit: must be a number of at least 0 (given: '')" in str(outcome.error)
    assert billed(here) == []
