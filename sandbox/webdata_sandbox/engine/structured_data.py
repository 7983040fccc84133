"""Structured data that pages state themselves, mapped to a JSON Schema.

The service uses a language model. This substitute fills only properties with the names of what a page states: its URL,
title, description, language, meta tags, and JSON-LD.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from jsonschema import Draft202012Validator
from referencing import Registry
from referencing.exceptions import Unresolvable

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

_NUMBER = re.compile(r"-?\d{1,15}(\.\d{1,15})?")


def stated(page: Page) -> Json:
    """Return the properties that a page states, by name."""
    known: Json = {name: values[0] for name, values in page.meta.items()}
    known.update(url=page.url, title=page.title, description=page.description, language=page.language)
    linked = json_ld(page)
    if isinstance(linked, dict):
        offers = linked.get("offers")
        offer = offers[0] if isinstance(offers, list) and offers else offers
        # The price of a product is that of its first offer.
        known.update({**(offer if isinstance(offer, dict) else {}), **linked})
    return known


def extraction(page: Page, schema: Json | None) -> Any:
    """Return the stated data for a schema; without a schema, the JSON-LD, or else URL, title, and description."""
    if schema:
        return gather(resolved(schema, schema), [stated(page)])[0] if _has_shape(schema) else {}
    linked = json_ld(page)
    if linked is not None:
        return linked
    known = stated(page)
    return {name: known[name] for name in ("url", "title", "description") if known[name]}


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

    :param schema: a JSON Schema of an object, or of an array with an object for each page. Without a schema, the data
        is the URL, title, and description of each page.
    :param known: the result of :func:`stated` for each page.
    """
    if not schema or not (schema.get("properties") or schema.get("type") == "array"):
        rows = [{name: page[name] for name in ("url", "title", "description")} for page in known]
        return {"pages": rows}, {"pages": [page["url"] for page in known]}
    if schema.get("type") == "array":
        return _rows(schema.get("items", {}), schema, known), {"": [page["url"] for page in known]}
    data: Json = {}
    sources: dict[str, list[str]] = {}
    for name, part in schema["properties"].items():
        wanted = resolved(part, schema)
        values = ((page, _read(page[name], part, schema)) for page in known if name in page)
        page, value = next(((page, value) for page, value in values if _fits(value, wanted)), (None, None))
        if page is not None:
            data[name], sources[name] = value, [page["url"]]
        elif wanted.get("type") == "array":
            rows = _rows(wanted.get("items", {}), schema, known)
            if rows:
                data[name], sources[name] = rows, [page["url"] for page in known]
    return data, sources


def _rows(part: Any, root: Json, known: list[Json]) -> list[Json]:
    properties = resolved(part, root).get("properties", {})
    picked = (
        {
            name: value
            for name, wanted in properties.items()
            if name in page and _fits(value := _read(page[name], wanted, root), resolved(wanted, root))
        }
        for page in known
    )
    return [row for row in picked if row]


def _read(value: Any, part: Any, root: Json) -> Any:
    """Return a stated value with numbers in place of texts, where the schema has numbers: meta tags have only texts."""
    schema = resolved(part, root)
    properties = schema.get("properties")
    if isinstance(value, dict) and isinstance(properties, dict):
        return {name: _read(inner, properties.get(name), root) for name, inner in value.items()}
    if isinstance(value, list):
        return [_read(item, schema.get("items"), root) for item in value]
    if not isinstance(value, str) or not _NUMBER.fullmatch(value) or _fits(value, schema):
        return value
    number = float(value) if "." in value else int(value)
    return number if _fits(number, schema) else value


def _fits(value: Any, schema: Json) -> bool:
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
