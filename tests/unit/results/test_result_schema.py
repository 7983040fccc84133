# SPDX-License-Identifier: Apache-2.0
"""Schemas of results: what they refuse, and which columns they make."""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field, RootModel, field_validator

from airflow_provider_webdata.results.columns import TABLES, columns_of
from airflow_provider_webdata.results.errors import OutputError
from airflow_provider_webdata.results.result_schema import ResultSchema, requested_schema
from tests.support.rows import item_of, row
from tests.support.tables import each_row

PRICE = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "price": {"type": "number"},
        "stock": {"type": ["integer", "null"]},
        "open": {"$ref": "#/$defs/switch"},
        "tags": {"type": "array", "items": {"type": "string"}},
    },
    "required": ["name"],
    "$defs": {"switch": {"type": "boolean"}},
}
VALID = {"name": "a", "price": 1.5, "stock": None, "open": True, "tags": ["x"]}


class Product(BaseModel):
    name: str
    price: Annotated[float, Field(gt=0)]
    kind: Literal["new", "used"] = "new"
    stock: int | None = None
    label: str = Field("", alias="labelText")

    @field_validator("name")
    @classmethod
    def _has_letters(cls, name: str) -> str:
        if name == "boom":
            raise RuntimeError("a bug")
        return name


class Products(RootModel[list[Product]]):
    pass


OBJECT = {"type": "object"}
JUDGED: dict[str, tuple[Any, Any, list[str]]] = {
    "valid": (PRICE, VALID, []),
    "missing": (PRICE, {}, ["'name' is a required property"]),
    "types": (PRICE, {"name": 1, "price": "2"}, ['name: breaks "type": "string"', 'price: breaks "type": "number"']),
    "by reference": (PRICE, {"name": "a", "open": "yes"}, ['open: breaks "type": "boolean"']),
    "deep": (PRICE, {"name": "a", "tags": ["x", 2]}, ['tags.1: breaks "type": "string"']),
    "not an object": (PRICE, "none", ['breaks "type": "object"']),
    "element of a list": ({"type": "array", "items": {"$ref": "#/$defs/p"}, "$defs": {"p": PRICE}}, {}, ["name"]),
    "an older draft": (
        {"$schema": "http://json-schema.org/draft-04/schema#", "minimum": 5, "exclusiveMinimum": True},
        5,
        ['breaks "minimum": 5'],
    ),
    "model": (Product, {"name": "a", "price": 2, "labelText": "b"}, []),
    "model, strictly": (Product, {"name": "a", "price": "2"}, ["price: Input should be a valid number"]),
    "model, its limits": (Product, {"name": "a", "price": 0}, ["price: Input should be greater than 0"]),
    "model, its bug": (Product, {"name": "boom", "price": 1}, ["Product failed to validate it: RuntimeError: a bug"]),
    "model of a list": (Products, {"name": "a"}, ["price: Field required"]),
    "path of a model": (f"{__name__}.Product", {"name": "a"}, ["price: Field required"]),
    "path with a colon": (f"{__name__}:Product", {"name": "a"}, ["price: Field required"]),
    "nowhere to refer to": ({"$ref": "#/$defs/none"}, {}, ["the schema failed to validate it"]),
    "endless": ({"$ref": "#"}, {}, ["the schema failed to validate it: RecursionError"]),
}  # fmt: skip


@each_row("schema, value, expected", JUDGED.values())
def test_problems(schema: Any, value: Any, expected: list[str]) -> None:
    found = ResultSchema.of(schema).problems(value, is_element=True)
    assert len(found) == len(expected)
    for problem, words in zip(sorted(found), sorted(expected), strict=True):
        assert problem.startswith(words) or words in problem


class Counts(BaseModel, extra="forbid"):
    of: dict[str, int] = {}
    at: dict[int, int] = {}


SAID = "what the page says"
BROKEN: dict[str, tuple[Any, Any]] = {
    "type": ({"type": "integer"}, SAID),
    "enum": ({"enum": ["a"]}, SAID),
    "pattern": ({"pattern": "^a$"}, SAID),
    "length": ({"maxLength": 1}, SAID),
    "union": ({"anyOf": [{"type": "integer"}, {"const": "a"}]}, SAID),
    "not": ({"not": {"type": "string"}}, SAID),
    "nothing": ({"properties": {"a": False}}, {"a": SAID}),
    "names": ({"additionalProperties": False}, {SAID: 1}),
    "form of names": ({"propertyNames": {"maxLength": 1}}, {SAID: 1}),
    "contains": ({"contains": {"type": "integer"}}, [SAID]),
    "unique": ({"uniqueItems": True}, [SAID, SAID]),
    "below a name": ({"additionalProperties": {"type": "integer"}}, {SAID: "x"}),
    "below a form of names": ({"patternProperties": {".": {"type": "integer"}}}, {SAID: "x"}),
    "names, model": (Counts, {SAID: 1}),
    "below a name, model": (Counts, {"of": {SAID: "x"}}),
    "form of names, model": (Counts, {"at": {SAID: 1}}),
}


