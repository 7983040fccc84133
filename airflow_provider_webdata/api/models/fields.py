"""Field types that several requests share: numbers and switches as rendered, lists, maps, hosts."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from datetime import date
from numbers import Integral
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, get_args

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    PlainValidator,
    PydanticUserError,
    ValidationInfo,
)
from pydantic_core import to_json

from airflow_provider_webdata.api.models.base import RequestModel, problem
from airflow_provider_webdata.common.spelling import nearest

if TYPE_CHECKING:
    from pydantic import GetCoreSchemaHandler
    from pydantic_core import CoreSchema

T = TypeVar("T")

TEMPLATE_HINT = (
    "a template renders to text unless the DAG has render_template_as_native_obj=True or the field is given "
    "whole, as an XComArg"
)


def _integer(value: Any) -> Any:
    if isinstance(value, bool):
        raise problem("whole_number", "a whole number is expected, a boolean is not one")
    if isinstance(value, str):
        if not re.fullmatch(r"\s*[+-]?[0-9]{1,30}\s*", value):
            raise problem("whole_number", "a whole number is expected")
        return int(value)
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, float) and value.is_integer():
        return int(value)
    raise problem("whole_number", "a whole number is expected")


def _number(value: Any) -> Any:
    if isinstance(value, bool):
        raise problem("number", "a number is expected, a boolean is not one")
    if isinstance(value, str) and re.fullmatch(r"\s*[+-]?[0-9]{1,30}(\.[0-9]{1,30})?\s*", value):
        value = float(value) if "." in value else int(value)
    if isinstance(value, (int, float)) and math.isfinite(value):
        return value
    raise problem("number", "a number is expected")


def _switch(value: Any) -> Any:
    if isinstance(value, bool):
        return value
    if isinstance(value, str) and value.strip().lower() in {"true", "false"}:
        return value.strip().lower() == "true"
    raise problem("switch", "true or false is expected, as a boolean or as text")


def _not_blank(value: str) -> str:
    if not value.strip():
        raise problem("blank", "must not be blank")
    return value


def _list(value: Any) -> Any:
    if isinstance(value, (str, bytes)):
        raise problem("list_type", f"a list is expected, text was given ({TEMPLATE_HINT})")
    return value


def _string_map(value: Any) -> Any:
    if not isinstance(value, Mapping):
        raise problem("map_type", f"a mapping of names to text is expected ({TEMPLATE_HINT})")
    try:
        items = dict(value)
    except Exception as error:
        # A mapping of someone else's making may fail in any way; the caller is promised a ValidationError.
        raise problem("map_type", "the mapping cannot be read") from error
    for key, item in items.items():
        if not isinstance(key, str) or not key:
            raise problem("map_type", "every name must be text and not empty")
        if not isinstance(item, str):
            raise problem(
                "map_type",
                f"the value of '{key}' must be text, {type(item).__name__} was given; "
                "write numbers in quotes and anything deeper as JSON text",
            )
    return {encodable(key): encodable(item) for key, item in items.items()}


def encodable(value: str) -> str:
    """Return `value` as plain text that UTF-8 can carry.

    :raises PydanticCustomError: it holds half of a surrogate pair, as text does that was cut inside an emoji.
    """
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise problem(
            "text",
            f"the text holds half of a surrogate pair at character {error.start + 1}, which UTF-8 cannot carry; "
            "cut it elsewhere, or take the half out",
        ) from None
    return str(value)


def _headers(value: dict[str, str]) -> dict[str, str]:
    for name, content in value.items():
        if not re.fullmatch(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+", name):
            raise problem("header_name", f"'{name}' is not the name of an HTTP header")
        if re.search(r"[\x00-\x08\x0a-\x1f\x7f]", content):
            # The value stays out of the text: it may be a credential.
            raise problem(
                "header_value", f"the value of header '{name}' holds a line break or control character"
            )
    return value


_DEEPEST = 100


def json_copy(value: Any, depth: int = 0) -> Any:
    """Return a copy of `value` made of JSON types only.

    :raises PydanticCustomError: it holds something that JSON cannot carry.
    """
    if depth > _DEEPEST:
        raise problem("json", f"nested more than {_DEEPEST} levels deep")
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return encodable(value)
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, float):
        if not math.isfinite(value):
            raise problem("json", "JSON has no NaN and no infinity")
        return value
    if isinstance(value, (list, tuple)):
        return [json_copy(item, depth + 1) for item in value]
    if isinstance(value, dict):
        for key in value:
            if not isinstance(key, str):
                raise problem("json", f"JSON names are text, {type(key).__name__} was given")
        return {encodable(key): json_copy(item, depth + 1) for key, item in value.items()}
    raise problem("json", f"JSON cannot carry a value of type {type(value).__name__}")


def _json_object(value: Any) -> Any:
    if not isinstance(value, dict):
        raise problem("json_object", f"a JSON object is expected ({TEMPLATE_HINT})")
    return json_copy(value)


def _schema_of_model(value: Any) -> Any:
    if not isinstance(value, type) or not hasattr(value, "model_json_schema"):
        return value
    try:
        return value.model_json_schema()
    except PydanticUserError as error:
        raise problem("json_schema", f"{value.__name__} has no JSON Schema: {error.message}") from None


def _json_schema(value: dict[str, Any]) -> dict[str, Any]:
    # Imported here because it takes its time and few requests carry a schema.
    from jsonschema import Draft4Validator, Draft7Validator, Draft202012Validator
    from jsonschema.exceptions import best_match

    found = []
    # The service names no draft, so a schema of any is one. Formats stay unchecked: a pattern is a regular
    # expression of JavaScript, not of Python.
    for draft in (Draft202012Validator, Draft7Validator, Draft4Validator):
        try:
            error = best_match(draft(draft.META_SCHEMA).iter_errors(value))
        except RecursionError:
            raise problem("json_schema", "the JSON Schema is nested too deeply") from None
        if error is None:
            return value
        found.append(error)
    where = "/".join(str(part) for part in found[0].absolute_path) or "the top level"
    raise problem("json_schema", f"this is not a JSON Schema; at {where}: {found[0].message[:200]}")


_LABEL = r"[^\W_](?:(?:[^\W_]|-){0,61}[^\W_])?"
_HOSTNAME = re.compile(rf"{_LABEL}(?:\.{_LABEL})*")


def hostname(value: str) -> str:
    """Return `value` when it is a bare host name of at most 253 characters; the service lower-cases it.

    :raises PydanticCustomError: it has a protocol, port, path, wildcard or blank in it, or is too long.
    """
    if "://" in value or "/" in value:
        raise problem(
            "hostname", "a host name has no protocol and no path: example.com, not https://example.com/a"
        )
    if len(value) > 253:
        raise problem("hostname", "a host name has at most 253 characters")
    if not _HOSTNAME.fullmatch(value):
        raise problem("hostname", "this is not a host name such as example.com or docs.example.com")
    return value


def _domain_pattern(value: str) -> str:
    host = value.removeprefix("*.")
    if "://" in host or "/" in host or ":" in host:
        raise problem("domain", "a domain has no protocol, path or port: example.com or *.example.com")
    if len(host) > 253 or not _HOSTNAME.fullmatch(host):
        raise problem("domain", "this is neither a domain (example.com) nor a wildcard (*.example.com)")
    return value


def _top_level_domain(value: str) -> str:
    if value.startswith("."):
        raise problem("tld", "a top-level domain is written without the leading dot")
    if value != value.lower():
        raise problem("tld", "a top-level domain is written in lower case")
    if not re.fullmatch(_LABEL, value):
        raise problem("tld", "this is not a top-level domain such as zip or xyz")
    return value


def _web_address(value: str) -> str:
    if not value.strip():
        raise problem("url", "must not be blank")
    if re.search(r"\s", value):
        raise problem("url", "a URL holds no blanks and no line breaks")
    scheme = re.match(r"([A-Za-z][A-Za-z0-9+.-]*)://", value)
    if scheme and scheme[1].lower() not in {"http", "https"}:
        raise problem("url", "the service reads http and https only")
    if scheme and not re.match(r"[^/?#]", value[scheme.end() :]):
        raise problem("url", "the URL names no host")
    return value


def _whole_address(value: str) -> str:
    if "://" not in value:
        raise problem("url", "a URL with its protocol is expected: https://...")
    return value


def _day(value: str) -> str:
    try:
        day = date.fromisoformat(value)
    except ValueError:
        day = None
    if day is None or day.isoformat() != value:
        raise problem("day", "a day is expected, as YYYY-MM-DD")
    return value


def _label(value: str) -> str:
    if not re.fullmatch(r"[a-z0-9][a-z0-9_-]{0,79}", value):
        raise problem(
            "label",
            "at most 80 lower-case letters, digits, '_' and '-' are expected, a letter or digit first",
        )
    return value


def not_larger_than(limit: int) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """Return a validator that refuses a JSON object of more than so many bytes.

    :param limit: bytes, in UTF-8 and without blanks.
    """

    def _small(value: dict[str, Any]) -> dict[str, Any]:
        size = len(to_json(value))
        if size > limit:
            raise problem("json_size", f"at most {limit} bytes of JSON are taken (given: {size})")
        return value

    return _small


def _droppable_address(value: str, info: ValidationInfo) -> str:
    return value if info.data.get("ignore_invalid_urls") else _web_address(value)


def _is_address(value: str) -> bool:
    try:
        _web_address(value)
    except ValueError:
        return False
    return True


def dropped(urls: Collection[str] | None) -> list[str]:
    """Return a warning of URLs that the service is going to drop, or nothing."""
    given = urls or ()
    bad = [url for url in given if not _is_address(url)]
    return (
        [f"urls: {len(bad)} of {len(given)} are no URLs and will be dropped, such as {bad[0]!r}"]
        if bad
        else []
    )


def _not_both(value: list[str], info: ValidationInfo) -> list[str]:
    others = {"include_domains", "exclude_domains"} - {info.field_name}
    if any(info.data.get(other) is not None for other in others):
        raise problem(
            "domain_filters", "excludeDomains and includeDomains cannot both be given; keep one of them"
        )
    return value


def _identifier(value: str) -> str:
    if not re.fullmatch(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}", value):
        raise problem("uuid", "a UUID is expected, as the service gave it")
    return value


String = Annotated[str, Field(strict=True), AfterValidator(encodable)]
"""Text, sent as given."""

Text = Annotated[String, AfterValidator(_not_blank)]
"""Text that says something: not empty, not only blanks."""

Integer = Annotated[int, BeforeValidator(_integer)]
"""A whole number; "5" is one, true is not."""

Number = Annotated[int | float, PlainValidator(_number)]
"""A number; "1.5" is one, true is not."""

Switch = Annotated[bool, BeforeValidator(_switch)]
"""True or false, also as text in any case; 0 and 1 are not."""

Listed = Annotated[list[T], BeforeValidator(_list)]
"""A list, never text that looks like one."""

StringMap = Annotated[dict[str, str], PlainValidator(_string_map)]
"""Names to text."""

Headers = Annotated[StringMap, AfterValidator(_headers)]
"""HTTP headers; the values may be credentials, so fields of this type have `repr=False`."""

JsonObject = Annotated[dict[str, Any], PlainValidator(_json_object)]
"""A JSON object of any fields."""

JsonSchema = Annotated[JsonObject, AfterValidator(_json_schema), BeforeValidator(_schema_of_model)]
"""A JSON Schema of any draft, or a pydantic model."""

Label = Annotated[String, AfterValidator(_label)]
"""A short name, such as `missing_markdown`."""

Day = Annotated[String, AfterValidator(_day)]
"""A day, such as `2026-01-31`."""

Hostname = Annotated[String, AfterValidator(hostname)]
DomainFilter = Annotated[Listed[Hostname], AfterValidator(_not_both)]
"""Host names in a field `include_domains` or `exclude_domains`; only one of these may be given."""

DomainPattern = Annotated[String, AfterValidator(_domain_pattern)]
TopLevelDomain = Annotated[String, AfterValidator(_top_level_domain)]

WebAddress = Annotated[String, AfterValidator(_web_address)]
"""An http or https URL; the service puts `http://` in front when the protocol is missing."""

WholeAddress = Annotated[WebAddress, AfterValidator(_whole_address)]
"""An http or https URL with its protocol."""

DroppableAddress = Annotated[String, AfterValidator(_droppable_address)]
"""As `WebAddress`, but any text where `ignore_invalid_urls`, declared before, makes the service drop bad ones."""

Identifier = Annotated[String, AfterValidator(_identifier)]


@dataclass(frozen=True)
class _OneOf:
    what: str

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        what = self.what
        models: tuple[type[RequestModel], ...] = tuple(
            part for part in get_args(source) if isinstance(part, type)
        )
        names = [name for part in get_args(source) if part not in models for name in get_args(part)]
        by_type = {
            kind: model for model in models for kind in get_args(model.model_fields["type"].annotation)
        }

        def read(value: Any) -> Any:
            if isinstance(value, str):
                if value in names:
                    return str(value)
                if value in by_type:
                    raise problem(
                        "needs_object", f"'{value}' needs options: give an object with type '{value}'"
                    )
                raise problem("unknown_type", _no_such(what, value, names or by_type))
            if isinstance(value, models):
                return type(value).model_validate(value)
            if not isinstance(value, (Mapping, RequestModel)):
                raise problem("unknown_type", f"{what} is {'text or ' if names else ''}an object with a type")
            kind = value.get("type") if isinstance(value, Mapping) else getattr(value, "type", None)
            if not isinstance(kind, str):
                raise problem("missing_type", f"{what} needs a 'type': one of {', '.join(by_type)}")
            if kind not in by_type:
                raise problem("unknown_type", _no_such(what, kind, by_type))
            return by_type[kind].model_validate(value)

        return PlainValidator(read).__get_pydantic_core_schema__(source, handler)


def one_of(what: str) -> _OneOf:
    """Return an annotation of a union: a value is read by its `type`, or as a plain name that is a literal there.

    Errors then carry the path of the field alone, without the branches of the union. A name stays text on the wire.

    :param what: what to call one of them in messages.
    """
    return _OneOf(what)


def _no_such(what: str, given: str, known: Collection[str]) -> str:
    found = nearest(given, known)
    hint = f"did you mean '{found}'?" if found else f"there are {', '.join(known)}"
    return f"{what} of this name does not exist; {hint}"


def switch_or(model: type[RequestModel]) -> PlainValidator:
    """Return a validator for a field that takes true, false or an object of the given model."""

    def read(value: Any) -> Any:
        return model.model_validate(value) if isinstance(value, (Mapping, RequestModel)) else _switch(value)

    return PlainValidator(read)
