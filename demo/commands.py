"""What `make demo`, `up`, `down`, `scale` and `chaos` do."""

from __future__ import annotations

import os
import random
import time
from typing import TYPE_CHECKING

from demo.examples import SANDBOX_FLAGS, run_examples
from tests.support.stack import HOMES, Stack

if TYPE_CHECKING:
    from collections.abc import Callable


def run() -> None:
    """Start everything, run the examples, show what came of them, end everything."""
    with Stack(HOMES / "demo", sandbox_flags=SANDBOX_FLAGS, say=_progress()) as stack:
        results = run_examples(stack)
        stack.say("ending Airflow and the sandbox")
    show(results)


def up() -> None:
    """Like `run`, and leave Airflow and the sandbox running."""
    home = HOMES / "up"
    if (running := Stack.running_in(home)) is not None:
        print("Already up.")
        _show_login(running)
        return
    stack = Stack(home, sandbox_flags=SANDBOX_FLAGS, say=_progress())
    try:
        stack.start()
        results = run_examples(stack)
    except BaseException:
        stack.stop()
        raise
    show(results)
    _show_login(stack)


def down() -> None:
    """End what `up` left running."""
    running = Stack.running_in(HOMES / "up")
    if running is None:
        print("Nothing is up.")
        return
    running.stop()
    print("Ended Airflow and the sandbox.")


def scale() -> None:
    """Run many jobs on an Airflow of two of each component, some of which die; end everything."""
    from demo.scale.run import run_scale

    jobs = int(os.environ.get("WEBDATA_SCALE_JOBS", "200"))
    show({f"{jobs} jobs": run_scale(jobs, SANDBOX_FLAGS, _progress())})


def chaos() -> None:
    """Let components and the database die, hang and starve at random; end everything."""
    from demo.chaos.run import run_chaos

    minutes = float(os.environ.get("MINUTES") or 20)
    seed = int(os.environ.get("SEED") or random.randrange(2**32))
    show({f"{minutes:g} minutes of faults": run_chaos(minutes, seed, SANDBOX_FLAGS, _progress())})


def show(results: dict[str, str]) -> None:
    """Print each report under its DAG's name."""
    for dag_id, report in results.items():
        print(f"\n{dag_id}\n{'-' * len(dag_id)}\n{report}")


def _show_login(stack: Stack) -> None:
    user, password = stack.login
    print(f"\nAirflow  {stack.airflow_url}  (user {user}, password {password})")
    print(f"Sandbox  {stack.sandbox_url}  (API key: see the connection webdata_default)")
    print("End both with: make down")


def _progress() -> Callable[[str], None]:
    started = time.monotonic()

    def say(text: str) -> None:
        print(f"[{time.monotonic() - started:5.1f} s] {text}", flush=True)

    return say
