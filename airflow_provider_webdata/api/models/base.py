"""Base of all wire models: names, given fields, and the wire form."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, TypeVar

from pydantic import BaseModel, ConfigDict, ModelWrapValidatorHandler, ValidationError, model_validator
from pydantic.alias_generators import to_camel
from pydantic_core import InitErrorDetails, PydanticCustomError, core_schema, from_json, to_json

from airflow_provider_webdata.common.spelling import nearest

if TYPE_CHECKING:
    from pydantic import GetCoreSchemaHandler
    from pydantic_core import CoreSchema
    from typing_extensions import Self


class RequestModel(BaseModel):
    """A body, or part of one, that we send.

    Names are accepted as on the wire (`maxAge`) or in Python spelling (`max_age`); an unknown name is an
    error that names the nearest known one. `None` reads as "not given" wherever the service documents no
    null. What is not given is not sent, so that the service's defaults stay the service's. Defaults that the
    field descriptions name are those of the service.

    :raises ValidationError: the only error that any input can cause.
    """

    model_config = ConfigDict(
        alias_generator=to_camel,
        validate_by_alias=True,
        validate_by_name=True,
        validate_assignment=True,
        revalidate_instances="always",
        extra="forbid",
        hide_input_in_errors=True,
        allow_inf_nan=False,
        defer_build=True,
    )

    nullable: ClassVar[frozenset[str]] = frozenset()
    """Fields for which the service documents null, by Python name; elsewhere `None` is not sent."""

    parts: ClassVar[Mapping[str, type[RequestModel]]] = {}
    """Fields that hold an object of their own, by wire name: where a misplaced field may belong."""

    renamed: ClassVar[Mapping[str, str]] = {}
    """Names that people know from elsewhere, by wire name, and what to give in their place."""

    @model_validator(mode="wrap")
    @classmethod
    def _read(cls, data: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        if isinstance(data, RequestModel):
            if not isinstance(data, cls):
                data = data.to_wire()
        elif isinstance(data, Mapping):
            data = cls._given(data)
        try:
            model = handler(data)
        except ValidationError as error:
            raise _with_suggestions(cls, error) from None
        model._check()
        return model

    @classmethod
    def _given(cls, data: Mapping[Any, Any]) -> dict[Any, Any]:
        try:
            items = dict(data)
        except Exception as error:
            # A mapping of someone else's making may fail in any way; the caller is promised a
            # ValidationError.
            raise problem("mapping_type", "the mapping cannot be read") from error
        names = _accepted_names(cls)
        seen: dict[str, str] = {}
        given = {}
        for key, value in items.items():
            field = names.get(key) if isinstance(key, str) else None
            if field is not None:
                if value is None and field not in cls.nullable:
                    continue
                if field in seen:
                    raise problem(
                        "given_twice", f"'{seen[field]}' and '{key}' are the same field; give one of them"
                    )
                seen[field] = key
            given[key] = value
        return given

    def _check(self) -> None:
        """Raise the problem of fields that do not fit together, if there is one."""

    def to_wire(self) -> dict[str, Any]:
        """Return the JSON-able form under wire names: what was given, nothing else, in documented order."""
        wire: dict[str, Any] = {}
        for name, field in type(self).model_fields.items():
            # `type` tells the service which of several shapes this is, so it is sent even if the user did not set it.
            if name not in self.model_fields_set and name != "type":
                continue
            value = getattr(self, name)
            if value is None and name not in self.nullable:
                continue
            wire[field.alias or name] = _wire(value)
        return wire

    def warnings(self) -> list[str]:
        """Return what is allowed but probably not what was meant, one sentence each, parts included."""
        return [warning for part in self._with_parts() for warning in part._own_warnings()]

    def notes(self) -> list[str]:
        """Return what the service does by itself and callers may not expect, one sentence each, parts included."""
        return [note for part in self._with_parts() for note in part._own_notes()]

    def _own_warnings(self) -> list[str]:
        """What this model, without its parts, warns of."""
        return []

    def _own_notes(self) -> list[str]:
        """What there is to note of this model, without its parts."""
        return []

    def _with_parts(self) -> Iterator[RequestModel]:
        yield self
        for name in type(self).model_fields:
            value = self.__dict__.get(name)
            for part in value if isinstance(value, list) else (value,):
                if isinstance(part, RequestModel):
                    yield from part._with_parts()

    def __repr_args__(self) -> Iterable[tuple[str | None, Any]]:
        return [(name, value) for name, value in super().__repr_args__() if value is not None]


class ResponseModel(BaseModel):
    """An answer of the service, or part of one, read leniently.

    Unknown fields are kept, every field may be absent or null, URLs and dates stay the text that came, and
    sets that the service may extend are plain strings: a newer service never breaks an older provider.
    """

    model_config = ConfigDict(
        alias_generator=to_camel,
        validate_by_alias=True,
        validate_by_name=True,
        extra="allow",
        hide_input_in_errors=True,
        defer_build=True,
        protected_namespaces=(),
    )

    def to_wire(self, *, mask_headers: bool = False) -> dict[str, Any]:
        """Return the JSON-able form under wire names: the fields that were given or received, unknown ones included.

        :param mask_headers: replace the values of every `headers` object by `***`; they may be credentials
            that a monitor sends along.
        """
        wire = self.model_dump(by_alias=True, exclude_unset=True, warnings=False)
        return _masked(wire) if mask_headers else wire

    def __repr_args__(self) -> Iterable[tuple[str | None, Any]]:
        return [(name, value) for name, value in super().__repr_args__() if value is not None]


class Answer(ResponseModel):
    """An answer as a whole; most say whether the call succeeded."""

    success: bool | None = None


class _AsItCame:
    """Lets a field that has another shape than documented stay what it is."""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        anything = core_schema.json_or_python_schema(
            json_schema=core_schema.any_schema(),
            python_schema=core_schema.no_info_plain_validator_function(_json_value),
        )
        return core_schema.union_schema([handler(source), anything], mode="left_to_right")


def _json_value(value: Any) -> Any:
    try:
        return from_json(to_json(value))
    except Exception as error:
        # An object of someone else's making may fail in any way; the caller is promised a ValidationError.
        raise problem("json", "this is not what JSON can carry") from error


T = TypeVar("T")

Lenient = Annotated[T, _AsItCame()]
"""A field of what other people wrote, such as a page's own meta tags. One odd page must not cost the hundred
that came along with it, so that a value of another shape than documented stays unchanged."""


def _wire(value: Any) -> Any:
    if isinstance(value, RequestModel):
        return value.to_wire()
    if isinstance(value, list):
        return [_wire(item) for item in value]
    if isinstance(value, dict):
        return {key: _wire(item) for key, item in value.items()}
    return value


def _masked(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            key: dict.fromkeys(item, "***") if key == "headers" and isinstance(item, dict) else _masked(item)
            for key, item in value.items()
        }
    if isinstance(value, list):
        return [_masked(item) for item in value]
    return value


@cache
def _accepted_names(model: type[RequestModel]) -> dict[str, str]:
    names = {name: name for name in model.model_fields}
    names.update({field.alias: name for name, field in model.model_fields.items() if field.alias})
    return names


def _with_suggestions(model: type[RequestModel], error: ValidationError) -> ValidationError:
    """Return `error` with the nearest known name beside every field that the model does not know."""
    issues = error.errors(include_url=False, include_context=False)
    if not any(_is_unknown_field(issue) for issue in issues):
        return error
    lines: list[InitErrorDetails] = []
    for issue in issues:
        kind, text = issue["type"], issue["msg"]
        if _is_unknown_field(issue):
            kind, text = "unknown_field", _unknown_field_text(model, str(issue["loc"][0]))
        lines.append({"type": problem(kind, text), "loc": issue["loc"], "input": issue["input"]})
    return ValidationError.from_exception_data(error.title, lines, hide_input=True)


def _is_unknown_field(issue: Mapping[str, Any]) -> bool:
    return issue["type"] == "extra_forbidden" and len(issue["loc"]) == 1


def _unknown_field_text(model: type[RequestModel], given: str) -> str:
    for part, inner in model.parts.items():
        if given in _accepted_names(inner):
            return f"there is no such field here; it belongs in '{part}'"
    plain = given.replace("_", "").lower()
    for old, new in model.renamed.items():
        if old.lower() == plain:
            return f"there is no such field in this version; give {new}"
    names = _accepted_names(model)
    found = nearest(given, names)
    if found is None:
        known = ", ".join(field.alias or name for name, field in model.model_fields.items())
        return f"there is no such field; the fields are {known}"
    field = names[found]
    alias = model.model_fields[field].alias or field
    also = f" (in Python: '{field}')" if field != alias else ""
    return f"there is no such field; did you mean '{alias}'{also}?"


def problem(kind: str, text: str) -> PydanticCustomError:
    """Return the error that a validator raises for a broken rule.

    :param kind: short identifier of the rule.
    :param text: what is wrong and what to change. It ends up in task logs: no header values in it.
    """
    # Typed for literals because templates are filled from a context; there is none, so any text will do.
    return PydanticCustomError(kind, text)
