# SPDX-License-Identifier: Apache-2.0
"""The toolset's arguments, and the tools that a model sees."""

from __future__ import annotations

import inspect
import re
from importlib.util import find_spec
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from pydantic import ValidationError

from airflow_provider_webdata.common.coded_errors import ArgumentError

pytestmark = pytest.mark.skipif(
    find_spec("pydantic_ai") is None, reason="Airflow's provider of agents is not installed"
)


@pytest.fixture(scope="module")
def webdata() -> ModuleType:
    """Import the toolset late: its packages are heavy, and no other test needs them."""
    from airflow_provider_webdata.toolsets import webdata

    return webdata


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"max_credits": "many"}, "max_credits: must be a number"),
        ({"max_calls": -1}, "max_calls: must be a number"),
        ({"allowed_domains": ["https://a.example"]}, "allowed_domains: .* is not a host name"),
        ({"allowed_domains": "a.example"}, "allowed_domains: must be a list"),
    ],
)
def test_a_wrong_argument_is_an_error_while_the_dag_is_read(
    webdata: ModuleType, given: dict[str, Any], told: str
) -> None:
    with pytest.raises(ArgumentError, match=told):
        webdata.WebDataToolset(**given)


def test_the_tools_are_the_methods(webdata: ModuleType) -> None:
    public = {
        name
        for name, _ in inspect.getmembers(webdata.WebTools, inspect.isfunction)
        if not name.startswith("_")
    }
    assert public == set(webdata.TOOLS)


async def test_a_model_sees_the_meaning_of_each_argument_and_nothing_else(webdata: ModuleType) -> None:
    context: Any = SimpleNamespace(max_retries=1)
    tools = await webdata.WebDataToolset().get_tools(context)
    assert tools.keys() == set(webdata.TOOLS)
    for tool in tools.values():
        schema = tool.tool_def.parameters_json_schema
        assert schema["properties"].keys() <= {
            *("query", "limit", "recency", "country"),
            *("url", "offset", "pages", "search", "question", "schema"),
        }
        assert all(len(field["description"]) > 10 for field in schema["properties"].values())
        assert schema["additionalProperties"] is False
        assert "written by strangers" in str(tool.tool_def.description)
        needed = dict.fromkeys(schema["required"], "https://a.example/")
        for beyond in (
            "headers",
            "webhook",
            "webdata_conn_id",
            "extra_body",
            "actions",
            "proxy",
            "max_credits",
        ):
            with pytest.raises(ValidationError):
                tool.args_validator.validate_python({**needed, beyond: {}})
        tool.args_validator.validate_python(needed)


def test_every_parameter_is_documented(webdata: ModuleType) -> None:
    names = set(inspect.signature(webdata.WebDataToolset).parameters)
    assert set(re.findall(r":param (\w+):", inspect.getdoc(webdata.WebDataToolset) or "")) == names
