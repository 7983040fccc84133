# SPDX-License-Identifier: Apache-2.0
"""Constants and checks of the models' tables."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

from pydantic import BaseModel, ValidationError

from airflow_provider_webdata.api.models import RequestModel

UUID = "7f3c1a52-9d0e-4b7a-8f65-0123456789ab"
SITE = "https://a.example"
HOOK = "https://hooks.example/in"
SECRET = "hush-hush-hush"
CRON = {"cron": "*/30 * * * *"}
SCRAPE_TARGET = {"type": "scrape", "urls": ["https://example.com"]}
SEARCH_TARGET = {"type": "search", "queries": ["q"]}

Body: TypeAlias = dict[str, Any]
# Model, body around the value, path of the field in errors, accepted values, refused values.
Row: TypeAlias = tuple[type[RequestModel], Callable[[Any], Body], str, list[Any], list[Any]]


def at_site(**fields: Any) -> Body:
    return {"url": SITE, **fields}


def monitor(**fields: Any) -> Body:
    return {"name": "n", "schedule": CRON, "targets": [SCRAPE_TARGET], **fields}


def problems(model: type[BaseModel], data: Any) -> dict[str, str]:
    """Return the texts of the problems by path; nothing if the data is valid."""
    try:
        model.model_validate(data)
    except ValidationError as error:
        return {".".join(str(part) for part in issue["loc"]): issue["msg"] for issue in error.errors()}
    return {}


def ids(rows: Iterable[tuple[Any, ...]]) -> list[str]:
    """Return ids of rows that begin with a model: its name and its count."""
    found: list[str] = []
    for model, *_ in rows:
        name = model.__name__
        found.append(f"{name}-{sum(one.rpartition('-')[0] == name for one in found) + 1}")
    return found
