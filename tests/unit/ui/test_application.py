# SPDX-License-Identifier: Apache-2.0
"""The guard in front of every page."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx
import pytest
from starlette.applications import Starlette
from starlette.routing import Route

from airflow_provider_webdata.airflow_db.visitor import Visitor
from airflow_provider_webdata.ui.application import VIEWS, _guarded
from airflow_provider_webdata.ui.lookups import Lookups


def test_a_busy_server_names_the_time_to_come_again(monkeypatch: pytest.MonkeyPatch) -> None:
    async def admit(request: Any) -> Visitor:
        return Visitor("anyone")

    monkeypatch.setattr(Visitor, "of", admit)

    async def visit() -> httpx.Response:
        route = Route("/inbox", _guarded(VIEWS["/inbox"], Lookups(), asyncio.Semaphore(0)))
        transport = httpx.ASGITransport(Starlette(routes=[route]))
        async with httpx.AsyncClient(transport=transport, base_url="http://airflow.example") as client:
            return await client.get("/inbox")

    answer = asyncio.run(visit())
    assert answer.status_code == 503
    assert answer.headers["retry-after"] == "2"
    assert "Try again" in answer.text
