# SPDX-License-Identifier: Apache-2.0
"""Rules for the literal arguments of a DAG file, as plain data derived from the request models.

`tools/operator_fields.py` writes them to `base/arguments/field_rules.json`. There, `literal_check.py`
explains each rule.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic.fields import FieldInfo

from airflow_provider_webdata.api import models
from airflow_provider_webdata.api.models.base import RequestModel
from airflow_provider_webdata.api.models.monitor import ScrapeTarget
from airflow_provider_webdata.api.models.schedule import MonitorSchedule
from airflow_provider_webdata.api.models.webhook import WebhookConfig
from airflow_provider_webdata.base.arguments.literal_check import TEXT_CHECKS
from airflow_provider_webdata.common.spelling import snake_case

Rule = tuple[Any, ...]

SHORT_FORMS: dict[type[RequestModel], str] = {
    WebhookConfig: "_receiver",
    MonitorSchedule: "_schedule",
    ScrapeTarget: "_watched_address",
}
"""Models that accept a string in place of the object, and the name of the string's check."""


def field_rules(names: list[str]) -> str:
    """Return JSON with the rules of these models and of all models in their fields, a line for each field.

    :param names: names of request models.
    """
    models_as_json = [
        f"{json.dumps(model)}: {{\n"
        + ",\n".join(
            f"{json.dumps(name)}: {json.dumps(rule)}" for name, rule in sorted(rules.items()) if rule
        )
        + "\n}"
        for model, rules in sorted(rules_of(names).items())
    ]
    return "{\n" + ",\n".join(models_as_json) + "\n}\n"


def rules_of(names: list[str]) -> dict[str, dict[str, Rule]]:
    """Return the rules of these models and of all models in their fields, by model and field.

    :param names: names of request models.
    """
    found: dict[str, dict[str, Rule]] = {}
    left = [getattr(models, name) for name in names]
    while left:
        model = left.pop()
        if model.__name__ in found:
            continue
        rules = found[model.__name__] = {}
        for name, field in model.model_fields.items():
            rule = _rule(field.annotation, [*field.metadata])
            rules[name.rstrip("_")] = rule
            if field.alias and snake_case(field.alias) not in rules:
                rules[field.alias] = rule
            if field.is_required():
                rules[""] = ("required", *rules.get("", ("required",))[1:], name.rstrip("_"))
            left += [part for part in _models(field.annotation) if part.__name__ not in found]
    return found


def _models(annotation: Any) -> Iterator[type[RequestModel]]:
    for part in get_args(annotation):
        yield from _models(part)
    if isinstance(annotation, type) and issubclass(annotation, RequestModel):
        yield annotation


def _rule(annotation: Any, metadata: list[Any]) -> Rule:
    """Return the rule of a field; an empty rule accepts everything."""
    origin, args = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _rule(args[0], [*_flat(args[1:]), *metadata])
    checks = [check.func for check in metadata if hasattr(check, "func")]
    kinds = [check.__qualname__ for check in checks]
    limits = {
        name: value
        for item in metadata
        for name in ("ge", "gt", "le", "min_length", "max_length")
        if (value := getattr(item, name, None)) is not None
    }
    if "_integer" in kinds or "_number" in kinds:
        return ("number", "_integer" in kinds, limits.get("ge"), limits.get("le"), limits.get("gt"))
    if "_switch" in kinds or any(kind.startswith("switch_or") for kind in kinds):
        return ("switch", *(part.__name__ for part in _models(annotation)))
    if "_string_map" in kinds or "_json_object" in kinds:
        return ("mapping",)
    if any(type(item).__name__ == "_OneOf" for item in metadata):
        return _one_of(annotation)
    parts = [part for part in args if part is not NoneType]
    if origin in (Union, UnionType):
        return _rule(parts[0], metadata) if len(parts) == 1 else ()
    if origin is Literal:
        return ("choice", args)
    if origin is list:
        return ("list", _rule(args[0], []), limits.get("min_length", 0), limits.get("max_length"))
    if annotation is str:
        known = next((kind for kind in reversed(kinds) if kind in TEXT_CHECKS), None)
        return ("text", limits.get("max_length"), known)
    if isinstance(annotation, type) and issubclass(annotation, RequestModel):
        checks_of_text = [check for model, check in SHORT_FORMS.items() if issubclass(annotation, model)]
        return ("object", annotation.__name__, *checks_of_text)
    return ()


def _one_of(annotation: Any) -> Rule:
    names = tuple(name for part in _literals(annotation) for name in part)
    by_type = {
        kind: model.__name__
        for model in _models(annotation)
        for kind in get_args(model.model_fields["type"].annotation)
    }
    checks_of_text = [SHORT_FORMS[model] for model in _models(annotation) if model in SHORT_FORMS]
    return ("one_of", names, by_type, *checks_of_text)


def _literals(annotation: Any) -> Iterator[tuple[Any, ...]]:
    if get_origin(annotation) is Literal:
        yield get_args(annotation)
    elif get_origin(annotation) in (Union, UnionType, Annotated):
        for part in get_args(annotation):
            yield from _literals(part)


def _flat(metadata: tuple[Any, ...]) -> Iterator[Any]:
    for item in metadata:
        if isinstance(item, FieldInfo):
            yield from item.metadata
        else:
            yield item
