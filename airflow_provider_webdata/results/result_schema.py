# SPDX-License-Identifier: Apache-2.0
"""A schema for structured results, from JSON Schema or a pydantic model, and its columns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from itertools import islice
from typing import TYPE_CHECKING, Any

from jsonschema import Draft202012Validator
from jsonschema import ValidationError as SchemaViolation
from jsonschema.exceptions import SchemaError
from jsonschema.validators import validator_for
from pydantic import BaseModel, PydanticUserError, ValidationError
from referencing import Registry
from referencing.exceptions import Unresolvable

from airflow_provider_webdata.results.columns import CHANGES, EXTRA, Column, ColumnType, columns_of
from airflow_provider_webdata.results.encoding import json_text
from airflow_provider_webdata.results.errors import OutputError
from airflow_provider_webdata.results.tagged_items import own_name

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    _Found = Callable[[Any, bool], Iterator[tuple[Sequence[Any], str]]]
    """Yields the path and the message of each problem in a value, which may be one element of the schema's list."""

ERRORS_KEY = "validationErrors"
"""The first column of an invalid item: its problems."""

ERRORS = Column("validation_errors", (ERRORS_KEY,), "json")

_MAX_PROBLEMS = 10
_MAX_LENGTH = 200
_TAKEN = frozenset({EXTRA.name, ERRORS.name, *(column.name for column in CHANGES)})
_TYPES: Mapping[str, ColumnType] = {
    "string": "text",
    "integer": "integer",
    "number": "number",
    "boolean": "boolean",
}


class ResultSchema:
    """A schema for validating results.

    :param json_schema: JSON Schema of any draft, as `$schema` declares. Default: 2020-12.
    :param model: pydantic model of the schema, which then validates in strict mode, with its own validators.
    :param rows: path of a list in the schema, whose elements are the results.
    :raises OutputError: the schema cannot validate results.
    """

    def __init__(
        self, json_schema: Mapping[str, Any], model: Any = None, *, rows: Sequence[str] = ()
    ) -> None:
        self._root = whole = json_schema
        for name in rows:
            properties = _resolved(whole, json_schema).get("properties")
            whole = properties.get(name, {}) if isinstance(properties, Mapping) else {}
        root = _resolved(whole, json_schema)
        items: Any = root.get("items")
        self._is_list = root.get("type") == "array" and isinstance(items, Mapping)
        self._whole = whole
        self._of_item: Mapping[str, Any] = items if self._is_list else whole
        self._words = frozenset(word for part in _mappings(json_schema) for word in part)
        self._found = (
            _by_schema(json_schema, whole, self._of_item) if model is None else self._by_model(model)
        )

    @classmethod
    def of(cls, given: Any) -> ResultSchema:
        """Return the schema of an argument.

        :param given: JSON Schema, pydantic model, or the model's import path.
        :raises OutputError: the argument is none of these, or cannot validate results.
        """
        if isinstance(given, str):
            given = _imported(given)
        if isinstance(given, Mapping):
            return cls(given)
        if not (isinstance(given, type) and issubclass(given, BaseModel)):
            raise OutputError(
                f"result_schema must be a JSON Schema, a pydantic model, or the path of a model (given: {given!r})"
            )
        try:
            return cls(given.model_json_schema(), given)
        except PydanticUserError as error:
            raise OutputError(
                f"result_schema: {given.__name__} cannot generate its JSON Schema: {error.message}"
            ) from error

    def problems(self, value: Any, *, is_element: bool) -> list[str]:
        """Return the problems of a JSON value, at most ten; empty if it is valid.

        :param is_element: if the schema describes a list, whether the value is one of its elements.
        """
        problems = []
        for where, text in islice(self._found(value, is_element), _MAX_PROBLEMS):
            # Keys outside the schema are page content.
            path = ".".join(
                str(part) if isinstance(part, int) or part in self._words else "*" for part in where
            )
            problems.append((f"{path}: {text}" if path else text)[:_MAX_LENGTH])
        return problems

    def columns(self, kind: str) -> tuple[Column, ...]:
        """Return the table columns of validated results.

        :param kind: see `columns_of`. The properties of `generic` items have columns with their names, or
            `own_<name>`; see `own_name`. The properties of a page's `json` have columns `json_<name>` after the page's,
            which repeat the content of `json`; a list has no properties.
        """
        if kind == "generic":
            types = self._types(self._of_item)
            typed = (Column(own_name(name, _TAKEN), (name,), type_) for name, type_ in types)
            return (*typed, EXTRA, ERRORS)
        types = self._types(self._whole)
        typed = (Column(f"json_{name}", ("json", name), type_, is_copy=True) for name, type_ in types)
        return (*columns_of(kind), *typed, ERRORS)

    def _types(self, schema: Mapping[str, Any]) -> Iterator[tuple[str, ColumnType]]:
        properties = _resolved(schema, self._root).get("properties")
        for name, schema in properties.items() if isinstance(properties, Mapping) else ():
            yield name, _type_of(schema, self._root)

    def _by_model(self, model: Any) -> _Found:
        def found(value: Any, is_element: bool) -> Iterator[tuple[Sequence[Any], str]]:
            is_wrapped = is_element and self._is_list
            try:
                # Strict mode, so that valid values have their columns' types: "7" is not a number.
                model.model_validate_json(json_text([value] if is_wrapped else value), strict=True)
            except ValidationError as error:
                for problem in error.errors(include_url=False, include_input=False, include_context=False):
                    where = problem["loc"][1:] if is_wrapped else problem["loc"]
                    yield where, problem["msg"]
            # The validator is user code, whose errors must not lose a billed result.
            except Exception as error:  # noqa: BLE001
                yield (), f"{model.__name__} failed to validate it: {type(error).__name__}: {error}"

        return found


