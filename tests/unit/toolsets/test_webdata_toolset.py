"""What the toolset is made of, and what a model is shown of it."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
from typing import Any

import pytest

pytest.importorskip("pydantic_ai", reason="Airflow's provider of agents is not installed")

from pydantic import ValidationError

from airflow_provider_webdata.coded_errors import ArgumentError
from airflow_provider_webdata.toolsets.web_tools import WebTools
from airflow_provider_webdata.toolsets.webdata import TOOLS, WebDataToolset, _definition


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"tools": ()}, "tools: must name some of web_search, read_page"),
        ({"tools": ("read_pages",)}, "tools: must name some of"),
        ({"tools": "read_page"}, "tools: must name some of"),
        ({"max_chars": 99}, "max_chars: must be at least 100"),
        ({"max_chars": 1.5}, "max_chars must be a whole number"),
        ({"max_age": -1}, "max_age: must be milliseconds"),
        ({"max_credits": "many"}, "max_credits: must be a number"),
        ({"max_calls": -1}, "max_calls: must be a number"),
        ({"max_retries": 0}, "max_retries must be a whole number"),
        ({"allowed_domains": ["https://a.example"]}, "allowed_domains: .* is no host name"),
        ({"blocked_domains": "a.example"}, "blocked_domains: must be a list"),
    ],
)
def test_a_wrong_argument_is_an_error_while_the_dag_is_read(given: dict[str, Any], told: str) -> None:
    with pytest.raises(ArgumentError, match=told):
        WebDataToolset(**given)


def test_the_tools_are_the_methods() -> None:
    public = {
        name for name, _ in inspect.getmembers(WebTools, inspect.isfunction) if not name.startswith("_")
    }
    assert public == set(TOOLS)


@pytest.mark.parametrize("name", TOOLS)
def test_a_model_is_shown_what_each_argument_means_and_nothing_else(name: Any) -> None:
    shown = _definition(name).tool_def
    schema = shown.parameters_json_schema
    assert schema["properties"].keys() <= {
        *("query", "limit", "recency", "country"),
        *("url", "offset", "search", "question", "schema"),
    }
    assert all(len(field["description"]) > 10 for field in schema["properties"].values())
    assert schema["additionalProperties"] is False
    assert "written by strangers" in str(shown.description)
    for beyond in ("headers", "webhook", "webdata_conn_id", "extra_body", "actions", "proxy", "max_credits"):
        with pytest.raises(ValidationError):
            _definition(name).function_schema.validator.validate_python({**_needed(schema), beyond: {}})
    _definition(name).function_schema.validator.validate_python(_needed(schema))


def _needed(schema: dict[str, Any]) -> dict[str, Any]:
    return dict.fromkeys(schema["required"], "https://a.example/")


def test_every_parameter_is_documented() -> None:
    names = set(inspect.signature(WebDataToolset).parameters)
    assert set(re.findall(r":param (\w+):", inspect.getdoc(WebDataToolset) or "")) == names


BLOCK = """
import sys
class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == "pydantic_ai":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Missing())
"""


def test_without_the_extra_an_import_says_what_to_install() -> None:
    code = BLOCK + "from airflow_provider_webdata.toolsets.webdata import WebDataToolset"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == (
        "ImportError: WebDataToolset needs apache-airflow-providers-common-ai 1.0 or newer, and Python 3.11 or newer: "
        "pip install 'airflow-provider-webdata[ai]'"
    )


def test_without_the_extra_all_else_works() -> None:
    code = BLOCK + (
        "import airflow_provider_webdata.plugin, airflow_provider_webdata.cli, airflow_provider_webdata.toolsets\n"
        "from airflow_provider_webdata.operators.search import WebDataSearchOperator\n"
        "from airflow_provider_webdata.hooks.webdata import WebDataHook\n"
        "WebDataHook().guarded(max_credits=1)\n"
        "print('well')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.splitlines()[-1:] == ["well"], done.stderr
