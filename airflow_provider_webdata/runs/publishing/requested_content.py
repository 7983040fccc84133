# SPDX-License-Identifier: Apache-2.0
"""The part of a task's request that decides what a page's item and row contain."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

from airflow_provider_webdata.results.result_schema import ResultSchema

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from airflow_provider_webdata.options import Changes

_DIGEST_VERSION = 1
"""Grows when unchanged pages get other digests, so that each is emitted again."""

# Other options differ between nights for the same content, such as a token in `headers`, or concern the call.
_CONTENT_OPTIONS = (
    "onlyMainContent",
    "onlyCleanContent",
    "includeTags",
    "excludeTags",
    "waitFor",
    "mobile",
    "parsers",
    "actions",
    "location",
    "removeBase64Images",
    "blockAds",
    "redactPII",
)


def request_digest(
    task: Any, request: Mapping[str, Any], changes: Changes, loads: Sequence[Mapping[str, Any]]
) -> str:
    """Return a digest that differs if unchanged pages must be emitted again, with other fields or to another table.

    :param request: the request of the task, in wire form.
    :param loads: the loads of the task's file; see `downstream_loads.description_of`.
    """
    request = {**request, **_mapping(getattr(task, "extra_body", None))}
    options = {**request, **_mapping(request.get("scrapeOptions"))}
    content = [
        _DIGEST_VERSION,
        sorted(map(_text, options.get("formats") or ())),
        {name: options[name] for name in _CONTENT_OPTIONS if name in options},
        changes.compare,
        schema_columns(getattr(task, "result_schema", None)),
        bool(getattr(task, "documents", False)),
        getattr(task, "media_to", None) is not None,
        sorted(map(_text, loads)),
    ]
    return hashlib.blake2b(_text(content).encode(), digest_size=8).hexdigest()


def schema_columns(schema: Any) -> list[tuple[str, str]]:
    """Return the names and types of the columns of pages with a schema; none without one."""
    if schema is None:
        return []
    return [(one.name, one.type) for one in ResultSchema.of(schema).columns("document")]


def _text(value: Any) -> str:
    return json.dumps(value, sort_keys=True, default=lambda other: type(other).__name__)


def _mapping(value: Any) -> Mapping[str, Any]:
    # A template may have rendered it as JSON text.
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError:
            return {}
    return value if isinstance(value, dict) else {}