def requested_schema(body: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the JSON Schema that a request sets for its results, or None.

    :param body: request in wire form: an agent run, or with the format `json` or `deterministicJson`.
    """
    if isinstance(schema := body.get("schema"), Mapping):
        return schema
    for wanted in body.get("scrapeOptions", body).get("formats") or ():
        if isinstance(wanted, Mapping) and wanted.get("type") in ("json", "deterministicJson"):
            schema = wanted.get("schema")
            return schema if isinstance(schema, Mapping) else None
    return None


def _imported(path: str) -> Any:
    module, _, name = path.replace(":", ".").rpartition(".")
    try:
        return getattr(import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise OutputError(
            f"result_schema: the model {path!r} cannot be imported ({error}). Set its path as 'package.module.Model', "
            "in a module that is installed on the workers"
        ) from error


def _by_schema(root: Mapping[str, Any], whole: Mapping[str, Any], of_item: Mapping[str, Any]) -> _Found:
    draft = validator_for(root, default=Draft202012Validator)
    try:
        draft.check_schema(dict(root))
    except SchemaError as error:
        where = "/".join(map(str, error.absolute_path)) or "the top level"
        raise OutputError(
            f"result_schema: not a JSON Schema; at {where}: {error.message[:_MAX_LENGTH]}"
        ) from error
    _check_references(root)
    # The empty registry prevents fetching of external references.
    validator = draft(root, registry=Registry())
    of_whole, of_element = validator.evolve(schema=whole), validator.evolve(schema=of_item)

    def found(value: Any, is_element: bool) -> Iterator[tuple[Sequence[Any], str]]:
        try:
            for error in (of_element if is_element else of_whole).iter_errors(value):
                yield error.absolute_path, _broken(error)
        except (Unresolvable, RecursionError) as error:
            yield (), f"the schema failed to validate it: {type(error).__name__}: {error}"

    return found


def _mappings(node: Any) -> Iterator[Mapping[str, Any]]:
    if isinstance(node, Mapping):
        yield node
        node = list(node.values())
    if isinstance(node, list):
        for part in node:
            yield from _mappings(part)


def _check_references(root: Mapping[str, Any]) -> None:
    for part in _mappings(root):
        if isinstance(reference := part.get("$ref"), str) and not reference.startswith("#"):
            raise OutputError(
                f"result_schema: {reference!r} is outside the schema; move it to '$defs', and reference it there"
            )


def _broken(error: SchemaViolation) -> str:
    """Return the violated rule in terms of the schema: page content belongs in results, not in a log."""
    if error.validator == "required":
        # This message names only missing properties, not content.
        return error.message
    if not error.validator:
        return "the schema allows no value here"
    return f'breaks "{error.validator}": {json_text(error.validator_value)}'


def _resolved(schema: Any, root: Mapping[str, Any], depth: int = 0) -> Mapping[str, Any]:
    """Resolve a schema's reference into the root; empty if the schema has no type."""
    if not isinstance(schema, Mapping) or depth > 20:
        return {}
    reference = schema.get("$ref")
    if not isinstance(reference, str) or not reference.startswith("#"):
        return schema
    found: Any = root
    for name in reference[1:].split("/")[1:]:
        found = found.get(name.replace("~1", "/").replace("~0", "~")) if isinstance(found, Mapping) else None
    return _resolved(found, root, depth + 1)


def _type_of(schema: Any, root: Mapping[str, Any], depth: int = 0) -> ColumnType:
    """Return the type of a property's column, ignoring null; JSON if the property has several types."""
    found = _resolved(schema, root)
    if depth > 20:
        return "json"
    for union in ("anyOf", "oneOf", "allOf"):
        if isinstance(found.get(union), list) and "type" not in found:
            types = {
                _type_of(part, root, depth + 1)
                for part in found[union]
                if _resolved(part, root).get("type") != "null"
            }
            return types.pop() if len(types) == 1 else "json"
    given = found.get("type")
    names = {given} if isinstance(given, str) else {*given} if isinstance(given, list) else set()
    if not names:
        values = found.get("enum") or ([found["const"]] if "const" in found else [None])
        return "text" if all(isinstance(value, str) for value in values) else "json"
    names -= {"null"}
    if names == {"integer", "number"}:
        return "number"
    return _TYPES.get(names.pop(), "json") if len(names) == 1 else "json"
