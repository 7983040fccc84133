# SPDX-License-Identifier: Apache-2.0
"""The reference describes everything public as the code does."""

from __future__ import annotations

import inspect
import re
from datetime import timedelta
from functools import cache
from importlib import import_module
from types import SimpleNamespace
from typing import Any

import pytest

from airflow_provider_webdata.api.errors import WebDataError
from airflow_provider_webdata.hooks.webdata import WebDataHook
from tests.unit.test_contract import TASKS, parameters, surface
from tools.docs_site import interfaces, reference
from tools.docs_site.docstrings import docstring_of
from tools.docs_site.kinds import words
from tools.docs_site.rules import rule_of_model
from tools.docs_site.subjects import (
    PACKAGE,
    ROOMS,
    DescriptionError,
    arguments_of,
    literal,
    spelled,
    subjects,
)

ITEM = re.compile(
    r'^<a id="(?P<id>[\w-]+)"></a>`(?P<name>\w+)`(?: = `(?P<default>.*)`)?\n: (?P<facts>.*)\n: (?P<text>.+)$',
    re.MULTILINE,
)


@cache
def pages() -> dict[str, str]:
    return reference.pages()


@cache
def triggers() -> list[type]:
    return [subject.cls for subject in subjects("triggers")]


def page_of(cls: type) -> str:
    room = cls.__module__.split(".")[1]
    return pages()[f"reference/{room}/{cls.__name__}.md"]


def listed(text: str) -> dict[str, dict[str, str | None]]:
    return {item["id"]: item.groupdict() for item in ITEM.finditer(text)}


def signature(cls: type) -> dict[str, inspect.Parameter]:
    if cls in triggers():
        given = inspect.signature(cls.__init__).parameters
        return {name: parameter for name, parameter in given.items() if name != "self"}
    return parameters(cls)


def test_each_argument_is_listed_with_the_default_of_its_signature() -> None:
    for cls in (*TASKS, *triggers()):
        shown = listed(page_of(cls))
        assert shown.keys() == signature(cls).keys(), cls
        for name, parameter in signature(cls).items():
            if parameter.default is inspect.Parameter.empty:
                assert shown[name]["default"] is None, (cls, name)
                assert "**required**" in str(shown[name]["facts"]), (cls, name)
            else:
                assert "**required**" not in str(shown[name]["facts"]), (cls, name)
                stated = eval(str(shown[name]["default"]), {"timedelta": timedelta})
                assert stated == parameter.default, (cls, name)


def test_templated_arguments_are_marked() -> None:
    for cls in TASKS:
        marked = {name for name, item in listed(page_of(cls)).items() if " · templated" in str(item["facts"])}
        assert marked == {*cls.template_fields}, cls


def test_there_is_a_page_for_each_public_class_and_it_is_listed() -> None:
    for room in ROOMS:
        names = {subject.name for subject in subjects(room)}
        assert {path.split("/")[2] for path in pages() if path.startswith(f"reference/{room}/")} == {
            "index.md",
            *(f"{name}.md" for name in names),
        }
        assert {
            name for name in names if f"[`{name}`]({name}.md)" in pages()[f"reference/{room}/index.md"]
        } == names
    assert {task.__name__ for task in TASKS} == {
        s.name for room in ROOMS if room != "triggers" for s in subjects(room)
    }


@pytest.mark.parametrize(
    ("page", "argument", "kind", "rule"),
    [
        ("operators/WebDataCrawlOperator", "limit", "`int`, at least 1", "crawl-limit"),
        (
            "operators/WebDataCrawlOperator",
            "webhook",
            "[PageJobWebhookConfig](../../reference/objects.md#pagejobwebhookconfig), or its URL as text",
            "crawl-webhook",
        ),
        ("operators/WebDataCrawlOperator", "wait_timeout", "`float | timedelta`", None),
        ("sensors/WebDataMonitorCheckSensor", "otherwise", '`"wait" | "skip"`', None),
        ("triggers/WebDataMonitorCheckEventTrigger", "on_failed", '`"accept" | "wait"`', None),
    ],
)
def test_types_limits_and_rules(page: str, argument: str, kind: str, rule: str | None) -> None:
    facts = str(listed(pages()[f"reference/{page}.md"])[argument]["facts"])
    assert facts.split(" · ")[0] == kind
    assert re.findall(r"service\.md#([\w-]+)", facts) == ([rule] if rule else [])


def test_a_model_that_nothing_is_said_of_is_named() -> None:
    with pytest.raises(LookupError, match=r"NewRequest: add its rule or section of sandbox/docs/service\.md"):
        rule_of_model("NewRequest")


