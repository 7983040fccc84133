# SPDX-License-Identifier: Apache-2.0
"""Recordings of browser sessions."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

SITE = "https://airship.example/"


def opened(api: Any, **body: Any) -> str:
    response = api.http.post("/v2/interact", json=body)
    assert response.status_code == 200, response.text
    return response.json()["id"]


@pytest.mark.rule("replay-pages", "replay-playlist", "session-further")
def test_a_recording_outlives_its_session(sandbox: Any, api: Any) -> None:
    sandbox.control.set_page(SITE, markdown="# Airship")
    session_id = opened(api, recordSession=True)
    api.http.post(f"/v2/interact/{session_id}/execute", json={"code": f'await page.goto("{SITE}")'})
    sandbox.control.advance(30)
    api.http.delete(f"/v2/interact/{session_id}")
    found = api.http.get(f"/v2/interact/{session_id}/replay").json()
    [page] = found["pages"]
    assert (found["pageCount"], page["pageId"], page["pageUrl"]) == (1, "0", SITE)
    assert page["endTimeMs"] >= 30_000
    playlist = api.http.get(page["url"])
    assert playlist.headers["content-type"].startswith("application/vnd.apple.mpegurl")
    links = [line for line in playlist.text.splitlines() if not line.startswith("#")]
    assert len(links) == 2
    assert httpx.get(links[0]).content.startswith(b"\x47\x40")
    sandbox.control.advance(21_601)
    assert httpx.get(links[0]).status_code == 403
    assert api.http.get(page["url"]).text != playlist.text


@pytest.mark.rule("replay-statuses")
def test_no_recording(api: Any) -> None:
    unrecorded, recorded = opened(api, recordSession=False), opened(api)
    unknown = "7f3c1a52-9d0e-4b7a-8f65-0123456789ab"
    for path, status, text in (
        (f"{unrecorded}/replay", 404, "Replay not found."),
        (f"{unrecorded}/replay/0", 404, "Replay not found."),
        (f"{recorded}/replay/1", 404, "Replay not found."),
        (f"{recorded}/replay/x", 400, "Invalid pageId."),
        (f"{unknown}/replay", 404, "Browser session not found."),
    ):
        response = api.http.get(f"/v2/interact/{path}")
        assert (response.status_code, response.json()["error"]) == (status, text), path
