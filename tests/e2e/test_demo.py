# SPDX-License-Identifier: Apache-2.0
"""The commands of the first page of the README, as a user of a fresh clone runs them.

`make up` runs every example, and a demo of one example starts each program with its own Python. To save time, all
others start them with Airflow imported.
"""

from __future__ import annotations

import contextlib
import gzip
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pendulum
import psutil
import pytest
from pyarrow import parquet

from demo.examples import DAGS
from tests.support.airflow_api import ENDED, AirflowAPI
from tests.support.runs import follow
from tests.support.service import JOB_PATHS, SECRET_HEADER
from tests.support.stack import HOMES, REPOSITORY, STATE_FILE, Stack
from tests.support.waiting import PATIENCE, wait_until
from tests.support.warm import Warm
from webdata_sandbox.control import SandboxControl

DEMO_HOMES = HOMES / "of-tests"
EXAMPLE = REPOSITORY / "airflow_provider_webdata" / "commands" / "river_news.py"
ENVIRONMENT = {
    # The variables of `make test` are not for the make that the test starts.
    **{name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))},
    "WEBDATA_DEMO_HOMES": str(DEMO_HOMES),
    "WEBDATA_DEMO_DAGS": str(DEMO_HOMES / "dags"),
}


@pytest.fixture(scope="module")
def warm_environ(warm: Warm) -> dict[str, str]:
    return {"WEBDATA_DEMO_WARM": str(warm.open())}


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
    "webdata_checked_pages": "100% of them with a title",
    "webdata_operations": "pages in",
    "webdata_wait": "new: https://shop.example/",
}


def left_behind(home: Path) -> list[str]:
    """Return the processes that work in `home`, found without the demo's own bookkeeping."""
    found = []
    for process in psutil.process_iter():
        try:
            traces = [process.cwd(), *process.cmdline()]
        except psutil.Error:
            continue
        if any(str(home) in trace for trace in traces):
            found.append(f"{process.pid} {' '.join(traces[1:])}")
    return found


ACCESS = re.compile(
    r"Airflow +(?P<airflow>http://\S+)  \(user (?P<user>\S+), password (?P<password>\S+)\)\n"
    r"DAG folder +(?P<dags>\S+)  .*\n"
    r"airflow command +(?P<environment>source .*)\n"
    r"Sandbox +(?P<sandbox>http://\S+)  \(API key (?P<key>\S+)\)\n"
    r"Sandbox's control +(?P<control>http://\S+)\n"
)


@dataclass(frozen=True)
class Up:
    """What `make up` prints and leaves running."""

    output: str
    access: dict[str, str]
    stack: Stack

    @property
    def api(self) -> AirflowAPI:
        return self.stack.api

    @property
    def sandbox(self) -> SandboxControl:
        return SandboxControl(self.access["sandbox"])

    def last_run(self, dag_id: str) -> str:
        return str(self.api.runs(dag_id)[-1]["dag_run_id"])

    def started(self, kind: str) -> list[dict[str, Any]]:
        """Return the accepted requests to start such a job."""
        posts = self.sandbox.requests(JOB_PATHS[kind] + "$", "POST")
        return [request for request in posts if request["status"] == 200]

    def searches(self, query: str) -> list[dict[str, Any]]:
        """Return the bodies of the requests for a query."""
        bodies = [request["body"] for request in self.sandbox.requests("/v2/search", "POST")]
        return [body for body in bodies if body["query"] == query]


@pytest.fixture(scope="module")
def up(warm_environ: dict[str, str]) -> Iterator[Up]:
    try:
        done = make("up", **warm_environ)
        assert done.returncode == 0, done.stdout + done.stderr
        stack = Stack.running_in(DEMO_HOMES / "up")
        assert stack is not None
        # Immediately, and at the end.
        first, last = ACCESS.finditer(done.stdout)
        assert first.groupdict() == last.groupdict()
        assert first.end() < done.stdout.index("webdata_search: the scheduler created")
        assert last.start() > done.stdout.index("monitor.check.completed: check")
        yield Up(done.stdout, first.groupdict(), stack)
    finally:
        make("down")


