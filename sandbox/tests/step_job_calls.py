# SPDX-License-Identifier: Apache-2.0
"""Calls about extract jobs and agent runs."""

from __future__ import annotations

import json
import uuid
from typing import Any

import httpx

HOOK = "http://127.0.0.1:9/nobody-listens"
LEVELS, FLOODS = "https://weather.example/levels", "https://river.example/floods"
NOBODY = str(uuid.UUID(int=7))
DAY = 86_400
SCHEMA = {
    "type": "object",
    "properties": {
        "level": {"type": "integer"},
        "pages": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"title": {"type": "string"}, "level": {"type": "integer"}},
            },
        },
        "colour": {"type": "string"},
    },
}


def start(api: Any, kind: str, **body: Any) -> httpx.Response:
    return api.http.post(f"/v2/{kind}", json=body)


def started(api: Any, kind: str, **body: Any) -> str:
    response = start(api, kind, **body)
    assert response.status_code == 200, response.text
    return response.json()["id"]


def status(api: Any, kind: str, job: str) -> dict[str, Any]:
    response = api.http.get(f"/v2/{kind}/{job}")
    assert response.status_code == 200, response.text
    return response.json()


def done(sandbox: Any, api: Any, kind: str, **body: Any) -> dict[str, Any]:
    job = started(api, kind, **body)
    sandbox.control.settle()
    return status(api, kind, job)


def events(sandbox: Any) -> list[tuple[str, bool, list[Any]]]:
    sandbox.control.settle()
    bodies = [json.loads(item["body"]) for item in sandbox.control.deliveries()]
    return [(body["type"], body["success"], body["data"]) for body in bodies]
