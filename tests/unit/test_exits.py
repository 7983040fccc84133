# SPDX-License-Identifier: Apache-2.0
"""Every exit of text from outside: logs, errors, XComs, metrics, and pages.

Text is cleaned where it leaves. A call that passes text around the cleaners fails here.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from airflow_provider_webdata.common import component_metrics
from airflow_provider_webdata.common.coded_errors import CodedError
from airflow_provider_webdata.common.remedies import advised
from airflow_provider_webdata.hooks import task_metrics
from tests.unit.test_error_codes import PACKAGE, coded, exceptions, last_name, made, trees

LOGGERS = {"log", "_log", "logger", "_logger"}
LEVELS = {"debug", "info", "warning", "error", "exception", "critical", "log"}
CLEANERS = {"advised", "brief", "cleaned", "trimmed", "own_lines", "terminal_lines", "terminal_text"}
OURS = {"logger", "task_logger"}

TASKS_AND_TRIGGERS = ("base/", "hooks/", "operators/", "sensors/", "transfers/", "triggers/")
"""Rooms in which `self.log` is a logger of Airflow."""

UNCODED = {
    *("AirflowException", "AirflowFailException", "AirflowSensorTimeout", "AirflowSkipException"),
    *("AirflowTaskTimeout", "ModelRetry", "SystemExit", "ToolFailed"),
}
"""Classes of others that users, a terminal, or a model see. `test_error_codes.py` lists all others without a code."""

ALLOWED = {
    "commands/command.py: SystemExit": "text of which the terminal's own cleaner escapes control characters",
    "commands/costs.py: SystemExit": "what the caller of the command typed",
    "commands/init.py: SystemExit": "the same as in command.py",
    "commands/moments.py: SystemExit": "what the caller of the command typed",
    "commands/inbox.py: SystemExit": "what the caller of the command typed, and errors with a code",
    "toolsets/webdata.py: AirflowFailException": "an error with a code, which is a parameter",
    "toolsets/webdata.py: ToolFailed": "JSON, in which the service's text is trimmed and marked as untrusted",
    "ui/rendering.py: Markup": "the digits of a time",
}


def problems(tree: ast.AST, module: str = "runs/x.py") -> list[str]:
    """Return the calls of a module that pass text around the cleaners."""
    return [
        *_loggers(tree, module),
        *_log_calls(tree),
        *_raised(tree),
        *_pushed(tree),
        *_metrics(tree, module),
        *_markup(tree),
    ]


def _loggers(tree: ast.AST, module: str) -> Iterator[str]:
    if module == "common/logs.py":
        return
    for node in ast.walk(tree):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            names = [getattr(node, "module", None) or "", *(one.name for one in node.names)]
            if "structlog" in names or "getLogger" in names:
                yield "another logger"
        if isinstance(node, ast.Attribute):
            holder = last_name(node.value)
            is_airflows = holder == "self" and module.startswith(TASKS_AND_TRIGGERS)
            if node.attr == "getLogger" or (
                node.attr in {"log", "logger"}
                and (is_airflows or holder in {"task", "operator", "hook", "trigger"})
            ):
                yield "another logger"
        if isinstance(node, (ast.Assign, ast.AnnAssign)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            if node.value is not None and {*map(last_name, targets)} & LOGGERS:
                value: Any = node.value
                is_ours = isinstance(value, ast.Call) and last_name(value.func) in OURS
                if not is_ours and last_name(value) not in LOGGERS:
                    yield "another logger"


def _log_calls(tree: ast.AST) -> Iterator[str]:
    called = set()
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        given: list[Any] = [node.func, *node.args]
        if last_name(node.func) == "partial":
            given = node.args
        function, *arguments = given or [node.func]
        functions = [function.body, function.orelse] if isinstance(function, ast.IfExp) else [function]
        if not any(map(_is_log_method, functions)):
            continue
        called |= {id(function) for function in functions}
        level = 1 if any(last_name(function) == "log" for function in functions) else 0
        if len(arguments) <= level or not _is_format(arguments[level]):
            yield "log call without a literal format"
    for node in ast.walk(tree):
        if _is_log_method(node) and id(node) not in called:
            yield "log method that is passed on"


def _is_log_method(node: Any) -> bool:
    return isinstance(node, ast.Attribute) and node.attr in LEVELS and last_name(node.value) in LOGGERS


def _is_format(node: ast.expr) -> bool:
    if isinstance(node, ast.IfExp):
        return _is_format(node.body) and _is_format(node.orelse)
    return _is_literal(node) and "%(" not in str(getattr(node, "value", ""))


def _is_literal(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) or (bool(name := last_name(node)) and name == name.upper())


def _raised(tree: ast.AST) -> Iterator[str]:
    names = {kind.__name__ for kind in _coded_classes()}
    handled = {
        id(inner): handler
        for handler in ast.walk(tree)
        if isinstance(handler, ast.ExceptHandler)
        for inner in ast.walk(handler)
    }

    def is_clean(node: ast.expr) -> bool:
        if _is_literal(node):
            return True
        if not isinstance(node, ast.Call):
            return False
        function = last_name(node.func)
        if function != "str" or not node.args:
            return function in CLEANERS
        error = node.args[0]
        if isinstance(error, ast.Call):
            return last_name(error.func) in {"explained", *names}
        handler = handled.get(id(node))
        if handler is None or handler.name != last_name(error) or handler.type is None:
            return False
        kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
        return {*map(last_name, kinds)} <= names

    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or (kind := last_name(node.func)) not in UNCODED:
            continue
        if not all(map(is_clean, node.args)):
            yield kind


def _pushed(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and last_name(node.func) in {"push", "xcom_push"}:
            inside = [part for argument in (*node.args, *node.keywords) for part in ast.walk(argument)]
            composes = any(
                isinstance(part, ast.JoinedStr)
                or (isinstance(part, ast.BinOp) and isinstance(part.op, (ast.Mod, ast.Add)))
                or (isinstance(part, ast.Attribute) and part.attr in {"format", "join"})
                for part in inside
            )
            if composes:
                yield "XCom with a composed text"


def _metrics(tree: ast.AST, module: str) -> Iterator[str]:
    names = {"count", "gauge", "timing", "incr", "timer"}
    for node in ast.walk(tree):
        if isinstance(node, ast.alias) and node.name == "Stats" and not module.endswith("_metrics.py"):
            yield "metrics of others"
        if isinstance(node, ast.Call) and last_name(node.func) in names and node.args:
            first: Any = node.args[0]
            is_metric = isinstance(node.func, ast.Name) or len(node.args) > 1 or bool(node.keywords)
            if isinstance(first, ast.JoinedStr) and is_metric:
                yield "metric with a composed name"


def _markup(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or last_name(node.func) != "Markup":
            continue
        if not all(isinstance(argument, ast.Constant) for argument in node.args):
            yield "Markup"


def _coded_classes() -> set[type[CodedError]]:
    exceptions()
    found, left = set(), [CodedError]
    while left:
        found.add(kind := left.pop())
        left += kind.__subclasses__()
    return {kind for kind in found if kind.__module__.startswith("airflow_provider_webdata.")}


@pytest.mark.slow
def test_no_text_passes_around_the_cleaners() -> None:
    found = {
        f"{module}: {problem}"
        for file, tree in trees().items()
        for module in [file.relative_to(PACKAGE).as_posix()]
        for problem in problems(tree, module)
    }
    assert found == set(ALLOWED)


@pytest.mark.parametrize(
    ("source", "problem"),
    [
        ("log = logging.getLogger(__name__)", "another logger"),
        ("from logging import getLogger", "another logger"),
        ("import structlog", "another logger"),
        ("self._log = task.log", "another logger"),
        ("self.task.log.info('x')", "another logger"),
        ("self.log = context['log']", "another logger"),
        ("log.info(f'Read {url}')", "log call without a literal format"),
        ("log.info('Read ' + url)", "log call without a literal format"),
        ("log.info('Read %s' % url)", "log call without a literal format"),
        ("log.info('Read {}'.format(url))", "log call without a literal format"),
        ("self._log.warning(text)", "log call without a literal format"),
        ("log.log(level, text)", "log call without a literal format"),
        ("(log.info if a else log.debug)(text)", "log call without a literal format"),
        ("log.info('%(a)s', values)", "log call without a literal format"),
        ("log.info('a' if x else text)", "log call without a literal format"),
        ("say = log.info", "log method that is passed on"),
        ("report(log.info)", "log method that is passed on"),
        ("report(partial(log.info, text))", "log call without a literal format"),
        ("report(partial(log.info))", "log call without a literal format"),
        ("raise AirflowFailException(f'failed: {reason}')", "AirflowFailException"),
        ("raise AirflowSkipException(text)", "AirflowSkipException"),
        ("try: f()\nexcept ValueError as e: raise AirflowFailException(str(e))", "AirflowFailException"),
        (
            "try: f()\nexcept (TableError, ValueError) as e: raise AirflowFailException(str(e))",
            "AirflowFailException",
        ),
        ("raise SystemExit(answer)", "SystemExit"),
        ("raise ToolFailed(repr(answer))", "ToolFailed"),
        ("self.push(reason=f'{job}: {error}')", "XCom with a composed text"),
        ("ti.xcom_push('reason', '; '.join(reasons))", "XCom with a composed text"),
        ("ti.xcom_push(f'{page}', 1)", "XCom with a composed text"),
        ("count(f'webdata.{kind}', 1, context)", "metric with a composed name"),
        ("from airflow.sdk.observability.stats import Stats", "metrics of others"),
        ("Markup(f'<b>{name}</b>')", "Markup"),
        ("Markup('<b>%s</b>' % name)", "Markup"),
    ],
)
def test_a_planted_exit_is_found(source: str, problem: str) -> None:
    assert set(problems(ast.parse(source))) == {problem}


@pytest.mark.parametrize("module", ["base/x.py", "triggers/x.py", "sensors/x.py"])
def test_the_logger_of_a_task_or_trigger_is_airflows(module: str) -> None:
    for source in ("self.log.info('x')", "use(self.logger())"):
        assert problems(ast.parse(source), module) == ["another logger"]
    assert problems(ast.parse("self.log.info('x')")) == []


@pytest.mark.parametrize(
    "source",
    [
        "log = logger(__name__)",
        "self._log = log = task_logger(task)",
        "log.info('Read %s', url)",
        "log.info('Read %s', f'{url} of {site}')",
        "log.log(level, 'Read %s', url)",
        "(log.info if a else log.debug)('%s', text)",
        "log.warning(NO_LINKS)",
        "report(partial(log.info, '%s', text))",
        "try: f()\nexcept TableError as e: raise AirflowFailException(str(e))",
        "raise AirflowFailException(str(self.explained(error)))",
        "raise AirflowSkipException(cleaned(f'{a}: {b}'))",
        "raise AirflowSkipException(brief(error))",
        "raise ArgumentError(f'url: {url}')",
        "self.push(**summary)",
        "ti.xcom_push(FAILURE, report(error))",
        "Markup('<b>{}</b>').format(name)",
    ],
)
def test_a_clean_exit_is_not(source: str) -> None:
    assert problems(ast.parse(source)) == []


HOSTILE = (
    "a\n2026-01-01 ERROR forged\r\x1b[31m\u202e\u2028https://user:hush@a.example/?token=hush " + "x" * 10**5
)


@pytest.mark.slow
def test_no_error_has_a_line_a_mark_or_a_secret_from_outside() -> None:
    for kind in coded():
        error = made(kind, HOSTILE)
        error.advice = f"Ask {HOSTILE}"
        for text in (str(error), error.text(), error.brief()):
            assert "a 2026-01-01 ERROR forged https://user:***@a.example/?token=***" in text, kind
            assert not re.search(r"hush|[\r\x1b\u202e\u2028]", text), kind
            assert len(text) < 10_000, kind
        assert len(error.text().splitlines()) <= 2, kind
        assert len(str(error).splitlines()) <= 4, kind


@pytest.mark.parametrize("code", ["", " (WD-401)"])
def test_no_error_of_a_trigger_has_a_line_a_mark_or_a_secret_from_outside(code: str) -> None:
    text = advised(HOSTILE + code, "c")
    assert "a 2026-01-01 ERROR forged https://user:***@a.example/?token=***" in text
    assert not re.search(r"hush|[\r\x1b\u202e\u2028]", text)
    assert len(text) < 10_000
    assert len(text.splitlines()) == (3 if code else 1)


def test_no_class_has_another_way_to_its_text() -> None:
    ways = {"text", "brief", "__str__", "__repr__"}
    assert {kind.__name__: ways & {*vars(kind)} for kind in _coded_classes() if ways & {*vars(kind)}} == {
        "CodedError": ways - {"__repr__"}
    }


def test_no_tag_adds_a_metric() -> None:
    context: Any = {"ti": None}
    hostile = "a\nadmin:1|c|#x,y " * 50
    with (
        mock.patch("airflow.observability.stats.Stats") as server,
        mock.patch("airflow.sdk.observability.stats.Stats") as tasks,
    ):
        component_metrics.count("n", kind=hostile)
        component_metrics.timing("n", 1, kind=hostile)
        task_metrics.count("n", 1, context, kind=hostile)
        task_metrics.gauge("n", 1, context, kind=hostile)
    sent = [call.kwargs["tags"]["kind"] for one in (server, tasks) for call in one.mock_calls]
    assert len(sent) == 4
    assert all(re.fullmatch(r"[\w./()!-]{1,100}", tag) for tag in sent)


def test_templates_escape_everything() -> None:
    for file in sorted(Path(PACKAGE, "ui", "templates").rglob("*.html")):
        text = file.read_text(encoding="utf-8")
        assert not re.search(r"\|\s*safe\b|autoescape", text), file.name
