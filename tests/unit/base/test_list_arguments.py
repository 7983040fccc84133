# SPDX-License-Identifier: Apache-2.0
"""Each argument that accepts a list, of all tasks, triggers, and requests: a list as text is read or refused."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from pydantic import BaseModel, ValidationError

from airflow_provider_webdata.api import models
from airflow_provider_webdata.api.models.base import RequestModel
from airflow_provider_webdata.common.arguments import as_list
from airflow_provider_webdata.common.coded_errors import ArgumentError
from airflow_provider_webdata.hooks.host_rules import HostRules
from airflow_provider_webdata.results.tables.dlt_resource import webdata_resource
from airflow_provider_webdata.triggers.events import WebDataWebhookEventTrigger
from airflow_provider_webdata.triggers.webhook import WebDataWebhookTrigger
from tests.support import direct
from tests.support.fault_server import FaultServer, answer
from tests.support.service import connection_text
from tests.unit.test_contract import TASKS, parameters, required

CODE = {"steps"}
"""Lists whose items are code, which may begin with a bracket."""


def list_arguments(task: type) -> Iterator[str]:
    for name, parameter in parameters(task).items():
        if any(kind in str(parameter.annotation) for kind in ("Sequence[", "Collection[", "list[")):
            yield name


ARGUMENTS = [(task, name) for task in TASKS for name in list_arguments(task)]


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch) -> Iterator[FaultServer]:
    server = FaultServer([answer(body='{"success": true}')])
    monkeypatch.setenv("AIRFLOW_CONN_WEBDATA_DEFAULT", connection_text(server.url))
    yield server
    server.close()


def run(task: Any, **arguments: Any) -> str:
    given = {**required(task), **arguments}
    if task.__name__ == "WebDataProviderOperator" and "calls" in arguments:
        del given["provider"], given["capability"]
    try:
        return str(direct.run(task(task_id="t", **given)).error)
    except (ArgumentError, ValueError) as error:
        return str(error)


def test_every_task_with_a_list_is_tested() -> None:
    assert len(ARGUMENTS) > 45
    assert {name for _, name in ARGUMENTS} >= {
        "queries",
        "urls",
        "targets",
        "path",
        "events",
        "steps",
        "calls",
    }


@pytest.mark.parametrize(("task", "name"), ARGUMENTS, ids=lambda one: getattr(one, "__name__", one))
@pytest.mark.parametrize("text", ["['a', 'b']", "[datetime.date(2026, 1, 1)]", "('a', 'b')"])
def test_the_text_of_a_python_list_is_refused(task: Any, name: str, text: str, service: FaultServer) -> None:
    """It would be one item: one search for the text, which is billed."""
    if name in CODE:
        text = "['a', 'b']"  # Code may begin like the other texts.
    is_templated = name in task.template_fields
    said = run(task, **{name: "{{ " + repr(text) + " }}" if is_templated else text})
    assert name in said
    assert "tojson" in said
    assert text not in said, "it may have a secret"
    assert service.requests == []


@pytest.mark.parametrize(
    ("task", "name"),
    [(task, name) for task, name in ARGUMENTS if name in task.template_fields],
    ids=lambda one: getattr(one, "__name__", one),
)
def test_the_advice_works(task: Any, name: str, service: FaultServer) -> None:
    """JSON is read as the list that it is, as is native rendering's list."""
    given = {**required(task), name: "{{ ['a', 'b'] | tojson }}"}
    if name == "calls":
        del given["provider"], given["capability"]
    there = task(task_id="t", **given)
    there.render_template_fields(direct.context_of(direct.TaskInstance()))
    assert as_list(name, getattr(there, name)) == ["a", "b"]
    assert not getattr(there, "_unusable", ())


def list_fields() -> Iterator[tuple[type[RequestModel], str, str]]:
    for model in (getattr(models, name) for name in models.__all__):
        if isinstance(model, type) and issubclass(model, RequestModel):
            for name, field in model.model_fields.items():
                if "list[" in str(field.annotation):
                    yield model, name, field.alias or name


FIELDS = [*list_fields()]


