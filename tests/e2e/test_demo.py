"""The commands of the first page of the README, as somebody who just cloned the repository runs them."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import httpx
import psutil
import pytest

from tests.support.stack import HOMES, REPOSITORY, Stack
from tests.support.waiting import PATIENCE, wait_until

DEMO_HOMES = HOMES / "of-tests"
ENVIRONMENT = {
    # What `make test` put there is not for the make that the test starts.
    **{name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))},
    "WEBDATA_DEMO_HOMES": str(DEMO_HOMES),
}


def make(target: str) -> subprocess.CompletedProcess[str]:
    command = ["make", target, f"PYTHON={sys.executable}"]
    return subprocess.run(
        command,
        cwd=REPOSITORY,
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        timeout=3 * PATIENCE,
        check=False,
    )


def left_behind(home: Path) -> list[str]:
    """Processes that work in `home`, found without the demo's own bookkeeping."""
    found = []
    for process in psutil.process_iter():
        try:
            traces = [process.cwd(), *process.cmdline()]
        except psutil.Error:
            continue
        if any(str(home) in trace for trace in traces):
            found.append(f"{process.pid} {' '.join(traces[1:])}")
    return found


def test_make_demo_runs_the_examples_and_leaves_nothing_behind() -> None:
    done = make("demo")

    assert done.returncode == 0, done.stdout + done.stderr
    assert "webdata_search.report: success" in done.stdout
    assert "webdata_monitor.report: success" in done.stdout
    # The wait was ended by a webhook, and the event-driven DAG ran for the same check.
    assert "webdata_wait.wait_for_check: deferred" in done.stdout
    assert "monitor.check.completed -> POST /webdata/inbox/webdata_default/...: 200" in done.stdout
    learned = re.search(r"^Check (\S+) of monitor .* \(learned by webhook\)", done.stdout, re.MULTILINE)
    assert learned, done.stdout
    assert f"monitor.check.completed: check {learned.group(1)} of monitor" in done.stdout
    assert re.search(r"^webdata_search\n-+\n.*http", done.stdout, re.MULTILINE | re.DOTALL)
    assert not left_behind(DEMO_HOMES / "demo")


def test_make_up_keeps_running_until_make_down() -> None:
    try:
        up = make("up")
        assert up.returncode == 0, up.stdout + up.stderr
        shown = re.search(r"Airflow +(http://\S+) +\(user (\S+), password (\S+)\)", up.stdout)
        assert shown, up.stdout
        url, user, password = shown.groups()
        credentials = {"username": user, "password": password}
        assert httpx.post(f"{url}/auth/token", json=credentials, trust_env=False).status_code == 201
        assert left_behind(DEMO_HOMES / "up"), "the check for processes left behind finds nothing at all"

        again = make("up")
        assert (again.returncode, again.stdout.splitlines()[0]) == (0, "Already up.")
        assert url in again.stdout
    finally:
        down = make("down")
    assert (down.returncode, down.stdout.strip()) == (0, "Ended Airflow and the sandbox.")
    assert not left_behind(DEMO_HOMES / "up")
    assert make("down").stdout.strip() == "Nothing is up."


def interrupted_demo(number: signal.Signals) -> tuple[int, str]:
    """Exit status and complaints of a demo that is sent a signal while Airflow starts."""
    demo = subprocess.Popen(
        [sys.executable, "-m", "demo", "run"],
        cwd=REPOSITORY,
        env=ENVIRONMENT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        started = wait_until(lambda: any("scheduler" in line for line in left_behind(DEMO_HOMES)))
        demo.send_signal(number)
        _, complaint = demo.communicate(timeout=PATIENCE)
    finally:
        demo.kill()
    assert started, complaint
    return demo.returncode, complaint


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_demo_leaves_nothing_behind(number: signal.Signals) -> None:
    status, complaint = interrupted_demo(number)

    assert status == 130
    assert "interrupted" in complaint
    assert not left_behind(DEMO_HOMES)


def test_what_a_killed_demo_left_behind_is_found_again() -> None:
    interrupted_demo(signal.SIGKILL)
    assert left_behind(DEMO_HOMES)

    left_over = Stack.running_in(DEMO_HOMES / "demo")

    assert left_over is not None
    left_over.stop()
    assert not left_behind(DEMO_HOMES)


def test_a_demo_whose_task_fails_says_why(tmp_path: Path) -> None:
    for folder in ("demo", "example_dags", "tests/support"):
        shutil.copytree(REPOSITORY / folder, tmp_path / folder, ignore=shutil.ignore_patterns("__pycache__"))
    example = tmp_path / "example_dags" / "webdata_search.py"
    example.write_text(example.read_text().replace("limit=5", 'limit="{{ 500 }}"'))
    environment = {**ENVIRONMENT, "WEBDATA_DEMO_HOMES": str(tmp_path / "homes")}

    done = subprocess.run(
        [sys.executable, "-m", "demo", "run"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=3 * PATIENCE,
        check=False,
    )

    assert done.returncode == 1, done.stdout + done.stderr
    assert "webdata_search.search failed on try 1" in done.stderr
    assert "limit" in done.stderr
    assert "500" in done.stderr
    assert "Traceback" not in done.stderr
    assert not left_behind(tmp_path)
