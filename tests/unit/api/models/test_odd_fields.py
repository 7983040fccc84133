# SPDX-License-Identifier: Apache-2.0
"""Odd values in each field of each response: a value beside the results does not cost a billed answer.

Fields and bodies are derived from the models, so a new response needs no entry here.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import pytest
from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo

from airflow_provider_webdata.api import endpoints
from airflow_provider_webdata.api.models.base import ResponseModel
from airflow_provider_webdata.api.odd_parts import OddParts

ODD = [None, [None], {"a": 1}, "odd", 10**400, -(10**30), True, 1.5]

NEEDED = {
    *(
        "JobProgress next",
        "MonitorCheckResponse next",
        "MonitorCheckDetail next",
    ),
    *(
        "Activity cursor",
        "JobStatus data",
        "JobDocuments data",
        "MonitorRunResponse data",
        "MonitorCheckDetail pages",
    ),
    *("SearchData web", "SearchData images", "SearchData news"),
    *("JobErrors errors", "JobErrors robotsBlocked"),
    *("ParseUpload method", "ParseUpload headers", "ParseUpload fields"),
}
"""Optional fields without which results would be missing: results, the link to the next ones, and an upload's target,
which is not billed."""

Path = tuple[str | int, ...]
RESPONSES = {
    endpoint.response(): endpoint.name
    for endpoint in endpoints.ENDPOINTS.values()
    if not endpoint.answers_text
}


def is_model(annotation: Any) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, BaseModel)


def wire_name(name: str, field: FieldInfo) -> str:
    return field.serialization_alias or field.alias or name


def sample(annotation: Any) -> Any:
    """Return a JSON value of a type; of a model, one with all its fields."""
    origin, args = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return sample(args[0])
    if origin in (Union, UnionType):
        return sample(next(part for part in args if part is not NoneType))
    if origin is Literal:
        return args[0]
    if is_model(annotation):
        return {
            wire_name(name, field): sample(field.annotation)
            for name, field in annotation.model_fields.items()
        }
    if origin is list:
        return [sample(args[0])]
    if origin is dict:
        return {"a": sample(args[1])}
    return {str: "x", int: 1, float: 1.5, bool: True}.get(annotation, {"a": 1})


def models_in(annotation: Any) -> Iterator[type[ResponseModel]]:
    if is_model(annotation):
        yield annotation
    for part in get_args(annotation):
        yield from models_in(part)


def fields_of(model: type[ResponseModel], body: Any, path: Path = ()) -> Iterator[tuple[Path, str, Any]]:
    """Yield the path of each field of a sample, the name of its declaration, and the field."""
    for name, field in model.model_fields.items():
        wire = wire_name(name, field)
        owner = next(base for base in reversed(model.__mro__) if name in getattr(base, "model_fields", ()))
        yield (*path, wire), f"{owner.__name__} {wire}", field
        for inner in models_in(field.annotation):
            value = body[wire]
            below: Path = (*path, wire, 0) if isinstance(value, list) else (*path, wire)
            yield from fields_of(inner, value[0] if isinstance(value, list) else value, below)


def changed(body: Any, path: Path, *value: Any) -> Any:
    """Return a copy of a body with another value at a path, or without one."""
    body = json.loads(json.dumps(body))
    place = body
    for part in path[:-1]:
        if place == []:
            return body
        place = place[part]
    place.pop(path[-1], None)
    if value:
        (place[path[-1]],) = value
    return body


@pytest.mark.slow
@pytest.mark.rule("open-responses", "odd-values")
def test_an_odd_value_beside_the_results_costs_nothing() -> None:
    tried: set[str] = set()
    required, refused = set(), set()
    for model in RESPONSES:
        body = sample(model)
        for path, name, field in fields_of(model, body):
            if name in tried:
                continue
            tried.add(name)
            if field.is_required():
                required.add(name)
            for value in ODD:
                try:
                    found = model.model_validate(changed(body, path, value)).to_wire()
                except ValidationError:
                    refused.add(name)
                    continue
                if changed(found, path) != changed(body, path):
                    # The entry of a list is skipped.
                    refused.add(name)
    assert refused - required == NEEDED
    assert len(tried) > 200


@pytest.mark.rule("odd-values")
def test_entries_of_a_list_that_are_no_results_are_skipped_and_counted() -> None:
    tried: set[str] = set()
    for model in RESPONSES:
        body = sample(model)
        for path, name, field in fields_of(model, body):
            if name in tried or "_readable_entries" not in str((field.annotation, field.metadata)):
                continue
            tried.add(name)
            place = body
            for part in path:
                place = place[part]
            odd = OddParts()
            found = model.model_validate(changed(body, path, [None, *place, 5]), context=odd)
            assert found.to_wire() == body, name
            assert odd.skipped == {path[-1]: 2}, name
    assert len(tried) > 20
