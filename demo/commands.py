# SPDX-License-Identifier: Apache-2.0
"""The commands behind `make demo`, `up`, `down`, `scale`, and `chaos`."""

from __future__ import annotations

import os
import random
import shlex
import time
from pathlib import Path
from typing import TYPE_CHECKING

from demo.data import SEEDED_DAGS, fill
from demo.examples import SANDBOX_FLAGS, run_examples
from tests.support.errors import StackError
from tests.support.stack import EXAMPLE_DAGS, HOMES, REPOSITORY, Stack
from tests.support.warm import Warm

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

OWN_DAGS = Path(os.environ.get("WEBDATA_DEMO_DAGS") or REPOSITORY / "dags")
"""Folder for the DAGs of `make up` users; the demo never deletes its files."""

WARM = os.environ.get("WEBDATA_DEMO_WARM")
"""Folder of a process that starts programs with Airflow already imported (`tests.support.warm`), to speed up tests."""


def run() -> None:
    """Start Airflow and the sandbox, run the examples, stop all programs, and show the results."""
    with _stack(HOMES / "demo", (EXAMPLE_DAGS,)) as stack:
        results = run_examples(stack)
        stack.say("stopping Airflow and the sandbox")
    show(results)


def up() -> None:
    """Like `run`, but leave Airflow and the sandbox running; with `DATA=1`, with data instead of the examples' runs."""
    home = HOMES / "up"
    if (running := Stack.running_in(home, _sandbox_flags(home))) is not None:
        _revive_sandbox(running)
        _show_access(running)
        return
    OWN_DAGS.mkdir(parents=True, exist_ok=True)
    with_data = os.environ.get("DATA", "0") not in ("", "0")
    stack = _stack(home, (OWN_DAGS, EXAMPLE_DAGS, *([SEEDED_DAGS] if with_data else [])))
    try:
        stack.start()
        stack.write_environment()
        if with_data:
            fill(stack, int(os.environ.get("MANY") or 0))
            _show_access(stack)
            return
        _show_access(stack)
        print("\nThe examples are running. You can already use all of the above.\n", flush=True)
        results = run_examples(stack)
    except BaseException:
        stack.stop()
        raise
    show(results)
    _show_access(stack)


def down() -> None:
    """Stop the programs that `up` left running."""
    running = Stack.running_in(HOMES / "up")
    if running is None:
        print("Airflow and the sandbox are not running.")
        return
    running.stop()
    print("Stopped Airflow and the sandbox.")


def scale() -> None:
    """Run many jobs on an Airflow with two of each component, and kill some of them."""
    from demo.scale.run import run_scale

    jobs = int(os.environ.get("WEBDATA_SCALE_JOBS", "200"))
    show({f"{jobs} jobs": run_scale(jobs, SANDBOX_FLAGS, _progress())})


def chaos() -> None:
    """Kill, suspend, and starve components and the database at random."""
    from demo.chaos.run import run_chaos

    minutes = float(os.environ.get("MINUTES") or 20)
    seed = int(os.environ.get("SEED") or random.randrange(2**32))
    sqlite = os.environ.get("DATABASE") == "sqlite"
    report = run_chaos(minutes, seed, SANDBOX_FLAGS, _progress(), sqlite=sqlite)
    show({f"{minutes:g} minutes of faults": report})


def show(results: dict[str, str]) -> None:
    """Print each report under its DAG's name."""
    for dag_id, report in results.items():
        print(f"\n{dag_id}\n{'-' * len(dag_id)}\n{report}")


def _stack(home: Path, dag_folders: Sequence[Path]) -> Stack:
    """Return a stack with its temporary folder, and therefore the examples' output, in its home."""

    def make_temporary_folder(stack: Stack) -> None:
        Path(stack.environment["TMPDIR"]).mkdir()

    return Stack(
        home,
        dag_folders=dag_folders,
        environment={"TMPDIR": str(home / "tmp")},
        sandbox_flags=_sandbox_flags(home),
        prepare=make_temporary_folder,
        say=_progress(),
        warm=Warm(Path(WARM)) if WARM else None,
    )


def _sandbox_flags(home: Path) -> Sequence[str]:
    """Return the flags of a sandbox that keeps its monitors and jobs across restarts."""
    return (*SANDBOX_FLAGS, "--state", str(home / "sandbox.db"))


def _revive_sandbox(running: Stack) -> None:
    """Restart the sandbox if it has died.

    :raises StackError: a component of Airflow has died.
    """
    if dead := [name for name in running.ended if name != "sandbox"]:
        raise StackError(f"Airflow's {' and '.join(dead)} died. To restart, run make down, then make up.")
    print("Already running.")
    if "sandbox" in running.ended:
        print("The sandbox has died. Restarting it.")
        running.restart_sandbox()


def _show_access(stack: Stack) -> None:
    try:
        user, password = stack.login
    except FileNotFoundError:
        raise StackError("Airflow is still starting. Try again in a minute.") from None
    print(
        f"""
Airflow            {stack.airflow_url}  (user {user}, password {password})
DAG folder         {OWN_DAGS}  (Airflow reads new DAG files within half a minute)
airflow command    source {shlex.quote(str(stack.environment_file))}
Sandbox            {stack.sandbox_url}  (API key {stack.api_key})
Sandbox's control  {stack.sandbox_url}/_sandbox/
Stop both          make down""",
        flush=True,
    )


def _progress() -> Callable[[str], None]:
    started = time.monotonic()

    def say(text: str) -> None:
        print(f"[{time.monotonic() - started:5.1f} s] {text}", flush=True)

    return say
