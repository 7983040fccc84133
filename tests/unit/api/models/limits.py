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


def each(rows: Mapping[str, Row]) -> pytest.MarkDecorator:
    """Parametrize a test by `row`."""
    return pytest.mark.parametrize("row", rows.values(), ids=list(rows))


def assert_limits(problems: Callable[..., Collection[str]], row: Row) -> None:
    """Check that each value within is sent unchanged, and that each value beyond is refused by its field's name."""
    model, body, path, within, beyond = row
    for value in within:
        assert model.model_validate(body(value)).to_wire() == body(value)
    for value in beyond:
        found = problems(model, body(value))
        assert found, f"{value!r} is accepted"
        assert_named(found, path)


def assert_named(found: Collection[str], path: str) -> None:
    """Check that the problems are those of one field; a list's items have paths below that of the list."""
    assert found
    assert all(f"{at}.".startswith(f"{path}.") for at in found), found
