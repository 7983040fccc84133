# SPDX-License-Identifier: Apache-2.0
"""Write the fields of request models into the operators that send them.

    python -m tools.operator_fields            update outdated files
    python -m tools.operator_fields --check    if files are outdated, show the differences and exit with 1

An operator names its model in the class statement (`fields=RequestFields(...)`). In its `__init__`, the parameters and
the assignments are between a line `# fields of <Model>, ...` and a line `# end of fields`. In the class docstring, all
`:param` entries are generated, except those of the operator's own arguments and `kwargs`.

Types are loose: a template renders to text, so numbers and switches accept text too, and an object is any mapping.

The rules for literal arguments are written to `base/arguments/field_rules.json`; see `tools/field_rules.py`.
"""

from __future__ import annotations

import argparse
import ast
import difflib
import inspect
import json
import re
import sys
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from airflow_provider_webdata.api import models
from airflow_provider_webdata.api.models.base import RequestModel
from airflow_provider_webdata.api.models.fields import JsonSchema
from airflow_provider_webdata.base.operator import OPTION_ARGUMENTS, RequestFields
from tools.field_rules import SHORT_FORMS, field_rules
from tools.option_arguments import OPTIONS

ROOT = Path(__file__).parents[1]
OPERATORS = ROOT / "airflow_provider_webdata" / "operators"
BEGIN = "# fields of {model}, written by tools/operator_fields.py"
END = "# end of fields"
WIDTH = 120
SHOWN = 12
"""Maximum number of shown changes per outdated file."""
LABELS = ("origin", "integration")
"""Fields of every request that no operator accepts; `extra_body` sends them."""

_SCALARS = {bool: ("bool", "str"), int: ("int", "str"), float: ("float", "str"), str: ("str",)}
_EMPTY = re.compile(r"^( *)(# fields of \w+, .*\n)(?= *# end of fields)", re.MULTILINE)
_ENTRY = re.compile(r"^:param (\w+): *(.*(?:\n[ \t]+.*)*)", re.MULTILINE)


class FieldsError(Exception):
    """A mistake that the generator cannot correct, such as a missing description or missing marks.

    :param file: the file with the mistake; empty: the operator's file.
    """

    def __init__(self, message: str, file: str = "") -> None:
        super().__init__(f"{file}: {message}" if file else message)
        self.file = file


@dataclass(frozen=True)
class Parameter:
    """A field as a parameter of an operator.

    :param name: the name in Python.
    :param type: the type as source text.
    :param default: the default as source text; None: the field is required.
    :param text: the description, one line.
    """

    name: str
    type: str
    default: str | None
    text: str

    @property
    def signature(self) -> str:
        """The line in the parameter list."""
        default = "" if self.default is None else f" = {self.default}"
        return f"{self.name}: {self.type}{default},"

    @property
    def assignment(self) -> str:
        """The line in the body."""
        return f"self.{self.name} = {self.name}"


def descriptions(model: type[RequestModel]) -> dict[str, str]:
    """Return the description of each field from the docstrings of a model and its bases, by Python name, bases first.

    :raises FieldsError: a field has no description, or a description has no field.
    """
    found: dict[str, str] = {}
    for base in reversed(model.__mro__):
        if issubclass(base, RequestModel):
            for name, text in _ENTRY.findall(inspect.cleandoc(base.__dict__.get("__doc__") or "")):
                found[name] = " ".join(text.split())
    fields = set(model.model_fields)
    file = str(Path(inspect.getfile(model)).relative_to(ROOT))
    for name in sorted(fields - found.keys()):
        raise FieldsError(f"the docstring of {model.__name__} has no line ':param {name}: ...'", file)
    for name in sorted(found.keys() - fields):
        raise FieldsError(f"the docstring of {model.__name__} describes {name!r}, which is not a field", file)
    return found


def loose_type(annotation: Any, *, templated: bool = True) -> str:
    """Return the type of a parameter for a field with this annotation, as source text without None.

    :param templated: numbers and switches accept text too, which a template may render.
    """
    return " | ".join(dict.fromkeys(_loose(annotation, templated)))


