# SPDX-License-Identifier: Apache-2.0
"""Calls about browser sessions."""

from __future__ import annotations

import uuid
from typing import Any

import httpx

FLOODS = "https://river.example/floods"
TITLE = "River level rises after a week of rain - River Gazette"
NOBODY = str(uuid.UUID(int=7))


def opened(api: Any, **body: Any) -> dict[str, Any]:
    response = api.http.post("/v2/interact", json=body)
    assert response.status_code == 200, response.text
    return response.json()


def run(api: Any, session: str, code: str, language: str = "node", **more: Any) -> httpx.Response:
    return api.http.post(f"/v2/interact/{session}/execute", json={"code": code, "language": language, **more})


def ran(api: Any, *args: Any, **more: Any) -> dict[str, Any]:
    response = run(api, *args, **more)
    assert response.status_code == 200, response.text
    return response.json()


def closed(api: Any, session: str) -> dict[str, Any]:
    response = api.http.delete(f"/v2/interact/{session}")
    assert response.status_code == 200, response.text
    return response.json()


def listed(api: Any, status: str | None = None) -> list[str]:
    params = {} if status is None else {"status": status}
    return [item["id"] for item in api.http.get("/v2/interact", params=params).json()["sessions"]]
