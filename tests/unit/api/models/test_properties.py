"""Whatever comes in, nothing but a ValidationError is raised."""

from __future__ import annotations

import json
import uuid
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ValidationError

from airflow_provider_webdata.api import models as m
from tests.support.examples import examples

MODELS = [
    getattr(m, name)
    for name in m.__all__
    if isinstance(getattr(m, name), type) and name not in {"RequestModel", "ResponseModel"}
]


class Hostile:
    """Fails at whatever it is asked."""

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
    """A string of someone else's making."""


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
known = st.sampled_from(sorted({name for model in MODELS for name in model.model_fields} | {"type"}))
aliases = st.sampled_from(
    sorted({field.alias or name for model in MODELS for name, field in model.model_fields.items()})
)
types = st.sampled_from(
    ["web", "json", "pdf", "wait", "search", "scrape", "crawl", "screenshot", "changeTracking"]
)


def containers(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Draw a container, under names that mean something as a rule."""
    return st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(known | aliases | st.text(max_size=5), inner, max_size=5),
        st.fixed_dictionaries(
            {"type": types}, optional={"formats": inner, "viewport": inner, "schema": inner}
        ),
        st.dictionaries(st.integers() | st.none() | st.booleans(), inner, max_size=2),
    )


anything = st.recursive(scalars | types, containers, max_leaves=12)


@examples(10)
@given(model=st.sampled_from(MODELS), data=st.data())
def test_no_input_raises_anything_but_a_validation_error(model: type[BaseModel], data: st.DataObject) -> None:
    names = st.sampled_from([field.alias or name for name, field in model.model_fields.items()] or ["x"])
    body = data.draw(anything | st.dictionaries(names, anything, max_size=6))
    try:
        found = model.model_validate(body)
    except ValidationError as error:
        told = f"{error}", error.errors()
        assert all(told)
        return
    if isinstance(found, m.RequestModel):
        json.dumps(found.to_wire(), allow_nan=False, ensure_ascii=False).encode()
        found.warnings()
    else:
        found.to_wire()