def _loose(annotation: Any, templated: bool) -> Iterator[str]:
    origin, args = get_origin(annotation), get_args(annotation)
    if annotation in _SCALARS:
        yield from _SCALARS[annotation] if templated else (annotation.__name__,)
    elif origin is Annotated:
        yield from _loose(args[0], templated)
        if annotation == JsonSchema:
            yield "type"
    elif origin in (Union, UnionType):
        # A float accepts an int.
        parts = [part for part in args if part is not NoneType and not (part is int and float in args)]
        for part in parts:
            yield from _loose(part, templated)
    elif origin is Literal:
        yield "str"
    elif origin is list:
        yield f"Sequence[{loose_type(args[0], templated=templated)}]"
    elif origin is dict:
        yield f"Mapping[str, {'str' if args[1] is str else 'Any'}]"
    elif issubclass(annotation, tuple(SHORT_FORMS)):
        yield from ("Mapping[str, Any]", "str")
    elif issubclass(annotation, RequestModel):
        yield "Mapping[str, Any]"
    else:
        raise FieldsError(f"no parameter type for a field of type {annotation}; add one to {__name__}")


def parameters(fields: RequestFields) -> list[Parameter]:
    """Return the parameters of an operator for its model's fields: required ones first, labels last.

    :raises FieldsError: the model does not exist, or a description is missing.
    """
    if fields.model not in models.__all__:
        raise FieldsError(f"no model {fields.model} in api/models")
    model: type[RequestModel] = getattr(models, fields.model)
    found = []
    for name, text in descriptions(model).items():
        field = model.model_fields[name]
        # A trailing underscore distinguishes a field from a method of pydantic's models.
        name = name.rstrip("_")
        if name in fields.without or name in LABELS:
            continue
        default = None if field.is_required() else "None"
        if name in fields.defaults:
            own = json.dumps(fields.defaults[name])
            default = own if isinstance(fields.defaults[name], str) else repr(fields.defaults[name])
            text = re.sub(r"Default: (.*)", rf"Default: {own}; that of the service: \1", text)
        kind = loose_type(field.annotation)
        found.append(Parameter(name, f"{kind} | None" if default == "None" else kind, default, text))
    accepted = {name for group in fields.options for name in OPTION_ARGUMENTS[group]}
    options = [
        Parameter(name, option.type, option.default, option.text)
        for name, option in OPTIONS.items()
        if name in accepted
    ]
    return sorted(found, key=lambda parameter: parameter.default is not None) + options


def rewritten(source: str) -> str:
    """Return an operator's source with the fields of its models.

    :raises FieldsError: marks are missing, or the operator's own arguments differ from those in the class statement.
    """
    source = _readable(source)
    for node in ast.parse(source).body:
        if isinstance(node, ast.ClassDef) and (fields := _fields_of(node)) is not None:
            wanted = parameters(fields)
            source = _with_block(source, node.name, fields.model, 0, [p.signature for p in wanted])
            source = _with_block(source, node.name, fields.model, 1, [p.assignment for p in wanted])
            _check_own(source, node.name, fields, wanted)
            source = _with_docs(source, node.name, fields, wanted)
    return source


def _readable(source: str) -> str:
    """Return the source of a new operator so that it parses: a signature cannot end in a bare `*`."""
    return _EMPTY.sub(r"\1\2\1_: Any = None,\n", source)


def models_of_operators() -> Iterator[str]:
    """Yield the names of the request models of operators."""
    for path in OPERATORS.rglob("*.py"):
        for node in ast.parse(_readable(path.read_text())).body:
            if isinstance(node, ast.ClassDef) and (fields := _fields_of(node)) is not None:
                yield fields.model


def _fields_of(node: ast.ClassDef) -> RequestFields | None:
    for keyword in node.keywords:
        if keyword.arg == "fields" and isinstance(keyword.value, ast.Call):
            call = keyword.value
            return RequestFields(
                *(ast.literal_eval(value) for value in call.args),
                **{str(item.arg): ast.literal_eval(item.value) for item in call.keywords},
            )
    return None


