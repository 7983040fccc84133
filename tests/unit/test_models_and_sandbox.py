# SPDX-License-Identifier: Apache-2.0
"""The client's models and the sandbox's schema: two separate statements of each request, which accept the same bodies.

Each side's limits are tried on the other, and so is a value of every JSON kind in every field. The tables of the
sandbox's rules (sandbox/tests/test_rules.py) therefore have no rows about the type or the limit of a single
field: a limit that is wrong on one side differs from the other side's here.
"""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from typing import TYPE_CHECKING, Any, TypeAlias

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from airflow_provider_webdata.api.servers import HOSTED
from tests.support.examples import examples
from tests.support.request_fields import EVENTS, alias, drawn, edges, minimal, request_endpoints
from tests.unit.api.models.test_limits import ROWS
from tests.unit.api.models.test_requests import SENT
from webdata_sandbox.reference.rules import check
from webdata_sandbox.reference.schema import BODIES

if TYPE_CHECKING:
    from airflow_provider_webdata.api.endpoints import Endpoint
    from airflow_provider_webdata.api.models import RequestModel

# Path of the field that is tried, and the body.
Attempt: TypeAlias = tuple[str, dict[str, Any]]

NAMED = {
    ("POST", "monitor"): "monitor.create",
    ("PATCH", "monitor"): "monitor.update",
    ("POST", "crawl.params-preview"): "crawl.params",
    ("GET", "search.research.papers.{paper_id}"): "search.research.paper",
    ("GET", "search.research.papers.similar"): "search.research.similar",
}
NO_CALLS_OF_THE_CLIENT = {"scrapeOptions", "alexandria.find-tools", "extract"} | {
    name for name in BODIES if "feedback" in name
}
OPERATIONS = sorted(BODIES.keys() - NO_CALLS_OF_THE_CLIENT)

NOT_COMPARED = re.compile(
    # The service stores these options unchecked and fails each check of the monitor; the client refuses them.
    r"^targets\.0\.(scrapeOptions|crawlOptions)\."
    # Scrape options in other requests are the ones of a scrape, which are compared there in full.
    r"|^scrapeOptions\.\w+\."
)
CLIENT_IS_STRICTER = {
    "options of a target": r"^Monitor\w+ targets\.0\.(scrapeOptions|crawlOptions)",
    "enterprise 'default'": r"^SearchRequest enterprise",  # requests nothing
    "selectors of attributes": r"formats\.0\.selectors",  # the format returns nothing without selectors
    "country of a search": r"^SearchRequest country$",  # any text in the reference
    "category 'github'": r"^SearchRequest categories\.0",  # hosted servers refuse it after the validation
    "topics": r"^DeveloperSearchRequest topic$",  # an empty list narrows nothing
}
SANDBOX_IS_STRICTER = {
    # Only the service knows which names can be hosts of the web.
    "hosts": r" url$| (targets\.0\.)?urls?\.0$| targets\.0\.url$|\b(blacklist|whitelist)\.0$",
}
ONLY_IN_THE_SANDBOX = {
    "search": {"lang", "filter"},
    "crawl.params": {"origin", "integration"},
    "parse": {"fastMode", "waitFor", "mobile", "actions"},
    "parse.reference": {"fastMode", "waitFor", "mobile", "actions"},
    "interact": {"location"},
    "interact.execute": {"origin"},
    "scrape.interact": {"existingSessionId"},
    "monitor.create": {"origin"},
    "monitor.update": {"origin"},
}
"""Fields of other clients, which the sandbox accepts too."""

OF_EVERY_KIND = (None, True, -1, 1.5, "nonsense", [], {}, [None])
EVERY_EVENT = sorted({event for events in EVENTS.values() for event in events})


@cache
def model_of(operation: str) -> type[RequestModel]:
    """Return the client's model of a body, which the sandbox names by the fixed parts of its path, as a rule."""
    return {sandbox_name(endpoint): model for model, endpoint in request_endpoints().items()}[operation]


def sandbox_name(endpoint: Endpoint[Any]) -> str:
    from airflow_provider_webdata.api.endpoints import PARSE_BY_REFERENCE, RUN_PROVIDER

    if endpoint is PARSE_BY_REFERENCE:
        return "parse.reference"
    if endpoint is RUN_PROVIDER:
        return "scrape.alexandria"
    parts = endpoint.path.removeprefix("/v2/").split("/")
    if endpoint.method != "GET" or not parts[-1].startswith("{"):
        parts = [part for part in parts if not part.startswith("{")]
    name = ".".join(parts)
    return NAMED.get((endpoint.method, name), name)


def differs_as_known(patterns: dict[str, str], path: str, model: type[RequestModel]) -> bool:
    return any(re.search(pattern, f"{model.__name__} {path}") for pattern in patterns.values())