@pytest.mark.parametrize(("model", "name", "alias"), FIELDS, ids=lambda one: getattr(one, "__name__", one))
def test_a_request_reads_json_and_no_python(model: Any, name: str, alias: str) -> None:
    """Methods of the hook have these fields, and templates inside of an argument."""

    def problems(value: str) -> list[str]:
        try:
            model.model_validate({name: value})
        except ValidationError as error:
            return [one["type"] for one in error.errors() if one["loc"] in ((alias,), (name,))]
        return []

    assert problems("['a']") == problems("a") == ["list_type"]
    assert "list_type" not in problems(json.dumps(["a"]))


@pytest.mark.parametrize(
    "call",
    [
        lambda text: WebDataWebhookTrigger("c", events=text),
        lambda text: WebDataWebhookEventTrigger("c", events=text),
        lambda text: webdata_resource(text),
        lambda text: HostRules(text),
    ],
)
def test_lists_outside_of_requests(call: Any) -> None:
    with pytest.raises(ArgumentError, match="list"):
        call("['a', 'b']")


LISTS: dict[str, Any] = {
    "[]": [],
    '["a", {"b": 1}]': ["a", {"b": 1}],
    ' ["a"]\n': ["a"],
    '{"query": "a"}': [{"query": "a"}],
    "a": ["a"],
    "(site:a.example OR site:b.example) river": ["(site:a.example OR site:b.example) river"],
    '("river level")': ['("river level")'],
    '"river", "flood"': ['"river", "flood"'],
    "5": ["5"],
}


@pytest.mark.parametrize(("text", "items"), LISTS.items())
def test_what_is_read(text: str, items: list[Any]) -> None:
    assert as_list("x", text) == items


@pytest.mark.parametrize("text", ["[1", "{'a': 1}", "[<Item>]", "('a',)", "[...x]"])
def test_what_is_refused(text: str) -> None:
    with pytest.raises(ArgumentError, match="x: a template rendered a list as text"):
        as_list("x", text)


def test_code_may_begin_with_a_bracket() -> None:
    for code in ("[...document.links].length", "(async () => 1)()", "{ let a = 1; a }", "[x for x in y]"):
        assert as_list("steps", code, is_code=True) == [code]


ONE_TEXT = {
    "WebDataSearchOperator": "query",
    "WebDataScrapeOperator": "url",
    "WebDataMapOperator": "search",
    "WebDataCrawlOperator": "url",
}


@pytest.mark.parametrize(("operator", "name"), ONE_TEXT.items())
@pytest.mark.parametrize("text", ["['https://a.example', 'b']", '["https://a.example"]', "[]", "('a', 'b')"])
def test_one_text_is_no_list(operator: str, name: str, text: str, service: FaultServer) -> None:
    """The text of a list was searched as one query, and billed."""
    [task] = [one for one in TASKS if one.__name__ == operator]
    said = run(task, **{name: "{{ " + repr(text) + " }}"})
    assert f"{name}: must be one text" in said
    assert f".expand({name}=[...])" in said
    assert service.requests == []


@pytest.mark.parametrize("query", ["[river]", '"river level", "flood"', "[2024] floods", '["a"] OR b'])
def test_a_query_may_begin_with_a_bracket(query: str) -> None:
    assert models.SearchRequest.model_validate({"query": query}).query == query


BLANKS: list[tuple[type[BaseModel], dict[str, Any], str, Any]] = [
    (models.SearchRequest, {"query": " river \r\n"}, "query", "river"),
    (models.ScrapeRequest, {"url": "\thttps://a.example/ \n"}, "url", "https://a.example/"),
    (models.BatchScrapeRequest, {"urls": ["https://a.example/\n"]}, "urls", ["https://a.example/"]),
    (
        models.BatchScrapeRequest,
        {"urls": [" a b \n"], "ignore_invalid_urls": True},
        "urls",
        ["a b"],
    ),
    (models.CrawlRequest, {"url": "https://a.example/\n"}, "url", "https://a.example/"),
    (models.MapRequest, {"url": "https://a.example/\n", "search": " x\n"}, "search", "x"),
    (models.AgentRequest, {"prompt": "p", "urls": ["https://a.example/\n"]}, "urls", ["https://a.example/"]),
]


@pytest.mark.rule("request-blanks")
@pytest.mark.parametrize(("model", "fields", "name", "sent"), BLANKS)
def test_blanks_and_line_ends_are_removed(model: Any, fields: dict[str, Any], name: str, sent: Any) -> None:
    """As of the lines of a file: `readlines()`."""
    assert model.model_validate(fields).to_wire()[name] == sent
