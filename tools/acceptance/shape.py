# SPDX-License-Identifier: Apache-2.0
"""Differences between a response and the documented shape: names only, since values may be private."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from pydantic import TypeAdapter, ValidationError

from airflow_provider_webdata.api import models
from airflow_provider_webdata.api.models.base import ResponseModel, _Verbatim


@dataclass
class Differences:
    """Paths of fields with wire names.

    :param undeclared: fields that the response has and the documentation lacks.
    :param other_type: fields whose value does not have the documented type.
    :param absent: documented fields that no response had. All of them are optional, and most depend on the request.
    """

    undeclared: set[str] = field(default_factory=set)
    other_type: set[str] = field(default_factory=set)
    absent: set[str] = field(default_factory=set)
    _present: set[str] = field(default_factory=set)

    def add(self, answer: Any) -> None:
        """Add the differences of a response."""
        for part in _documents(answer) if isinstance(answer, models.JobDocuments) else ():
            self._walk(part, "data.")
        self._walk(answer, "")

    def _walk(self, model: Any, prefix: str) -> None:
        if not isinstance(model, ResponseModel):
            return
        self.undeclared.update(f"{prefix}{name}" for name in model.model_extra or ())
        for name, declared in type(model).model_fields.items():
            path = f"{prefix}{declared.alias or name}"
            if name not in model.model_fields_set:
                self.absent.add(path)
                continue
            self._present.add(path)
            value = model.__dict__.get(name)
            if any(isinstance(item, _Verbatim) for item in declared.metadata) and not _fits(
                type(model), name, value
            ):
                self.other_type.add(path)
            for part in _parts(value):
                self._walk(part, f"{path}.")
        self.absent -= self._present

    def summary(self, most: int = 6) -> str:
        """Return the undeclared fields and those of another type as text, at most so many names of each."""
        found = (("undeclared", self.undeclared), ("other type", self.other_type))
        return "; ".join(f"{label}: {_some(names, most)}" for label, names in found if names)

    def lists(self) -> dict[str, list[str]]:
        """Return all names, for a JSON file."""
        return {
            "undeclared": sorted(self.undeclared),
            "other_type": sorted(self.other_type),
            "absent": sorted(self.absent),
        }


def _some(names: Iterable[str], most: int) -> str:
    listed = sorted(names)
    more = f", and {len(listed) - most} more" if len(listed) > most else ""
    return ", ".join(f"`{name}`" for name in listed[:most]) + more


def _documents(answer: models.JobDocuments) -> Iterator[models.Document]:
    """Yield the first documents of a part of a job's result, which the provider keeps as plain objects."""
    for document in (answer.data or [])[:3]:
        with suppress(ValidationError):
            yield models.Document.model_validate(document)


def _parts(value: Any) -> Iterable[Any]:
    if isinstance(value, list):
        return value
    return value.values() if isinstance(value, Mapping) else (value,)


def _fits(model: type[ResponseModel], name: str, value: Any) -> bool:
    try:
        _adapter(model, name).validate_python(value)
    except ValidationError:
        return False
    return True


@cache
def _adapter(model: type[ResponseModel], name: str) -> TypeAdapter[Any]:
    declared: Any = model.model_fields[name].annotation
    return TypeAdapter(declared)