def test_make_up_runs_the_examples_and_reports_each(up: Up) -> None:
    assert "webdata_search.report: success" in up.output
    assert "webdata_monitor.report: success" in up.output
    # The wait was ended by a webhook, and the event-driven DAG ran for the same check.
    assert "webdata_wait.wait_for_check: deferred" in up.output
    assert "monitor.check.completed -> POST /webdata/inbox/webdata_default/...: 200" in up.output
    learned = re.search(r"^Check (\S+) of monitor .* \(reported by webhook\)", up.output, re.MULTILINE)
    assert learned, up.output
    assert f"monitor.check.completed: check {learned.group(1)} of monitor" in up.output
    reports = dict(re.findall(r"^(webdata_\w+)\n-+\n(.+?)(?=\n\n|\Z)", up.output, re.MULTILINE | re.DOTALL))
    assert reports.keys() == set(DAGS)
    for dag_id, sign in FOUND.items():
        assert sign in reports[dag_id], reports[dag_id]
    assert "0 results" not in up.output


def test_example_search_maps_one_task_over_each_result(up: Up) -> None:
    dag_id = "webdata_search"
    run_id = up.last_run(dag_id)

    results = up.api.xcom(dag_id, run_id, "search")
    tasks = up.api.task_instances(dag_id, run_id)
    mapped = [task for task in tasks if task["map_index"] >= 0]
    report = up.api.xcom(dag_id, run_id, "report")
    assert len(results) > 1
    assert len(mapped) == len(results)
    assert all(result["url"] in report for result in results)
    # No task stands between the search and the mapped one: only these three are in the DAG.
    assert {task["task_id"] for task in tasks} == {"search", "summarize", "report"}
    # As many as runs: around midnight the next one is due already.
    dates = [body["tbs"] for body in up.searches("site:river.example")]
    assert dates
    assert len(dates) == len(set(dates))
    assert all("cdr:1" in date for date in dates)


def test_example_check_is_waited_for_and_its_delivery_runs_the_event_driven_dag(up: Up) -> None:
    run_id = up.last_run("webdata_wait")
    log = up.api.log_lines("webdata_wait", run_id, "wait_for_check", 1)
    (learned,) = [line.removeprefix("info ") for line in log if "reported by" in line]
    assert "(reported by webhook)" in learned
    pages = up.api.xcom("webdata_wait", run_id, "report_changes").splitlines()
    assert pages
    assert all(page.startswith("new: https://shop.example/") for page in pages)
    check_id, monitor_id = learned.split()[1], learned.split()[4]
    runs = [run for run in up.api.runs("webdata_on_check") if run["state"] == "success"]
    assert {run["run_type"] for run in runs} == {"asset_triggered"}
    reports = [up.api.xcom("webdata_on_check", run["dag_run_id"], "report") for run in runs]
    assert [payload["check_id"] for payloads in reports for payload in payloads].count(check_id) == 1
    # The provider sets the webhook up: address, key, and secret are not in the DAG.
    (monitor,) = (found for found in up.sandbox.state()["monitors"] if found["id"] == monitor_id)
    assert monitor["webhook"]["url"].startswith(f"{up.access['airflow']}/webdata/inbox/webdata_default/")
    assert monitor["webhook"]["headers"].keys() == {SECRET_HEADER}


def test_example_site_to_table(up: Up) -> None:
    dag_id = "webdata_site_to_table"
    run_id = up.last_run(dag_id)

    urls = up.api.xcom(dag_id, run_id, "find_pages")
    batches = up.api.xcom(dag_id, run_id, "batches")
    assert sorted(url for batch in batches for url in batch) == sorted(urls)
    assert len(batches) > 1
    paths = [
        urlsplit(up.api.xcom(dag_id, run_id, "scrape", map_index=index)["path"]).path
        for index in range(len(batches))
    ]
    assert len(set(paths)) == len(batches)
    read = [url for path in paths for url in parquet.read_table(path)["source_url"].to_pylist()]
    assert sorted(read) == sorted(urls)
    report = up.api.xcom(dag_id, run_id, "report")
    assert report.startswith(f"{len(urls)} pages in {len(batches)} files")
    bodies = [request["body"] for request in up.started("batch_scrape")]
    assert sorted(tuple(body["urls"]) for body in bodies) == sorted(map(tuple, batches))