def test_the_hook_page_has_every_method() -> None:
    text = pages()["reference/hook.md"]
    headings = set(re.findall(r"^### `(\w+)`$", text, re.MULTILINE))
    assert headings == {name for name in surface(WebDataHook) if hasattr(WebDataHook, name)}
    shown = listed(text)
    for name in headings:
        for parameter in inspect.signature(getattr(WebDataHook, name)).parameters:
            assert parameter == "self" or f"{name}-{parameter}" in shown


@pytest.mark.skipif(not interfaces.HAS_AGENTS, reason="Airflow's provider of agents is not installed")
def test_the_page_of_the_toolset_has_every_argument() -> None:
    from airflow_provider_webdata.toolsets.webdata import WebDataToolset

    assert set(listed(pages()["reference/toolset.md"])) == set(inspect.signature(WebDataToolset).parameters)


def test_the_errors_page_has_every_error() -> None:
    def tree(error: type[WebDataError]) -> set[str]:
        return {error.__name__}.union(
            *(tree(below) for below in error.__subclasses__() if PACKAGE in below.__module__)
        )

    assert set(re.findall(r"^## `(\w+)`$", pages()["reference/errors.md"], re.MULTILINE)) == tree(
        WebDataError
    )


def test_every_page_has_a_title_and_no_second_one() -> None:
    for path, text in pages().items():
        outside_code = re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
        assert len(re.findall(r"^# ", outside_code, re.MULTILINE)) == 1, path


def described(one: int, two: str = "x") -> None:
    """Do it.

    Some more.

    :param one: first,
        over two lines.
    :raises ValueError: it cannot be done.
    :return: nothing.
    """


def test_an_argument_without_description_is_named() -> None:
    doc = docstring_of(described)
    assert (doc.summary, doc.body, doc.returns) == ("Do it.", "Some more.", "nothing.")
    assert (doc.parameters, doc.raises) == (
        {"one": "first, over two lines."},
        [("ValueError", "it cannot be done.")],
    )
    with pytest.raises(DescriptionError, match=r"described: the docstring has no line ':param two: ...'"):
        arguments_of(described, doc.parameters, "described")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "None"),
        (True, "True"),
        (60.0, "60"),
        (0.5, "0.5"),
        ("auto", '"auto"'),
        (timedelta(days=7), "timedelta(days=7)"),
        (timedelta(hours=1.5), "timedelta(seconds=5400)"),
        (("monitor.page",), "('monitor.page',)"),
    ],
)
def test_defaults_are_written_as_in_a_dag_file(value: Any, text: str) -> None:
    assert literal(value) == text
    assert eval(text, {"timedelta": timedelta}) == value


def test_choices_are_spelled_out() -> None:
    assert spelled("Literal['a', 'b'] | None", described) == '"a" | "b" | None'
    assert spelled("WaitBy | Nothing", interfaces.WebDataHook.__init__) == "WaitBy | Nothing"


@pytest.mark.parametrize(
    ("rule", "text"),
    [
        ((), ""),
        (("number", True, 1, 100, None), "`int`, 1 to 100"),
        (("number", False, None, 5, 0), "`float`, more than 0, at most 5"),
        (("number", False, None, 1000, None), "`float`, at most 1,000"),
        (("switch",), "`bool`"),
        (("mapping",), "mapping"),
        (("choice", ("a",)), '`"a"`'),
        (("choice", ("a", "b", "c")), '`"a"`, `"b"` or `"c"`'),
        (("text", 500, "_query"), "`str`, at most 500 characters"),
        (("list", ("text", None, None), 0, None), "list of `str`"),
        (("list", (), 1, 50), "list of values, 1 to 50 items"),
        (("object", "Location"), "[Location](objects.md#location)"),
        (("one_of", ("pdf",), {"pdf": "PdfParser"}), '`"pdf"` or [PdfParser](objects.md#pdfparser)'),
        (("one_of", (), {"a": "A", "b": "A"}), "[A](objects.md#a)"),
    ],
)
def test_rules_in_words(rule: tuple[Any, ...], text: str) -> None:
    assert words(rule, "objects.md") == text


def test_the_inventory_names_every_class_by_its_import_path() -> None:
    """Other projects link to the classes through `objects.inv`."""
    # Sphinx is not installed on Python 3.10.
    note_classes = pytest.importorskip("tools.docs_site.extension").note_classes
    objects: dict[str, Any] = {}
    environment = SimpleNamespace(domains=SimpleNamespace(python_domain=SimpleNamespace(objects=objects)))
    note_classes(None, environment)

    for path in objects:
        module, _, name = path.rpartition(".")
        assert inspect.isclass(getattr(import_module(module), name)), path
    assert objects.keys() >= {
        f"{subject.module}.{subject.name}" for room in ROOMS for subject in subjects(room)
    }
    options = objects["airflow_provider_webdata.options.Quality"]
    assert (options.docname, options.node_id, options.objtype) == ("reference/options", "quality", "class")
