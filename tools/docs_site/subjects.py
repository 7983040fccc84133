# SPDX-License-Identifier: Apache-2.0
"""The subjects of the reference, read from the code: operators, transfers, sensors, and triggers with arguments."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import cache
from typing import Any, Literal, get_args, get_origin

from airflow_provider_webdata.options import Option
from tools.docs_site.docstrings import docstring_of
from tools.metadata import modules_of

PACKAGE = "airflow_provider_webdata"
ROOMS = ("operators", "transfers", "sensors", "triggers")
OPTIONS = tuple(Option.__subclasses__())


class DescriptionError(Exception):
    """A public object has no description. The message names the object."""


@dataclass(frozen=True)
class Argument:
    """An argument of a constructor or method.

    :param kind: the type as source text, with the choices of literals.
    :param default: the default as source text; None: the argument is required; empty: no default to show.
    :param text: the description, one line.
    :param templated: True if Airflow renders the argument.
    :param request: name of the request model with this field; empty: the argument is not a request field.
    """

    name: str
    kind: str
    default: str | None
    text: str
    templated: bool = False
    request: str = ""


@dataclass(frozen=True)
class Group:
    """The arguments that one class in an operator's MRO defines."""

    owner: type
    arguments: tuple[Argument, ...]


@dataclass(frozen=True)
class Subject:
    """A public class.

    :param room: one of `ROOMS`.
    :param module: the module from which users import the class.
    """

    room: str
    module: str
    cls: type

    @property
    def name(self) -> str:
        """The name of the class and of its page."""
        return self.cls.__name__

    @property
    def groups(self) -> list[Group]:
        """The arguments of the class, then those of its bases."""
        return [*_groups(self.cls)]


def subjects(room: str) -> list[Subject]:
    """Return the public classes of a room, in the order of the provider's metadata."""
    return [Subject(room, module, cls) for module in modules_of(room) for cls in _classes(module)]


def arguments_of(function: Any, text_of: dict[str, str], where: str) -> list[Argument]:
    """Return a function's arguments, except `self`, `*args`, and `**kwargs`.

    :param text_of: the descriptions, by name.
    :param where: name of the function for the error.
    :raises DescriptionError: an argument has no description.
    """
    found = []
    for name, parameter in inspect.signature(function).parameters.items():
        if name == "self" or parameter.kind in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL):
            continue
        if not text_of.get(name):
            raise DescriptionError(f"{where}: the docstring has no line ':param {name}: ...'")
        default = None if parameter.default is parameter.empty else literal(parameter.default)
        kind = spelled(annotation_text(parameter.annotation), function)
        found.append(Argument(name, kind, default, text_of[name]))
    return found


def arguments_of_option(option: type[Option]) -> list[Argument]:
    """Return the fields of an option.

    :raises DescriptionError: a field has no description.
    """
    return [
        replace(
            one,
            kind=spelled(option.__annotations__[one.name], option),
            templated=one.name in option.template_fields,
        )
        for one in arguments_of(option, docstring_of(option).parameters, option.__name__)
    ]


def literal(value: Any) -> str:
    """Return a default value as source text for a DAG file."""
    if isinstance(value, timedelta):
        days, seconds = divmod(value.total_seconds(), 86400)
        return f"timedelta(days={days:g})" if not seconds else f"timedelta(seconds={value.total_seconds():g})"
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, str):
        return '"' + value.replace('"', '\\"') + '"'
    return repr(value)


def annotation_text(annotation: Any) -> str:
    """Return an annotation, which may be evaluated, as source text."""
    return annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)


def spelled(annotation: str, function: Any) -> str:
    """Return an annotation in which the choices of literals replace their names.

    :param function: the function or class with the annotation.
    """
    names = {**_imported_for_types(function.__module__), **vars(sys.modules[function.__module__])}

    def choices(match: re.Match[str]) -> str:
        meant = names.get(match[0])
        if get_origin(meant) is not Literal:
            return match[0]
        return " | ".join(literal(choice) for choice in get_args(meant))

    shown = re.sub(r"\b[A-Z]\w+\b", choices, annotation.replace("models.", ""))
    return re.sub(
        r"Literal\[([^\]]*)\]", lambda match: match[1].replace("'", '"').replace(", ", " | "), shown
    )


@cache
def _imported_for_types(module: str) -> dict[str, Any]:
    """Return the names that a module imports under `if TYPE_CHECKING`."""
    found = {}
    for node in ast.parse(inspect.getsource(sys.modules[module])).body:
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            for line in node.body:
                if isinstance(line, ast.ImportFrom) and str(line.module).startswith(PACKAGE):
                    source = importlib.import_module(str(line.module))
                    found |= {
                        name.asname or name.name: getattr(source, name.name, None) for name in line.names
                    }
    return found


def _classes(module: str) -> Iterator[type]:
    found = importlib.import_module(module)
    for name in getattr(found, "__all__", vars(found)):
        item = getattr(found, name)
        if inspect.isclass(item) and name.startswith("WebData") and item.__module__.startswith(module):
            yield item


def _groups(cls: type) -> Iterator[Group]:
    seen: set[str] = set()
    templated = {*getattr(cls, "template_fields", ())}
    fields = {*getattr(cls, "_request_fields", ())}
    request = getattr(cls, "_request_model", "")
    for base in cls.__mro__:
        # Airflow wraps constructors, including inherited ones.
        if (
            not base.__module__.startswith(PACKAGE)
            or base.__init__.__qualname__ != f"{base.__name__}.__init__"
        ):
            continue
        arguments = arguments_of(
            base.__init__, docstring_of(base).parameters, f"{base.__module__}.{base.__name__}"
        )
        own = tuple(
            Argument(
                one.name,
                one.kind,
                one.default,
                one.text,
                one.name in templated,
                request if one.name in fields else "",
            )
            for one in arguments
            if one.name not in seen
        )
        seen |= {one.name for one in own}
        if own:
            yield Group(base, own)
        if not any(
            parameter.kind is parameter.VAR_KEYWORD
            for parameter in inspect.signature(base.__init__).parameters.values()
        ):
            return
