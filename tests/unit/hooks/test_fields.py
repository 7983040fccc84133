# SPDX-License-Identifier: Apache-2.0
"""The fields of requests are keyword arguments of the hooks' methods, for people, editors, and agents."""

from __future__ import annotations

import asyncio
import inspect
import io
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from airflow_provider_webdata.api import models
from airflow_provider_webdata.api.errors import InvalidRequestError
from airflow_provider_webdata.api.models import RequestModel
from airflow_provider_webdata.hooks import fields as declared
from airflow_provider_webdata.hooks.webdata import WebDataHook
from airflow_provider_webdata.hooks.webdata_async import WebDataAsyncHook
from tests.support.request_fields import minimal
from tools import hook_fields
from tools.operator_fields import LABELS, FieldsError

MODELS = hook_fields.classes()
LEADING = {
    "execute": ("s",),
    "interact_with_scrape": ("s",),
    "parse": (io.BytesIO(b"x"), "a.pdf", None),
    "similar_papers": ("p",),
    "update_monitor": ("m",),
}
"""Positional arguments before the request."""


def methods() -> dict[str, type[RequestModel]]:
    """Return the request model of each method that accepts its fields."""
    found = {}
    for name, member in inspect.getmembers(WebDataHook, inspect.isfunction):
        annotation = inspect.unwrap(member).__annotations__.get("fields", "")
        if annotation:
            found[name] = MODELS[annotation.removeprefix("Unpack[").removesuffix("]")]
    return found


METHODS = methods()


class Sent(Exception):  # noqa: N818
    """A call that the hook would have sent."""


