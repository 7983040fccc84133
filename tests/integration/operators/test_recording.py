"""Recordings of browser sessions that a task keeps, against the sandbox."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_webdata.common.coded_errors import ArgumentError
from airflow_provider_webdata.operators.interact import WebDataInteractOperator
from airflow_provider_webdata.options import Media
from airflow_provider_webdata.runs import recording
from airflow_provider_webdata.sandbox.server import SandboxServer
from tests.support import direct

PAGE = "https://airship.example/"


@pytest.fixture(autouse=True)
def _page(here: SandboxServer, monkeypatch: pytest.MonkeyPatch) -> None:
    here.control.set_page(PAGE, markdown="# Airship", title="Airship")
    monkeypatch.setattr(recording, "_PROCESSING_SECONDS", 0)


def browse(folder: Path, *steps: str, **arguments: Any) -> direct.Outcome:
    given = {"record_session": True, "media": str(folder), **arguments}
    return direct.run(
        WebDataInteractOperator(task_id="t", steps=[f'await page.goto("{PAGE}")', *steps], **given)
    )


@pytest.mark.rule("replay-pages", "replay-playlist", "session-further")
@pytest.mark.parametrize("fails", [False, True])
def test_a_recording_is_kept(tmp_path: Path, sandbox: SandboxServer, fails: bool) -> None:
    """Also of a session whose step fails, which is the one to look at."""
    outcome = browse(tmp_path / "media", *(["process.exit(3)"] if fails else []))
    told = outcome.xcom if fails else outcome.value
    folder = Path(told["recording"])
    assert folder == tmp_path / "media" / f"session-{told['sessionId']}"
    assert sorted(path.name for path in folder.iterdir()) == [
        "page-0-00001.ts",
        "page-0-00002.ts",
        "page-0.m3u8",
    ]
    playlist = (folder / "page-0.m3u8").read_text()
    assert playlist.startswith("#EXTM3U\n")
    assert "\npage-0-00001.ts\n" in playlist
    assert "http" not in playlist
    assert (folder / "page-0-00001.ts").stat().st_size == 1000
    assert (outcome.state == "failed") is fails
    assert [session["status"] for session in sandbox.control.sessions()] == ["destroyed"]


@pytest.mark.rule("replay-statuses")
@pytest.mark.parametrize(
    ("fault", "arguments"),
    [
        ({"kind": "status", "status": 404, "path": "/v2/interact/.*/replay"}, {}),
        ({"kind": "status", "status": 502, "path": "/v2/interact/.*/replay/0"}, {}),
        ({"kind": "garbage", "path": "/v2/interact/.*/replay/0"}, {}),
        (None, {"media": 0.001}),
    ],
    ids=["none", "broken", "garbage", "too large"],
)
def test_a_recording_that_cannot_be_kept_changes_nothing(
    tmp_path: Path,
    sandbox: SandboxServer,
    connect: Callable[..., None],
    log: Callable[[], str],
    fault: dict[str, Any] | None,
    arguments: dict[str, Any],
) -> None:
    connect(sandbox, retry_budget=0)
    if fault is not None:
        sandbox.control.add_fault(times=None, **fault)
    limit = arguments.pop("media", 500)
    outcome = browse(tmp_path, media=Media(str(tmp_path), max_mb=limit))
    assert outcome.state == "success"
    assert "recording" not in outcome.value
    assert ("Failed to save the recording" in log()) or ("has no recording" in log())
    assert not [*tmp_path.glob("**/*.m3u8")]


def test_the_folder_is_checked_before_the_browser_is_opened(tmp_path: Path, sandbox: SandboxServer) -> None:
    (tmp_path / "file").touch()
    outcome = browse(tmp_path / "file")
    assert outcome.state == "failed"
    assert "file" in str(outcome.error)
    assert sandbox.control.sessions() == []


def test_media_without_a_recording(tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match="record_session=True"):
        browse(tmp_path, record_session=None)
