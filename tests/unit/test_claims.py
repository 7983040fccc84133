# SPDX-License-Identifier: Apache-2.0
"""Claims that are true only under a condition name it, wherever they stand, and examples meet it."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
from collections.abc import Iterator
from functools import cache
from textwrap import dedent

import pytest

from airflow_provider_webdata.common.xcom_keys import XCOM_KEYS
from airflow_provider_webdata.get_provider_info import get_provider_info
from tests.support.prose import units
from tests.support.snippets import ROOT

HOLDS_NO_WORKER = re.compile(
    r"\b(?:hold|occup|us|tak|need|block)\w* (?:no|any) (?:worker|slot)|\bno worker\b"
    r"|\bwithout (?:\w+ing )?(?:a|any) worker|\bfree\w* (?:the|a|its) (?:worker|slot)"
    r"|\b(?:wait|run)\w*(?: \w+){0,3} in the triggerer",
    re.IGNORECASE,
)
# A sensor in the mode `reschedule` holds a worker only while it polls.
IS_DEFERRED = re.compile(r"deferrable|deferred|\bdefers?\b|reschedul|between two checks", re.IGNORECASE)


def lacks_deferral(text: str) -> bool:
    """Return whether a text promises a wait without a worker to tasks that are not deferred."""
    return bool(HOLDS_NO_WORKER.search(text)) and not IS_DEFERRED.search(text)


@pytest.mark.slow
def test_a_wait_without_a_worker_is_promised_with_deferrable() -> None:
    assert [unit for unit in units() if lacks_deferral(unit.text)] == []


def test_such_a_promise_is_found() -> None:
    for text in (
        "Waits hold no worker.",
        "A wait runs in the triggerer.",
        "The operator starts the job and waits for it in the triggerer without a worker.",
        "It waits for the check without holding a worker.",
        "This frees the worker while the job runs.",
    ):
        assert lacks_deferral(text), text
        assert not lacks_deferral(f"With `deferrable=True`: {text}"), text


@cache
def waiting_by_default() -> dict[str, bool]:
    """Return the operators and sensors that can defer, and whether each waits by default."""
    found = {}
    info = get_provider_info()
    groups = [*info["operators"], *info["sensors"]]
    for module in (importlib.import_module(name) for group in groups for name in group["python-modules"]):
        for name in getattr(module, "__all__", dir(module)):
            task = getattr(module, name)
            if not inspect.isclass(task) or not name.startswith("WebData"):
                continue
            arguments: dict[str, inspect.Parameter] = {}
            for base in reversed(task.__mro__):
                if "__init__" in vars(base) and base.__module__.startswith("airflow_provider_webdata."):
                    arguments |= inspect.signature(base.__init__).parameters
            if "deferrable" in arguments:
                waits = arguments.get("wait_for_completion")
                found[name] = waits is None or waits.default is True
    return found


def shown_files() -> Iterator[tuple[str, str]]:
    """Yield the name and the code of each example, tutorial step, and recipe."""
    for folder in ("example_dags", "docs/tutorial", "docs/cookbook"):
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix == ".py":
                yield path.name, path.read_text("utf-8")
            elif path.suffix == ".md":
                for block in re.findall(
                    r"^```python\n(.*?)^```", path.read_text("utf-8"), re.MULTILINE | re.DOTALL
                ):
                    yield path.name, dedent(block)


def waits_in(code: str) -> Iterator[tuple[str, bool]]:
    """Yield each task that waits, and whether it sets `deferrable`, itself or by the DAG's `default_args`."""
    tree = ast.parse(code)
    by_default = any(
        isinstance(node, ast.Dict)
        and any(isinstance(key, ast.Constant) and key.value == "deferrable" for key in node.keys)
        for node in ast.walk(tree)
    )
    for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call)):
        # Of a mapped task, `partial` has the arguments.
        function = call.func.value if isinstance(call.func, ast.Attribute) else call.func
        name = function.id if isinstance(function, ast.Name) else ""
        given = {keyword.arg: ast.unparse(keyword.value) for keyword in call.keywords}
        if name not in waiting_by_default():
            continue
        if given.get("wait_for_completion", str(waiting_by_default()[name])) != "False":
            yield name, by_default or "deferrable" in given


