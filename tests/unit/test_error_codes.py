# SPDX-License-Identifier: Apache-2.0
"""Each error that users see ends with its fix, its code, and the address of the section that explains it."""

from __future__ import annotations

import ast
import copy
import pickle
import re
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowFailException, AirflowOptionalProviderFeatureException
from hypothesis import given
from hypothesis import strategies as st

import airflow_provider_webdata
from airflow_provider_webdata.api import errors
from airflow_provider_webdata.common.coded_errors import ArgumentError, CodedError, UnknownArgumentError
from airflow_provider_webdata.common.error_codes import CODES
from airflow_provider_webdata.common.links import error_link
from airflow_provider_webdata.common.remedies import REMEDIES
from airflow_provider_webdata.runs.failures import JobFailedError
from tools.docs_site.error_codes import error_classes

PACKAGE = Path(airflow_provider_webdata.__file__).parent

BASES = {"CodedError", "WebDataError", "APIError", "InboxError"}
"""Only their subclasses are raised."""

TURNED_INTO = {
    "CronError": "InvalidRequestError",
    "PhraseError": "InvalidRequestError",
    "HostRefusedError": "MediaError",
    "UnusableVariableError": "EnvironmentVariableError",
    "CertificateFileError": "ConfigurationError",
    "NotJSONError": "the inbox's answer 400",
    "ParameterError": "the inbox's answer 400",
    "BusyError": "the inbox's answer 503",
    "DeniedError": "the inbox's answer 401",
    "ClientGoneError": "nothing, since the client is gone",
    "CursorPastEndError": "CursorAheadError",
    "DeliveryNotFoundError": "the command's own message",
    "WaitFailedError": "the event of the wait",
    "ExpiredError": "the event of the wait",
}
"""What users see in place of errors that have no code."""

UNCODED_RAISES = {
    "hooks/calls.py": "an endpoint without a body, which no method passes one",
    "results/columns.py": "a kind of item, which operators name",
    "results/files/csv_rows.py": "a damaged file, which the load reports",
    "results/files/parquet.py": "the same",
    "results/files/output.py": "a file that is written before it is opened",
    "runs/publishing/publication.py": "a task that does not compare, whose caller does not ask for it",
    "states/check_queue.py": "a moment without a time zone, which no caller makes",
    "states/task_record.py": "a damaged record, which the task's memory reports",
}
"""`ValueError` and `TypeError` that no user can cause."""


@cache
def trees() -> dict[Path, ast.Module]:
    return {
        file: ast.parse(file.read_text(encoding="utf-8"))
        for file in sorted(PACKAGE.rglob("*.py"))
        if "migrations" not in file.relative_to(PACKAGE).parts
    }


