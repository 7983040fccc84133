"""Tables of limits: model, body by value, field, values on this side of the limit, values beyond it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, TypeAlias

import pytest

from airflow_provider_webdata.api.models import RequestModel

Row: TypeAlias = tuple[type[RequestModel], Callable[[Any], dict[str, Any]], str, list[Any], list[Any]]
Values: TypeAlias = tuple[list[Any], list[Any]]


UUID = "7f3c1a52-9d0e-4b7a-8f65-0123456789ab"
SITE = "https://a.example"
HOOK = "https://hooks.example/in"
SECRET = "hush-hush-hush"

# Values that pass, and values that do not.
SWITCHES: Values = ([True, False], [1, 0, "yes", "", []])
LABELS: Values = (["airflow"], ["", " ", 5])
ADDRESSES: Values = (
    ["https://a.example/x?y#z", "a.example", "HTTP://A.EXAMPLE"],
    ["", " ", "ftp://a.example", "https://", "a b", 5],
)
PROMPTS: Values = (["x", "x" * 10_000], ["", " ", "x" * 10_001, 5])
HEADERS: Values = ([{}, {"Cookie": "a=b"}], [{"a b": "c"}, {"a": 1}, {"a": "b\nc"}, "a: b"])
SCHEMAS: Values = (
    [{}, {"type": "object", "properties": {"a": {"type": "string"}}}],
    [{"type": "nothing"}, {"properties": []}, [], "{}", {"required": "a"}, {"minimum": "x"}],
)


def at_site(**given: Any) -> dict[str, Any]:
    return {"url": SITE, **given}


def field(model: type[RequestModel], name: str, values: Values, **others: Any) -> Row:
    """Limit a field at the top of a body."""
    return (model, lambda value: {**others, name: value}, name, *values)


def within(rows: Mapping[str, Row]) -> pytest.MarkDecorator:
    """Parametrize a test by `model` and `body`, one for each value within."""
    return pytest.mark.parametrize(
        "model, body",
        [
            pytest.param(model, body(value), id=f"{name}-{index}")
            for name, (model, body, _, good, _) in rows.items()
            for index, value in enumerate(good)
        ],
    )


def beyond(rows: Mapping[str, Row]) -> pytest.MarkDecorator:
    """Parametrize a test by `model`, `body` and the `path` of the field, one for each value beyond."""
    return pytest.mark.parametrize(
        "model, body, path",
        [
            pytest.param(model, body(value), path, id=f"{name}-{index}")
            for name, (model, body, path, _, bad) in rows.items()
            for index, value in enumerate(bad)
        ],
    )


def assert_named(found: Collection[str], path: str) -> None:
    """Check that the problems are those of one field; a list's items have paths below that of the list."""
    assert found
    assert all(f"{at}.".startswith(f"{path}.") for at in found), found