def test_examples_and_recipes_that_wait_set_deferrable() -> None:
    found = [(file, *wait) for file, code in shown_files() for wait in waits_in(code)]
    assert len(found) > 20
    assert [(file, name) for file, name, is_set in found if not is_set] == []


BILLING = (
    "Jobs, and responses that an earlier attempt could keep, are not billed again by a retry (Airflow 3.3 or newer); "
    "a response that was lost or could not be kept may be."
)
"""The only promise about billing, stated in docs/concepts.md#retries-and-billing."""
_BILL = r"(?:bill\w*|pa(?:y|ys|id|ying)|charg(?:e|es|ed|ing))"
BILLED_ONCE = re.compile(
    r"\b(?:not|never|no|without|avoid\w*|instead of|nor|neither)\b[^.;,|]{0,40}"
    rf"\b{_BILL}\b[^.;,|]{{0,40}}\b(?:again|twice)\b"
    rf"|\b{_BILL}\b[^.;|]{{0,30}}\bonce\b|\bonce\b[^.;|]{{0,12}}\b{_BILL}\b|\bdouble.?{_BILL}"
    r"|\breuse\w*\b[^.;|]{0,40}\balready\b[^.;|]{0,15}\bbill",
    re.IGNORECASE,
)
# The service recognizes a repeated request, whatever a task keeps.
BY_THE_SERVICE = re.compile(
    r"\bthe service\b|\bservice\.md|\bhowever often it is sent|`x-request-id`|\bmay be sent again\b",
    re.IGNORECASE,
)
TRUE_OF_ONE_ATTEMPT = {
    "Stored the response: the next attempt publishes it without being billed again",
    "Reusing the response that an earlier attempt received; it is not billed again",
}
"""Log lines about a response that was kept."""
WITH_TESTS = ("docs/contributing/promises.md", "docs/contributing/reliability.md")
"""Pages whose rows each name the test of one case."""


def promises_more(text: str) -> bool:
    """Return whether a text has a promise about billing other than `BILLING`."""
    plain = re.sub(r"\[([^]]+)\]\([^)]+\)", r"\1", text).replace(BILLING, "")
    return (
        bool(BILLED_ONCE.search(plain))
        and not BY_THE_SERVICE.search(text)
        and text not in TRUE_OF_ONE_ATTEMPT
    )


def test_retries_and_billing_are_promised_in_one_sentence() -> None:
    found = [unit for unit in units() if not unit.place.startswith((*WITH_TESTS, "demo/"))]
    assert [unit for unit in found if promises_more(unit.text)] == []


def test_another_promise_about_billing_is_found() -> None:
    for text in (
        "A task is billed once for the same request.",
        "**You pay once.**",
        "Retries do not bill twice: they reuse the started job or response.",
        "Each search is billed once.",
        "A retry never pays twice.",
        "This prevents double billing.",
        "Retries reuse the job or response that was already billed.",
        f"{BILLING} So you never pay twice.",
    ):
        assert promises_more(text), text
    assert not promises_more(BILLING)


def test_the_promise_about_billing_stands_where_users_look() -> None:
    plain = {(unit.place, re.sub(r"\[([^]]+)\]\([^)]+\)", r"\1", unit.text)) for unit in units()}
    places = {place for place, text in plain if BILLING in text}
    assert places >= {"CHANGELOG.md", "docs/concepts.md", "docs/costs.md", "docs/faq.md"}


# A path names a clone.
FROM_AN_INDEX = re.compile(
    r"(?:pip install|--update-pypi-package|uv add|requirements)\b[^`|;]*(?<![./\w-])airflow-provider-webdata\b(?!/)"
    r"|(?<![./\w`-])airflow-provider-webdata==|`airflow-provider-webdata(?:\[[\w,]+\])?(?:==[\d.]+)?`[^.]*\brequirements\b"
)
RELEASED = re.compile(r"\bfirst release\b|\bclone\b", re.IGNORECASE)


