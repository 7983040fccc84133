# SPDX-License-Identifier: Apache-2.0
"""Structured data that pages state themselves, mapped to a JSON Schema.

The service uses a language model. This substitute fills only properties with the names of what a page states: its URL,
title, description, language, meta tags, JSON-LD, and labels in its text, such as ``Price: 12``.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from jsonschema import Draft202012Validator
from referencing import Registry
from referencing.exceptions import Unresolvable

from .html import to_markdown
from .json_ld import json_ld
from .samples import resolved, sample

if TYPE_CHECKING:
    from collections.abc import Iterator

    from webdata_sandbox.reference.wire import Json

    from .page import Page

AS_STATED = (
    "The sandbox has no language model: without a schema, json is the page's JSON-LD, or else its URL, title, and "
    "description."
)
SAMPLED = (
    "The sandbox has no language model: the page does not state {names}, so json has sample values for the schema. "
    "To set the page's answer, call set_page(json=...)."
)

_NUMBER = re.compile(r"(?:[^\w\s-]\s?)?(-?\d{1,15}(?:\.\d{1,15})?)(?:\s?[^\w\s]|\s\w{1,4})?")
"""A number, optionally with a currency or a unit."""
_TRUTHS = {"true": True, "yes": True, "false": False, "no": False}
_LABELLED = re.compile(r"(?m)^[ \t*#>|-]*(\w[\w /-]{0,40}?)[*_]{0,2}:[*_]{0,2}[ \t]+(\S.{0,200})$")


def stated(page: Page) -> Json:
    """Return the properties that a page states, by name. Labels in its text have names without blanks and case."""
    text = page.markdown if page.markdown is not None else to_markdown(page.main, page.url)
    known: Json = {}
    for label, value in _LABELLED.findall(text.replace("\f", "\n")):  # form feeds separate the pages of a PDF
        known.setdefault(_plain(label), value.strip(" *_|"))
    known.update({name: values[0] for name, values in page.meta.items()})
    own = {"url": page.url, "title": page.title, "description": page.description, "language": page.language}
    known.update({name: value for name, value in own.items() if value})
    linked = json_ld(page)
    if isinstance(linked, dict):
        offers = linked.get("offers")
        offer = offers[0] if isinstance(offers, list) and offers else offers
        # The price of a product is that of its first offer.
        known.update({**(offer if isinstance(offer, dict) else {}), **linked})
    return known


def _plain(name: str) -> str:
    return re.sub(r"[\W_]", "", name).lower()


def extraction(page: Page, schema: Json | None) -> Any:
    """Return the stated data for a schema; without a schema, the JSON-LD, or else URL, title, and description."""
    if schema:
        return gather(resolved(schema, schema), [stated(page)])[0] if _has_shape(schema) else {}
    linked = json_ld(page)
    if linked is not None:
        return linked
    known = stated(page)
    return {name: known[name] for name in ("url", "title", "description") if name in known}


def json_format(page: Page, schema: Json | None) -> tuple[Any, str | None]:
    """Return the value of the json format and its warning. Sample values replace missing data."""
    value = extraction(page, schema)
    if not schema:
        return value, AS_STATED
    if not _has_shape(schema):
        return sample(schema, schema), SAMPLED.format(names="it")
    sampled = list(_complete(value, schema, schema, ""))
    return value, SAMPLED.format(names=", ".join(sampled)) if sampled else None


def _has_shape(schema: Json) -> bool:
    found = resolved(schema, schema)
    return bool(found.get("properties")) or found.get("type") == "array"


def _complete(value: Any, part: Any, root: Json, path: str) -> Iterator[str]:
    """Add sample values for missing properties; yield their paths."""
    schema = resolved(part, root)
    if isinstance(value, dict):
        for name, wanted in schema.get("properties", {}).items():
            place = f"{path}.{name}" if path else name
            if name in value:
                yield from _complete(value[name], wanted, root, place)
            else:
                value[name] = sample(wanted, root)
                yield place
    elif isinstance(value, list):
        for number, item in enumerate(value):
            yield from _complete(item, schema.get("items", {}), root, f"{path}[{number}]")


def gather(schema: Json | None, known: list[Json]) -> tuple[Any, dict[str, list[str]]]:
    """Return the pages' data for a schema, and the URLs of each property's source pages.

    Stated values need not satisfy the schema, like those of a language model.

    :param schema: a JSON Schema of an object, or of an array with an object for each page. Without a schema, the data
        is the URL, title, and description of each page.
    :param known: the result of :func:`stated` for each page.
    """
    if not schema or not (schema.get("properties") or schema.get("type") == "array"):
        rows = [{name: page.get(name, "") for name in ("url", "title", "description")} for page in known]
        return {"pages": rows}, {"pages": [page.get("url", "") for page in known]}
    if schema.get("type") == "array":
        return _rows(schema.get("items", {}), schema, known), {"": [page.get("url", "") for page in known]}
    data: Json = {}
    sources: dict[str, list[str]] = {}
    for name, part in schema["properties"].items():
        page = next((page for page in known if _states(page, name)), None)
        if page is not None:
            data[name], sources[name] = _read(page, name, part, schema), [page.get("url", "")]
        elif rows := _rows(_shape(part, schema).get("items", {}), schema, known):
            data[name], sources[name] = rows, [page.get("url", "") for page in known]
    return data, sources


def _rows(part: Any, root: Json, known: list[Json]) -> list[Json]:
    properties = _shape(part, root).get("properties", {})
    picked = (
        {name: _read(page, name, wanted, root) for name, wanted in properties.items() if _states(page, name)}
        for page in known
    )
    return [row for row in picked if row]


def _states(page: Json, name: str) -> bool:
    return name in page or _plain(name) in page


def _read(page: Json, name: str, part: Any, root: Json) -> Any:
    return _typed(page[name] if name in page else page[_plain(name)], part, root)


def _shape(part: Any, root: Json) -> Json:
    """Return a part of a schema with the first alternative that is not null."""
    schema = resolved(part, root)
    for name in ("anyOf", "oneOf"):
        options = [resolved(option, root) for option in schema.get(name, ())]
        schema = {**schema, **next((option for option in options if option.get("type") != "null"), {})}
    return schema


def _typed(value: Any, part: Any, root: Json) -> Any:
    """Return a stated value with numbers and booleans in place of texts, where the schema has their types.

    Meta tags and labels have only texts.
    """
    schema = _shape(part, root)
    if isinstance(value, dict):
        properties = schema.get("properties", {})
        return {name: _typed(inner, properties.get(name), root) for name, inner in value.items()}
    if isinstance(value, list):
        return [_typed(item, schema.get("items"), root) for item in value]
    kinds = schema.get("type")
    kinds = set(kinds if isinstance(kinds, list) else [kinds])
    if not isinstance(value, str) or "string" in kinds:
        return value
    if "boolean" in kinds and value.lower() in _TRUTHS:
        return _TRUTHS[value.lower()]
    number = _NUMBER.fullmatch(value) if kinds & {"integer", "number"} else None
    if number is None:
        return value
    return float(number[1]) if "." in number[1] else int(number[1])


def is_valid(schema: Json | None, value: Any) -> bool:
    """Return whether a value satisfies a schema."""
    if schema is None:
        return True
    # The empty registry prevents fetching remote references; they do not resolve.
    validator = Draft202012Validator(schema, registry=Registry())
    try:
        return bool(validator.is_valid(value))
    except (Unresolvable, TypeError, AttributeError, re.error):
        return False  # a schema of an older draft, or a pattern that Python does not support


def missing(schema: Json | None, data: Any) -> list[str]:
    """Return the required properties that the data lacks."""
    required = (schema or {}).get("required", [])
    return [name for name in required if isinstance(data, dict) and name not in data]
