# SPDX-License-Identifier: Apache-2.0
"""The length of log lines and errors: a log view at 1440 px shows about 160 characters."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from airflow_provider_webdata.api.errors import TransportError
from airflow_provider_webdata.common.remedies import MAX_LINE, REMEDIES, folded
from tests.support.snippets import ROOT

PACKAGE = ROOT / "airflow_provider_webdata"
LEVELS = {"info", "warning", "error", "exception"}
VALUE = "x" * 12
LONGEST = 190


def _messages() -> Iterator[tuple[str, str]]:
    for file in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Attribute)
                and node.func.attr in LEVELS
                and re.search(r"\b_?log\b", ast.unparse(node.func.value))
                and node.args
                and isinstance(text := node.args[0], ast.Constant)
            ):
                yield f"{file.relative_to(PACKAGE)}:{node.lineno}", str(text.value)


def test_log_lines_are_short() -> None:
    """With values of 12 characters. Next steps are separate lines."""
    found = dict(_messages())
    assert len(found) > 150
    lengths = {where: len(re.sub(r"%[-.\d]*[a-z]", VALUE, text)) for where, text in found.items()}
    assert {where: length for where, length in lengths.items() if length > LONGEST} == {}


def test_an_error_begins_with_its_reason() -> None:
    reason = "cannot reach http://service.example (connection refused: no server listens there)"
    first, *steps, link = str(TransportError("batch scrape", reason, sent=True)).splitlines()
    assert first == f"batch scrape: {reason}; the service may have processed the request."
    assert steps == ["Check the service before you repeat the call (WD-010)."]
    assert link.startswith("See https://")


def test_remedies_fit_a_line() -> None:
    name = "a_connection_of_our_team"
    assert [text for text in REMEDIES.values() if len(f"Connection {name!r}: {text}") > MAX_LINE] == []


def test_long_lines_are_broken_between_sentences() -> None:
    sentence = f"{'word ' * 20}end."
    assert folded(f"{sentence} {sentence}") == f"{sentence}\n{sentence}"
    data = "x" * 300
    assert folded(f"{data} {sentence}. Next") == f"{data} {sentence}.\nNext"
    assert folded(f"Short. {data}") == f"Short.\n{data}"
    assert folded(data) == data