def needs_an_index(text: str) -> bool:
    """Return whether a text installs this distribution by name, as if it was released."""
    return bool(FROM_AN_INDEX.search(text)) and not RELEASED.search(text)


def test_an_installation_by_name_is_marked_as_after_the_first_release() -> None:
    assert [unit for unit in units() if needs_an_index(unit.text)] == []


def test_an_installation_by_name_is_found() -> None:
    for text in (
        "pip install airflow-provider-webdata",
        "Run `pip install 'airflow-provider-webdata[parquet]'`.",
        "pip install pytest 'airflow-provider-webdata[sandbox]' -r requirements.txt",
        '--update-pypi-package "airflow-provider-webdata==0.1.0"',
        "Put `airflow-provider-webdata==0.1.0` into the project's `requirements.txt`.",
    ):
        assert needs_an_index(text), text
        assert not needs_an_index(f"After the first release: {text}"), text
    assert not needs_an_index(
        "pip install ./airflow-provider-webdata/sandbox './airflow-provider-webdata[sandbox]'"
    )


_TELLS = r"(?:has|have|names?|lists?|says?|shows?|contains?|quotes?|warns?)"
TELLS = re.compile(
    # Not of a clause that only refers to one: "Set what the message names."
    r"(?<!what )(?<!that )(?<!which )(?<!if )\b(?:the|its|an|one) (?:task's )?(?:message|error|log)s?"
    rf"(?: and XCom `\w+`(?: \([^)]*\))?| also)? {_TELLS}\b"
    rf"|\bXComs? (?:keys )?(?:then )?(?:`\w+`(?:, and |, | and )?)*[^.;|`]{{0,20}}\b(?:{_TELLS}|is|are)\b",
    re.IGNORECASE,
)
"""A sentence about the text of a message, an error, or a log, or about the content of an XCom."""
LOOKED_UP = (
    "docs/contributing/",
    "docs/reference/",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "docs/links.md",
    "docs/index.md",
)


def told() -> Iterator[tuple[str, str]]:
    """Yield each such sentence of the pages for users, with its page."""
    for unit in units():
        if unit.place.endswith(".md") and not unit.place.startswith(LOOKED_UP):
            for sentence in re.split(r"(?<=[.;])\s|(?<=\|)", unit.text):
                if TELLS.search(sentence):
                    yield unit.place, sentence.strip(" |-")


def marked() -> set[str]:
    """Return the parts of such sentences that tests are marked with."""
    files = [path for room in ("tests", "sandbox/tests") for path in (ROOT / room).rglob("test_*.py")]
    return {
        str(argument.value)
        for path in files
        if "mark.says(" in (text := path.read_text("utf-8"))
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "pytest.mark.says"
        for argument in node.args
        if isinstance(argument, ast.Constant)
    }


def test_a_sentence_about_a_message_or_an_xcom_has_a_test_that_reads_a_real_one() -> None:
    found, marks = {*told()}, marked()
    unread = [(page, text) for page, text in found if not any(mark in text for mark in marks)]
    assert unread == [], 'mark the test that reads one with @pytest.mark.says("part of the sentence")'
    gone = [mark for mark in marks if not any(mark in text for _, text in found)]
    assert gone == [], "no page says so: read the test, then change or delete its mark"


NAMED_XCOM = re.compile(
    r"\bXComs?(?: keys?)? ((?:\[?[`'][a-zA-Z_]+[`'](?:\]\([^)]*\))?(?:, and |, | and )?)+)"
)


def test_an_xcom_that_is_named_is_one() -> None:
    """Values of a returned mapping are no separate XComs: `xcom_pull(key=...)` finds none."""
    named = [
        (unit.place, key)
        for unit in units()
        for keys in NAMED_XCOM.findall(unit.text)
        for key in re.findall(r"[`']([a-zA-Z_]+)[`']", keys)
    ]
    assert len(named) > 30
    separate = {key for key, known in XCOM_KEYS.items() if not known.in_result}
    assert [(place, key) for place, key in named if key not in separate | {"KEYS"}] == []
