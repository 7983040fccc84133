# SPDX-License-Identifier: Apache-2.0
"""Check style, types, imports, and generated files, and print a summary, then the failures.

    python -m tools.lint                    run all stages
    python -m tools.lint --without-tests    omit the tests that find forgotten places

Two stages run concurrently. If a stage fails, the stages that depend on it are skipped.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
BIN = Path(sys.executable).parent
PYTHON = (sys.executable, "-m")
DEPTRY = (str(BIN / "deptry"), "--no-ansi")


@dataclass(frozen=True)
class Stage:
    """A command that fails if it finds an error.

    :param needs: the stage that must pass first, because its errors cause errors in this one.
    :param fix: the command that fixes some of the errors.
    """

    name: str
    command: tuple[str, ...]
    needs: str = ""
    fix: str = ""


@dataclass(frozen=True)
class Result:
    """The outcome of a stage: `passed`, `failed`, or `skipped`."""

    stage: Stage
    outcome: str
    output: str
    seconds: float = 0.0


TESTS = Stage(
    "forgotten places",
    (
        *(*PYTHON, "pytest", "-q", "-rN", "--no-header", "--tb=short", "-p", "no:cacheprovider"),
        "tests/unit/test_contract.py",
        "tests/unit/test_models_and_sandbox.py::test_both_state_every_request_and_the_same_fields",
        "tests/unit/test_models_and_sandbox.py::test_both_sides_of_each_limit_and_every_kind_of_value",
    ),
    needs="model exports",
)
# In start order: after the stages that they need.
STAGES = (
    Stage("model exports", (*PYTHON, "tools.model_exports", "--check")),
    Stage("types", (str(BIN / "mypy"),)),
    Stage("operator fields", (*PYTHON, "tools.operator_fields", "--check"), needs="model exports"),
    Stage("hook fields", (*PYTHON, "tools.hook_fields", "--check"), needs="model exports"),
    TESTS,
    Stage("style", (str(BIN / "ruff"), "check", "."), fix="ruff check --fix ."),
    Stage("format", (str(BIN / "ruff"), "format", "--check", "."), fix="ruff format ."),
    Stage("import contracts", (str(BIN / "lint-imports"), "--no-logo")),
    Stage("dependencies", (*DEPTRY, "--config", "pyproject.toml", "airflow_provider_webdata")),
    Stage(
        "dependencies of the sandbox",
        (*DEPTRY, "--config", "sandbox/pyproject.toml", "sandbox/webdata_sandbox"),
    ),
    Stage("workflows", (str(BIN / "zizmor"), "--offline", "--quiet", "--persona", "pedantic", ".github")),
    Stage("docs density", (*PYTHON, "tools.docs_density")),
    Stage("rules of the service", (*PYTHON, "tools.coverage_page", "--check")),
    Stage("reference pages", (*PYTHON, "tools.reference_pages", "--check"), needs="operator fields"),
)


def run(stages: Sequence[Stage], folder: Path = ROOT) -> list[Result]:
    """Run the stages, print the outcome of each when it ends, and return the results in the order of the stages.

    :param folder: working directory of the commands.
    """
    started: dict[str, Future[Result]] = {}
    with ThreadPoolExecutor(2) as pool:
        for stage in stages:
            started[stage.name] = pool.submit(_run, stage, started.get(stage.needs), folder)
        for future in as_completed(started.values()):
            result = future.result()
            print(f"== {result.stage.name}: {result.outcome}", flush=True)
    return [future.result() for future in started.values()]


def _run(stage: Stage, needed: Future[Result] | None, folder: Path) -> Result:
    # Futures start in order, so the needed one is running or has ended.
    if needed is not None and needed.result().outcome != "passed":
        return Result(stage, "skipped", f"Fix first: {stage.needs}.\n")
    began = time.monotonic()
    done = subprocess.run(
        stage.command,
        cwd=folder,
        env={**os.environ, "COLUMNS": "120"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    seconds = time.monotonic() - began
    if done.returncode == 0:
        return Result(stage, "passed", done.stdout, seconds)
    hint = f"To fix some of these errors, run: {BIN / stage.fix}\n" if stage.fix else ""
    return Result(stage, "failed", done.stdout + hint, seconds)


def summary(results: Sequence[Result]) -> str:
    """Return the results as a table."""
    width = max(len(result.stage.name) for result in results)
    lines = [f"{'stage':{width}}  result   seconds"]
    lines += [f"{one.stage.name:{width}}  {one.outcome:7}  {one.seconds:7.1f}" for one in results]
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the stages; return 1 unless all pass."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--without-tests", action="store_true")
    options = parser.parse_args(arguments)
    results = run([stage for stage in STAGES if stage is not TESTS or not options.without_tests])
    print(f"\n{summary(results)}")
    for result in results:
        if result.outcome != "passed":
            print(f"\n== {result.stage.name}: {result.outcome}\n{result.output}", end="")
    return 0 if all(result.outcome == "passed" for result in results) else 1


if __name__ == "__main__":
    sys.exit(main())
