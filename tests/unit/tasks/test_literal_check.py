"""Literal arguments against the plain rules: nothing that is right is refused, and nothing right costs an import."""

from __future__ import annotations

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_webdata.api import models
from airflow_provider_webdata.tasks.checked_arguments import literal_problems
from airflow_provider_webdata.tasks.field_rules import RULES
from airflow_provider_webdata.tasks.literal_check import may_be_wrong, snake_case
from airflow_provider_webdata.tasks.literals import templates_of_none
from tests.support.request_fields import drawn, edges
from tools.operator_fields import models_of_operators

MODELS = sorted(set(models_of_operators()))
# What a validator of the whole field judges.
NOT_TOLD = ("events",)


def fields_of(model, body):
    names = {field.alias: name.rstrip("_") for name, field in getattr(models, model).model_fields.items()}
    return {names.get(name, name): value for name, value in body.items()}


@pytest.mark.parametrize("model", MODELS)
def test_both_sides_of_every_limit(model):
    """Those inside objects and lists included; what is missing or unknown at the top, Airflow tells."""
    missed, costly, refused = [], [], []
    for edge in edges(getattr(models, model)):
        fields = fields_of(model, edge.body)
        problems = literal_problems(model, fields)
        if edge.within:
            refused += [(edge, problem) for problem in problems]
            costly += [
                edge for name, value in fields.items() if may_be_wrong(RULES[model].get(name, ()), value)
            ]
        elif (
            not problems and ("." in edge.path or edge.path in edge.body) and not edge.path.endswith(NOT_TOLD)
        ):
            missed.append(edge)
    assert (refused, costly, missed) == ([], [], [])


@pytest.mark.parametrize("model", MODELS)
@given(data=st.data())
def test_no_body_that_is_right_is_refused(model, data):
    body = data.draw(drawn(getattr(models, model)))
    assert literal_problems(model, fields_of(model, body)) == ()


def test_a_right_file_imports_no_models():
    code = """
import sys
from airflow_provider_webdata.operators.monitor import WebDataCreateMonitorOperator
from airflow_provider_webdata.operators.search import WebDataSearchOperator
WebDataSearchOperator(task_id="s", query="q", limit=5, tbs="qdr:d", scrape_options={"formats": ["markdown"]})
WebDataCreateMonitorOperator(
    task_id="m", name="n", schedule={"cron": "0 9 * * 1-5", "timezone": "Europe/Berlin"}, webhook="https://a.example/",
    targets=[{"type": "search", "queries": ["q"]}], goal="g",
)
print([name for name in sys.modules if name.startswith("airflow_provider_webdata.api")])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


NAMES = {"maxAge": "max_age", "ignoreInvalidURLs": "ignore_invalid_urls", "url": "url", "schema": "schema"}


@pytest.mark.parametrize(("wire", "python"), NAMES.items())
def test_wire_names_in_python_spelling(wire, python):
    assert snake_case(wire) == python


RENDERED = [
    ("{{ none }}", "None", ["{{ none }}"]),
    ("  {{ params.q }}\n", "None", ["{{ params.q }}"]),
    ("{{ a }} and {{ b }}", "None", []),
    ("None", "None", []),
    ("{{ x }}", "Nonesuch", []),
    ("{{ x }}", None, []),
    (["a", "{{ x }}"], ["a", "None"], ["{{ x }}"]),
    ({"a": {"b": ["{{ x }}"]}}, {"a": {"b": ["None"]}}, ["{{ x }}"]),
    ("{{ ['a'] }}", ["a"], []),
]


@pytest.mark.parametrize(("written", "rendered", "found"), RENDERED)
def test_templates_of_none(written, rendered, found):
    assert [*templates_of_none(written, rendered)] == found
