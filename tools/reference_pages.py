# SPDX-License-Identifier: Apache-2.0
"""Write the reference: arguments, options, configuration, connection fields, commands, results, XCom keys, codes.

    python -m tools.reference_pages            update outdated pages
    python -m tools.reference_pages --check    list outdated pages, and exit with 1 if there are any

The pages of docs/reference with a mark are generated. On other pages of docs/, the tables between marks are:
`<!-- arguments of <class> -->` and `<!-- end of arguments -->`, `<!-- fields of the connection -->` and
`<!-- end of fields -->`, and `<!-- codes -->` and `<!-- end of codes -->`. Texts come from docstrings and from the
provider's metadata: a line of a table is the first sentence of an argument's description.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any
from unittest.mock import patch

from airflow_provider_webdata.cli import get_commands
from airflow_provider_webdata.common.xcom_keys import XCOM_KEYS
from airflow_provider_webdata.get_provider_info import get_provider_info
from tools.docs_density import GENERATED
from tools.docs_site import error_codes
from tools.docs_site.docstrings import docstring_of
from tools.docs_site.rendering import code, page, plain_type, prose, table
from tools.docs_site.result_classes import attributes_of, described_bases, methods_of_results
from tools.docs_site.subjects import (
    OPTIONS,
    PACKAGE,
    ROOMS,
    Argument,
    DescriptionError,
    Subject,
    arguments_of_option,
    subjects,
)

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
MAX_WORDS = 40
"""Maximum number of words in a cell."""
MAX_DEFAULT_WORDS = 24
"""Maximum number of words of a default; the meaning of a longer one needs the description."""
FEW = 9
"""Maximum number of arguments without a fold."""

COMMON = {
    *("calls", "capability", "changes", "create_table", "credit_limit", "exclude_paths", "formats", "goal"),
    *("if_exists", "include_pages", "include_paths", "k", "key", "limit", "map_options", "max_age"),
    *("max_credits", "max_error_ratio", "mode", "model", "monitor_id", "monitor_name", "only_if_changed"),
    *("only_if_meaningful", "options", "prompt", "provider", "quality", "repos", "returns"),
    *("schedule", "schema", "scrape_id", "scrape_options", "search", "sources", "status", "targets", "tbs"),
    *("urls", "wait_for_completion", "webdata_conn_id", "save_to", "deferrable"),
}
"""Arguments outside the fold, besides required ones."""

_SENTENCE = re.compile(r"(?<=[.)])\s+(?=[A-Z`\d])")
_DEFAULT = re.compile(
    r"\(default: (?P<in_help>.*?)\)(?=$|[.;, ])|(?:^|\s)Default: (?P<text>[^;]+?)(?:\.(?=\s|$)|;|$)"
)
_ASIDE = re.compile(r" ?\((?:templated|default)\)")
_PAGE = re.compile(r"`docs/([\w/]+\.md)`")
_STANDARD = {
    "host": ("Base URL", "address of the service, with `https://`", "**required**"),
    "port": ("Port", "only if the base URL has none", "the scheme's default"),
    "password": (
        "API Key",
        "sent as a bearer token",
        "required, except by a self-hosted server or a gateway without keys",
    ),
}
"""Airflow's own fields of a connection: label, meaning, default."""


