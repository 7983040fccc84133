# SPDX-License-Identifier: Apache-2.0
"""No input raises anything but a ValidationError."""

from __future__ import annotations

import json
import uuid
from datetime import datetime, timedelta
from decimal import Decimal
from functools import cache
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ValidationError

from airflow_provider_webdata.api import models as m
from tests.support.examples import examples


class Hostile:
    """An object that fails in every way."""

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("no")

    def __bool__(self) -> bool:
        raise RuntimeError("no")

    def __str__(self) -> str:
        raise RuntimeError("no")

    def __len__(self) -> int:
        raise RuntimeError("no")

    def __iter__(self) -> Any:
        raise RuntimeError("no")

    __hash__ = object.__hash__


class Text(str):
    """A subclass of strings."""


oddities = st.one_of(
    st.builds(object),
    st.builds(Hostile),
    st.binary(max_size=5),
    st.complex_numbers(),
    st.decimals(),
    st.datetimes(),
    st.timedeltas(),
    st.just(uuid.uuid4()),
    st.builds(Text, st.text(max_size=5)),
    st.sets(st.integers(), max_size=2),
    st.sampled_from(
        [len, int, Decimal("NaN"), ..., NotImplemented, Exception("x"), datetime.min, timedelta.max]
    ),
)
scalars = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(st.characters(), max_size=20), oddities
)
types = st.sampled_from(
    ["web", "json", "pdf", "wait", "search", "scrape", "crawl", "screenshot", "changeTracking"]
)


@cache
def models() -> list[type[BaseModel]]:
    found = [getattr(m, name) for name in m.__all__ if name not in {"RequestModel", "ResponseModel"}]
    return [model for model in found if isinstance(model, type)]


@cache
def anything() -> st.SearchStrategy[Any]:
    """Draw values of any shape, mostly under names that some model has."""
    fields = [item for model in models() for item in model.model_fields.items()]
    known = sorted({"type", *(name for name, _ in fields), *(field.alias or name for name, field in fields)})
    names = st.sampled_from(known) | st.text(max_size=5)

    def containers(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
        return st.one_of(
            st.lists(inner, max_size=3),
            st.dictionaries(names, inner, max_size=5),
            st.fixed_dictionaries(
                {"type": types}, optional={"formats": inner, "viewport": inner, "schema": inner}
            ),
            st.dictionaries(st.integers() | st.none() | st.booleans(), inner, max_size=2),
        )

    return st.recursive(scalars | types, containers, max_leaves=8)


@cache
def fields_of(model: type[BaseModel]) -> st.SearchStrategy[Any]:
    names = [field.alias or name for name, field in model.model_fields.items()]
    return st.dictionaries(st.sampled_from(names or ["x"]), anything(), max_size=6)


@pytest.mark.slow
@examples(6)
@given(data=st.data())
def test_no_input_raises_anything_but_a_validation_error(data: st.DataObject) -> None:
    model = data.draw(st.sampled_from(models()))
    body = data.draw(anything() | fields_of(model))
    try:
        found = model.model_validate(body)
    except ValidationError as error:
        shown = str(error), error.errors()
        assert all(shown)
        return
    if isinstance(found, m.RequestModel):
        json.dumps(found.to_wire(), allow_nan=False, ensure_ascii=False).encode()
        found.warnings()
    else:
        found.to_wire()
