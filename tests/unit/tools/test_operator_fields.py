# SPDX-License-Identifier: Apache-2.0
"""The generator of the operators' fields, and the mistakes that it names."""

from __future__ import annotations

import ast
from typing import Any

import pytest

from airflow_provider_webdata.base.operator import RequestFields
from tools import operator_fields
from tools.field_rules import field_rules
from tools.operator_fields import FieldsError, loose_type, main, parameters, rewritten

OPERATOR = '''
class Preview(WebDataOperator, fields=RequestFields("CrawlParamsRequest", own=("depth",))):
    """Preview a crawl.

    :param depth: how deep
        to go.
    :param gone: a field that was.
    :param kwargs: the rest.
    """

    def __init__(
        self,
        *,
        depth: int = 1,
        # fields of CrawlParamsRequest, written by tools/operator_fields.py
        gone: str,
        # end of fields
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        # fields of CrawlParamsRequest, written by tools/operator_fields.py
        # end of fields
        self.depth = depth
'''

WRITTEN = '''
class Preview(WebDataOperator, fields=RequestFields("CrawlParamsRequest", own=("depth",))):
    """Preview a crawl.

    :param depth: how deep
        to go.
    :param url: start URL of the crawl.
    :param prompt: description of the crawl, at most 10,000 characters.
    :param kwargs: the rest.
    """

    def __init__(
        self,
        *,
        depth: int = 1,
        # fields of CrawlParamsRequest, written by tools/operator_fields.py
        url: str,
        prompt: str,
        # end of fields
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        # fields of CrawlParamsRequest, written by tools/operator_fields.py
        self.url = url
        self.prompt = prompt
        # end of fields
        self.depth = depth
'''


def test_fields_are_written() -> None:
    """Parameters, assignments, and descriptions. The operator's own stay, and those of removed fields go."""
    assert rewritten(OPERATOR) == WRITTEN
    assert rewritten(WRITTEN) == WRITTEN


def test_a_new_operator() -> None:
    """Marks and nothing between them: a signature that Python cannot read yet."""
    new = OPERATOR.replace("        depth: int = 1,\n", "").replace("        gone: str,\n", "")
    with pytest.raises(SyntaxError):
        ast.parse(new)
    assert "        url: str,\n" in rewritten(new.replace(', own=("depth",)', ""))


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("# end of fields", "", "Preview: __init__ needs two pairs of lines"),
        ("CrawlParamsRequest", "PreviewRequest", "no model PreviewRequest in api/models"),
        ('own=("depth",)', "own=()", r"its own arguments are \('depth',\)"),
        (
            "    :param gone: a field that was.\n    :param kwargs: the rest.\n",
            "",
            "Preview: its docstring needs",
        ),
    ],
)
def test_mistakes_are_named(old: str, new: str, words: str) -> None:
    with pytest.raises(FieldsError, match=words):
        rewritten(OPERATOR.replace(old, new))


@pytest.mark.parametrize(
    ("model", "name", "signature"),
    [
        ("SearchRequest", "query", "query: str,"),
        ("SearchRequest", "sources", "sources: Sequence[str | Mapping[str, Any]] | None = None,"),
        ("ScrapeRequest", "headers", "headers: Mapping[str, str] | None = None,"),
        ("AgentRequest", "schema", "schema: Mapping[str, Any] | type | None = None,"),
        ("MonitorCreateRequest", "targets", "targets: Sequence[Mapping[str, Any] | str],"),
    ],
)
def test_types_allow_templates(model: str, name: str, signature: str) -> None:
    found = {parameter.name: parameter.signature for parameter in parameters(RequestFields(model))}
    assert found[name] == signature


def test_an_unknown_type_is_an_error() -> None:
    with pytest.raises(FieldsError, match="no parameter type"):
        loose_type(bytes)


def test_deviations() -> None:
    found = parameters(RequestFields("CrawlRequest", defaults={"limit": 100}, without=("url",)))
    assert "url" not in [parameter.name for parameter in found]
    (limit,) = (parameter for parameter in found if parameter.name == "limit")
    assert limit.signature == "limit: int | str = 100,"
    assert limit.text.endswith("Default: 100; that of the service: 10,000.")


def test_required_fields_come_first_and_labels_nowhere() -> None:
    names = [parameter.name for parameter in parameters(RequestFields("BatchScrapeRequest"))]
    assert names[0] == "urls"
    assert not {"origin", "integration"} & {*names}


@pytest.mark.parametrize(
    ("source", "arguments", "code"),
    [(OPERATOR, ["--check"], 1), (OPERATOR, [], 0), (WRITTEN, ["--check"], 0)],
)
def test_command(
    tmp_path: Any, monkeypatch: Any, capsys: Any, source: str, arguments: list[str], code: int
) -> None:
    """`--check` shows what has drifted, and writes nothing."""
    folder = tmp_path / "package" / "operators"
    folder.mkdir(parents=True)
    file = folder / "preview.py"
    file.write_text(source)
    monkeypatch.setattr(operator_fields, "OPERATORS", folder)
    rules = folder.parent / "base" / "arguments" / "field_rules.json"
    rules.parent.mkdir(parents=True)
    rules.write_text(field_rules(["CrawlParamsRequest"]) if source == WRITTEN else "")
    assert main(arguments) == code
    assert ('"CrawlParamsRequest"' in rules.read_text()) is (code == 0)
    printed = "".join(capsys.readouterr())
    assert ("preview.py" in printed) is (source == OPERATOR)
    assert ("- gone: str,\n  + url: str,\n" in printed) is (source == OPERATOR and code == 1)
    assert file.read_text() == (source if arguments else WRITTEN)
