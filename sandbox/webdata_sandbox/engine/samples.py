# SPDX-License-Identifier: Apache-2.0
"""Sample values for a JSON Schema, used where the service's language model would infer a value."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from webdata_sandbox.reference.wire import Json

SAMPLE_TEXT = "sample"
_TEXTS = {
    "date": "2026-01-01",
    "date-time": "2026-01-01T00:00:00Z",
    "time": "00:00:00Z",
    "email": "sample@sample.example",
    "hostname": "sample.example",
    "uri": "https://sample.example/",
    "url": "https://sample.example/",
    "uuid": "00000000-0000-4000-8000-000000000000",
}
_DEEPEST = 8


def resolved(part: Any, root: Json) -> Json:
    """Resolve the reference of a part of a schema, and add the schema's definitions to the part."""
    schema: Json = part if isinstance(part, dict) else {}
    kinds = [kind for kind in ("$defs", "definitions") if kind in root]
    definitions = {f"#/{kind}/{name}": found for kind in kinds for name, found in root[kind].items()}
    for _ in range(_DEEPEST):
        found = definitions.get(schema.get("$ref", ""))
        if not isinstance(found, dict):
            break
        schema = found
    return {**schema, **{kind: root[kind] for kind in kinds}}


def sample(part: Any, root: Json, depth: int = 0) -> Any:
    """Return a sample value for a part of a schema.

    :param root: the whole schema, for references.
    :param depth: nesting depth of the part. From 8 on, only required properties are included.
    """
    schema = resolved(part, root)
    for name in ("const", "default"):
        if name in schema:
            return schema[name]
    for name in ("enum", "examples"):
        if isinstance(schema.get(name), list) and schema[name]:
            return schema[name][0]
    for name in ("anyOf", "oneOf"):
        if isinstance(schema.get(name), list) and schema[name]:
            options = [resolved(option, root) for option in schema[name]]
            chosen = next((option for option in options if option.get("type") != "null"), options[0])
            return sample(
                {**{key: value for key, value in schema.items() if key != name}, **chosen}, root, depth
            )
    if isinstance(schema.get("allOf"), list):
        return sample(_joined(schema, root), root, depth)
    return _of_kind(_kind(schema), schema, root, depth)


def _joined(schema: Json, root: Json) -> Json:
    joined = {key: value for key, value in schema.items() if key != "allOf"}
    for part in schema["allOf"]:
        found = resolved(part, root)
        properties = {**joined.get("properties", {}), **found.get("properties", {})}
        required = [*joined.get("required", []), *found.get("required", [])]
        joined = {**joined, **found}
        if properties:
            joined.update(properties=properties, required=required)
    return joined


def _kind(schema: Json) -> str:
    kind = schema.get("type")
    if isinstance(kind, list):
        kind = next((name for name in kind if name != "null"), "null")
    if isinstance(kind, str):
        return kind
    return "object" if "properties" in schema else "array" if "items" in schema else "string"


def _of_kind(kind: str, schema: Json, root: Json, depth: int) -> Any:
    if kind == "object":
        required = schema.get("required", [])
        return {
            name: sample(wanted, root, depth + 1)
            for name, wanted in schema.get("properties", {}).items()
            if depth < _DEEPEST or (name in required and depth < 2 * _DEEPEST)
        }
    if kind == "array":
        least = schema.get("minItems", 1 if depth < _DEEPEST else 0)
        return [sample(schema.get("items", {}), root, depth + 1)] * min(least, schema.get("maxItems", least))
    if kind in ("integer", "number"):
        return _number(schema, whole=kind == "integer")
    if kind == "string":
        text = _TEXTS.get(str(schema.get("format")), SAMPLE_TEXT)
        return text.ljust(schema.get("minLength", 0), ".")[: schema.get("maxLength")]
    return False if kind == "boolean" else None


def _number(schema: Json, *, whole: bool) -> float:
    low, above = schema.get("minimum"), schema.get("exclusiveMinimum")
    high, below = schema.get("maximum"), schema.get("exclusiveMaximum")
    step = schema.get("multipleOf", 1)
    if above is not None and not isinstance(above, bool):
        number = (above // step + 1) * step
    elif low is not None:
        number = -(-low // step) * step
    elif below is not None and not isinstance(below, bool):
        number = min(0, -(-below // step) * step - step)
    else:
        number = 0 if high is None else min(0, high // step * step)
    return int(number) if whole else number