def main(arguments: list[str] | None = None) -> int:
    """Write or check the pages; return the exit status."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--check", action="store_true")
    check = parser.parse_args(arguments).check
    outdated = [
        path for path, text in pages().items() if not path.exists() or path.read_text("utf-8") != text
    ]
    for path in outdated:
        if check:
            print(
                f"{path.relative_to(ROOT)} is outdated; run python -m tools.reference_pages", file=sys.stderr
            )
        else:
            path.parent.mkdir(exist_ok=True)
            path.write_text(pages()[path], encoding="utf-8")
            print(f"{path.relative_to(ROOT)}: written")
    return 1 if outdated and check else 0


@cache
def pages() -> dict[Path, str]:
    """Return the text of each page with generated tables.

    :raises DescriptionError: a mark names an unknown class, or a text is too long for a table.
    """
    found = {
        path: filled(path.read_text("utf-8"), path.relative_to(DOCS).as_posix())
        for path in sorted(DOCS.rglob("*.md"))
        if path.parent.name != "reference"
    }
    generated = {
        "options": _options(),
        "triggers": _triggers(),
        "configuration": _configuration(),
        "commands": _commands(),
        "xcom": _xcom(),
        "results": _results(),
    }
    return found | {DOCS / "reference" / f"{name}.md": text for name, text in generated.items()}


def filled(text: str, name: str) -> str:
    """Return a page with its generated tables.

    :param name: path below docs/.
    :raises DescriptionError: a mark names an unknown class.
    """
    root = "../" * name.count("/")

    def block(match: re.Match[str]) -> str:
        what = match["what"]
        if what == "codes":
            inside, end = error_codes.sections(), "codes"
        elif match["name"] is None:
            inside, end = _fields(root), "fields"
        else:
            inside, end = _argument_tables(_subject(match["name"], name), root), "arguments"
        return f"<!-- {what} -->\n\n{inside}\n\n<!-- end of {end} -->"

    return GENERATED.sub(block, text)


def _subject(name: str, where: str) -> Subject:
    for room in ROOMS:
        for subject in subjects(room):
            if subject.name == name:
                return subject
    raise DescriptionError(f"docs/{where}: there is no public class {name}")


def _argument_tables(subject: Subject, root: str) -> str:
    """Return required and common arguments as a table, the others as a table in a fold."""
    every = [item for group in subject.groups for item in group.arguments]
    folds = len(every) > FEW
    every.sort(key=lambda item: item.default is not None and 1 + (folds and item.name not in COMMON))
    shown = [item for item in every if item.default is None or item.name in COMMON or not folds]
    rest = [item for item in every if item not in shown]
    name, where = f"`{subject.name}`", f"{subject.module}.{subject.name}"
    parts = [_table(name, shown, where, root)]
    literal = [f"`{item.name}`" for item in every if not item.templated]
    if len(literal) == len(every):
        note = ""
    else:
        note = f"Not templated: {', '.join(literal)}." if literal else "All are templated."
    if rest:
        summary = f"<summary>Other arguments of <code>{subject.name}</code></summary>"
        parts += [f"<details>\n{summary}", _table(name, rest, where, root), note, "</details>"]
    else:
        parts.append(note)
    return "\n\n".join(part for part in parts if part)


def _table(head: str, arguments: Iterable[Argument], where: str, root: str, *, whole: bool = False) -> str:
    rows = [
        (
            f"`{item.name}`",
            f"`{short_type(plain_type(item))}`",
            _default(item),
            _line(item.text, root, whole=whole),
        )
        for item in arguments
    ]
    return _checked((head, "Type", "Default", "Meaning"), rows, where)


def _checked(head: tuple[str, ...], rows: Iterable[tuple[str, ...]], where: str) -> str:
    rows = [*rows]
    for row in rows:
        if any(len(cell.split()) > MAX_WORDS for cell in row):
            raise DescriptionError(
                f"{where}: the text about {row[0]} is too long for a table; end its first sentence within "
                f"{MAX_WORDS} words: {max(row, key=len)}"
            )
    return table(head, rows)


def short_type(annotation: str) -> str:
    """Return a type for a table: containers by their Python names, without None and the text of templates."""
    if annotation.startswith(('"', "Literal[")):
        return "str"
    shown = re.sub(r"\bSequence\[", "list[", annotation)
    shown = re.sub(r"\bMapping\[[^\[\]]*\]", "dict", shown).replace(" | None", "")
    kinds = _parts(shown)
    if {*kinds} & {"bool", "int", "float"} and not any("[" in kind or kind[:1].isupper() for kind in kinds):
        kinds = [kind for kind in kinds if kind != "str"] or kinds
    return " | ".join(dict.fromkeys("str" if kind.startswith('"') else kind for kind in kinds))


def _parts(union: str) -> list[str]:
    """Split a union at its outermost bars."""
    found, depth = [""], 0
    for char in union:
        depth += (char == "[") - (char == "]")
        if char == "|" and not depth:
            found.append("")
        else:
            found[-1] += char
    return [part.strip() for part in found]


def _default(item: Argument) -> str:
    """Return the default: of the argument, else that of the service or the task by the description."""
    if item.default is None:
        return "**required**"
    if item.default not in ("None", ""):
        return f"`{item.default}`"
    stated = _DEFAULT.search(_ASIDE.sub("", item.text))
    text = (stated["in_help"] or stated["text"]) if stated else ""
    return text if len(text.split()) <= MAX_DEFAULT_WORDS else ""


def _line(text: str, root: str, *, whole: bool = False) -> str:
    """Return the first sentence of a description.

    :param whole: return as many sentences as fit into a cell.
    """
    sentences = [one for one in _SENTENCE.split(text) if not one.startswith("Default: ")]
    kept = sentences[:1]
    for sentence in sentences[1:] if whole else ():
        if len(" ".join([*kept, sentence]).split()) > MAX_WORDS:
            break
        kept.append(sentence)
    return (
        _linked(_ASIDE.sub(lambda match: " (" if match[0].endswith("; ") else "", " ".join(kept)), root)
        .strip()
        .removesuffix(".")
    )


def _linked(text: str, root: str) -> str:
    return _PAGE.sub(lambda match: f"[{_title(match[1])}]({root}{match[1]})", prose(text, root))


def _title(name: str) -> str:
    return (DOCS / name).read_text("utf-8").partition("\n")[0].removeprefix("# ")


def _options() -> str:
    parts: list[str] = []
    for option in OPTIONS:
        doc, where = docstring_of(option), f"{PACKAGE}.options.{option.__name__}"
        parts += [f"## {option.__name__}", _linked(doc.summary, "../")]
        parts.append(_table("Field", arguments_of_option(option), where, "../", whole=True))
        if doc.body:
            parts += ["<details>\n<summary>Details</summary>", _linked(doc.body, "../"), "</details>"]
    return page(
        "Options",
        _generated(),
        "Operators and sensors accept these objects. If you need only the first field, pass its value: "
        "`quality=100` is short for `quality=Quality(min_items=100)`.",
        code(f"from {PACKAGE}.options import {', '.join(option.__name__ for option in OPTIONS)}"),
        *parts,
    )


def _triggers() -> str:
    parts: list[str] = []
    for subject in sorted(subjects("triggers"), key=lambda one: not one.name.endswith("EventTrigger")):
        summary = _linked(docstring_of(subject.cls).summary, "../")
        parts += [f"## {subject.name}", summary, _argument_tables(subject, "../")]
    return page(
        "Triggers",
        _generated(),
        "`WebDataMonitorCheckEventTrigger` and `WebDataWebhookEventTrigger` start DAGs through an `AssetWatcher`: "
        "[A DAG per event](../event_driven.md). Operators and sensors create the other triggers when they defer.",
        code(
            f"from {PACKAGE}.triggers.events import (\n"
            "    WebDataMonitorCheckEventTrigger,\n    WebDataWebhookEventTrigger,\n)"
        ),
        *parts,
    )


def _fields(root: str) -> str:
    """Return the fields of the connection."""
    [connection] = get_provider_info()["connection-types"]
    rows = [(label, f"({key})", default, text) for key, (label, text, default) in _STANDARD.items()]
    for key, field in connection["conn-fields"].items():
        schema = field["schema"]
        default = (
            f"`{schema['default']}`"
            if "default" in schema
            else _default(_as_argument(key, field["description"]))
        )
        masked = " (masked)" if schema.get("format") == "password" else ""
        text = _line(field["description"], root, whole=True) + masked
        rows.append(
            (
                field["label"],
                f"`{key}`",
                default,
                _lowered(text),
            )
        )
    return _checked(("Field", "Extra key", "Default", "Meaning"), rows, "get_provider_info.py")


def _as_argument(name: str, text: str) -> Argument:
    return Argument(name, "", "None", text)


def _configuration() -> str:
    options = get_provider_info()["config"]["webdata"]["options"]
    rows = [
        (
            f"`{name}`",
            {"string": "str", "boolean": "bool"}.get(option["type"], option["type"]),
            f"`{option['default']}`"
            if option["default"]
            else _default(_as_argument(name, option["description"])),
            _lowered(_line(option["description"], "../", whole=True)),
        )
        for name, option in options.items()
    ]
    first = next(iter(options)).upper()
    return page(
        "Configuration",
        _generated(),
        "Options of the installation, in section `[webdata]` of `airflow.cfg` or in environment variables such as "
        f"`AIRFLOW__WEBDATA__{first}`. [The connection](../connection.md) has the settings of a server.",
        _checked(("Option", "Type", "Default", "Meaning"), rows, "get_provider_info.py"),
    )


def _commands() -> str:
    parts: list[str] = []
    with patch.dict(os.environ, {"COLUMNS": "1000"}):
        for group in get_commands():
            for words, command in _actions(group, ["airflow"]):
                name = " ".join(words)
                rows = [*_flags(name, command)]
                parts += [
                    f"## `{name}`",
                    _flagged(command.description or f"{command.help}."),
                    _checked(("Flag", "Default", "Meaning"), rows, name) if rows else "",
                ]
    return page("Commands", _generated(), "Subcommands of the `airflow` command.", *parts)


def _actions(command: Any, words: list[str]) -> Iterator[tuple[list[str], Any]]:
    words = [*words, command.name]
    if subcommands := getattr(command, "subcommands", None):
        for below in subcommands:
            yield from _actions(below, words)
    else:
        yield words, command


def _flags(name: str, command: Any) -> Iterator[tuple[str, str, str]]:
    parser = argparse.ArgumentParser(prog=name, add_help=False)
    for arg in command.args:
        arg.add_to_parser(parser)
    formatter = parser._get_formatter()
    for action in parser._actions:
        value = f"{{{','.join(map(str, action.choices))}}}" if action.choices else action.metavar
        flags = f"{', '.join(action.option_strings)} {value or ''}" if action.option_strings else action.dest
        text = formatter._expand_help(action)
        required = action.required and action.nargs != "?"
        default = "**required**" if required else _default(_as_argument(action.dest, text))
        line = re.sub(r" ?\(default: .*?\)(?=$|[.;, ])", "", " ".join(text.split())).removesuffix(".")
        yield f"`{flags.strip()}`", default, _lowered(_flagged(line))


def _flagged(text: str) -> str:
    """Mark flags in a text as code: Sphinx would turn their hyphens into dashes."""
    return re.sub(r"(?<![\w`-])(--[a-z][\w-]*)", r"`\1`", text)


def _lowered(text: str) -> str:
    """Return a text in the case of a table's cells."""
    return text[:1].lower() + text[1:] if re.match(r"[A-Z](?:[a-z]| )", text) else text