def _with_block(source: str, name: str, model: str, which: int, content: list[str]) -> str:
    begin = BEGIN.format(model=model)
    blocks = list(re.finditer(rf"^( *){re.escape(begin)}\n(?:.*\n)*?\1{END}\n", source, re.MULTILINE))
    if len(blocks) != 2:
        raise FieldsError(
            f"{name}: __init__ needs two pairs of lines, '{begin}' and '{END}': for parameters, for assignments"
        )
    block = blocks[which]
    text = textwrap.indent("\n".join([begin, *content, END]), block[1]) + "\n"
    return source[: block.start()] + text + source[block.end() :]


def _class(source: str, name: str) -> ast.ClassDef:
    return next(n for n in ast.parse(source).body if isinstance(n, ast.ClassDef) and n.name == name)


def _check_own(source: str, name: str, fields: RequestFields, wanted: list[Parameter]) -> None:
    init = next(
        n for n in _class(source, name).body if isinstance(n, ast.FunctionDef) and n.name == "__init__"
    )
    own = {argument.arg for argument in init.args.kwonlyargs} - {parameter.name for parameter in wanted}
    if own != set(fields.own):
        raise FieldsError(
            f"{name}: its class statement has own={fields.own}, but its own arguments are {tuple(sorted(own))}"
        )


def _with_docs(source: str, name: str, fields: RequestFields, wanted: list[Parameter]) -> str:
    """Replace the fields' entries in a class docstring, starting at the first one."""
    node = _class(source, name)
    docstring = node.body[0]
    lines = source.splitlines(keepends=True)
    assert isinstance(docstring, ast.Expr)
    first, last = docstring.lineno - 1, docstring.end_lineno or docstring.lineno
    text = textwrap.dedent("".join(lines[first:last]))
    entries = [*_ENTRY.finditer(text)]
    generated = [entry for entry in entries if entry[1] not in {*fields.own, "kwargs"}]
    place = next(iter(generated or [entry for entry in entries if entry[1] == "kwargs"]), None)
    if place is None:
        raise FieldsError(
            f"{name}: its docstring needs a line ':param kwargs: ...'; the fields are inserted before it"
        )
    for entry in reversed(generated):
        text = text[: entry.start()] + text[entry.end() + 1 :]
    written = "".join(_entry(parameter) + "\n" for parameter in wanted)
    text = text[: place.start()] + written + text[place.start() :]
    lines[first:last] = [textwrap.indent(text, "    ")]
    return "".join(lines)


def _entry(parameter: Parameter) -> str:
    return textwrap.fill(
        f":param {parameter.name}: {parameter.text}",
        WIDTH - 4,
        subsequent_indent="    ",
        break_long_words=False,
        break_on_hyphens=False,
    )


def changes(old: str, new: str) -> str:
    """Return the first changed lines, shortened."""
    lines = [*difflib.unified_diff(old.splitlines(), new.splitlines(), n=0, lineterm="")][2:]
    found = [f"  {line[0]} {line[1:].strip()}"[:WIDTH] for line in lines if not line.startswith("@")]
    return "\n".join([*found[:SHOWN], *(["  ..."] if found[SHOWN:] else [])])


def main(arguments: list[str] | None = None) -> int:
    """Write or check the operators; return the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="write no files, and fail if a file is outdated")
    check = parser.parse_args(arguments).check
    outdated = 0
    mistakes: dict[str, None] = {}
    rules = OPERATORS.parent / "base" / "arguments" / "field_rules.json"
    known = sorted({*models_of_operators()} & {*models.__all__})
    wanted: dict[Path, str] = {rules: field_rules(known)}
    for path in sorted(OPERATORS.rglob("*.py")):
        try:
            wanted[path] = rewritten(path.read_text())
        except FieldsError as error:  # noqa: PERF203
            mistakes[str(error) if error.file else f"{path.relative_to(OPERATORS.parents[1])}: {error}"] = (
                None
            )
    for mistake in mistakes:
        print(mistake, file=sys.stderr)
    for path, fresh in wanted.items():
        name = path.relative_to(OPERATORS.parents[1])
        if not path.exists() or fresh != path.read_text():
            outdated += 1
            if check:
                print(f"{name} is outdated; run python -m tools.operator_fields", file=sys.stderr)
                print(changes(path.read_text() if path.exists() else "", fresh), file=sys.stderr)
            else:
                path.write_text(fresh)
                print(f"{name}: written")
    return 1 if mistakes or (outdated and check) else 0


if __name__ == "__main__":
    sys.exit(main())