def last_name(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


@cache
def exceptions() -> list[type[Exception]]:
    found = []
    for file, tree in trees().items():
        names = [
            node.name
            for node in tree.body
            if isinstance(node, ast.ClassDef)
            and not node.name.startswith("_")
            and any(last_name(base).endswith(("Error", "Exception", "Timeout")) for base in node.bases)
        ]
        if names:
            path = file.relative_to(PACKAGE.parent).with_suffix("")
            module = import_module(".".join(path.parts).removesuffix(".__init__"))
            found += [getattr(module, name) for name in names]
    return found


def coded() -> list[Any]:
    return [kind for kind in exceptions() if kind.__name__ not in {*BASES, *TURNED_INTO}]


def made(kind: Any, text: str = "it broke") -> Any:
    if kind is errors.InvalidRequestError:
        return kind("search", [text])
    if kind is errors.UnfinishedJobError:
        return kind("read", "job-1", text)
    if issubclass(kind, errors.APIError):
        return kind("search", 418, text, retry_after=7.0, details={"a": 1})
    if issubclass(kind, errors.InvalidResponseError):
        return kind("search", text, status=200)
    if issubclass(kind, errors.TransportError):
        return kind("search", text, sent=True)
    if issubclass(kind, errors.UploadError):
        return kind("parse", text)
    if kind.__name__ == "CursorAheadError":
        return kind(text, cursor="7")
    return kind(text)


@pytest.mark.slow
def test_what_has_no_code_is_named_here() -> None:
    names = {kind.__name__ for kind in exceptions()}
    assert names >= BASES | set(TURNED_INTO)
    assert [kind.__name__ for kind in coded() if not issubclass(kind, CodedError)] == []
    assert [kind.__name__ for kind in coded() if not re.fullmatch(r"WD-\d{3}", kind.help_code)] == []


def test_each_code_is_stated_by_one_class() -> None:
    stated = [kind.help_code for kind in coded() if "help_code" in vars(kind)]
    assert sorted(stated) == sorted(set(stated))


def test_from_200_on_a_code_is_a_status() -> None:
    of_a_status = {
        status: errors.error_class(status, None, names_wait=status == 503) for status in range(400, 600)
    }
    named = {
        400: errors.BadRequestError,
        401: errors.AuthenticationError,
        402: errors.PaymentRequiredError,
        403: errors.EntitlementError,
        404: errors.NotFoundError,
        408: errors.RequestTimeoutError,
        409: errors.ConflictError,
        410: errors.GoneError,
        429: errors.RateLimitError,
        500: errors.ServerError,
        503: errors.UnavailableError,
    }
    assert {status: of_a_status[status] for status in named} == named
    assert [kind for status, kind in named.items() if kind.help_code != f"WD-{status}"] == []
    assert errors.error_class(200, None).help_code == "WD-200"
    others = {kind for status, kind in of_a_status.items() if status < 500 and status not in named}
    assert {kind.help_code < "WD-200" for kind in others} == {True}


def test_bases_are_not_raised() -> None:
    raised = {
        last_name(node.func)
        for tree in trees().values()
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
    }
    assert raised & BASES == set()


def test_checks_of_arguments_raise_errors_with_a_code() -> None:
    rooms = {
        *(
            "operators",
            "transfers",
            "sensors",
            "policies",
            "base",
            "triggers",
            "waiting",
            "hooks",
            "states",
            "results",
            "runs",
            "toolsets",
        ),
    }
    found = {
        file.relative_to(PACKAGE).as_posix()
        for file, tree in trees().items()
        if file.relative_to(PACKAGE).parts[0] in rooms
        for node in ast.walk(tree)
        if isinstance(node, ast.Raise)
        and isinstance(node.exc, ast.Call)
        and last_name(node.exc.func) in {"ValueError", "TypeError"}
    }
    assert found == set(UNCODED_RAISES)


def test_the_code_ends_the_text_once_wherever_the_error_goes() -> None:
    for kind in coded():
        error = made(kind)
        text = str(error)
        assert text.endswith(f" ({kind.help_code}).\nSee {error_link(kind.help_code)}"), kind
        assert error.remedy[1:] in text, kind
        assert error.brief().endswith(f" ({kind.help_code})"), kind
        assert "it broke" in error.text(), kind
        pickled = [pickle.dumps(error, protocol) for protocol in range(pickle.HIGHEST_PROTOCOL + 1)]
        for again in (*map(pickle.loads, pickled), copy.copy(error)):
            assert type(again) is kind
            assert (str(again), vars(again)) == (text, vars(error)), kind
        assert str(AirflowFailException(text)).count(f"({kind.help_code})") == 1
    assert issubclass(UnknownArgumentError, TypeError), "as Python itself raises"


@given(st.text())
def test_an_error_made_of_another_ones_text_has_the_ending_once(text: str) -> None:
    error = ArgumentError(f"wrong: {text}")
    assert str(ArgumentError(str(error))) == str(error)
    assert ArgumentError(error.brief()).brief() == error.brief()


def test_airflow_serializes_an_error_with_its_code_once() -> None:
    path, args, kwargs = JobFailedError("crawl 1 failed").serialize()  # type: ignore[no-untyped-call]
    module, _, name = path.rpartition(".")
    again = getattr(import_module(module), name)(*args, **kwargs)
    assert str(again) == str(JobFailedError("crawl 1 failed"))
    assert str(again).count("(WD-031)") == 1


def test_the_page_has_each_error() -> None:
    assert {*error_classes()} == {*coded()}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The service says no.", "The service says no.\nAsk again"),
        (
            "unknown argument 'limt'; did you mean 'limit'?",
            "unknown argument 'limt'; did you mean 'limit'?\nAsk again",
        ),
    ],
)
def test_advice_is_on_a_line_after_the_message(text: str, expected: str) -> None:
    error = ArgumentError(text)
    error.advice = "Ask again"
    assert str(error) == f"{expected} (WD-003).\nSee {error_link('WD-003')}"


def test_only_problems_are_lines_of_a_message() -> None:
    """Text from outside cannot forge a line, nor a problem."""
    error = ArgumentError("wrong\nforged:")
    error.problems = ("limit: too high\n  - forged", "\x1b[31mquery: https://a:hush@b.example/")
    error.advice = "Ask again"
    assert str(error).splitlines()[:-1] == [
        "wrong forged:",
        "  - limit: too high - forged",
        "  - query: https://a:***@b.example/",
        "Ask again (WD-003).",
    ]
    assert vars(copy.copy(error)) == vars(error)


