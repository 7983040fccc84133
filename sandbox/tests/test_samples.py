# SPDX-License-Identifier: Apache-2.0
"""Sample values fit the schemas that they are made for."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from tests.support.tables import each_row
from webdata_sandbox.engine.samples import sample

name = st.sampled_from(["a", "b", "c", "price"])
bound = st.integers(-50, 50)


def optional(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({}, optional=fields)


numbers = st.builds(
    lambda kind, limits: {"type": kind, **limits},
    st.sampled_from(["integer", "number", ["null", "integer"]]),
    st.one_of(
        optional(minimum=bound, multipleOf=st.integers(1, 7)),
        optional(exclusiveMinimum=bound, multipleOf=st.integers(1, 7)),
        optional(maximum=bound),
        optional(exclusiveMaximum=bound, multipleOf=st.integers(1, 7)),
    ),
)
texts = optional(
    minLength=st.integers(0, 40), format=st.sampled_from(["date", "email", "uri", "uuid", "other"])
).map(lambda limits: {"type": "string", **limits})
plain = st.one_of(
    numbers,
    texts,
    st.sampled_from(
        [
            {"type": "boolean"},
            {"type": "null"},
            {"enum": ["x", 1]},
            {"const": 5},
            {},
            {"type": "string", "maxLength": 2},
        ]
    ),
)


def nested(inner: st.SearchStrategy[dict[str, Any]]) -> st.SearchStrategy[dict[str, Any]]:
    properties = st.dictionaries(name, inner, max_size=3)
    objects = st.builds(
        lambda found, most: {"type": "object", "properties": found, "required": sorted(found)[:most]},
        properties,
        st.integers(0, 3),
    )
    arrays = st.builds(
        lambda items, least: {"type": "array", "items": items, "minItems": least, "maxItems": least + 1},
        inner,
        st.integers(0, 3),
    )
    choices = st.builds(
        lambda kind, options: {kind: options},
        st.sampled_from(["anyOf"]),
        st.lists(inner, min_size=1, max_size=3),
    )
    both = st.builds(
        lambda one, other: {"allOf": [one, other]}, objects, objects.filter(lambda o: not o["properties"])
    )
    return objects | arrays | choices | both


@given(st.recursive(plain, nested, max_leaves=8))
def test_a_sample_is_of_the_schema_s_shape(schema: dict[str, Any]) -> None:
    Draft202012Validator.check_schema(schema)
    Draft202012Validator(schema).validate(sample(schema, schema))


@each_row("where", ["$defs", "definitions"])
def test_references_are_followed_and_circles_end(where: str) -> None:
    node = {
        "type": "object",
        "properties": {"name": {"type": "string"}, "next": {"$ref": f"#/{where}/node"}},
        "required": ["name"],
    }
    schema = {"$ref": f"#/{where}/node", where: {"node": node}}
    Draft202012Validator(schema).validate(sample(schema, schema))

    endless = {where: {"node": {**node, "required": ["next"]}}, "$ref": f"#/{where}/node"}
    assert sample(endless, endless)["next"]["next"]
    loop = {where: {"a": {"$ref": f"#/{where}/b"}, "b": {"$ref": f"#/{where}/a"}}, "$ref": f"#/{where}/a"}
    assert sample(loop, loop) == "sample"


@each_row(
    "schema, value",
    [
        ({"type": "string", "default": "EUR"}, "EUR"),
        ({"type": "string", "examples": ["DE"]}, "DE"),
        ({"oneOf": [{"type": "null"}, {"type": "integer", "minimum": 3}]}, 3),
        ({"$ref": "https://elsewhere.example/schema"}, "sample"),
        ({"type": "string", "pattern": "^x$"}, "sample"),
    ],
)
def test_what_a_schema_suggests_is_taken(schema: dict[str, Any], value: Any) -> None:
    assert sample(schema, schema) == value
