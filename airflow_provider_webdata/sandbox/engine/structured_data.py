"""What pages state themselves, gathered into the shape that a JSON Schema asks for; nothing is guessed from their text.

The service reads pages with a language model. This stand-in knows of a page its address, title, description, language,
meta tags and its JSON-LD, and fills only properties of these names.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jsonschema import Draft202012Validator
from referencing import Registry
from referencing.exceptions import Unresolvable

from .json_ld import json_ld

if TYPE_CHECKING:
    from airflow_provider_webdata.sandbox.reference.wire import Json

    from .page import Page


def stated(page: Page) -> Json:
    """Return what a page says of itself, by name."""
    known: Json = {name: values[0] for name, values in page.meta.items()}
    known.update(url=page.url, title=page.title, description=page.description, language=page.language)
    linked = json_ld(page)
    if isinstance(linked, dict):
        known.update(linked)
    return known


def gather(schema: Json | None, known: list[Json]) -> tuple[Any, dict[str, list[str]]]:
    """Return what the pages state of what the schema asks for, and from which pages each property comes.

    :param schema: a JSON Schema of an object, or of an array of objects, one for each page; without one, each page's
        address, title and description.
    :param known: what :func:`stated` returned for each page.
    """
    if not schema or not (schema.get("properties") or schema.get("type") == "array"):
        rows = [{name: page[name] for name in ("url", "title", "description")} for page in known]
        return {"pages": rows}, {"pages": [page["url"] for page in known]}
    if schema.get("type") == "array":
        return _rows(schema.get("items", {}), schema, known), {"": [page["url"] for page in known]}
    data: Json = {}
    sources: dict[str, list[str]] = {}
    for name, part in schema["properties"].items():
        wanted = _resolved(part, schema)
        found = next((page for page in known if name in page and _fits(page[name], wanted)), None)
        if found is not None:
            data[name], sources[name] = found[name], [found["url"]]
        elif wanted.get("type") == "array":
            rows = _rows(wanted.get("items", {}), schema, known)
            if rows:
                data[name], sources[name] = rows, [page["url"] for page in known]
    return data, sources


def _resolved(part: Any, root: Json) -> Json:
    """Return a part of a schema with its reference into the schema followed, and what it refers to itself."""
    schema: Json = part if isinstance(part, dict) else {}
    definitions = root.get("$defs", {})
    name = str(schema.get("$ref", "")).removeprefix("#/$defs/")
    return {**definitions.get(name, schema), "$defs": definitions}


def _rows(part: Any, root: Json, known: list[Json]) -> list[Json]:
    properties = _resolved(part, root).get("properties", {})
    picked = (
        {
            name: page[name]
            for name, wanted in properties.items()
            if name in page and _fits(page[name], _resolved(wanted, root))
        }
        for page in known
    )
    return [row for row in picked if row]


def _fits(value: Any, schema: Json) -> bool:
    # A registry of its own: a reference to elsewhere must not be fetched, and leads nowhere.
    validator = Draft202012Validator(schema, registry=Registry())
    try:
        return bool(validator.is_valid(value))
    except Unresolvable:
        return False


def missing(schema: Json | None, data: Any) -> list[str]:
    """Return the required properties that no page states."""
    required = (schema or {}).get("required", [])
    return [name for name in required if isinstance(data, dict) and name not in data]