def test_each_code_has_one_remedy() -> None:
    codes = {kind.help_code for kind in coded()}
    assert {*REMEDIES} == codes
    assert [
        code for code, remedy in REMEDIES.items() if remedy != remedy.strip(" .") or len(remedy) > 110
    ] == []


def test_a_step_that_must_precede_a_clear_is_marked() -> None:
    """The pages offer no clear for it."""
    said = {code for code, entry in CODES.items() if re.search(r"before you [^,]*\bclear\b", entry.remedy)}
    assert len(said) > 5
    assert said <= {code for code, entry in CODES.items() if entry.inspect_first}


def test_a_lost_response_has_another_remedy_than_an_unreachable_host() -> None:
    sent, unsent = (errors.TransportError("scrape", "it broke", sent=sent) for sent in (True, False))
    assert "Check the service before you repeat the call (WD-010)" in str(sent)
    assert '"Base URL"' not in str(sent)
    assert 'Check "Base URL" and "Proxy", and the network (WD-010)' in str(unsent)


WITHOUT_CODE = {
    "AirflowSkipException": "skips the task",
    "AirflowRescheduleException": "reschedules the task",
    "AirflowOptionalProviderFeatureException": "Airflow's own error for a missing package, whose message names it",
    "AssertionError": "is never reached",
    "AttributeError": "what a module's __getattr__ must raise",
    "CancelledError": "asyncio's",
    "HTTPException": "a page of the UI, which shows the message",
    "ImportError": "a missing package, whose message names it",
    "IsADirectoryError": "OutputError",
    "ManagedAgentInvocationError": "the interface's error, made of an error with a code",
    "ManagedAgentRejected": "the interface's error, which the calling model reads",
    "ModelRetry": "the framework's error, which the model reads",
    "NotImplementedError": "a method of a base class",
    "RuntimeError": "an installation without a supported Airflow, and faults of the package",
    "SystemExit": "a command, which prints the message",
    "TimeoutError": "the interface's error, whose message names the argument; or the inbox's answer 503",
    "ToolFailed": "the framework's error, which the model reads",
    "UsageError": "pytest's",
    "ArgumentTypeError": "argparse's",
    **dict.fromkeys(("ConnectError", "ReadTimeout"), "TransportError"),
}
"""Classes without a code that are raised, and what they are or become."""

MADE_OF_A_TEXT = {
    ("runs/searches/batch_search.py", "AirflowException"): "the task was terminated",
    ("runs/run.py", "AirflowFailException"): "the text of an error with a code",
    ("runs/load.py", "AirflowFailException"): "the same",
    ("runs/wait_run.py", "AirflowFailException"): "the text of a trigger's event, with its code",
    ("runs/wait_run.py", "AirflowTaskTimeout"): "the text of an error with a code",
    (
        "runs/wait_run.py",
        "AirflowException",
    ): "the text of a trigger's event, with its code unless the trigger crashed",
}
"""Airflow's errors that are raised with a text."""


def raised_classes(file: Path, tree: ast.Module) -> Iterator[type[BaseException]]:
    """Yield the classes that a module raises by name."""
    path = file.relative_to(PACKAGE.parent).with_suffix("")
    try:
        module = import_module(".".join(path.parts).removesuffix(".__init__"))
    except (AirflowOptionalProviderFeatureException, ModuleNotFoundError):
        # Python 3.10, which Airflow's provider for agents does not support.
        return
    for node in ast.walk(tree):
        if not isinstance(node, ast.Raise) or not isinstance(node.exc, ast.Call):
            continue
        found: Any = module
        for name in ast.unparse(node.exc.func).split("."):
            found = getattr(found, name, None)
        if isinstance(found, type) and issubclass(found, BaseException):
            yield found


def test_each_raised_error_has_a_code() -> None:
    unknown = set()
    count = 0
    for file, tree in trees().items():
        place = file.relative_to(PACKAGE).as_posix()
        for kind in raised_classes(file, tree):
            count += 1
            name = kind.__name__
            has_code = issubclass(kind, CodedError) and kind.help_code in REMEDIES
            is_known = name in WITHOUT_CODE or name in TURNED_INTO or name.startswith("_")
            is_checked = name in {"ValueError", "TypeError"}
            if not (has_code or is_known or is_checked or (place, name) in MADE_OF_A_TEXT):
                unknown.add((place, name))
    assert unknown == set()
    assert count > 300, "most raise statements were found"
