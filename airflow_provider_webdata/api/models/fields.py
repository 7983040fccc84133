# SPDX-License-Identifier: Apache-2.0
"""Shared field types of requests: numbers and switches from rendered templates, lists, mappings, and hosts."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping
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

from airflow_provider_webdata.api.models.base import RequestModel, problem
from airflow_provider_webdata.common.arguments import collection_in, from_json_text
from airflow_provider_webdata.common.spelling import nearest

if TYPE_CHECKING:
    from pydantic import GetCoreSchemaHandler
    from pydantic_core import CoreSchema

T = TypeVar("T")

TEMPLATE_HINT = (
    "a template renders to text unless the DAG has render_template_as_native_obj=True, or the whole field is "
    "an XComArg"
)


def _integer(value: Any) -> Any:
    if isinstance(value, bool):
        raise problem("whole_number", "must be a whole number, not a boolean")
    if isinstance(value, str):
        if not re.fullmatch(r"\s*[+-]?[0-9]{1,30}\s*", value):
            raise problem("whole_number", "must be a whole number")
        return int(value)
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, float) and value.is_integer():
        return int(value)
    raise problem("whole_number", "must be a whole number")


def _number(value: Any) -> Any:
    if isinstance(value, bool):
        raise problem("number", "must be a number, not a boolean")
    if isinstance(value, str) and re.fullmatch(r"\s*[+-]?[0-9]{1,30}(\.[0-9]{1,30})?\s*", value):
        value = float(value) if "." in value else int(value)
    if isinstance(value, (int, float)) and math.isfinite(value):
        return value
    raise problem("number", "must be a number")


def _switch(value: Any) -> Any:
    if isinstance(value, bool):
        return value
    if isinstance(value, str) and value.strip().lower() in {"true", "false"}:
        return value.strip().lower() == "true"
    raise problem("switch", "must be true or false, as a boolean or as text")


def _not_blank(value: str) -> str:
    if not value.strip():
        raise problem("blank", "must not be blank")
    return value


def _query(value: str) -> str:
    if collection_in(value) is not None:
        raise problem(
            "query",
            "must be one text, but is a list that a template rendered as text; make one call per item",
        )
    return _not_blank(value).strip()


def _country(value: str) -> str:
    if not re.fullmatch("[A-Za-z]{2}", value):
        raise problem("country", "must be a two-letter country code, such as DE")
    return value.upper()


def listed(value: Any) -> Any:
    """Return the list in a JSON text; any other value unchanged.

    :raises PydanticCustomError: the value is any other text.
    """
    if isinstance(value, str):
        try:
            parsed = from_json_text(value)
        except ValueError as error:
            raise problem("list_type", f"must be a list: {error}") from None
        if isinstance(parsed, list):
            return parsed
    if isinstance(value, (str, bytes)):
        raise problem("list_type", "must be a list, not text; end a template of a list with `| tojson`")
    return value


def _string_map(value: Any) -> Any:
    if not isinstance(value, Mapping):
        raise problem("map_type", f"must be a mapping of names to text ({TEMPLATE_HINT})")
    try:
        items = dict(value)
    except Exception as error:
        # A custom mapping may raise anything; callers expect a ValidationError.
        raise problem("map_type", "the mapping cannot be read") from error
    for key, item in items.items():
        if not isinstance(key, str) or not key:
            raise problem("map_type", "every name must be non-empty text")
        if not isinstance(item, str):
            raise problem(
                "map_type",
                f"the value of '{key}' must be text, not {type(item).__name__}; "
                "quote numbers, and convert nested values to JSON text",
            )
    return {encodable(key): encodable(item) for key, item in items.items()}


def encodable(value: str) -> str:
    """Return `value` as plain text that UTF-8 can encode.

    :raises PydanticCustomError: the text contains a lone surrogate, for example because it was cut inside an emoji.
    """
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise problem(
            "text",
            f"the text contains a lone surrogate at character {error.start + 1}, which UTF-8 cannot encode; "
            "remove it, or cut the text elsewhere",
        ) from None
    return str(value)


def _headers(value: dict[str, str]) -> dict[str, str]:
    for name, content in value.items():
        if not re.fullmatch(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+", name):
            raise problem("header_name", f"'{name}' is not a valid HTTP header name")
        if re.search(r"[\x00-\x08\x0a-\x1f\x7f]", content):
            # The message omits the value, which may be a credential.
            raise problem(
                "header_value", f"the value of header '{name}' contains a line break or control character"
            )
    return value


_DEEPEST = 100


def json_copy(value: Any, depth: int = 0) -> Any:
    """Return a copy of `value` with JSON types only.

    :raises PydanticCustomError: the value is not JSON-serializable.
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
            raise problem("json", "JSON does not support NaN and infinity")
        return value
    if isinstance(value, (list, tuple)):
        return [json_copy(item, depth + 1) for item in value]
    if isinstance(value, dict):
        for key in value:
            if not isinstance(key, str):
                raise problem("json", f"JSON names must be text, not {type(key).__name__}")
        return {encodable(key): json_copy(item, depth + 1) for key, item in value.items()}
    raise problem("json", f"a value of type {type(value).__name__} is not JSON-serializable")


