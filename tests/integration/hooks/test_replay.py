# SPDX-License-Identifier: Apache-2.0
"""Recordings of browser sessions through both hooks, over HTTP."""

from __future__ import annotations

from typing import Any

import pytest

from airflow_provider_webdata.api import errors
from tests.integration.hooks.test_jobs import calls_of
from tests.support.fault_server import answer
from tests.support.waiting import settled

PLAYLIST = "#EXTM3U\n#EXTINF:6,\nhttps://files.example/1.ts?signature=s\n#EXT-X-ENDLIST\n"
PAGE = {"pageId": "0", "url": "/v2/x", "pageUrl": "https://a.example", "startTimeMs": 0, "endTimeMs": 6000}


@pytest.mark.rule("replay-pages", "replay-playlist")
async def test_a_recording(serve: Any) -> None:
    server, hook = serve({"success": True, "pages": [PAGE], "pageCount": 1}, answer(200, PLAYLIST))
    [page] = await settled(hook.replay("s1"))
    assert (page.page_id, page.page_url, page.end_time_ms) == ("0", "https://a.example", 6000)
    assert await settled(hook.replay_page("s1", "0")) == PLAYLIST
    assert [target for _, target in calls_of(server)] == [
        "/v2/interact/s1/replay",
        "/v2/interact/s1/replay/0",
    ]
    await settled(hook.close())


@pytest.mark.rule("replay-playlist")
@pytest.mark.parametrize("body", ["", '{"success": true}', "<html>proxy</html>"])
async def test_what_is_no_playlist(serve: Any, body: str) -> None:
    _, hook = serve(answer(200, body))
    with pytest.raises(
        errors.InvalidResponseError, match="is not an HLS playlist" if body else "the body is empty"
    ):
        await settled(hook.replay_page("s1", "0"))
    await settled(hook.close())


@pytest.mark.rule("replay-statuses")
async def test_no_recording(serve: Any) -> None:
    missing = answer(404, '{"success": false, "error": "Replay not found."}')
    _, hook = serve(missing, missing)
    for call in (hook.replay, lambda session_id: hook.replay_page(session_id, "0")):
        with pytest.raises(errors.NotFoundError, match="Replay not found"):
            await settled(call("s1"))
    await settled(hook.close())
