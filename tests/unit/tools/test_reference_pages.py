# SPDX-License-Identifier: Apache-2.0
"""The tables of the reference: everything public is in one, and a table fits on a page of the repository's host."""

from __future__ import annotations

import ast
import inspect
import re
from functools import cache
from pathlib import Path

import pytest

from airflow_provider_webdata.api.models import MonitorCheckPage
from airflow_provider_webdata.cli import get_commands
from airflow_provider_webdata.common import xcom_keys
from airflow_provider_webdata.common.spelling import snake_case
from airflow_provider_webdata.get_provider_info import get_provider_info
from airflow_provider_webdata.hooks.webdata import WebDataHook
from tests.support.snippets import ROOT
from tools import reference_pages
from tools.docs_site.subjects import OPTIONS, DescriptionError, subjects
from tools.reference_pages import COMMON, DOCS, MAX_WORDS, filled, main, short_type

ROW = re.compile(r"^\| `([\w-]+)[^`]*` \|", re.MULTILINE)


@cache
def pages() -> dict[str, str]:
    return {
        path.relative_to(DOCS).as_posix(): path.read_text(encoding="utf-8") for path in DOCS.rglob("*.md")
    }


def section(page: str, title: str) -> str:
    found = re.search(rf"^## `?{title}`?\n(.*?)(?=^## |\Z)", pages()[page], re.MULTILINE | re.DOTALL)
    assert found, (page, title)
    return found[1]


@pytest.mark.parametrize("room", ["operators", "sensors"])
def test_each_task_has_its_arguments_on_one_page(room: str) -> None:
    for subject in subjects(room):
        mark = f"<!-- arguments of {subject.name} -->"
        found = [text for text in pages().values() if mark in text]
        assert len(found) == 1, f"put {mark} and <!-- end of arguments --> on one page"
        listed = ROW.findall(found[0].partition(mark)[2].partition("<!-- end of arguments -->")[0])
        names = [item.name for group in subject.groups for item in group.arguments]
        assert sorted(listed) == sorted([*names, *[subject.name] * listed.count(subject.name)])


def test_the_reference_has_every_trigger_option_setting_and_command() -> None:
    for subject in subjects("triggers"):
        names = {item.name for group in subject.groups for item in group.arguments}
        assert {*ROW.findall(section("reference/triggers.md", subject.name))} - {subject.name} == names
    for option in OPTIONS:
        listed = ROW.findall(section("reference/options.md", option.__name__))
        assert listed == [*option.__struct_fields__]
    info = get_provider_info()
    assert ROW.findall(pages()["reference/configuration.md"]) == [*info["config"]["webdata"]["options"]]
    [connection] = info["connection-types"]
    for name in connection["conn-fields"]:
        assert f"| `{name}` |" in pages()["connection.md"]
    commands = pages()["reference/commands.md"]
    for command in get_commands()[0].subcommands:
        assert f"## `airflow webdata {command.name}" in commands
    assert "| `--rate-limit CLASS=N` |" in commands


def test_the_result_of_each_method_is_described() -> None:
    text = pages()["reference/results.md"]
    for name, method in inspect.getmembers(WebDataHook, inspect.isfunction):
        returned = re.findall(r"models\.(\w+)", str(inspect.signature(method).return_annotation))
        for cls in () if name.startswith("_") else returned:
            assert f"\n## {cls}\n" in text, name
    assert ROW.findall(section("reference/results.md", "MonitorCheckPage")) == [
        *MonitorCheckPage.model_fields
    ]
    # Attributes of a base are listed there.
    assert "Has the attributes of [PageContent](#pagecontent) too." in section(
        "reference/results.md", "WebResult"
    )
    assert "`markdown`" in section("reference/results.md", "PageContent")


def test_required_and_common_arguments_are_outside_the_fold() -> None:
    text = pages()["operators/crawl.md"].partition("<!-- arguments of WebDataCrawlOperator -->")[2]
    shown, _, rest = text.partition("<details>")
    assert ROW.findall(shown)[:3] == ["WebDataCrawlOperator", "url", "limit"]
    assert "| `url` | `str` | **required** | start URL of the crawl |" in shown
    assert not {*ROW.findall(rest)} & COMMON
    assert {"task_id", "retries", "pool"}.isdisjoint(ROW.findall(text))


