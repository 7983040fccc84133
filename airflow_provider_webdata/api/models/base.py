# SPDX-License-Identifier: Apache-2.0
"""Base classes of all wire models: field names, set fields, and the wire form."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, TypeAlias, TypeVar, get_args

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    ModelWrapValidatorHandler,
    PrivateAttr,
    ValidationError,
    ValidationInfo,
    ValidatorFunctionWrapHandler,
    WrapValidator,
    model_validator,
)
from pydantic.alias_generators import to_camel
from pydantic_core import InitErrorDetails, PydanticCustomError, core_schema, from_json, to_json

from airflow_provider_webdata.api.odd_parts import OddParts
from airflow_provider_webdata.common.spelling import nearest

if TYPE_CHECKING:
    from pydantic import GetCoreSchemaHandler
    from pydantic_core import CoreSchema
    from typing_extensions import Self

    from airflow_provider_webdata.api.servers import Server


class RequestModel(BaseModel):
    """A request body, or part of one.

    Names are accepted in wire (`maxAge`) or Python spelling (`max_age`); an unknown name is an error with a
    suggestion. `None` means "not set", except for fields where the service documents null. Unset fields are not sent,
    so the service's defaults apply; field descriptions state those defaults.

    :raises ValidationError: the only exception for invalid input of any kind.
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
    """Python names of fields for which the service documents null; other fields are not sent if `None`."""

    parts: ClassVar[Mapping[str, type[RequestModel]]] = {}
    """Models of nested objects by wire name, to suggest the correct place of a misplaced field."""

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
            # A custom mapping may raise anything; callers expect a ValidationError.
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
                        "given_twice", f"'{seen[field]}' and '{key}' are the same field; set only one of them"
                    )
                seen[field] = key
            given[key] = value
        return given

    def _check(self) -> None:
        """Raise an error if the fields are inconsistent."""

    def to_wire(self) -> dict[str, Any]:
        """Return the set fields as JSON-serializable values under wire names, in documented order."""
        wire: dict[str, Any] = {}
        for name, field in type(self).model_fields.items():
            # `type` selects one of several shapes, so it is sent even if the user did not set it.
            if name not in self.model_fields_set and name != "type":
                continue
            value = getattr(self, name)
            if value is None and name not in self.nullable:
                continue
            wire[field.alias or name] = _wire(value)
        return wire

    def warnings(self) -> list[str]:
        """Return a warning for each valid but probably unintended value, including those of nested models."""
        return [warning for _, part in self._with_parts() for warning in part._own_warnings()]

    def notes(self, server: Server) -> list[str]:
        """Return a note for each implicit behavior of a kind of server, including those of nested models.

        :param server: the connection's server.
        """
        return [note for _, part in self._with_parts() for note in part._own_notes(server)]

    def refused_by(self, server: Server) -> list[str]:
        """Return a problem for each value that a kind of server refuses and another kind accepts.

        The models accept what any kind accepts. See sandbox/docs/service.md#server-bounds.

        :param server: the connection's server.
        """
        return [f"{path}{text}" for path, part in self._with_parts() for text in part._own_refusals(server)]

    def sent_to(self, server: Server) -> dict[str, Any]:  # noqa: ARG002
        """Return the wire form in the spelling of a kind of server.

        :param server: the connection's server.
        """
        return self.to_wire()

    def _own_warnings(self) -> list[str]:
        """Return the warnings of this model, without nested models."""
        return []

    def _own_notes(self, server: Server) -> list[str]:  # noqa: ARG002
        """Return the notes of this model, without nested models."""
        return []

    def _own_refusals(self, server: Server) -> list[str]:  # noqa: ARG002
        """Return the problems of this model for a kind of server, without nested models."""
        return []

    def _with_parts(self, path: str = "") -> Iterator[tuple[str, RequestModel]]:
        """Yield this model and all nested models, each with the prefix of its fields' paths."""
        yield path, self
        for name, field in type(self).model_fields.items():
            value, at = self.__dict__.get(name), f"{path}{field.alias or name}"
            if isinstance(value, RequestModel):
                yield from value._with_parts(f"{at}.")
            elif isinstance(value, list):
                for number, part in enumerate(value):
                    if isinstance(part, RequestModel):
                        yield from part._with_parts(f"{at}[{number}].")

    def __repr_args__(self) -> Iterable[tuple[str | None, Any]]:
        return [(name, value) for name, value in super().__repr_args__() if value is not None]


