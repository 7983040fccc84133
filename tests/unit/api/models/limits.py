"""Tables of limits: model, body by value, field, values on this side of the limit, values beyond it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, TypeAlias

import pytest

from airflow_provider_webdata.api.models import RequestModel

Row: TypeAlias = tuple[type[RequestModel], Callable[[Any], dict[str, Any]], str, list[Any], list[Any]]


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