def test_cells_are_short() -> None:
    for name, text in reference_pages.pages().items():
        blocks = re.findall(r"^<!-- (?:arguments|fields|codes).*?<!-- end", text, re.MULTILINE | re.DOTALL)
        for block in [text] if name.parent.name == "reference" else blocks:
            for line in block.splitlines():
                if line.startswith("|"):
                    cells = re.split(r"(?<!\\)\|", line.strip("|"))
                    assert max(len(cell.split()) for cell in cells) <= MAX_WORDS, (name, line)


@pytest.mark.parametrize(
    ("annotation", "shown"),
    [
        ("int | str", "int"),
        ("bool | str | Mapping[str, Any]", "bool | dict"),
        ("Sequence[str | Mapping[str, Any]] | None", "list[str | dict]"),
        ("Output | str", "Output | str"),
        ('"wait" | "skip"', "str"),
        ("float | timedelta", "float | timedelta"),
        ("Mapping[str, Any] | str", "dict | str"),
    ],
)
def test_types_are_short(annotation: str, shown: str) -> None:
    assert short_type(annotation) == shown


def test_a_page_keeps_its_text_around_the_marks() -> None:
    page = "# A\n\n<!-- arguments of WebDataCreditUsageOperator -->\n<!-- end -->\n\nText.\n"
    once = filled(page, "operators/a.md")
    assert once.startswith(
        "# A\n\n<!-- arguments of WebDataCreditUsageOperator -->\n\n| `WebDataCreditUsageOperator` | Type |"
    )
    assert once.endswith("\n\n<!-- end of arguments -->\n\nText.\n")
    assert filled(once, "operators/a.md") == once


def test_an_unknown_class_is_named() -> None:
    with pytest.raises(DescriptionError, match=r"docs/a\.md: there is no public class Gone"):
        filled("<!-- arguments of Gone -->\n<!-- end of arguments -->\n", "a.md")


def test_a_description_that_is_too_long_is_named() -> None:
    with pytest.raises(DescriptionError, match=r"m\.C: the text about `a` is too long for a table"):
        reference_pages._checked(("Argument", "Meaning"), [("`a`", "word " * (MAX_WORDS + 1))], "m.C")


def test_an_outdated_page_fails_the_check(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "docs" / "a.md"
    monkeypatch.setattr(reference_pages, "ROOT", tmp_path)
    monkeypatch.setattr(reference_pages, "pages", lambda: {page: "new"})
    assert main(["--check"]) == 1
    assert "docs/a.md is outdated; run python -m tools.reference_pages" in capsys.readouterr().err
    assert main([]) == 0
    assert page.read_text() == "new"
    assert main(["--check"]) == 0


def test_each_pushed_key_is_declared() -> None:
    """Keys of values that the service names are not pushed by literals."""
    pushed: set[str] = set()
    texts: set[str] = set()
    for path in sorted((ROOT / "airflow_provider_webdata").rglob("*.py")):
        if path.name == "xcom_keys.py":
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            texts |= {text for text in [_text(node)] if text}
            if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
                continue
            if node.func.attr == "xcom_push":
                pushed |= {text for text in [_text(node.args[0])] if text}
            elif node.func.attr in ("push", "_push"):
                texts |= {keyword.arg for keyword in node.keywords if keyword.arg}
                pushed |= {keyword.arg for keyword in node.keywords if keyword.arg}
                for keyword in node.keywords:
                    if keyword.arg is None and isinstance(keyword.value, ast.Dict):
                        pushed |= {text for key in keyword.value.keys if key and (text := _text(key))}
    assert pushed <= xcom_keys.XCOM_KEYS.keys()
    assert pushed >= {"monitor_id", "credits", "failure", "incomplete", "return_value"}
    # `push` converts the names of the service.
    assert xcom_keys.XCOM_KEYS.keys() <= {snake_case(text) for text in texts}


def _text(node: ast.AST) -> str | None:
    """Return the text of a constant, by its value or its name in `xcom_keys`."""
    found = node.value if isinstance(node, ast.Constant) else None
    if isinstance(node, ast.Name):
        found = getattr(xcom_keys, node.id, None)
    return found if isinstance(found, str) else None