@each_row("schema, value", BROKEN.values())
def test_problems_do_not_tell_what_a_page_says(schema: Any, value: Any) -> None:
    """They stand in the log and in the error of the task."""
    (problem,) = ResultSchema.of(schema).problems(value, is_element=True)
    assert SAID not in problem


def test_where_a_problem_is() -> None:
    inner = {"additionalProperties": {"properties": {"b": {"type": "integer"}}}}
    value = {"a": {SAID: {"b": "x"}}}
    assert ResultSchema.of({"properties": {"a": inner}}).problems(value, is_element=True) == [
        'a.*.b: breaks "type": "integer"'
    ]


def test_problems_are_few_and_short() -> None:
    schema = ResultSchema.of({"type": "array", "items": {"items": {"enum": ["y" * 5000]}}})
    found = schema.problems(["x"] * 50, is_element=True)
    assert len(found) == 10
    assert max(map(len, found)) == 200


REFUSED = {
    "no schema": ({"type": "strin"}, "not a JSON Schema; at type"),
    "elsewhere": ({"properties": {"a": {"$ref": "https://x.example/s"}}}, "'https://x.example/s' is outside"),
    "pattern": ({"items": {"pattern": "(?<a>x)"}}, "at items/pattern: '.*' is not a 'regex'"),
    "pattern of names": ({"patternProperties": {"(": {}}}, "is not a 'regex'"),
    "number": (7, "result_schema must be"),
    "class": (dict, "result_schema must be"),
    "no path": ("Product", "cannot be imported"),
    "no module": ("no_such.module.Product", "cannot be imported"),
    "no class": (f"{__name__}.NoProduct", "cannot be imported"),
    "path of no model": (f"{__name__}.PRICES", "result_schema must be"),
}
PRICES = 7


@each_row("schema, words", REFUSED.values())
def test_what_cannot_validate_is_refused(schema: Any, words: str) -> None:
    with pytest.raises(OutputError, match=words):
        ResultSchema.of(schema)


