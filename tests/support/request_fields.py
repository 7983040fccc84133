# SPDX-License-Identifier: Apache-2.0
"""Values for every field of a request, derived from its model. A new field needs no entry here.

Limits (numbers, lengths, choices) are read from the fields. `TEXTS` names values for each validator of this package. A
new validator needs one entry there, for all fields that use it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields
from functools import cache, partial
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, cast, get_args, get_origin

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy
from pydantic import AfterValidator, BeforeValidator, PlainValidator, ValidationError
from pydantic.fields import FieldInfo

from airflow_provider_webdata.api import endpoints
from airflow_provider_webdata.api.models import RequestModel
from airflow_provider_webdata.api.models.scrape import MonitorScrapeOptions
from airflow_provider_webdata.api.servers import HOSTED

plain = st.characters(codec="utf-8", exclude_categories=["Cc"])
said = st.text(plain, min_size=1, max_size=30).filter(str.strip)
label = st.from_regex(r"[a-z0-9]([a-z0-9-]{0,10}[a-z0-9])?", fullmatch=True)
host = st.builds("{}.{}".format, label, label)
url = st.sampled_from(["https://a.example/start", "https://b.example/", "http://a.example/x?y=1"])

TEXTS: dict[str, tuple[Any, SearchStrategy[Any]]] = {
    "_not_blank": ("x", said),
    "_code": ("exit 0", said),
    "_query": ("zeppelin", said),
    "_tbs": ("qdr:w", st.sampled_from(["qdr:h", "sbd:1", "sbd:1,qdr:w", "cdr:1,cd_min:01/02/2024,cd_max:03/04/2024"])),
    "hostname": ("a.example", host),
    "_domain_pattern": ("*.a.example", host | st.builds("*.{}".format, host)),
    "_top_level_domain": ("zip", st.sampled_from(["zip", "xyz", "xn--p1ai"])),
    "_web_address": ("https://a.example/start", url),
    "_droppable_address": ("https://a.example/start", url),
    "_whole_address": ("https://a.example/start", url),
    "_day": ("2026-01-31", st.dates().map(str).filter(lambda day: day[0] != "0")),
    "integration": ("_x", st.sampled_from(["n8n", "cli", "prometheus"]) | said.map("_{}".format)),
    "_country": ("DE", st.sampled_from(["DE", "US"])),
    "_label": ("missing_markdown", st.from_regex(r"[a-z0-9][a-z0-9_-]{0,79}", fullmatch=True)),
    "_small": ({"run": 5}, st.dictionaries(said, st.integers(0, 9) | st.text(plain, max_size=20), max_size=3)),
    "_receiver": ("https://hooks.example/in", st.just("https://hooks.example/in")),
    "_identifier": ("7f3c1a52-9d0e-4b7a-8f65-0123456789ab", st.uuids().map(str)),
    "_email": ("a@example.com", st.just("a@example.com")),
    "_cron": ("0 9 * * 1-5", st.sampled_from(["*/5 * * * *", "0 9 * * 1-5", "0 0 1 */2 *"])),
    "_phrase": ("hourly", st.sampled_from(["hourly", "daily at 9:00 pm", "every 30 minutes starting at :05"])),
    "_time_zone": ("Europe/Berlin", st.sampled_from(["UTC", "Europe/Berlin"])),
    "_json_schema": (
        {"type": "object", "properties": {"a": {"type": "string"}}},
        st.sampled_from([{}, {"type": "object", "properties": {"a": {"type": "string"}}}, {"type": ["null"]}]),
    ),
    "_headers": (
        {"X-Key": "k"},
        st.dictionaries(st.from_regex(r"X-[A-Za-z0-9]{1,10}", fullmatch=True), st.text(plain, max_size=20), max_size=3),
    ),
    "_string_map": ({"run": "r"}, st.dictionaries(said, st.text(plain), max_size=3)),
}  # fmt: skip
"""Values for a text, or for an object with free names, by the last validator that checks it."""

EVENTS = {
    "MonitorWebhookConfig": ["monitor.page", "monitor.check.completed"],
    "PageJobWebhookConfig": ["started", "page", "completed", "failed"],
    "AgentWebhookConfig": ["started", "action", "completed", "failed", "cancelled"],
}

BASES: dict[str, dict[str, Any]] = {
    "PaperRequest": {"query": "q"},
    "ScrapeInteractRequest": {"code": "exit 0"},
    "MonitorSchedule": {"cron": "0 9 * * 1-5"},
    "WaitAction": {"milliseconds": 5},
}
"""Fields that a body needs although no single one of them is required."""


@dataclass
class Limits:
    """The limits that a field's annotations state."""

    ge: float | None = None
    le: float | None = None
    gt: float | None = None
    min_length: int | None = None
    max_length: int | None = None
    validators: list[str] = field(default_factory=list)

    def read(self, metadata: Any) -> Limits:
        """Read annotations, including those of a field's `Field(...)`."""
        for item in metadata:
            if isinstance(item, FieldInfo):
                self.read(item.metadata)
            elif isinstance(item, (AfterValidator, BeforeValidator, PlainValidator)):
                self.validators.append(getattr(item.func, "__name__", ""))
            for limit in fields(self)[:-1]:
                if (value := getattr(item, limit.name, None)) is not None:
                    setattr(self, limit.name, value)
        return self

    @property
    def text(self) -> tuple[Any, SearchStrategy[Any]] | None:
        """The entry in `TEXTS`, if any."""
        return next((TEXTS[name] for name in reversed(self.validators) if name in TEXTS), None)