class ResponseModel(BaseModel):
    """A response of the service, or part of one, parsed leniently.

    Unknown fields are kept. URLs and dates remain text, and open sets are plain strings, so that a newer service does
    not break an older provider. Fields that the service may omit are optional.
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
        """Return the set fields as JSON-serializable values under wire names, including unknown fields.

        :param mask_headers: replace the values of every `headers` object with `***`. They may be credentials that a
            monitor sends.
        """
        wire = self.model_dump(by_alias=True, exclude_unset=True, warnings=False)
        return _masked(wire) if mask_headers else wire

    def __repr_args__(self) -> Iterable[tuple[str | None, Any]]:
        return [(name, value) for name, value in super().__repr_args__() if value is not None]


class _Verbatim:
    """Keeps the value of a field unchanged if it does not have the documented shape."""

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
        # A custom object may raise anything; callers expect a ValidationError.
        raise problem("json", "the value is not JSON-serializable") from error


T = TypeVar("T")

if TYPE_CHECKING:
    # Code that reads such a field must expect any value.
    Lenient: TypeAlias = T | object
else:
    Lenient = Annotated[T, _Verbatim()]
"""A field with third-party content, such as a page's meta tags. A value without the documented shape is kept unchanged,
so that one unusual page does not invalidate a whole response."""


class _Unread:
    """Reads a value without the documented shape as None."""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        documented = handler(source)
        if {int, float} & {*get_args(source)}:
            documented = core_schema.no_info_wrap_validator_function(_small_number, documented)
        anything = core_schema.with_info_plain_validator_function(_none)
        return core_schema.union_schema([documented, anything], mode="left_to_right")


_MOST = 2**53


def _small_number(value: Any, handler: ValidatorFunctionWrapHandler) -> Any:
    if value is None:
        return None
    number = handler(value)
    # NaN is in no range.
    if isinstance(value, bool) or not -_MOST <= number <= _MOST:
        raise problem("number", "is not a number, or too large")
    return number


def _none(value: Any, info: ValidationInfo) -> None:  # noqa: ARG001
    if isinstance(info.context, OddParts):
        info.context.unread.add(to_camel(info.field_name or ""))


OrNone = Annotated[T | None, _Unread()]
"""A field beside the results, such as a cost or a date. A value without the documented shape is read as None, like an
absent one: a response that was billed is published anyway, and code that reads the field needs no check."""


def _readable_entries(value: Any, handler: ValidatorFunctionWrapHandler, info: ValidationInfo) -> Any:
    try:
        return handler(value)
    except ValidationError:
        if not isinstance(value, list):
            raise
    found: list[Any] = []
    for entry in value:
        try:
            found += handler([entry])
        except ValidationError:  # noqa: PERF203 - only for a list with an odd entry
            if isinstance(info.context, OddParts):
                info.context.skipped[to_camel(info.field_name or "")] += 1
    return found


Entries = Annotated[list[T], WrapValidator(_readable_entries)]
"""A list of results or records without the entries that do not have the documented shape, such as null."""


def _as_text(value: Any) -> Any:
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return "; ".join(value) or None
    return to_json(value).decode()


Remark = Annotated[str | None, BeforeValidator(_as_text)]
"""A warning of the service, as text; a value of another type is converted."""


class Answer(ResponseModel):
    """A complete response; most responses have `success`."""

    success: OrNone[bool] = None

    _skipped: int = PrivateAttr(default=0)

    @property
    def skipped(self) -> int:
        """Number of entries that could not be read and are missing, such as null among the results."""
        return self._skipped


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


def _python_names(model: type[RequestModel]) -> list[str]:
    # A trailing underscore distinguishes a field from a method of pydantic's models.
    return [name.rstrip("_") for name in model.model_fields]


def _with_suggestions(model: type[RequestModel], error: ValidationError) -> ValidationError:
    """Return `error` with a suggestion for each unknown field."""
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
    # Imported here: most requests have no unknown field.
    from airflow_provider_webdata.common.foreign_arguments import advice

    names = _accepted_names(model)
    parts = {names[part]: _python_names(inner) for part, inner in model.parts.items()}
    if hint := advice(given, _python_names(model), parts):
        return f"no such field; {hint}"
    found = nearest(given, names)
    if found is None:
        known = ", ".join(field.alias or name for name, field in model.model_fields.items())
        return f"no such field; the fields are {known}"
    field = names[found]
    alias = model.model_fields[field].alias or field
    also = f" (in Python: '{field}')" if field != alias else ""
    return f"no such field; did you mean '{alias}'{also}?"


def problem(kind: str, text: str) -> PydanticCustomError:
    """Return the error for a violated rule, for a validator to raise.

    :param kind: short identifier of the rule.
    :param text: the problem and its remedy. It appears in task logs, so it must not contain header values.
    """
    # The parameters are typed as literals because the text is a template. Without a context, any text is valid.
    return PydanticCustomError(kind, text)