def test_nothing_is_fetched(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the check is passed by an identity, too, references lead nowhere else."""
    monkeypatch.setattr("urllib.request.urlopen", lambda *_, **__: pytest.fail("the schema was fetched"))
    schema = ResultSchema.of({"$id": "https://x.example/a", "$dynamicRef": "https://x.example/b"})
    assert "failed to validate it" in schema.problems({}, is_element=True)[0]


TYPES: list[tuple[Any, str]] = [
    ({"type": "string"}, "text"),
    ({"type": "integer"}, "integer"),
    ({"type": "number"}, "number"),
    ({"type": "boolean"}, "boolean"),
    ({"type": ["null", "boolean"]}, "boolean"),
    ({"type": ["integer", "number"]}, "number"),
    ({"type": ["integer", "string"]}, "json"),
    ({"type": "array"}, "json"),
    ({"type": "null"}, "json"),
    ({}, "json"),
    (True, "json"),
    ({"enum": ["a", "b"]}, "text"),
    ({"enum": ["a", 1]}, "json"),
    ({"const": "a"}, "text"),
    ({"anyOf": [{"type": "integer"}, {"type": "null"}]}, "integer"),
    ({"anyOf": [{"type": "integer"}, {"type": "string"}]}, "json"),
    ({"allOf": [{"$ref": "#/$defs/a~1b"}]}, "boolean"),
    ({"$ref": "#/$defs/a~1b"}, "boolean"),
    ({"$ref": "#/$defs/none"}, "json"),
    ({"$ref": "#/properties/it"}, "json"),
    ({"anyOf": [{"$ref": "#/properties/it"}]}, "json"),
]


@each_row("schema, expected", TYPES)
def test_types_of_columns(schema: Any, expected: str) -> None:
    root = {"properties": {"it": schema}, "$defs": {"a/b": {"type": "boolean"}}}
    column = ResultSchema.of(root).columns("generic")[0]
    assert (column.name, column.type) == ("it", expected)


def test_columns_of_what_was_extracted() -> None:
    columns = ResultSchema.of(PRICE).columns("generic")
    assert [f"{column.name}:{column.type}" for column in columns] == [
        "name:text",
        "price:number",
        "stock:integer",
        "open:boolean",
        "tags:json",
        "extra:json",
        "validation_errors:json",
    ]
    item = {"name": "a", "price": "2", "open": False, "more": 1, "validationErrors": ["price: no"]}
    made = row(item, columns)
    assert (made["name"], made["price"], made["open"]) == ("a", None, False)
    assert json.loads(made["extra"]) == {"price": "2", "more": 1}
    assert item_of(made, columns) == item


def test_names_that_are_taken() -> None:
    names = ["change", "extra", "last_seen", "validation_errors", "own_extra", "own_own_extra"]
    schema = ResultSchema.of({"properties": {name: {"type": "string"} for name in names}})
    columns = schema.columns("generic")
    assert [column.name for column in columns[:-2]] == [f"own_{name}" for name in names]
    assert len({column.name for column in columns}) == len(columns)
    item = dict.fromkeys(names, "x")
    assert item_of(row(item, columns), columns) == item


@each_row("kind", [kind for kind in TABLES if kind not in ("generic", "link", "retrieval")])
def test_columns_of_pages_come_behind(kind: str) -> None:
    """What is in `json` stays there whole: the columns hold it once more."""
    columns = ResultSchema.of(Product).columns(kind)
    first = columns_of(kind)
    assert columns[: len(first)] == first
    assert [f"{column.name}:{column.type}" for column in columns[len(first) :]] == [
        "json_name:text",
        "json_price:number",
        "json_kind:text",
        "json_stock:integer",
        "json_labelText:text",
        "validation_errors:json",
    ]


def test_a_page_as_a_row() -> None:
    columns = ResultSchema.of(PRICE).columns("document")
    item = {"markdown": "x", "json": {"name": "a", "price": 2, "stock": "many", "deep": {"x": 1}}}
    made = row(item, columns)
    assert (made["json_name"], made["json_price"], made["json_stock"]) == ("a", 2.0, None)
    assert json.loads(made["json"]) == item["json"]
    assert made["extra"] is None
    assert item_of(made, columns) == item


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.floats(-9, 9) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=2), inner, max_size=2),
    max_leaves=4,
)


@given(value=st.dictionaries(st.sampled_from([*PRICE["properties"], "more"]), JSON))
def test_whatever_comes_no_row_loses_anything(value: dict[str, Any]) -> None:
    for kind, item in (("generic", value), ("document", {"json": value})):
        columns = ResultSchema.of(PRICE).columns(kind)
        kept = {name: part for name, part in value.items() if part is not None or name == "more"}
        expected = kept if kind == "generic" else item
        assert item_of(row(item, columns), columns) == expected


@given(value=st.dictionaries(st.sampled_from([*PRICE["properties"]]), JSON))
def test_what_is_valid_has_its_columns_types(value: dict[str, Any]) -> None:
    schema = ResultSchema.of(PRICE)
    if schema.problems(value, is_element=True):
        return
    made = row(value, schema.columns("generic"))
    whole = isinstance(value.get("stock"), float)  # 2.0 is an integer of JSON Schema, and no Python one
    assert whole or made["extra"] is None


REQUESTS: dict[str, tuple[dict[str, Any], Any]] = {
    "agent": ({"prompt": "p", "schema": PRICE}, PRICE),
    "no schema": ({"prompt": "p"}, None),
    "scrape": ({"formats": ["markdown", {"type": "json", "schema": PRICE}]}, PRICE),
    "prompt alone": ({"formats": [{"type": "json", "prompt": "p"}]}, None),
    "generated": ({"formats": [{"type": "deterministicJson", "schema": PRICE}]}, PRICE),
    "crawl": ({"scrapeOptions": {"formats": [{"type": "json", "schema": PRICE}]}}, PRICE),
    "changes": ({"formats": ["markdown", {"type": "changeTracking", "schema": PRICE}]}, None),
    "nothing": ({}, None),
}


@each_row("body, schema", REQUESTS.values())
def test_the_schema_that_a_request_asks_for(body: dict[str, Any], schema: Any) -> None:
    assert requested_schema(body) == schema