def verdicts(operation: str, body: dict[str, Any]) -> tuple[str, str]:
    """Return the client's and the sandbox's objections to a body, each empty if it accepts the body.

    Both for the hosted service. A client that only warns leaves the decision to the service.
    """
    try:
        request = model_of(operation).model_validate(body)
    except ValidationError as error:
        return str(error), " ".join(issue.message for issue in check(operation, body))
    if refused := request.refused_by(HOSTED):
        return " ".join(refused), " ".join(issue.message for issue in check(operation, body))
    warned = {doubt.partition(":")[0].rpartition(".")[2] for doubt in request.warnings()}
    issues = check(operation, request.to_wire())
    return "", " ".join(i.message for i in issues if not warned & {str(part) for part in i.path})


def differences(operation: str, attempts: Iterable[Attempt]) -> list[str]:
    found = []
    for path, body in attempts:
        if NOT_COMPARED.match(path):
            continue
        client, sandbox = verdicts(operation, body)
        if bool(client) == bool(sandbox):
            continue
        known = CLIENT_IS_STRICTER if client else SANDBOX_IS_STRICTER
        if not differs_as_known(known, path, model_of(operation)):
            who = "only the client refuses" if client else "only the sandbox refuses"
            found.append(f"{path}: {who} {str(body)[:150]}: {client or sandbox}")
    return found


def test_both_state_every_request_and_the_same_fields() -> None:
    """A field that only one of them has was forgotten in the other."""
    schema = "sandbox/webdata_sandbox/reference/schema.py"
    named = {sandbox_name(endpoint): endpoint for endpoint in request_endpoints().values()}
    unlike = [
        f"{schema}: no body {name!r}, which is that of {named[name].path}"
        for name in named.keys() - OPERATIONS
    ]
    unlike += [
        f"{schema}: no endpoint of the client has the body {name!r}" for name in {*OPERATIONS} - named.keys()
    ]
    for operation in {*OPERATIONS} & named.keys():
        fields = model_of(operation).model_fields
        client = {alias(model_of(operation), name): found.is_required() for name, found in fields.items()}
        required = BODIES[operation].get("required", ())
        sandbox = {name: name in required for name in BODIES[operation]["properties"]}
        more = dict.fromkeys(ONLY_IN_THE_SANDBOX.get(operation, ()), False)
        for name, is_required in sandbox.items() ^ {**client, **more}.items():
            said = f"{'required' if is_required else 'optional'} field {name!r}"
            if name in sandbox and sandbox[name] is is_required:
                unlike.append(
                    f"{schema}: {operation!r} has the {said}, {model_of(operation).__name__} has not"
                )
            else:
                unlike.append(f"{schema}: {operation!r} lacks the {said} of {model_of(operation).__name__}")
    if unlike:
        pytest.fail("\n".join(sorted(unlike)), pytrace=False)


@pytest.mark.rule("caller-labels", "caller-integration")
@pytest.mark.rule("scrape-formats", "scrape-tags", "scrape-headers", "scrape-max-age")
@pytest.mark.rule("scrape-min-age", "scrape-wait-for", "scrape-timeout", "scrape-actions", "scrape-location")
@pytest.mark.rule("scrape-proxy", "scrape-pii", "scrape-profile", "scrape-audit", "scrape-top-level")
@pytest.mark.rule("format-plain", "format-screenshot", "format-json", "format-question", "format-highlights")
@pytest.mark.rule("parser-pdf", "action-screenshot", "action-click", "action-write", "action-press")
@pytest.mark.rule("action-scroll", "action-scrape", "action-script", "action-pdf", "threat-mode")
@pytest.mark.rule("threat-score", "threat-failure", "search-query", "search-limit", "search-sources")
@pytest.mark.rule("search-safe", "search-timeout", "search-ignore-invalid-urls", "search-highlights")
@pytest.mark.rule("search-enterprise", "monitor-name", "monitor-targets", "monitor-goal", "monitor-judge")
@pytest.mark.rule(
    "monitor-retention", "monitor-notification", "monitor-slack", "monitor-webhook", "monitor-mandatory"
)
@pytest.mark.rule("monitor-webhook-stays", "target-queries", "target-search-window", "target-max-results")
@pytest.mark.rule("schedule-length", "monitor-update", "webhook-events-monitor", "request-unknown-keys")
@pytest.mark.rule("map-search", "map-sitemap", "map-switches", "map-limit", "map-timeout", "map-further")
@pytest.mark.rule("batch-urls", "batch-max-concurrency", "batch-ignore-invalid-urls", "batch-append")
@pytest.mark.rule("crawl-prompt", "crawl-depth", "crawl-sitemap", "crawl-similar", "crawl-limit")
@pytest.mark.rule("crawl-scope", "crawl-external", "crawl-robots", "crawl-delay", "crawl-max-concurrency")
@pytest.mark.rule("crawl-preview", "webhook-events", "parse-formats", "parse-timeout", "parse-proxy")
@pytest.mark.rule("parse-further")
@pytest.mark.rule("agent-urls", "agent-max-credits", "agent-model", "agent-further")
@pytest.mark.rule("agent-server-fields", "session-ttl", "session-activity-ttl", "session-profile")
@pytest.mark.rule("session-further", "code-text", "code-language", "code-timeout", "webhook-events-steps")
@pytest.mark.rule("scrape-switches", "scrape-clean-content", "scrape-extra-switches", "scrape-tls")
@pytest.mark.rule("crawl-url", "crawl-webhook", "map-url", "target-url", "target-urls", "batch-webhook")
@pytest.mark.rule("agent-prompt", "agent-schema", "developer-query")
@pytest.mark.rule("developer-types", "developer-passages", "developer-repositories")
@pytest.mark.rule("research-query", "research-filters", "research-similar")
@pytest.mark.parametrize("operation", OPERATIONS)
def test_both_sides_of_each_limit_and_every_kind_of_value(operation: str) -> None:
    limits = [(edge.path, edge.body) for edge in edges(model_of(operation))]
    kinds = values_of_every_kind((edge.path, edge.body) for edge in edges(model_of(operation)) if edge.within)
    if found := differences(operation, [*limits, *of_the_schema(operation), *kinds]):
        pytest.fail("\n".join(dict.fromkeys(found)), pytrace=False)


