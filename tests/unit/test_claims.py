"""Claims that are true only under a condition name it, wherever they stand, and examples meet it."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
from collections.abc import Iterator
from functools import cache
from textwrap import dedent

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