def request_endpoints() -> dict[type[RequestModel], endpoints.Endpoint[Any]]:
    """Return the endpoints that accept a body, by the model of the body."""
    declared = endpoints.ENDPOINTS.values()
    return {endpoint.request(): endpoint for endpoint in declared if endpoint.request is not None}


def alias(model: type[RequestModel], name: str) -> str:
    """Return the wire name of a field."""
    return model.model_fields[name].alias or name


def parts(annotation: Any, limits: Limits) -> Iterator[tuple[Any, Limits]]:
    """Yield the branches of an annotation, each with its limits; None is no branch."""
    origin, args = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        yield from parts(args[0], Limits(**vars(limits)).read(args[1:]))
    elif origin in (Union, UnionType):
        for part in args:
            if part is not NoneType:
                yield from parts(part, limits)
    else:
        yield annotation, limits


def _branches(model: type[RequestModel], name: str) -> list[tuple[Any, Limits]]:
    found = model.model_fields[name]
    return [*parts(found.annotation, Limits().read(found.metadata))]


# One value.


def sample(model: type[RequestModel], name: str) -> Any:
    """Return a value that a field accepts, on the wire."""
    if name == "events":
        return EVENTS[model.__name__][:1]
    return _sample(*_branches(model, name)[-1])


def _sample(annotation: Any, limits: Limits) -> Any:
    origin, args = get_origin(annotation), get_args(annotation)
    if limits.text is not None:
        return limits.text[0]
    if origin is Literal:
        return args[0]
    if origin is list:
        return [_sample(*next(parts(args[0], Limits())))] * max(1, limits.min_length or 0)
    if annotation is bool:
        return True
    if annotation in (int, float):
        return int(limits.ge if limits.ge is not None else limits.gt or 0) + 1
    if annotation is str:
        return "x"
    if origin is dict:
        return {}
    return minimal(annotation)


def minimal(model: type[RequestModel]) -> dict[str, Any]:
    """Return the smallest body, on the wire, that a model accepts."""
    required = {
        alias(model, name): sample(model, name)
        for name, found in model.model_fields.items()
        if found.is_required() or name == "type"
    }
    return {**required, **BASES.get(model.__name__, {})}


def samples(model: type[RequestModel]) -> dict[str, Any]:
    """Return a value for each field of a model, by wire name; some may not go together."""
    return {alias(model, name): sample(model, name) for name in model.model_fields}


# Both sides of each limit.


@dataclass(frozen=True)
class Edge:
    """A body just within a limit, or just beyond it.

    :param path: of the field, such as `scrapeOptions.timeout`.
    :param body: on the wire.
    :param within: whether the model's statement of the field accepts it.
    """

    path: str
    body: dict[str, Any]
    within: bool


def edges(model: type[RequestModel]) -> Iterator[Edge]:
    """Yield bodies on both sides of every limit of a model's fields, those of objects inside included."""
    yield from _edges(model, "", lambda body: body)


def _edges(model: type[RequestModel], path: str, wrap: Callable[[Any], dict[str, Any]]) -> Iterator[Edge]:
    base = minimal(model)
    yield Edge(f"{path}*", wrap({**base, "nonsense": 1}), False)
    for name, found in model.model_fields.items():
        wire = alias(model, name)
        at = f"{path}{wire}"
        if name == "type":
            continue
        if found.is_required():
            yield Edge(at, wrap({key: value for key, value in base.items() if key != wire}), False)

        def put(value: Any, wire: str = wire) -> dict[str, Any]:
            return wrap({**base, wire: value})

        for annotation, limits in _branches(model, name):
            if name == "events":
                yield Edge(at, put(EVENTS[model.__name__]), True)
                yield Edge(at, put(["nonsense"]), False)
            else:
                yield from _values(annotation, limits, at, put)