def test_example_incremental_search(up: Up) -> None:
    """Catch-up gives every month its run, its days, and its file."""
    dag_id = "webdata_incremental_search"
    started_on = pendulum.parse(up.api.call("GET", f"/dags/{dag_id}/details")["start_date"])
    runs: list[dict[str, Any]] = []

    def all_ended() -> bool:
        runs[:] = up.api.runs(dag_id)
        months = pendulum.now("UTC").diff(started_on).in_months()
        return len(runs) == months and all(run["state"] in ENDED for run in runs)

    # The scheduler runs two at a time, and the next when it has seen that one of them ended.
    assert wait_until(all_ended, pause=0.5), runs
    assert {run["state"] for run in runs} == {"success"}
    ranges = [body["tbs"] for body in up.searches("pipeline")]
    assert len(set(ranges)) == len(ranges) == len(runs)
    paths = set()
    for run in runs:
        found = up.api.xcom(dag_id, run["dag_run_id"], "search")
        assert run["data_interval_start"][:10] in found["path"]
        paths.add(found["path"])
    assert len(paths) == len(runs)
    urls: list[str] = []
    for path in paths:
        with open(urlsplit(path).path) as file:
            urls += [json.loads(line)["url"] for line in file]
    # No page is found in two months.
    assert urls
    assert len(set(urls)) == len(urls)


def test_example_operations(up: Up) -> None:
    run_id = up.last_run("webdata_operations")

    report = up.api.xcom("webdata_operations", run_id, "report")
    names = [line.split(":")[0] for line in report.splitlines()]
    assert names == ["scrape", "crawl", "agent", "interact", "parse"]
    crawled = up.api.xcom("webdata_operations", run_id, "crawl")["path"]
    with gzip.open(urlsplit(crawled).path, "rt") as file:
        pages = [json.loads(line) for line in file]
    assert f"crawl: {len(pages)} pages in" in report
    assert [len(up.started(kind)) for kind in ("crawl", "agent")] == [1, 1]


def test_example_monitor_is_kept_not_repeated(up: Up) -> None:
    dag_id = "webdata_monitor"
    created = up.api.xcom(dag_id, up.last_run(dag_id), "keep_monitor")
    up.sandbox.clear_requests()

    again = up.api.trigger(dag_id)
    follow(up.api, dag_id, again, print)

    kept = up.api.xcom(dag_id, again, "keep_monitor")
    assert kept["id"] == created["id"]
    named = [monitor for monitor in up.sandbox.state()["monitors"] if monitor["name"] == created["name"]]
    assert [monitor["id"] for monitor in named] == [created["id"]]
    assert {request["method"] for request in up.sandbox.requests()} == {"GET"}


def test_make_up_tells_how_to_use_what_is_up(up: Up) -> None:
    access = up.access
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


def test_make_up_again_starts_a_dead_sandbox_and_make_down_ends_all(
    up: Up, warm_environ: dict[str, str]
) -> None:
    assert left_behind(DEMO_HOMES / "up"), "the check for processes left behind finds nothing at all"
    monitors = [monitor["id"] for monitor in up.sandbox.state()["monitors"]]
    assert monitors
    for dead in (False, True):
        if dead:
            up.stack.kill("sandbox")

        again = make("up", **warm_environ)

        assert again.returncode == 0, again.stdout + again.stderr
        assert again.stdout.splitlines()[0] == "Already running."
        assert ("The sandbox has died. Restarting it." in again.stdout) is dead
        (shown,) = ACCESS.finditer(again.stdout)
        assert shown.groupdict() == up.access
    assert [monitor["id"] for monitor in up.sandbox.state()["monitors"]] == monitors

    down = make("down")
    assert (down.returncode, down.stdout.strip()) == (0, "Stopped Airflow and the sandbox.")
    assert not left_behind(DEMO_HOMES / "up")
    assert make("down").stdout.strip() == "Airflow and the sandbox are not running."