def _xcom() -> str:
    rows = [
        (f"`{key}`", known.shape, f"{'result of ' if known.in_result else ''}{known.pushed_by}")
        for key, known in XCOM_KEYS.items()
    ]
    return page(
        "XCom keys",
        _generated(),
        "This table lists the keys that the provider adds; in a returned mapping, all other keys are the service's "
        "field names, which the operators' pages describe. A value of the *result* has no separate key: read it "
        "from the return value, or set Airflow's `multiple_outputs=True`.",
        _checked(("Key", "Value", "Pushed by"), rows, "common/xcom_keys.py"),
    )


def _results() -> str:
    parts: list[str] = []
    described = methods_of_results()
    links = {cls.__name__: f"[{cls.__name__}](#{cls.__name__.lower()})" for cls in described}

    def linked(text: str) -> str:
        return re.sub(r"\w+", lambda match: links.get(match[0], match[0]), text)

    for cls, methods in described.items():
        facts = [f"Returned by {', '.join(f'`{name}`' for name in methods)}."] if methods else []
        facts += [f"Has the attributes of {linked(base.__name__)} too." for base in described_bases(cls)]
        doc = docstring_of(cls)
        parts += [
            f"## {cls.__name__}",
            _linked(doc.summary, "../"),
            _linked(doc.body, "../"),
            " ".join(facts),
        ]
        attributes = attributes_of(cls).items()
        rows = [(f"`{name}`", linked(kind), *_meaning(doc.parameters, name)) for name, kind in attributes]
        if rows:
            parts.append(_checked(("Attribute", "Type", "Meaning")[: len(rows[0])], rows, cls.__name__))
    return page(
        "Results of the hook",
        _generated(),
        "The classes that the methods of [`WebDataHook`](../cookbook/the_hook_in_a_task_of_your_own.md) return, with "
        'their attributes: `hook.search(query="river").data.web[0].url`. An attribute that the service did not send '
        "is None.",
        "`to_wire()` returns the service's own names, as in files and XCom: `creditsUsed` for `credits_used`. "
        "`model_dump()` returns the names below. Fields that this version does not know are in `model_extra`.",
        *parts,
    )


def _meaning(texts: dict[str, str], name: str) -> list[str]:
    """Return the last cell of an attribute's row; none if the class describes no attribute alone."""
    return [_line(texts.get(name, ""), "../")] if texts else []


def _generated() -> str:
    return "<!-- generated by python -m tools.reference_pages -->"


if __name__ == "__main__":
    sys.exit(main())
