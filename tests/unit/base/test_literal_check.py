# SPDX-License-Identifier: Apache-2.0
"""Literal arguments and the plain rules: valid arguments are accepted, and need no import of the models."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_webdata.api import models
from airflow_provider_webdata.base.arguments.checked_arguments import literal_problems
from airflow_provider_webdata.base.arguments.literal_check import field_rules, may_be_wrong
from airflow_provider_webdata.common.literals import templates_of_none
from airflow_provider_webdata.common.spelling import snake_case
from tests.support.examples import examples
from tests.support.request_fields import drawn, edges
from tools.operator_fields import models_of_operators

MODELS = sorted(set(models_of_operators()))
# Fields that a validator judges as a whole.
NOT_TOLD = ("events",)


def fields_of(model, body):
    names = {field.alias: name.rstrip("_") for name, field in getattr(models, model).model_fields.items()}
    return {names.get(name, name): value for name, value in body.items()}


@pytest.mark.parametrize("model", MODELS)
def test_both_sides_of_every_limit(model):
    """Including those inside objects and lists. Airflow names missing or unknown arguments at the top level."""
    missed, costly, refused = [], [], []
    for edge in edges(getattr(models, model)):
        fields = fields_of(model, edge.body)
        problems = literal_problems(model, fields)
        if edge.within:
            refused += [(edge, problem) for problem in problems]
            costly += [
                edge
                for name, value in fields.items()
                if may_be_wrong(field_rules(model).get(name, ()), value)
            ]
        elif (
            not problems and ("." in edge.path or edge.path in edge.body) and not edge.path.endswith(NOT_TOLD)
        ):
            missed.append(edge)
    assert (refused, costly, missed) == ([], [], [])


@pytest.mark.slow
@examples(6)
@given(model=st.sampled_from(MODELS), data=st.data())
def test_no_valid_body_is_refused(model, data):
    body = data.draw(drawn(getattr(models, model)))
    assert literal_problems(model, fields_of(model, body)) == ()


NAMES = {"maxAge": "max_age", "ignoreInvalidURLs": "ignore_invalid_urls", "url": "url", "schema": "schema"}


def test_wire_names_in_python_spelling():
    assert {wire: snake_case(wire) for wire in NAMES} == NAMES


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