def _json_object(value: Any) -> Any:
    if not isinstance(value, dict):
        raise problem("json_object", f"must be a JSON object ({TEMPLATE_HINT})")
    return json_copy(value)


def _schema_of_model(value: Any) -> Any:
    if not isinstance(value, type) or not hasattr(value, "model_json_schema"):
        return value
    try:
        return value.model_json_schema()
    except PydanticUserError as error:
        raise problem("json_schema", f"{value.__name__} has no JSON Schema: {error.message}") from None


def _json_schema(value: dict[str, Any]) -> dict[str, Any]:
    # Imported here because the import is slow, and few requests contain a schema.
    from jsonschema import Draft4Validator, Draft7Validator, Draft202012Validator
    from jsonschema.exceptions import best_match

    found = []
    # The service specifies no draft, so any draft is valid. Formats are not checked: a pattern is a JavaScript regular
    # expression, not a Python one.
    for draft in (Draft202012Validator, Draft7Validator, Draft4Validator):
        try:
            error = best_match(draft(draft.META_SCHEMA).iter_errors(value))
        except RecursionError:
            raise problem("json_schema", "the JSON Schema is nested too deeply") from None
        if error is None:
            return value
        found.append(error)
    where = "/".join(str(part) for part in found[0].absolute_path) or "the top level"
    raise problem("json_schema", f"not a valid JSON Schema; at {where}: {found[0].message[:200]}")


_LABEL = r"[^\W_](?:(?:[^\W_]|-){0,61}[^\W_])?"
_HOSTNAME = re.compile(rf"{_LABEL}(?:\.{_LABEL})*")


def hostname(value: str) -> str:
    """Return `value` if it is a bare host name of at most 253 characters; the service converts it to lower case.

    :raises PydanticCustomError: the value contains a protocol, port, path, wildcard, or space, or is too long.
    """
    if "://" in value or "/" in value:
        raise problem(
            "hostname",
            "must be a host name without protocol and path: example.com, not https://example.com/a",
        )
    if len(value) > 253:
        raise problem("hostname", "must have at most 253 characters")
    if not _HOSTNAME.fullmatch(value):
        raise problem("hostname", "must be a host name such as example.com or docs.example.com")
    return value


def _domain_pattern(value: str) -> str:
    host = value.removeprefix("*.")
    if "://" in host or "/" in host or ":" in host:
        raise problem(
            "domain", "must be a domain without protocol, path, or port: example.com or *.example.com"
        )
    if len(host) > 253 or not _HOSTNAME.fullmatch(host):
        raise problem("domain", "must be a domain (example.com) or a wildcard (*.example.com)")
    return value


def _top_level_domain(value: str) -> str:
    if value.startswith("."):
        raise problem("tld", "must be a top-level domain without the leading dot")
    if value != value.lower():
        raise problem("tld", "must be a top-level domain in lower case")
    if not re.fullmatch(_LABEL, value):
        raise problem("tld", "must be a top-level domain such as zip or xyz")
    return value


def _web_address(value: str) -> str:
    if not (value := value.strip()):
        raise problem("url", "must not be blank")
    if collection_in(value) is not None:
        raise problem(
            "url", "must be one URL, but is a list that a template rendered as text; make one call per item"
        )
    if re.search(r"\s", value):
        raise problem("url", "a URL must not contain spaces or line breaks")
    scheme = re.match(r"([A-Za-z][A-Za-z0-9+.-]*)://", value)
    if scheme and scheme[1].lower() not in {"http", "https"}:
        raise problem("url", "the service supports only http and https")
    if scheme and not re.match(r"[^/?#]", value[scheme.end() :]):
        raise problem("url", "the URL has no host")
    return value


def _day(value: str) -> str:
    try:
        day = date.fromisoformat(value)
    except ValueError:
        day = None
    if day is None or day.isoformat() != value:
        raise problem("day", "must be a date in the form YYYY-MM-DD")
    return value


INTEGRATIONS = (
    *("camelai", "cli", "crewai", "dify", "flowise", "gstack", "hermes", "langchain", "llamaindex", "make"),
    *("metagpt", "n8n", "pipedream", "prometheus", "raycast", "relevanceai", "viasocket", "zapier"),
)
"""Names that the service accepts as `integration`, as of 2026-08-21. See sandbox/docs/service.md#caller-integration."""


def integration(value: str) -> str:
    """Return `value` if the service accepts it as `integration`.

    :raises PydanticCustomError: the value is neither a known name nor text that begins with `_`.
    """
    if value not in INTEGRATIONS and not value.startswith("_"):
        raise problem(
            "integration",
            f"must begin with '_', as every server accepts, or be a name that the service knows (as of 2026-08-21): "
            f"{', '.join(INTEGRATIONS)}",
        )
    return value


def _droppable_address(value: str, info: ValidationInfo) -> str:
    return value.strip() if info.data.get("ignore_invalid_urls") else _web_address(value)