def _values(annotation: Any, limits: Limits, at: str, put: Callable[[Any], dict[str, Any]]) -> Iterator[Edge]:
    origin, args = get_origin(annotation), get_args(annotation)
    if origin is Literal:
        yield from (Edge(at, put(choice), True) for choice in args)
        yield Edge(at, put("nonsense"), False)
    elif origin is list:
        item = next(parts(args[0], Limits()))
        for length, within in _lengths(limits):
            yield Edge(at, put([_sample(*item)] * length), within)
        yield Edge(at, put("nonsense"), False)
        for part, inner in parts(args[0], Limits()):
            yield from _values(part, inner, f"{at}.0", lambda value: put([*_companions(value), value]))
    elif annotation is bool:
        yield from (Edge(at, put(value), True) for value in (True, False))
        yield Edge(at, put("nonsense"), False)
    elif annotation in (int, float):
        step = 1 if annotation is int else 0.5
        for low, within in ((limits.ge, True), (limits.gt, False)):
            if low is not None:
                yield Edge(at, put(low), within)
                yield Edge(at, put(low + (-step if within else step)), not within)
        if limits.le is not None:
            yield Edge(at, put(limits.le), True)
            yield Edge(at, put(limits.le + step), False)
        yield Edge(at, put("nonsense"), False)
    elif isinstance(annotation, type) and issubclass(annotation, RequestModel):
        yield from _edges(annotation, f"{at}.", put)
    else:
        yield Edge(at, put(_sample(annotation, limits)), True)
        yield Edge(at, put(5), False)
        if limits.text in (None, TEXTS["_not_blank"], TEXTS["_query"]) and limits.max_length is not None:
            yield Edge(at, put("x" * limits.max_length), True)
            yield Edge(at, put("x" * (limits.max_length + 1)), False)


def _companions(item: Any) -> list[str]:
    """Return the items that must accompany an item in a list."""
    kind = item.get("type") if isinstance(item, dict) else item
    return ["markdown"] if kind == "changeTracking" else []


def _lengths(limits: Limits) -> Iterator[tuple[int, bool]]:
    low, high = limits.min_length or 0, limits.max_length
    yield low, True
    if low:
        yield low - 1, False
    if high is not None:
        yield from ((high, True), (high + 1, False))


# Whole bodies, drawn.


@cache
def drawn(model: type[RequestModel]) -> SearchStrategy[dict[str, Any]]:
    """Return a strategy for wire bodies that a model and the hosted service accept, with any optional fields."""
    required: dict[str, SearchStrategy[Any]] = {}
    optional: dict[str, SearchStrategy[Any]] = {}
    for name, found in model.model_fields.items():
        values = _drawn_field(model, name)
        into = required if found.is_required() or name == "type" else optional
        into[alias(model, name)] = values
    bodies = st.fixed_dictionaries(required, optional=optional)
    found_bodies = bodies.map(partial(repaired, model)).filter(lambda body: body is not None)
    return cast("SearchStrategy[dict[str, Any]]", found_bodies)


def _drawn_field(model: type[RequestModel], name: str) -> SearchStrategy[Any]:
    if name == "events":
        return st.lists(st.sampled_from(EVENTS[model.__name__]), max_size=3)
    if name == "timeout" and issubclass(model, MonitorScrapeOptions):
        # Only a self-hosted server accepts more.
        return st.integers(1000, HOSTED.longest_scrape_ms)
    values = st.one_of(*(_drawn(*branch) for branch in _branches(model, name)))
    return st.none() | values if name in model.nullable else values


def _drawn(annotation: Any, limits: Limits) -> SearchStrategy[Any]:
    origin, args = get_origin(annotation), get_args(annotation)
    if limits.text is not None:
        return limits.text[1]
    if origin is Literal:
        return st.sampled_from(args)
    if origin is list:
        items = st.one_of(*(_drawn(*part) for part in parts(args[0], Limits())))
        low = limits.min_length or 0
        return st.lists(items, min_size=low, max_size=min(limits.max_length or 3, low + 3))
    if origin is dict:
        return st.dictionaries(st.text(plain, min_size=1, max_size=9), st.text(plain, max_size=9), max_size=2)
    if annotation is bool:
        return st.booleans()
    if annotation is int:
        return st.integers(*(None if limit is None else int(limit) for limit in (limits.ge, limits.le)))
    if annotation is float:
        least = limits.ge if limits.ge is not None else limits.gt
        return st.floats(
            least, limits.le, exclude_min=limits.gt is not None, allow_nan=False, allow_infinity=False
        )
    if annotation is str:
        return st.text(plain, min_size=limits.min_length or 0, max_size=min(limits.max_length or 30, 30))
    return drawn(annotation)


def repaired(model: type[RequestModel], body: dict[str, Any]) -> dict[str, Any] | None:
    """Return a body without the optional fields that do not go together with others in it, or None."""
    required = minimal(model).keys() if model.__name__ not in BASES else set()
    for _ in range(4):
        try:
            request = model.model_validate(body)
        except ValidationError as error:  # noqa: PERF203
            wrong = {str(issue["loc"][0]) for issue in error.errors() if issue["loc"]} - required
            if not wrong & body.keys():
                return None
            body = {name: value for name, value in body.items() if name not in wrong}
        else:
            return None if request.refused_by(HOSTED) else body
    return None
