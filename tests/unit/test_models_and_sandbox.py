"""Two statements of each request, made apart: the client's models and the sandbox's schema take and refuse the same."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from airflow_provider_webdata.api import models as m
from airflow_provider_webdata.api.endpoints import PARSE_REFERENCE, Endpoint
from airflow_provider_webdata.sandbox.reference.rules import check
from airflow_provider_webdata.sandbox.reference.schema import BODIES
from tests.support.request_fields import Edge, alias, drawn, edges, minimal, request_endpoints

NAMED = {
    ("POST", "monitor"): "monitor.create",
    ("PATCH", "monitor"): "monitor.update",
    ("POST", "crawl.params-preview"): "crawl.params",
    ("GET", "search.research.papers.{paper_id}"): "search.research.paper",
    ("GET", "search.research.papers.similar"): "search.research.similar",
}


def sandbox_name(endpoint: Endpoint[Any]) -> str:
    """Return what the sandbox calls the body of an endpoint: the fixed parts of its path, as a rule."""
    if endpoint is PARSE_REFERENCE:
        return "parse.reference"
    parts = endpoint.path.removeprefix("/v2/").split("/")
    if endpoint.method != "GET" or not parts[-1].startswith("{"):
        parts = [part for part in parts if not part.startswith("{")]
    name = ".".join(parts)
    return NAMED.get((endpoint.method, name), name)


OPERATIONS = {model: sandbox_name(endpoint) for model, endpoint in request_endpoints().items()}

UNCHECKED = re.compile(r"^targets\.0\.(scrapeOptions|crawlOptions)\.")
"""What the service stores with a monitor as it comes: a bad one fails each check, so that the client refuses it."""

CLIENT_IS_STRICTER = {
    "options of a target": r"^Monitor\w+ targets\.0\.(scrapeOptions|crawlOptions)",
    "enterprise 'default'": r"^SearchRequest enterprise",  # asks for nothing
    "selectors of attributes": r"formats\.0\.selectors",  # without any, nothing comes of the format
}
SANDBOX_IS_STRICTER = {
    "hosts": r" url$",  # which names could be hosts of the web is for the service to say
}
ONLY_IN_THE_SANDBOX = {
    "search": {"lang", "filter"},
    "crawl.params": {"origin", "integration"},
    "parse": {"fastMode", "waitFor", "mobile", "actions"},
    "parse.reference": {"fastMode", "waitFor", "mobile", "actions"},
    "extract": {"limit", "timeout"},
    "interact": {"location"},
    "interact.execute": {"origin"},
    "scrape.interact": {"existingSessionId"},
    "monitor.create": {"origin"},
    "monitor.update": {"origin"},
}
"""Fields of other clients, which the sandbox serves too."""


def told(patterns: dict[str, str], edge: Edge, model: type[m.RequestModel]) -> bool:
    return any(re.search(pattern, f"{model.__name__} {edge.path}") for pattern in patterns.values())


def verdicts(model: type[m.RequestModel], body: dict[str, Any]) -> tuple[str, str]:
    """Return what the client and what the sandbox says against a body; nothing where it takes it.

    What a model only warns of is for the service to judge.
    """
    try:
        request = model.model_validate(body)
    except ValidationError as error:
        return str(error), " ".join(issue.message for issue in check(OPERATIONS[model], body))
    warned = {doubt.partition(":")[0].rpartition(".")[2] for doubt in request.warnings()}
    issues = check(OPERATIONS[model], request.to_wire())
    return "", " ".join(i.message for i in issues if not warned & {str(part) for part in i.path})


def agree(model: type[m.RequestModel], found: Iterator[Edge]) -> None:
    differences = []
    for edge in found:
        if UNCHECKED.match(edge.path):
            continue
        client, sandbox = verdicts(model, edge.body)
        if bool(client) == bool(sandbox):
            continue
        if not told(CLIENT_IS_STRICTER if client else SANDBOX_IS_STRICTER, edge, model):
            who = "the client alone refuses" if client else "the sandbox alone refuses"
            differences.append(f"{edge.path}: {who} {str(edge.body)[:150]}: {client or sandbox}")
    assert not differences, "\n".join(differences)


def test_every_request_has_both_statements() -> None:
    assert set(OPERATIONS.values()) == BODIES.keys() - {"scrapeOptions"}


@pytest.mark.parametrize("model", OPERATIONS, ids=OPERATIONS.get)
def test_both_know_the_same_fields(model: type[m.RequestModel]) -> None:
    """A field that only one knows was forgotten in the other."""
    operation = OPERATIONS[model]
    client, sandbox = (
        {alias(model, name) for name in model.model_fields},
        BODIES[operation]["properties"].keys(),
    )
    assert client - sandbox == set(), f"missing in the sandbox's schema of {operation}"
    assert sandbox - client == ONLY_IN_THE_SANDBOX.get(operation, set()), f"missing in {model.__name__}"
    required = {alias(model, name) for name, field in model.model_fields.items() if field.is_required()}
    assert required == set(BODIES[operation].get("required", ()))


@pytest.mark.parametrize("model", OPERATIONS, ids=OPERATIONS.get)
def test_both_sides_of_the_client_s_limits(model: type[m.RequestModel]) -> None:
    agree(model, edges(model))


@pytest.mark.parametrize("model", OPERATIONS, ids=OPERATIONS.get)
def test_both_sides_of_the_sandbox_s_limits(model: type[m.RequestModel]) -> None:
    operation = OPERATIONS[model]
    base = minimal(model)

    def body(name: str) -> Callable[[Any], dict[str, Any]]:
        return lambda value: {**base, name: value}

    agree(
        model,
        (
            edge
            for name, schema in BODIES[operation]["properties"].items()
            if name not in ONLY_IN_THE_SANDBOX.get(operation, ())
            for edge in schema_edges(schema, name, body(name))
        ),
    )


def schema_edges(schema: Any, path: str, put: Callable[[Any], dict[str, Any]]) -> Iterator[Edge]:
    """Yield bodies on both sides of the limits that a JSON Schema states without alternatives."""
    for low, high, value in (
        ("minimum", "maximum", lambda number: number),
        ("exclusiveMinimum", "exclusiveMaximum", lambda number: number),
        ("minLength", "maxLength", lambda length: "x" * length),
        ("minItems", "maxItems", lambda length: [schema_sample(schema["items"])] * length),
    ):
        for name, step in ((low, -1), (high, 1)):
            if name in schema and value(schema[name]) is not None:
                yield from (
                    Edge(path, put(value(schema[name] + by)), by * step <= 0)
                    for by in (-1, 0, 1)
                    if schema[name] + by >= 0 or "imum" in name
                )
    yield from (Edge(path, put(choice), True) for choice in schema.get("enum", ()))
    if isinstance(schema.get("items"), dict):
        yield from schema_edges(schema["items"], f"{path}.0", lambda value: put([value]))
    for name, inner in schema.get("properties", {}).items():
        rest = {
            key: schema_sample(schema["properties"][key]) for key in schema.get("required", ()) if key != name
        }
        yield from schema_edges(
            inner, f"{path}.{name}", lambda value, name=name, rest=rest: put({**rest, name: value})
        )


def schema_sample(schema: Any) -> Any:
    if "enum" in schema:
        return schema["enum"][0]
    kind = schema.get("type")
    return {"integer": schema.get("minimum", 1), "boolean": True, "object": {}, "array": []}.get(
        kind, "a.example"
    )


@pytest.mark.parametrize("model", OPERATIONS, ids=OPERATIONS.get)
@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much]
)
@given(data=st.data())
def test_the_sandbox_takes_whatever_the_client_takes(
    model: type[m.RequestModel], data: st.DataObject
) -> None:
    assert verdicts(model, data.draw(drawn(model))) == ("", "")


ROWS = [
    pytest.param(row[0], row[1](value), id=f"{name}-{index}")
    for path in sorted((Path(__file__).parent / "api" / "models").glob("test_*.py"))
    for name, row in getattr(import_module(f"tests.unit.api.models.{path.stem}"), "ROWS", {}).items()
    if row[0] in OPERATIONS
    for index, value in enumerate(row[3])
    if str(value).isascii()  # which names of other scripts could be hosts is for the service to say
]
"""What the tests of the models say that a request takes."""


@pytest.mark.parametrize(("model", "body"), ROWS)
def test_the_sandbox_takes_what_the_tables_of_the_models_take(
    model: type[m.RequestModel], body: dict[str, Any]
) -> None:
    assert verdicts(model, body) == ("", "")