@pytest.fixture(params=[WebDataHook, WebDataAsyncHook], ids=["blocking", "async"])
def hook(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Any:
    async def send(_: Any, call: Any) -> None:
        raise Sent(call)

    monkeypatch.setattr(request.param, "_execute", send)
    return request.param()


def body_sent(method: Any, *arguments: Any, **keywords: Any) -> Any:
    """Return the body of the request that a call sends; raise the error of a call that sends none."""
    try:
        answer = method(*arguments, **keywords)
        if isinstance(answer, Iterator):
            next(answer)
        elif isinstance(answer, AsyncIterator):
            asyncio.run(anext(answer))
        else:
            asyncio.run(answer)
    except Sent as sent:
        return sent.args[0].body
    raise AssertionError("nothing was sent")


def body_of(model: type[RequestModel]) -> dict[str, Any]:
    """Return fields that a model accepts, by their Python names, and at least one."""
    names = {field.alias or name: name.rstrip("_") for name, field in model.model_fields.items()}
    extra = {
        "FindToolsRequest": {"query": "rivers"},
        "InteractRequest": {"ttl": 60},
        "MonitorUpdateRequest": {"goal": "prices"},
        "ParseOptions": {"only_main_content": False},
    }
    return {names[wire]: value for wire, value in minimal(model).items()} | extra.get(model.__name__, {})


def test_every_model_of_a_body_is_accepted_as_fields() -> None:
    """A method with a body that takes no fields must be a decision: the calls of data providers are a list."""
    with_request = {
        name
        for name, member in inspect.getmembers(WebDataHook, inspect.isfunction)
        if "request" in inspect.unwrap(member).__annotations__ and not name.startswith("_")
    }
    assert with_request - METHODS.keys() == set()
    assert len(METHODS) > 15


@pytest.mark.parametrize("name", METHODS)
def test_a_signature_has_the_fields(name: str) -> None:
    model = METHODS[name]
    fields = {one.rstrip("_"): field for one, field in model.model_fields.items()}
    for kind in (WebDataHook, WebDataAsyncHook):
        signature = inspect.signature(getattr(kind, name)).parameters
        assert fields.keys() - LABELS <= signature.keys(), kind
        assert not {"request", "options", "fields"} & signature.keys()
        for field in fields.keys() & signature.keys():
            assert signature[field].kind is inspect.Parameter.KEYWORD_ONLY
            is_required = signature[field].default is inspect.Parameter.empty
            assert is_required == fields[field].is_required(), field
            assert f":param {field}:" in getattr(kind, name).__doc__


@pytest.mark.parametrize("name", METHODS)
def test_keywords_a_mapping_and_a_model_send_the_same(hook: Any, name: str) -> None:
    method, leading, fields = getattr(hook, name), LEADING.get(name, ()), body_of(METHODS[name])
    model = METHODS[name].model_validate(fields)
    if name == "find_tools":
        # The options of the catalog are inside one of the calls that it sends.
        sent = [body_sent(method, **fields), body_sent(method, fields), body_sent(method, model)]
        assert sent[0].to_wire()["alexandria"][0]["options"] == fields
    else:
        sent = [body_sent(method, *leading, **fields)]
        sent += [body_sent(method, *leading, one) for one in (fields, model)]
        assert sent[0] == model
    assert sent[0] == sent[1] == sent[2]
    assert fields


@pytest.mark.parametrize("fields", [{}, {"formats": ["markdown"]}])
def test_text_in_place_of_fields_is_refused_with_the_way_to_name_it(
    hook: Any, fields: dict[str, Any]
) -> None:
    with pytest.raises(InvalidRequestError, match=r"(?s)such as url=.*given: str") as caught:
        body_sent(hook.scrape, "https://me:hush@a.example/", **fields)
    assert "hush" not in str(caught.value)


def test_fields_beside_a_mapping_are_refused_and_the_advice_works(hook: Any) -> None:
    given = {"query": "river"}
    with pytest.raises(
        InvalidRequestError, match=r"limit, tbs: .* all fields as keyword arguments, or all in the"
    ):
        body_sent(hook.search, given, limit=5, tbs="qdr:d")
    everything = {**given, "limit": 5, "tbs": "qdr:d"}
    assert body_sent(hook.search, everything) == body_sent(hook.search, **everything)


@pytest.mark.parametrize(
    "name", [one for one in METHODS if any(f.is_required() for f in METHODS[one].model_fields.values())]
)
def test_a_required_field_is_named(hook: Any, name: str) -> None:
    required = [one for one, field in METHODS[name].model_fields.items() if field.is_required()]
    with pytest.raises(InvalidRequestError) as failed:
        body_sent(getattr(hook, name), *LEADING.get(name, ()))
    assert [
        one
        for one in required
        if f"{one}: Field required" not in str(failed.value).replace(" (sent as ", ": ")
    ] == []


def test_an_update_needs_a_change(hook: Any) -> None:
    with pytest.raises(InvalidRequestError, match="pass the fields to change, such as goal="):
        body_sent(hook.update_monitor, "m")
    assert body_sent(hook.update_monitor, "m", goal="prices").goal == "prices"
    assert body_sent(hook.update_monitor, "m", extra_body={"new": 1}) is None


def test_an_unknown_field_names_the_nearest(hook: Any) -> None:
    with pytest.raises(InvalidRequestError) as failed:
        body_sent(hook.search, query="river", limt=5, max_results=3)
    assert "limt: no such field; did you mean 'limit'?" in str(failed.value)
    assert "max_results: no such field; write limit=...\n" in str(failed.value)


async def schemas(names: list[str]) -> dict[str, Any]:
    """Return the JSON Schemas of the arguments that an agent sees, by method."""
    toolset = pytest.importorskip("airflow.providers.common.ai.toolsets.hook")
    tools = await toolset.HookToolset(WebDataHook(), allowed_methods=names, max_retries=1).get_tools(None)
    return {name: tool.tool_def.parameters_json_schema for name, tool in tools.items()}


def test_an_agent_sees_the_fields() -> None:
    found = asyncio.run(schemas([name for name in METHODS if name != "parse"]))
    search, scrape = found["search"], found["scrape"]
    assert (search["required"], scrape["required"]) == (["query"], ["url"])
    assert search["properties"]["query"] == {
        "type": "string",
        "description": "the search query, at most 500 characters; `airflow_provider_webdata.api.query` builds queries "
        "with operators.",
    }
    assert {"type": "integer"} in search["properties"]["limit"]["anyOf"]
    items = {"anyOf": [{"type": "string"}, {"type": "object"}]}
    assert {"type": "array", "items": items} in scrape["properties"]["formats"]["anyOf"]
    for name, schema in found.items():
        assert schema.keys() <= {"type", "properties", "required"}, name
        for field in {one.rstrip("_") for one in METHODS[name].model_fields} - {*LABELS}:
            shown = schema["properties"][field]
            assert shown["description"], (name, field)
            assert shown.get("type") or [
                kind for kind in shown["anyOf"] if kind.get("type") not in {None, "null"}
            ]


def test_an_agents_arguments_are_accepted(hook: Any) -> None:
    if not isinstance(hook, WebDataHook):
        pytest.skip("the toolset calls the blocking hook")
    for name, schema in asyncio.run(schemas(["search", "scrape", "map", "start_agent"])).items():
        arguments = dict.fromkeys(schema["required"], "https://a.example/")
        assert body_sent(getattr(hook, name), **arguments) is not None


def test_the_declarations_are_up_to_date(capsys: pytest.CaptureFixture[str]) -> None:
    assert hook_fields.main(["--check"]) == 0, capsys.readouterr().err
    named = {name for name in vars(declared) if name.endswith("Fields")}
    assert named == MODELS.keys()


def test_an_outdated_declaration_is_shown(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Any
) -> None:
    (tmp_path / "fields.py").write_text(hook_fields.text().replace("    limit: int\n", ""))
    monkeypatch.setattr(hook_fields, "FIELDS", tmp_path / "fields.py")
    monkeypatch.setattr(hook_fields, "ROOT", tmp_path)
    assert hook_fields.main(["--check"]) == 1
    assert "run python -m tools.hook_fields" in capsys.readouterr().err
    assert hook_fields.main([]) == 0
    assert (tmp_path / "fields.py").read_text() == hook_fields.text()


def test_fields_of_no_model_are_a_mistake() -> None:
    with pytest.raises(FieldsError, match="no model WeatherRequest or WeatherOptions"):
        hook_fields._model("WeatherFields")


def test_type_checkers_know_every_field() -> None:
    for name, model in MODELS.items():
        shown = getattr(declared, name).__annotations__.keys()
        assert shown == {one.rstrip("_") for one in model.model_fields} - {*LABELS}, name
    assert models.SearchRequest in MODELS.values()