def scheduler_of_the_demo() -> int | None:
    """Return the pid of the scheduler that a demo has started, or None."""
    try:
        sessions = json.loads((DEMO_HOMES / "demo" / STATE_FILE).read_text())["sessions"]
    except FileNotFoundError:
        return None
    return int(sessions["scheduler"]["pid"]) if "scheduler" in sessions else None


def interrupted_demo(number: signal.Signals, environ: dict[str, str]) -> tuple[int, str, str]:
    """Return exit status, output, and complaints of a demo that gets a signal while Airflow starts."""
    before = scheduler_of_the_demo()
    demo = subprocess.Popen(
        [sys.executable, "-m", "demo", "run"],
        cwd=REPOSITORY,
        env={**ENVIRONMENT, **environ},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        started = wait_until(lambda: scheduler_of_the_demo() not in (None, before))
        demo.send_signal(number)
        output, complaint = demo.communicate(timeout=PATIENCE)
    finally:
        demo.kill()
    assert started, complaint
    return demo.returncode, output, complaint


def test_an_interrupted_demo_leaves_nothing_behind_and_ends_what_a_killed_one_left(
    warm_environ: dict[str, str],
) -> None:
    interrupted_demo(signal.SIGKILL, warm_environ)
    assert left_behind(DEMO_HOMES)
    assert Stack.running_in(DEMO_HOMES / "demo") is not None

    status, output, complaint = interrupted_demo(signal.SIGINT, warm_environ)

    assert "ending what an interrupted run left behind" in output
    assert status == 130
    assert "interrupted" in complaint
    assert not left_behind(DEMO_HOMES)


def demo_of_a_copy(
    folder: Path, edits: Mapping[str, tuple[str, str]], environ: Mapping[str, str]
) -> subprocess.CompletedProcess[str]:
    """Run the demo of a copy of this clone.

    :param edits: old and new text, by file.
    """
    for name in ("demo", "example_dags", "tests/support"):
        shutil.copytree(REPOSITORY / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name, (old, new) in edits.items():
        text = (folder / name).read_text()
        assert text.count(old) == 1, name
        (folder / name).write_text(text.replace(old, new))
    return subprocess.run(
        [sys.executable, "-m", "demo", "run"],
        cwd=folder,
        env={**ENVIRONMENT, **environ, "WEBDATA_DEMO_HOMES": str(folder / "homes")},
        capture_output=True,
        text=True,
        timeout=3 * PATIENCE,
        check=False,
    )


# The other examples run by `make up`.
ONE_EXAMPLE = (
    "    reports = {dag_id: _run(stack, dag_id) for dag_id in PLAIN_DAGS}\n",
    "    return {dag_id: _run(stack, dag_id) for dag_id in PLAIN_DAGS[:1]}\n",
)


def test_a_demo_shows_the_results_and_leaves_nothing_behind(tmp_path: Path) -> None:
    temporary = tmp_path / "tmp"
    temporary.mkdir()

    done = demo_of_a_copy(tmp_path, {"demo/examples.py": ONE_EXAMPLE}, {"TMPDIR": str(temporary)})

    assert done.returncode == 0, done.stdout + done.stderr
    assert list(temporary.iterdir()) == []
    assert "webdata_search.report: success" in done.stdout
    report = done.stdout.partition("\nwebdata_search\n--------------\n")[2]
    assert FOUND["webdata_search"] in report, done.stdout
    assert not left_behind(tmp_path)


def test_a_demo_whose_task_fails_says_why(tmp_path: Path, warm_environ: dict[str, str]) -> None:
    edits = {"example_dags/webdata_search.py": ("limit=5", 'limit="{{ 500 }}"')}

    done = demo_of_a_copy(tmp_path, edits, warm_environ)

    assert done.returncode == 1, done.stdout + done.stderr
    assert "webdata_search.search failed on try 1" in done.stderr
    assert "limit" in done.stderr
    assert "500" in done.stderr
    assert "Traceback" not in done.stderr
    assert not left_behind(tmp_path)
