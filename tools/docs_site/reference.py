# SPDX-License-Identifier: Apache-2.0
"""The generated reference pages as Markdown, by path in the site."""

from __future__ import annotations

import posixpath
import re
from functools import cache

from airflow_provider_webdata.api import models
from airflow_provider_webdata.api.models.base import RequestModel
from tools.docs_site.docstrings import docstring_of
from tools.docs_site.kinds import Rule, words
from tools.docs_site.pages import ROOT, place_of
from tools.docs_site.rendering import argument, body, code, page, prose, table
from tools.docs_site.rules import rule_of_field, rule_of_model
from tools.docs_site.subjects import ROOMS, Argument, DescriptionError, Group, Subject, subjects
from tools.field_rules import rules_of
from tools.operator_fields import models_of_operators

TITLES = {"operators": "Operators", "transfers": "Transfers", "sensors": "Sensors", "triggers": "Triggers"}
_OF_OPERATORS = "`task_id`, `retries`, `pool`, `trigger_rule`, and all others of Airflow's `BaseOperator`."
AIRFLOWS = {
    "operators": _OF_OPERATORS,
    "transfers": _OF_OPERATORS,
    "sensors": "`task_id`, `timeout`, `poke_interval`, `mode`, `soft_fail`, and all others of Airflow's "
    "`BaseSensorOperator` and `BaseOperator`.",
}
NOTATION = (
    "All arguments are keyword-only. A request field with the default `None` is not sent, and the service's default "
    "in the description applies. *Templated* arguments also accept templates, including for numbers and switches, and "
    "XComs of other tasks. *rule* links to the service's rule."
)


def pages() -> dict[str, str]:
    """Return the text of every page, by path from the root of the site.

    :raises DescriptionError: a public object has no description.
    """
    from tools.docs_site import interfaces

    found = {}
    for room in ROOMS:
        for subject in subjects(room):
            found[f"reference/{room}/{subject.name}.md"] = _subject(subject)
        found[f"reference/{room}/index.md"] = _room(room)
    return {**found, "reference/objects.md": _objects(), **interfaces.pages()}


@cache
def place_of_import() -> dict[str, tuple[str, str]]:
    """Return the page (without suffix) and anchor of each described class, by import path."""
    from tools.docs_site.interfaces import places

    found = {
        f"{subject.module}.{subject.name}": (f"reference/{room}/{subject.name}", "")
        for room in ROOMS
        for subject in subjects(room)
    }
    return found | places()


def place_of_class() -> dict[str, tuple[str, str]]:
    """Return the page and anchor of each described class, by class name."""
    return {path.rpartition(".")[2]: place for path, place in place_of_import().items()}


@cache
def _rules() -> dict[str, dict[str, Rule]]:
    return rules_of(
        sorted({*models_of_operators(), "CrawlParamsRequest", "ExecuteRequest", "ScrapeInteractRequest"})
    )


@cache
def _guides() -> dict[str, str]:
    """Return the link to the guide of each operator and sensor, from the tables of docs/operators/README.md."""
    found = {}
    for line in (ROOT / "docs/operators/README.md").read_text(encoding="utf-8").splitlines():
        if line.startswith("|") and (link := re.search(r"\]\(([^)#]+)(#[^)]*)?\)", line)):
            name = posixpath.normpath(posixpath.join("docs/operators", link[1]))
            title = (ROOT / name).read_text(encoding="utf-8").partition("\n")[0].removeprefix("# ")
            guide = f"Guide: [{title}](../../{place_of(name)}{link[2] or ''})."
            found |= dict.fromkeys(re.findall(r"`(WebData\w+)`", line), guide)
    return found


def _subject(subject: Subject) -> str:
    root = "../../"
    doc = docstring_of(subject.cls)
    if not doc.summary:
        raise DescriptionError(f"{subject.module}.{subject.name}: no docstring")
    links = [_guides()[subject.name]] if subject.name in _guides() else []
    if model := getattr(subject.cls, "_request_model", ""):
        links.append(
            f"Rules of the service: [{rule_of_model(model)}]({root}service.md#{rule_of_model(model)})."
        )
    return page(
        subject.name,
        prose(doc.summary, root),
        code(f"from {subject.module} import {subject.name}"),
        " ".join(links),
        prose(doc.body, root),
        "## Arguments",
        NOTATION if subject.room != "triggers" else "",
        *(_group(group, subject, root) for group in subject.groups),
        ["## Airflow's arguments", AIRFLOWS[subject.room]] if subject.room in AIRFLOWS else [],
    )


def _group(group: Group, subject: Subject, root: str) -> list[str]:
    listed = "\n".join(_argument(item, root) for item in group.arguments)
    if group.owner is subject.cls:
        return [listed]
    return [f"## From `{group.owner.__name__}`", *body(docstring_of(group.owner), root), listed]


def _argument(item: Argument, root: str) -> str:
    if not item.request:
        return argument(item, "", None, root)
    rules = _rules()[item.request]
    wire = _wire_name(item.request, item.name)
    return argument(
        item,
        words(rules.get(item.name, ()), f"{root}reference/objects.md"),
        rule_of_field(item.request, wire),
        root,
    )


def _wire_name(model: str, name: str) -> str:
    fields = getattr(models, model).model_fields
    field = fields.get(name) or fields[f"{name}_"]
    return field.alias or name


def _room(room: str) -> str:
    listed = subjects(room)
    rows = [
        (f"[`{subject.name}`]({subject.name}.md)", prose(docstring_of(subject.cls).summary, "../../"))
        for subject in listed
    ]
    children = "\n".join(subject.name for subject in listed)
    return page(
        TITLES[room], table(("Class", "Purpose"), rows), f"```{{toctree}}\n:hidden:\n\n{children}\n```"
    )


def _objects() -> str:
    """Return the page of the objects in requests, and of requests without an operator."""
    spelled_out = {*models_of_operators()}
    names = [name for name in sorted(_rules()) if name not in spelled_out]
    return page(
        "Objects",
        "The fields of the objects in requests. You can use the Python names or the service's names (in parentheses "
        "if they differ).",
        *([f"## {name}", *_object(name)] for name in names),
    )


def _object(name: str) -> list[str]:
    model: type[RequestModel] = getattr(models, name)
    doc = docstring_of(model)
    texts = _field_texts(model)
    rules = _rules()[name]
    listed = []
    for field_name, field in model.model_fields.items():
        python = field_name.rstrip("_")
        kind = words(rules.get(python, ()), "objects.md")
        text = texts.get(field_name, "")
        if field_name == "type" and not text:
            text = "kind of object."
        if not text:
            raise DescriptionError(f"api.models.{name}.{field_name}: no line ':param {field_name}: ...'")
        if field.alias and field.alias != python:
            text = f"(`{field.alias}`) {text}"
        default = None if field.is_required() else ""
        item = Argument(python, str(field.annotation) if not kind else "", default, text)
        listed.append(
            argument(
                item,
                kind or "any value",
                rule_of_field(name, field.alias or python),
                "../",
                f"{name.lower()}-",
            )
        )
    rule = rule_of_model(name)
    return [*body(doc, "../"), f"Rules: [{rule}](../service.md#{rule}).", "\n".join(listed)]


def _field_texts(model: type[RequestModel]) -> dict[str, str]:
    """Return the fields' descriptions from the docstrings of a model, its bases, and subclasses, nearest first."""
    found: dict[str, str] = {}
    for described in (*model.__subclasses__(), *reversed(model.__mro__)):
        if issubclass(described, RequestModel):
            found |= docstring_of(described).parameters
    return found
