# SPDX-License-Identifier: Apache-2.0
"""Argument checks while the DAG file is parsed: unknown arguments, and literals that violate a field's rule."""

from __future__ import annotations

import inspect
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import msgspec
from pydantic import ValidationError

from airflow_provider_webdata.base.arguments.literal_check import field_rules, may_be_wrong
from airflow_provider_webdata.common.coded_errors import UnknownArgumentError
from airflow_provider_webdata.common.literals import is_literal
from airflow_provider_webdata.common.spelling import nearest
from airflow_provider_webdata.options import Changes, Option, Quality

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from airflow.sdk import BaseOperator


_OPTIONS: Mapping[str, type[Option]] = {"changes": Changes, "quality": Quality}


@contextmanager
def naming_unknown(cls: type, given: Mapping[str, Any]) -> Iterator[None]:
    """Replace Airflow's error about unknown arguments with one that suggests the nearest argument.

    :param given: the arguments that no class before Airflow's own accepted, and Airflow's.
    """
    try:
        yield
    except TypeError as error:
        if text := _unknown(cls, given):
            raise UnknownArgumentError(text) from error
        raise


def is_from_mapped(task: BaseOperator) -> bool:
    """Return whether a task is an instance of a mapped one, whose values are known when it runs."""
    # Airflow has no other mark of it before `__init__` ends.
    return bool(getattr(task, "_BaseOperator__from_mapped", False))


def is_in_mapped_group(task: BaseOperator) -> bool:
    """Return whether a task is defined in a mapped task group."""
    return next(task.iter_mapped_task_groups(), None) is not None


def _unknown(cls: type, given: Mapping[str, Any]) -> str:
    """Return an error message about unknown arguments, or an empty string."""
    known = {
        name
        for base in cls.__mro__
        if base is not object and "__init__" in vars(base)
        for name in inspect.signature(vars(base)["__init__"]).parameters
    } - {"self", "args", "kwargs"}
    # Imported here: most DAG files have no unknown argument.
    from airflow_provider_webdata.common.foreign_arguments import advice

    unknown = [name for name in given if name not in known and not name.startswith("_")]
    # `extra_body` is invalid without a request that it could be merged into.
    usable = known if getattr(cls, "_request_fields", ()) else known - {"extra_body"}
    lines = []
    for name in unknown:
        near = nearest(name, known)
        hint = advice(name, usable, {"scrape_options": field_rules("ScrapeOptions")})
        if not hint:
            hint = f"did you mean {near!r}?" if near else ""
            for option, kind in _OPTIONS.items():
                if option in known and name in kind.__struct_fields__:
                    needed = [field.name for field in msgspec.structs.fields(kind) if field.required]
                    fields = ", ".join(f"{part}=..." for part in dict.fromkeys((*needed, name)))
                    hint = f"write {option}={kind.__name__}({fields})"
        lines.append(f"unknown argument {name!r}" + (f"; {hint}" if hint else ""))
    return f"{cls.__name__} {given.get('task_id')!r}: {', '.join(lines)}" if lines else ""


def literal_problems(model: str, fields: Mapping[str, Any]) -> Collection[str]:
    """Return the problems of the literal fields of a request, without rules between fields.

    The models are imported only if a field may be invalid: the import takes a hundred times longer than this check.

    :param fields: arguments by their Python names.
    """
    rules = field_rules(model)
    suspects = {name for name, value in fields.items() if may_be_wrong(rules.get(name, ()), value)}
    # `ignore_invalid_urls` decides whether a URL may be any text, and its value may not be known yet.
    if not is_literal(fields.get("ignore_invalid_urls")):
        suspects.discard("urls")
    if not suspects:
        return ()
    from airflow_provider_webdata.api import models
    from airflow_provider_webdata.api.errors import InvalidRequestError

    request: Any = getattr(models, model)
    names = {field.alias: name.rstrip("_") for name, field in request.model_fields.items()}

    def is_meant(issue: Mapping[str, Any]) -> bool:
        first = str(issue["loc"][0]) if issue["loc"] else ""
        return names.get(first, first).rstrip("_") in suspects and is_literal(issue["input"])

    known = {name: value for name, value in fields.items() if name in suspects or is_literal(value)}
    try:
        request.model_validate(known)
    except ValidationError as error:
        return InvalidRequestError.from_validation_error(model, error, request, is_meant).problems
    return ()
