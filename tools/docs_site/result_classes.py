# SPDX-License-Identifier: Apache-2.0
"""The classes of the hook's results, and their attributes."""

from __future__ import annotations

import inspect
import re
import sys
import types
from collections.abc import Iterator
from functools import cache
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import msgspec

from airflow_provider_webdata.api import models
from airflow_provider_webdata.api.models.base import Answer, ResponseModel
from airflow_provider_webdata.hooks.webdata import WebDataHook

_COMMON = (Answer, ResponseModel, msgspec.Struct)
"""Base classes without an attribute to describe."""


@cache
def methods_of_results() -> dict[type, tuple[str, ...]]:
    """Return each class of a result with the methods of the hook that return it, and none for parts of results.

    Classes are in the order of the methods. The base and the parts of a class follow it.
    """
    methods: dict[type, list[str]] = {}
    for name in dict.fromkeys(name for owner in reversed(WebDataHook.__mro__) for name in vars(owner)):
        method = getattr(WebDataHook, name)
        if inspect.isfunction(method) and not name.startswith("_"):
            for cls in results_of(method):
                methods.setdefault(cls, []).append(name)
    found: dict[type, tuple[str, ...]] = {}
    for cls in methods:
        for part in _with_parts(cls):
            found.setdefault(part, tuple(methods.get(part, ())))
    return found


def results_of(method: Any) -> list[type]:
    """Return the classes that a method's annotation names as its result."""
    names = re.findall(r"\b[A-Z]\w+", str(inspect.signature(method).return_annotation))
    own = sys.modules[method.__module__]
    named = [getattr(models, name, None) or getattr(own, name, None) for name in names]
    return [cls for cls in named if _is_result(cls)]


def described_bases(cls: type) -> list[type]:
    """Return the direct bases of a class that are described too."""
    return [
        base
        for base in cls.__bases__
        if _is_result(base) and base not in _COMMON and not base.__name__.startswith("_")
    ]


def attributes_of(cls: type) -> dict[str, str]:
    """Return the type of each attribute that a class adds to its bases, as text; None is omitted."""
    return {name: _type(annotation) for name, annotation in _annotations(cls).items()}


def _is_result(item: Any) -> bool:
    return inspect.isclass(item) and issubclass(item, (ResponseModel, msgspec.Struct))


def _annotations(cls: Any) -> dict[str, Any]:
    if issubclass(cls, msgspec.Struct):
        return get_type_hints(cls)
    inherited = {name for base in described_bases(cls) for name in _annotations(base)}
    return {
        name: field.annotation
        for name, field in cls.model_fields.items()
        if name not in inherited and name not in Answer.model_fields
    }


def _with_parts(cls: type) -> Iterator[type]:
    yield cls
    for base in described_bases(cls):
        yield from _with_parts(base)
    for annotation in _annotations(cls).values():
        for part in _classes(annotation):
            yield from _with_parts(part)


def _classes(annotation: Any) -> Iterator[type]:
    if _is_result(annotation):
        yield annotation
    for part in get_args(annotation):
        yield from _classes(part)


def _type(annotation: Any) -> str:
    origin, parts = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _type(parts[0])
    if origin in (Union, types.UnionType):
        kinds = [_type(part) for part in parts if part is not type(None)]
        return " | ".join(dict.fromkeys(kinds))
    if origin is Literal:
        return " | ".join(f'"{part}"' for part in parts)
    if origin is None:
        return "Any" if annotation is Any else str(annotation.__name__)
    return f"{origin.__name__}[{', '.join(map(_type, parts))}]"