def values_of_every_kind(accepted: Iterable[Attempt]) -> Iterator[Attempt]:
    """Yield bodies with other values in place of each field, once for each body around the field."""
    seen = set()
    for path, body in accepted:
        around = (path, json.dumps(replaced(body, path, None)))
        if around not in seen and not NOT_COMPARED.match(path):
            seen.add(around)
            events = [[event] for event in EVERY_EVENT] if path.endswith("events") else []
            yield from ((path, replaced(body, path, value)) for value in (*OF_EVERY_KIND, *events))


def replaced(body: dict[str, Any], path: str, value: Any) -> dict[str, Any]:
    """Return a copy of a body with another value in a field; in a list, of the last item."""
    body = copy.deepcopy(body)
    *outer, last = [-1 if part == "0" else part for part in path.split(".")]
    inner: Any = body
    for part in outer:
        inner = inner[part]
    inner[last] = value
    return body


def of_the_schema(operation: str) -> Iterator[Attempt]:
    """Yield bodies on both sides of the sandbox's limits."""
    base = minimal(model_of(operation))

    def body(name: str) -> Callable[[Any], dict[str, Any]]:
        return lambda value: {**base, name: value}

    for name, schema in BODIES[operation]["properties"].items():
        if name not in ONLY_IN_THE_SANDBOX.get(operation, ()):
            yield from schema_edges(schema, name, body(name))


def schema_edges(schema: Any, path: str, put: Callable[[Any], dict[str, Any]]) -> Iterator[Attempt]:
    """Yield bodies on both sides of the limits that a JSON Schema states without alternatives."""
    for names, value in (
        (("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"), lambda number: number),
        (("minLength", "maxLength"), lambda length: "x" * length),
        (("min_items", "maxItems"), lambda length: [schema_sample(schema["items"])] * length),
    ):
        for name in names:
            if name in schema:
                yield from (
                    (path, put(value(schema[name] + by)))
                    for by in (-1, 0, 1)
                    if schema[name] + by >= 0 or "imum" in name
                )
    yield from ((path, put(choice)) for choice in schema.get("enum", ()))
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


@pytest.mark.parametrize("operation", OPERATIONS)
@examples(0.6)
@given(data=st.data())
def test_the_sandbox_accepts_what_the_client_accepts(operation: str, data: st.DataObject) -> None:
    assert verdicts(operation, data.draw(drawn(model_of(operation)))) == ("", "")


def test_the_sandbox_accepts_what_the_tables_of_the_models_accept() -> None:
    """Values that a model's own tests name, such as time filters, schedules, and addresses."""
    bodies = [(model, wire) for model, _, wire in SENT]
    bodies += [(model, body(value)) for model, body, _, accepted, _ in ROWS.values() for value in accepted]
    operations = {model_of(operation): operation for operation in OPERATIONS}
    # Only the service knows which names in other scripts can be hosts.
    tried = [
        (operations[model], body)
        for model, body in bodies
        if str(body).isascii() and model in operations and not model.model_validate(body).refused_by(HOSTED)
    ]
    assert [attempt for attempt in tried if verdicts(*attempt) != ("", "")] == []
    assert len({operation for operation, _ in tried}) > 10