def _is_address(value: str) -> bool:
    try:
        _web_address(value)
    except ValueError:
        return False
    return True


def dropped(urls: Collection[str] | None) -> list[str]:
    """Return a warning about URLs that the service will skip, or an empty list."""
    given = urls or ()
    bad = [url for url in given if not _is_address(url)]
    return (
        [f"urls: {len(bad)} of {len(given)} are invalid and will be skipped, such as {bad[0]!r}"]
        if bad
        else []
    )


def _not_both(value: list[str], info: ValidationInfo) -> list[str]:
    others = {"include_domains", "exclude_domains"} - {info.field_name}
    if any(info.data.get(other) is not None for other in others):
        raise problem(
            "domain_filters", "excludeDomains and includeDomains are mutually exclusive; keep one of them"
        )
    return value


def _identifier(value: str) -> str:
    if not re.fullmatch(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}", value):
        raise problem("uuid", "must be a UUID from the service")
    return value


String = Annotated[str, Field(strict=True), AfterValidator(encodable)]
"""Text, sent unchanged."""

Text = Annotated[String, AfterValidator(_not_blank)]
"""Text that is not blank."""

Query = Annotated[String, AfterValidator(_query)]
"""Text to search for, without blanks and line ends around it."""

Integer = Annotated[int, BeforeValidator(_integer)]
"""A whole number; accepts "5", but not true."""

Number = Annotated[int | float, PlainValidator(_number)]
"""A number; accepts "1.5", but not true."""

Switch = Annotated[bool, BeforeValidator(_switch)]
"""True or false, or the same as text in any case; rejects 0 and 1."""

Listed = Annotated[list[T], BeforeValidator(listed)]
"""A list, or its JSON text."""

StringMap = Annotated[dict[str, str], PlainValidator(_string_map)]
"""A mapping of names to text."""

Headers = Annotated[StringMap, AfterValidator(_headers)]
"""HTTP headers; the values may be credentials, so fields of this type have `repr=False`."""

JsonObject = Annotated[dict[str, Any], PlainValidator(_json_object)]
"""A JSON object with any fields."""

JsonSchema = Annotated[JsonObject, AfterValidator(_json_schema), BeforeValidator(_schema_of_model)]
"""A JSON Schema of any draft, or a pydantic model class."""

Integration = Annotated[Text, AfterValidator(integration)]
"""Label of the caller: a known name, or text that begins with `_`."""

Day = Annotated[String, AfterValidator(_day)]
"""A date, such as `2026-01-31`."""

Hostname = Annotated[String, AfterValidator(hostname)]
DomainFilter = Annotated[Listed[Hostname], AfterValidator(_not_both)]
"""Host names in `include_domains` or `exclude_domains`, which are mutually exclusive."""

DomainPattern = Annotated[String, AfterValidator(_domain_pattern)]
TopLevelDomain = Annotated[String, AfterValidator(_top_level_domain)]

CountryCode = Annotated[String, AfterValidator(_country)]
"""An ISO 3166-1 alpha-2 code in any case; sent in upper case, as the service documents it."""

WebAddress = Annotated[String, AfterValidator(_web_address)]
"""An http or https URL; the service adds `http://` if the protocol is missing."""

DroppableAddress = Annotated[String, AfterValidator(_droppable_address)]
"""Like `WebAddress`, but any text with `ignore_invalid_urls`, which must be declared before this field."""

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
                        "needs_object", f"'{value}' needs options; use an object with type '{value}'"
                    )
                raise problem("unknown_type", _no_such(what, value, names or by_type))
            if isinstance(value, models):
                return type(value).model_validate(value)
            if not isinstance(value, (Mapping, RequestModel)):
                raise problem(
                    "unknown_type", f"{what} must be {'text or ' if names else ''}an object with a type"
                )
            kind = value.get("type") if isinstance(value, Mapping) else getattr(value, "type", None)
            if not isinstance(kind, str):
                raise problem("missing_type", f"{what} needs a 'type': one of {', '.join(by_type)}")
            if kind not in by_type:
                raise problem("unknown_type", _no_such(what, kind, by_type))
            return by_type[kind].model_validate(value)

        return PlainValidator(read).__get_pydantic_core_schema__(source, handler)


def one_of(what: str) -> _OneOf:
    """Return an annotation for a union whose members are selected by `type`, or by name if the union has literals.

    Errors then contain only the path of the field, without the branches of the union. A name remains text on the wire.

    :param what: noun with an article for messages, such as `a format`.
    """
    return _OneOf(what)


def _no_such(what: str, given: str, known: Collection[str]) -> str:
    found = nearest(given, known)
    hint = f"did you mean '{found}'?" if found else f"use one of {', '.join(known)}"
    return f"{what} of this name does not exist; {hint}"


def switch_or(model: type[RequestModel]) -> PlainValidator:
    """Return a validator for a field that accepts true, false, or an object of the given model."""

    def read(value: Any) -> Any:
        return model.model_validate(value) if isinstance(value, (Mapping, RequestModel)) else _switch(value)

    return PlainValidator(read)
