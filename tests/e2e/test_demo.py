"""The commands of the first page of the README, as somebody who just cloned the repository runs them."""

from __future__ import annotations

import contextlib
import json
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

from airflow_provider_webdata.sandbox.control import SandboxControl
from demo.examples import DAGS
from tests.support.airflow_api import AirflowAPI
from tests.support.stack import HOMES, REPOSITORY, Stack
from tests.support.waiting import PATIENCE, wait_until

DEMO_HOMES = HOMES / "of-tests"
EXAMPLE = REPOSITORY / "airflow_provider_webdata" / "init" / "river_news.py"
ENVIRONMENT = {
    # What `make test` put there is not for the make that the test starts.
    **{name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))},
    "WEBDATA_DEMO_HOMES": str(DEMO_HOMES),
    "WEBDATA_DEMO_DAGS": str(DEMO_HOMES / "dags"),
}


def make(target: str, **environ: str) -> subprocess.CompletedProcess[str]:
    command = ["make", target, f"PYTHON={sys.executable}"]
    return subprocess.run(
        command,
        cwd=REPOSITORY,
        env={**ENVIRONMENT, **environ},
        capture_output=True,
        text=True,
        timeout=3 * PATIENCE,
        check=False,
    )


# What shows that an example has found something.
FOUND = {
    "webdata_search": "https://river.example/",
    "webdata_site_to_table": "https://river.example/",
    "webdata_incremental_search": "https://docs.pipeline.example/",
    "webdata_operations": "pages in",
    "webdata_wait": "new: https://shop.example/",
}


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


def test_make_demo_runs_the_examples_and_leaves_nothing_behind(tmp_path: Path) -> None:
    done = make("demo", TMPDIR=str(tmp_path))

    assert done.returncode == 0, done.stdout + done.stderr
    assert list(tmp_path.iterdir()) == []
    assert "webdata_search.report: success" in done.stdout
    assert "webdata_monitor.report: success" in done.stdout
    # The wait was ended by a webhook, and the event-driven DAG ran for the same check.
    assert "webdata_wait.wait_for_check: deferred" in done.stdout
    assert "monitor.check.completed -> POST /webdata/inbox/webdata_default/...: 200" in done.stdout
    learned = re.search(r"^Check (\S+) of monitor .* \(learned by webhook\)", done.stdout, re.MULTILINE)
    assert learned, done.stdout
    assert f"monitor.check.completed: check {learned.group(1)} of monitor" in done.stdout
    reports = dict(re.findall(r"^(webdata_\w+)\n-+\n(.+?)(?=\n\n|\Z)", done.stdout, re.MULTILINE | re.DOTALL))
    assert reports.keys() == set(DAGS)
    for dag_id, sign in FOUND.items():
        assert sign in reports[dag_id], reports[dag_id]
    assert "0 results" not in done.stdout
    assert not left_behind(DEMO_HOMES / "demo")


ACCESS = re.compile(
    r"Airflow +(?P<airflow>http://\S+)  \(user (?P<user>\S+), password (?P<password>\S+)\)\n"
    r"DAG folder +(?P<dags>\S+)  .*\n"
    r"airflow command +(?P<environment>source .*)\n"
    r"Sandbox +(?P<sandbox>http://\S+)  \(API key (?P<key>\S+)\)\n"
    r"Sandbox's control +(?P<control>http://\S+)\n"
)


def test_make_up_keeps_running_until_make_down() -> None:
    try:
        up = make("up")
        assert up.returncode == 0, up.stdout + up.stderr
        # At once, and at the end.
        first, last = ACCESS.finditer(up.stdout)
        assert first.groupdict() == last.groupdict()
        assert first.end() < up.stdout.index("webdata_search: the scheduler made")
        assert last.start() > up.stdout.index("monitor.check.completed: check")
        assert left_behind(DEMO_HOMES / "up"), "the check for processes left behind finds nothing at all"
        what_it_says_is_so(first.groupdict())

        again = make("up")
        assert (again.returncode, again.stdout.splitlines()[0]) == (0, "Already up.")
        told = ACCESS.search(again.stdout)
        assert told is not None
        assert told.groupdict() == first.groupdict()

        a_dead_sandbox_is_started_again(first.groupdict())
    finally:
        down = make("down")
    assert (down.returncode, down.stdout.strip()) == (0, "Ended Airflow and the sandbox.")
    assert not left_behind(DEMO_HOMES / "up")
    assert make("down").stdout.strip() == "Nothing is up."


def what_it_says_is_so(access: dict[str, str]) -> None:
    own = Path(access["dags"])
    assert own == DEMO_HOMES / "dags"
    (own / "river_news.py").write_text(EXAMPLE.read_text())
    api = AirflowAPI(access["airflow"], access["user"], access["password"])
    with contextlib.closing(api):
        assert wait_until(lambda: "river_news" in api.dag_ids(), pause=0.5)

    shell = f"{access['environment']} && airflow connections get webdata_default --output json"
    seen = subprocess.run(["bash", "-c", shell], capture_output=True, text=True, timeout=PATIENCE, check=True)
    [connection] = json.loads(seen.stdout)
    assert f"{connection['host']}:{connection['port']}" == access["sandbox"]
    assert connection["password"] == access["key"]

    page = httpx.get(access["control"], trust_env=False, timeout=PATIENCE)
    links = re.findall(r'href="(\S+)"', page.text)
    assert {"state", "pages", "requests", "deliveries", "jobs/crawl"} <= set(links)
    for link in links:
        answer = httpx.get(access["control"] + link, trust_env=False, timeout=PATIENCE)
        assert answer.status_code == 200, link


def a_dead_sandbox_is_started_again(access: dict[str, str]) -> None:
    sandbox = SandboxControl(access["sandbox"])
    monitors = [monitor["id"] for monitor in sandbox.state()["monitors"]]
    assert monitors
    running = Stack.running_in(DEMO_HOMES / "up")
    assert running is not None
    running.kill("sandbox")

    again = make("up")

    assert again.returncode == 0, again.stdout + again.stderr
    assert "The sandbox has died; starting it again." in again.stdout
    told = ACCESS.search(again.stdout)
    assert told is not None
    assert told.groupdict() == access
    assert [monitor["id"] for monitor in sandbox.state()["monitors"]] == monitors


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
