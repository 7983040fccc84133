# SPDX-License-Identifier: Apache-2.0
"""A call of each endpoint with a good response, by whether it may be repeated."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, get_origin

from airflow_provider_webdata.api import endpoints
from airflow_provider_webdata.api.endpoints import Endpoint
from airflow_provider_webdata.api.models.parse import MAX_FILE_BYTES
from airflow_provider_webdata.api.multipart import FileSource, Upload
from airflow_provider_webdata.api.servers import HOSTED
from tests.support.fault_server import Step, answer
from tests.support.request_fields import minimal

PAGE = '{"success": true, "data": {"markdown": "x"}}'
KEY = "7f3c1a52-9d0e-4b7a-8f65-0123456789ab"
CONTENT = b"%PDF-1.7 content"


def upload(file: FileSource | None = None, size: int | None = None) -> Upload:
    return Upload(
        "parse", io.BytesIO(CONTENT) if file is None else file, "a.pdf", size, max_bytes=MAX_FILE_BYTES
    )


def built(endpoint: Endpoint[Any], fields: dict[str, Any] | None = None, **arguments: Any) -> dict[str, Any]:
    """Return the arguments of a call, with a request of these fields as its body."""
    body = None if fields is None or endpoint.request is None else endpoint.request().model_validate(fields)
    return {"endpoint": endpoint, "body": body, **arguments}


@dataclass
class Operation:
    """A call of an endpoint with the smallest request, built anew for each use, and a good response to it.

    Models are loaded when they are used: building all of them takes longer than most of the tests.

    :param fields: of the request, besides the required ones.
    :param arguments: returns what else the client receives.
    """

    endpoint: Endpoint[Any]
    fields: dict[str, Any] = field(default_factory=dict)
    arguments: Callable[[], dict[str, Any]] = dict

    def make(self) -> dict[str, Any]:
        path = dict.fromkeys(re.findall(r"{(\w+)}", self.endpoint.path), "x-1")
        fields = self.endpoint.request and {**minimal(self.endpoint.request()), **self.fields}
        return built(self.endpoint, fields, path=path, **self.arguments())

    @property
    def good(self) -> str:
        if self.endpoint.answers_text:
            return "#EXTM3U"
        return json.dumps({"success": True, **_response(self.endpoint.response())})

    @property
    def unsuccessful(self) -> str:
        """A failure that is reported with status 200."""
        return json.dumps({**_response(self.endpoint.response()), "success": False})


def _response(annotation: Any) -> Any:
    if get_origin(annotation) is list:
        return []
    if annotation is str:
        return "https://files.example/x"
    required = {
        found.alias or name: _response(found.annotation)
        for name, found in annotation.model_fields.items()
        if found.is_required()
    }
    return {**required, "status": "completed"} if "status" in required else required


FIELDS: dict[str, dict[str, Any]] = {
    "parse": {"timeout": 1000},
    "parse_by_reference": {"timeout": 1000},
    "start_batch_scrape": {"ignoreInvalidURLs": True},
    "execute": {"timeout": 1},
    "update_monitor": {"name": "n"},
}
ARGUMENTS: dict[str, Callable[[], dict[str, Any]]] = {
    "parse": lambda: {"upload": upload()},
    "credit_history": lambda: {"query": {"byApiKey": True}},
    "activity": lambda: {"query": {"limit": 5}},
}
OPERATIONS = {
    name: Operation(endpoint, FIELDS.get(name, {}), ARGUMENTS.get(name, dict))
    for name, endpoint in endpoints.ENDPOINTS.items()
}
BILLING = {
    **{name: one for name, one in OPERATIONS.items() if not one.endpoint.is_repeatable(HOSTED)},
    # Only the service's source code says that it honors the key, so that a lost answer is not repeated.
    "start_crawl with a key": Operation(endpoints.START_CRAWL, arguments=lambda: {"idempotency_key": KEY}),
}
HARMLESS = {name: one for name, one in OPERATIONS.items() if one.endpoint.is_repeatable(HOSTED)}


def failure(status: int, headers: dict[str, str] | None = None, **body: Any) -> Step:
    return answer(status, json.dumps({"success": False, **body}), headers=headers)
